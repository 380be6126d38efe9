from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest, norm

from theory import InvalidInput, UserItems
from theory.calibration import calibrate
from wgm_jax import synthetic
from wgm_jax.selection.domains import released_sets
from wgm_jax.selection.joint import Joint
from wgm_jax.selection.limited_domain import LimitedDomain
from wgm_jax.selection.noise import trial_keys
from wgm_jax.selection.permute_and_flip import PermuteAndFlip
from wgm_jax.selection.top_k import OneshotLaplace, Peeling
from wgm_jax.selection.trials import OnFoundDomain, run_selection, run_selections

SIZES = synthetic.SetSizes("lognormal", mean=6, spread=1.0, cap=60)
DATA = synthetic.zipf_draws(s=1.2, num_pairs=4000, set_sizes=SIZES, support=3000, seed=3)
MECHANISMS = [
    OnFoundDomain(Peeling()),
    Peeling(),
    LimitedDomain(multiple=5),
    OnFoundDomain(OneshotLaplace()),
    OneshotLaplace(),
    PermuteAndFlip(),
    Joint(),
]
POINT = {"eps": [1.0, 6.0], "delta": 1e-2, "k": [1, 5, 20], "max_items_per_user": 4, "seed": 9}


def run(mechanisms=MECHANISMS, **options):
    return run_selections(DATA, mechanisms, **(POINT | options))


def assert_same(ours, theirs, rows=slice(None)):
    for mine, other in zip(ours, theirs, strict=True):
        for row, others in zip(mine.chosen, other.chosen, strict=True):
            for chosen, expected in zip(row, others, strict=True):
                np.testing.assert_array_equal(chosen, expected[rows])
        if mine.domain_sizes is not None:
            np.testing.assert_array_equal(mine.domain_sizes, other.domain_sizes[rows])


@pytest.fixture(scope="module")
def whole():
    return run(num_trials=40)


def test_numbers_depend_on_neither_chunks_nor_companions(whole):
    assert_same(run(num_trials=40, memory_budget=10**6), whole)
    assert_same(run(num_trials=15, first_trial=20), whole, slice(20, 35))
    for i in (0, 1):
        assert_same(run([MECHANISMS[i]], num_trials=40), [whole[i]])
    fewer = run(num_trials=40, eps=[6.0, 3.0], k=20)
    for mine, other in zip(fewer, whole, strict=True):
        np.testing.assert_array_equal(mine.chosen[0][0], other.chosen[1][2])


def test_another_seed_is_another_run(whole):
    other = run(num_trials=15, seed=10)
    for mine, theirs in zip(other, whole, strict=True):
        assert (mine.chosen[0][2] != theirs.chosen[0][2][:15]).any()


def test_a_meta_algorithm_is_its_two_halves(whole):
    shares = {"eps_shares": (Fraction(1, 4), Fraction(3, 4)), "delta_shares": (0.9, 0.1)}
    (trials,) = run([OnFoundDomain(Peeling())], num_trials=40, **shares)
    found = calibrate(eps=np.array([0.25, 1.5]), delta=0.9e-2, max_items_per_user=4)
    masks = np.concatenate(list(released_sets(DATA, found, num_trials=40, seed=9)))
    np.testing.assert_array_equal(trials.domain_sizes, masks.sum(axis=2))
    for e, eps in enumerate((0.75, 4.5)):
        for j, k in enumerate((1, 5, 20)):
            state = Peeling().prepare(DATA, eps=eps, delta=1e-3, k=k, max_items_per_user=4)
            expected = Peeling().select(state, trial_keys(9, 0, 40), masks[:, e])
            np.testing.assert_array_equal(trials.chosen[e][j], expected)
    # What is chosen is in the domain.
    chosen = trials.chosen[1][2]
    rows, places = np.nonzero(chosen >= 0)
    assert masks[rows, 1, chosen[rows, places]].all()


