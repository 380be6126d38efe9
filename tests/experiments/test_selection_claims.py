"""Claims about selections: what decides them is right, and a false one does not pass."""

import math
from dataclasses import replace

import numpy as np
import pytest

import experiments.claims.lemma_4_1 as lemma_4_1
import experiments.claims.lemma_4_2 as lemma_4_2
import experiments.claims.lemma_b_1 as lemma_b_1
from experiments.cells import Case, run_case
from experiments.claims import Settings, claims, select
from experiments.claims.erratum_5 import l1_loss, printed_l1_loss
from experiments.claims.erratum_6 import exact_delta
from experiments.claims.theorem_4_5_noise import game_upper
from experiments.verdict import judge
from theory import UserItems, hitting_game_delta, hitting_scale, user_peeling_scale
from wgm_jax.selection.record import SelectionTrials
from wgm_jax.synthetic import SetSizes, zipf_draws

NO_TRIALS = Settings(num_trials=0)
OBSERVED = ("theorem-4.3", "theorem-4.5", "corollary-4.4-instance", "corollary-4.6-instance")


def chosen():
    wanted = [claim for claim in claims() if claim.name.startswith(OBSERVED)]
    return [claim for claim in wanted if claim.observe is not None]


@pytest.fixture(scope="module")
def case():
    """Few users with few items, but many of each: the bounds say something."""
    sizes = SetSizes("geometric", mean=2, cap=4)
    return Case("zipf", zipf_draws(s=2.0, num_pairs=60_000, set_sizes=sizes, seed=0))


@pytest.fixture(scope="module")
def runs(case):
    settings = {"eps": (1.0, 4.0), "delta": 1e-5, "beta": 0.05}
    return {
        trials: run_case(case, max_items_per_user="max", num_trials=trials, **settings)
        for trials in (0, 200)
    }


@pytest.mark.parametrize("trials", [0, 200])
def test_on_a_run_every_claim_comes_out_as_expected(runs, trials):
    methods = set()
    for claim in chosen():
        verdicts = judge(claim.name, list(claim.observe(runs[trials])), level=0.01)
        assert len(verdicts) == 4
        assert {v.verdict for v in verdicts} <= {"proved", "confirmed", "vacuous"}, claim.name
        methods |= {v.method for v in verdicts if claim.name.startswith("theorem")}
    assert ("simulation" in methods) == (trials > 0)


def test_a_clipped_run_is_decided_without_trials(case, runs):
    run = run_case(case, max_items_per_user=1, eps=(4.0,), delta=1e-5, num_trials=0)
    run = replace(run, simulated=runs[200].simulated)
    for claim in chosen():
        verdicts = judge(claim.name, list(claim.observe(run)), level=0.01)
        assert {v.method for v in verdicts} == {"exact"}
        assert {v.verdict for v in verdicts} <= {"proved", "vacuous"}


def test_certificates_hold_in_the_trials(runs):
    selection = runs[200].selection
    for point in selection.points:
        # True rates are at most 5 %: 36 of 200 have probability below 1e-10.
        assert np.count_nonzero(selection.lost(point) > selection.certified_loss(point)) < 36
        assert np.count_nonzero(selection.hits(point) < selection.certified_hits(point)) < 36
        most = selection.hits_at_most(point)
        assert selection.hits(point).mean() <= most * (1 + 1e-3) <= selection.users.num_users * 1.01
        missed = selection.top_pairs(point.k) - selection.released_at_most(point)
        assert selection.lost(point).mean() >= missed * (1 - 1e-3)


def test_exact_marginals_are_summed_item_by_item(runs):
    selection = runs[0].selection
    data, point = selection.users, selection.points[0]
    of_item = selection.miss.miss[point.index][data.item_classes.class_of_item]
    for beta in (1e-6, 0.05, 0.5):
        level = selection.sure_frequency(point, beta)
        assert of_item[data.frequencies > level].sum() <= beta
        assert of_item[data.frequencies >= level].sum() > beta
    # Nobody is clipped: items are independent, and so is the chance to hold one of the domain.
    missed = [np.prod(of_item[row]) for row in np.split(data.items, data.offsets[1:-1])]
    exact = data.num_users - sum(missed)
    assert exact <= selection.hits_at_most(point) * (1 + 1e-12)
    # The best k of the domain: by brute force over draws of domains.
    rng = np.random.default_rng(0)
    order = np.argsort(-data.frequencies, kind="stable")
    kept = rng.random((4000, order.size)) >= of_item[order]
    best = np.where(kept & (np.cumsum(kept, axis=1) <= point.k), data.frequencies[order], 0)
    assert best.sum(axis=1).mean() <= selection.released_at_most(point) * (1 + 1e-3)