def test_a_public_domain_gets_the_whole_budget(whole):
    assert whole[1].domain_sizes is None and whole[2].domain_sizes is None
    selectors: list[Any] = [Peeling(), LimitedDomain(multiple=5)]
    for trials, selector in zip(whole[1:3], selectors, strict=True):
        state = selector.prepare(DATA, eps=6.0, delta=1e-2, k=5, max_items_per_user=4)
        expected = selector.select(state, trial_keys(9, 0, 40), None)
        np.testing.assert_array_equal(trials.chosen[1][1], expected)


def test_metrics_against_a_loop_over_trials(whole):
    counts = DATA.frequencies.tolist()
    best = sorted(counts, reverse=True)
    sets = [
        set(DATA.items[low:high].tolist())
        for low, high in zip(DATA.offsets, DATA.offsets[1:], strict=False)
    ]
    trials = whole[0]
    assert trials.top_k_missing_mass.shape == (40, 2, 3)
    for trial in (0, 17, 39):
        for e in range(2):
            for j, k in enumerate((1, 5, 20)):
                items = [x for x in trials.chosen[e][j][trial].tolist() if x >= 0]
                missed = sum(best[:k]) - sum(counts[x] for x in items)
                assert trials.top_k_missing_mass[trial, e, j] == missed / DATA.num_pairs
                held = [counts[x] for x in items] + [0] * (k - len(items))
                loss = sum(abs(a - b) for a, b in zip(best[:k], held, strict=True))
                assert trials.l1_loss[trial, e, j] == loss
                assert trials.num_released[trial, e, j] == len(items)
                hit = sum(1 for held in sets if held & set(items))
                assert trials.users_hit[trial, e, j] == hit
                assert trials.users_missed[trial, e, j] == DATA.num_users - hit


def test_metrics_of_more_than_there_is():
    data = UserItems.from_sets([{0}, {0}, {1}])
    trials = run_selection(
        data, Peeling(), eps=1.0, delta=1e-2, k=5, max_items_per_user=1, num_trials=3
    )
    assert trials.num_released.tolist() == [[[2]]] * 3
    assert trials.top_k_missing_mass.max() == 0
    assert set(trials.l1_loss.ravel().tolist()) <= {0, 2}


def test_an_empty_domain_releases_nothing():
    data = synthetic.singletons(3)
    mechanisms = [
        OnFoundDomain(s) for s in (Peeling(), OneshotLaplace(), PermuteAndFlip(), Joint())
    ]
    for trials in run_selections(
        data, mechanisms, eps=1.0, delta=1e-9, k=[1, 3], max_items_per_user=1, num_trials=5
    ):
        assert trials.domain_sizes is not None and trials.domain_sizes.max() == 0
        assert trials.num_released.max() == 0
        np.testing.assert_array_equal(trials.top_k_missing_mass[0], [[1 / 3, 1.0]])
        assert trials.l1_loss[0].tolist() == [[1, 3]]


def test_frame(whole):
    frame = whole[0].to_frame(users=True)
    assert frame.height == 40 * 6
    row = frame.row(40 * 6 - 2, named=True)
    assert row["mechanism"].startswith("OnFoundDomain(selector=Peeling(")
    assert (row["trial"], row["eps"], row["k"]) == (39, 6.0, 5)
    assert row["l1_loss"] == whole[0].l1_loss[39, 1, 1]
    assert row["users_hit"] == whole[0].users_hit[39, 1, 1]
    assert row["domain_size"] == whole[0].domain_sizes[39, 1]
    assert "domain_size" not in whole[1].to_frame().columns


def test_outputs_follow_the_law_of_the_meta_algorithm():
    """Exact: a mixture over domains, items independent as nobody is clipped."""
    data = UserItems.from_sets([{x} for x, n in enumerate((4, 3, 2)) for _ in range(n)])
    number, eps, delta = 20_000, 2.0, 0.2
    trials = run_selection(
        data,
        OnFoundDomain(Peeling()),
        eps=eps,
        delta=delta,
        k=2,
        max_items_per_user=1,
        num_trials=number,
    )
    found = calibrate(eps=1.0, delta=0.1, max_items_per_user=1)
    release = norm.sf((found.threshold - data.frequencies) / found.sigma)
    assert ((release > 0.1) & (release < 0.99)).all()
    selector = Peeling()
    state = selector.prepare(data, eps=1.0, delta=0.1, k=2, max_items_per_user=1)
    law: dict[Any, float] = {}
    for bits in product((False, True), repeat=3):
        weight = np.prod(np.where(bits, release, 1 - release))
        for sequence, probability in selector.law(
            state, tuple(np.flatnonzero(bits).tolist())
        ).items():
            law[sequence] = law.get(sequence, 0.0) + weight * probability
    seen = Counter(tuple(x for x in row if x >= 0) for row in trials.chosen[0][0].tolist())
    assert set(seen) == set(law) and len(law) == 10
    for sequence, probability in law.items():
        assert binomtest(seen[sequence], number, probability).pvalue > 1e-9


@dataclass(frozen=True)
class FamilyState:
    k: int
    family: str | None


@dataclass(frozen=True)
class Counted:
    """Releases items 0, 1, ..., and counts its calls."""

    family: str | None
    calls: list = field(default_factory=list)

    def prepare(self, data, *, eps, delta, k, max_items_per_user):
        return FamilyState(k, self.family)

    def select(self, state, keys, domain):
        self.calls.append(state.k)
        return np.tile(np.arange(state.k, dtype=np.int32), (len(keys), 1))

    def law(self, state, domain):
        return {}


def test_states_of_a_family_are_run_once():
    alone, family = Counted(None), Counted("same")
    trials = run([alone, family, OnFoundDomain(family)], num_trials=8)
    assert sorted(alone.calls) == [1, 1, 5, 5, 20, 20] * (len(alone.calls) // 6)
    assert set(family.calls) == {20}
    assert len(family.calls) == len(alone.calls) // 2  # once, and once per eps on found domains
    for record in trials:
        for e in range(2):
            for j, k in enumerate((1, 5, 20)):
                assert record.chosen[e][j].tolist() == [list(range(k))] * 8


def test_progress_ends_at_the_total():
    calls = []
    run([OnFoundDomain(Peeling())], num_trials=30, progress=lambda *a: calls.append(a))
    assert calls[-1] == (30, 30) and calls == sorted(calls)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"k": 0}, "k"),
        ({"k": [1, 2.5]}, "k"),
        ({"k": [5, 1]}, "k"),
        ({"k": [5, 5]}, "k"),
        ({"k": []}, "k"),
        ({"eps": 0.0}, "eps"),
        ({"eps": []}, "eps"),
        ({"eps": [1.0, 1.0]}, "eps"),
        ({"eps": -1.0}, "eps"),
        ({"delta": 0.0}, "delta"),
        ({"max_items_per_user": 0}, "max_items_per_user"),
        ({"num_trials": 0}, "num_trials"),
        ({"seed": -1}, "seed"),
        ({"first_trial": 2**31}, "first_trial"),
        ({"memory_budget": 0}, "memory_budget"),
        ({"method": "half"}, "method"),
        ({"eps_shares": (0.5, 0.6)}, "eps_shares"),
        ({"delta_shares": (1.0,)}, "delta_shares"),
        ({"eps_shares": (0.2, 0.3, 0.5), "delta_shares": (0.2, 0.3, 0.5)}, "eps_shares"),
        ({"mechanisms": ["wgm"]}, "mechanism"),
        ({"mechanisms": ["nobody"]}, "mechanism"),
        ({"mechanisms": []}, "mechanisms"),
        ({"mechanisms": [LimitedDomain(k_bar=3)]}, "k_bar"),
        ({"mechanisms": [OneshotLaplace("approximate")]}, "eps"),
    ],
)
def test_bad_arguments_are_named(options, name):
    with pytest.raises(InvalidInput) as error:
        run(**({"num_trials": 1, "mechanisms": [OnFoundDomain(Peeling())]} | options))
    assert error.value.name == name