# ---- exact numbers


@pytest.mark.parametrize("eps", [0.1, 1.0])
def test_erratum_6_has_the_probability_of_choosing_a_first(eps):
    scale = user_peeling_scale(eps=eps, delta=1e-5, k=2)
    first = 1 / (1 + math.exp(-200 / scale))  # 320 users against 120
    low, high = exact_delta(eps, 1e-5, stops_early=True)
    # W releases (a) alone with this probability, W' never does.
    assert low == pytest.approx(first, abs=1e-9) and high - low < 1e-9
    assert exact_delta(eps, 1e-5, stops_early=False)[1] <= 1e-5


@pytest.mark.parametrize(("eps", "delta", "rounds"), [(0.5, 0.1, 8), (1.0, 1e-3, 12)])
def test_the_game_by_dynamic_programming_is_just_above_its_closed_form(eps, delta, rounds):
    eps_round = 1 / float(hitting_scale(eps=eps, delta=delta))
    closed = hitting_game_delta(eps=eps, eps_round=eps_round, rounds=rounds)
    assert closed <= game_upper(eps, eps_round, rounds) <= 1.15 * closed


def test_the_loss_quantile_is_that_of_a_softmax():
    # One item leads by 2: it is missed with probability 2 / (2 + e^2) = 0.213.
    assert lemma_4_2.loss_quantile(3, 1, 2.0, 0.22) == 0.0
    assert lemma_4_2.loss_quantile(3, 1, 2.0, 0.21) == 2.0


def test_what_is_measured_is_the_corrected_l1_loss():
    data = UserItems.from_codes(np.arange(22), np.repeat(np.arange(4), (9, 7, 4, 2)))
    outputs = np.array([[0, 1, 2], [2, 0, -1], [3, -1, -1], [-1, -1, -1]], np.int32)
    trials = SelectionTrials(
        mechanism="none", data=data, eps=(1.0,), k=(3,), delta=1e-5, max_items_per_user=1,
        chosen=((outputs,),), domain_sizes=None, seed=0, first_trial=0, seconds=0.0,
        domain_seconds=0.0, versions={},
    )  # fmt: skip
    counts = [data.frequencies[row[row >= 0]].tolist() for row in outputs]
    expected = [l1_loss(row, (9, 7, 4), 3) for row in counts]
    assert trials.l1_loss[:, 0, 0].tolist() == expected == [0, 11, 18, 20]
    assert printed_l1_loss(counts[0], (9, 7, 4), 3) == 4


# ---- false claims


@pytest.mark.parametrize(
    ("module", "name", "factor"),
    [(lemma_4_1, "lemma-4.1", 0.2), (lemma_b_1, "lemma-b.1", 0.5), (lemma_b_1, "lemma-b.1-t", 0.9)],
)
def test_too_little_noise_is_refuted(monkeypatch, module, name, factor):
    true = module.peeling_scale
    monkeypatch.setattr(module, "peeling_scale", lambda **given: factor * true(**given))
    (claim, *_) = select([name])
    verdicts = judge(claim.name, list(claim.family(NO_TRIALS)), level=0.01)
    assert "refuted" in {v.verdict for v in verdicts}


def test_a_bound_on_the_loss_that_is_too_small_is_refuted(monkeypatch):
    true = lemma_4_2.peeling_loss_bound

    def half(*given, **more):
        bound = true(*given, **more)
        return replace(bound, value=0.5 * bound.value)

    monkeypatch.setattr(lemma_4_2, "peeling_loss_bound", half)
    (claim,) = [c for c in lemma_4_2.CLAIMS if c.name == "lemma-4.2-sharp"]
    verdicts = judge(claim.name, list(claim.family(NO_TRIALS)), level=0.01)
    assert "refuted" in {v.verdict for v in verdicts}
