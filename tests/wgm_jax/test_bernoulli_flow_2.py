import dataclasses
import functools

import numpy as np
import pytest
from scipy import stats

from experiments.audit import Pair, Run, audit, examine, subject
from tests.two_round_law import TwoRoundLaw, random_neighbours, spent, union_alone
from theory import InvalidInput, UserItems, calibrate
from theory.flow import calibrate_flow
from theory.flow.two_rounds import TwoRoundFlow
from theory.flow.two_rounds_calibration import calibrate_two_rounds
from wgm_jax import metrics
from wgm_jax.devices import Devices
from wgm_jax.engine import simulate
from wgm_jax.padded import PaddedSampler
from wgm_jax.set_union.bernoulli_flow_2 import BernoulliFlow2
from wgm_jax.set_union.flows import known_two_rounds, remember_two_rounds
from wgm_jax.set_union.two_round_trials import (
    TwoRounds,
    TwoRoundTrials,
    fine_coins,
    keep_uniformly,
)

EPS, DELTA, BOUND, CUT = 1.0, 1e-2, 2, 1
make = functools.cache(lambda **given: calibrate_flow(**given))


@pytest.fixture(scope="module")
def flow():
    return calibrate_two_rounds(
        eps=EPS, delta=DELTA, max_items_per_user=BOUND, cut=CUT, share=0.3, delta_share=0.3,
        calibrate=lambda progress, **given: make(**given),
    )  # fmt: skip


def worst(law, rng, num_pairs, num_items=3, most=12):
    pairs = (random_neighbours(rng, num_items, BOUND, most) for _ in range(num_pairs))
    return max(max(spent([law.law(users) for users in pair], EPS)) for pair in pairs)


def test_exact_laws_of_neighbours_are_within_delta(flow):
    law = TwoRoundLaw(flow, 3)
    found = worst(law, np.random.default_rng(1), 30)
    assert 0.5 * DELTA < found <= DELTA * (1 + 1e-9)


@pytest.mark.slow
def test_exact_laws_of_many_neighbours_are_within_delta(flow):
    law = TwoRoundLaw(flow, 3)
    for seed in range(4):
        assert worst(law, np.random.default_rng(seed + 10), 300) <= DELTA * (1 + 1e-9)
    four = TwoRoundLaw(flow, 4)
    assert worst(four, np.random.default_rng(5), 60, num_items=4) <= DELTA * (1 + 1e-9)


def one_of_two(first, second):
    """A user of two items; if one comes out in the first round, the other is the only one left."""
    others = [(frozenset({0, 2}), first), (frozenset({1}), second)]
    return others, [*others, (frozenset({0, 1}), 1)]


def test_class_one_after_a_first_round_is_accused(flow):
    """The mistake that the floor of classes prevents: one item left, of class 1."""
    pairs = [one_of_two(first, second) for first in (20, 24) for second in (2, 3)]
    bug = TwoRoundLaw(flow, 3, class_after=lambda size, left: min(left, BOUND))
    accused = max(max(spent([bug.law(users) for users in pair], EPS)) for pair in pairs)
    assert accused > 2 * DELTA
    right = TwoRoundLaw(flow, 3)
    assert max(max(spent([right.law(u) for u in pair], EPS)) for pair in pairs) <= DELTA


def test_a_second_round_at_full_budget_is_accused(flow):
    whole = make(eps=EPS, delta=DELTA, max_items_per_user=BOUND)
    with pytest.raises(InvalidInput, match="spent with 2 items"):
        dataclasses.replace(flow, second=whole).verify()


def test_released_items_that_are_not_deleted_do_no_harm(flow):
    """Only to utility: the certificate allows any class up to that of the first round."""
    kept = TwoRoundLaw(flow, 3, left_over=lambda held, released: held)
    assert worst(kept, np.random.default_rng(2), 20) <= DELTA * (1 + 1e-9)


def means_after(data, flow, released):
    return TwoRounds(flow, data.items, data.set_sizes, data.num_items).means(released)


def small_data():
    sets = [(0, 1)] * 12 + [(0, 2)] * 5 + [(2,)] * 3 + [(0, 1, 2, 3), (3,)]
    users = [(frozenset(s), 1) for s in sets]
    return UserItems.from_sets(sets), users


def test_missing_mass_given_the_first_release_is_exact(flow):
    data, users = small_data()
    law = TwoRoundLaw(flow, 4).law(users)
    weight = data.frequencies / data.num_pairs
    for first in {first for first, _ in law}:
        part = {union: p for (seen, union), p in law.items() if seen == first}
        mean = sum(p * (1 - sum(weight[i] for i in union)) for union, p in part.items())
        released = np.array([item in first for item in range(4)])
        known = means_after(data, flow, released)
        assert known[0] == pytest.approx(mean / sum(part.values()), rel=1e-9)
        count = sum(p * len(union) for union, p in part.items()) / sum(part.values())
        assert known[1] == pytest.approx(count, rel=1e-9)
    with pytest.raises(InvalidInput, match="shape"):
        means_after(data, flow, np.zeros(3, bool))


def test_trials_have_the_exact_law(flow):
    data, users = small_data()
    law = TwoRoundLaw(flow, 4).law(users)
    trials = TwoRoundTrials(data, flow, seed=3)
    num = 250
    drawn = [frozenset(np.flatnonzero(trials.released(i)).tolist()) for i in range(num)]
    firsts = [frozenset(np.flatnonzero(trials.first_release(i)).tolist()) for i in range(num)]
    first_law = {}
    for (first, _), p in law.items():
        first_law[first] = first_law.get(first, 0.0) + p
    for table, seen in ((union_alone(law), drawn), (first_law, firsts)):
        for out, p in table.items():
            # Bernstein: false alarms below 2e-8 each.
            assert abs(seen.count(out) - num * p) <= np.sqrt(2 * 18 * num * p * (1 - p)) + 12
    assert all(first <= out for first, out in zip(firsts, drawn, strict=True))
    weight = data.frequencies / data.num_pairs
    exact = sum(p * (1 - sum(weight[i] for i in union)) for (_, union), p in law.items())
    # Hoeffding, means within [0, 1]: false alarms below 1e-7.
    means = trials.missing_masses(60)
    assert abs(means.mean() - exact) <= np.sqrt(17 / (2 * 60))
    of_firsts = [means_after(data, flow, trials.first_release(i))[0] for i in (0, 7)]
    assert of_firsts == [means[0], means[7]]


def test_subsets_are_uniform():
    rng = np.random.default_rng(0)
    users, counts = np.repeat(np.arange(3), [4, 2, 3]), np.array([4, 2, 3])
    total = np.zeros(9)
    for _ in range(4000):
        kept = keep_uniformly(rng, users, counts, 2)
        assert np.bincount(users[kept]).tolist() == [2, 2, 2]
        total += kept
    expected = 4000 * np.array([0.5] * 4 + [1.0] * 2 + [2 / 3] * 3)
    assert np.all(np.abs(total - expected) <= 6 * np.sqrt(4000) / 2)
    assert np.all(total[4:6] == 4000)


def test_coins():
    rng = np.random.default_rng(0)
    p = np.repeat([0.0, 1.0, 0.25, 1e-20], 20_000)
    hits = fine_coins(rng, p).reshape(4, -1).sum(axis=1)
    assert hits[0] == hits[3] == 0
    assert hits[1] == 20_000
    assert abs(hits[2] - 5000) <= 6 * np.sqrt(20_000 * 3 / 16)


def test_everything_released_misses_nothing(flow):
    data, _ = small_data()
    assert means_after(data, flow, np.ones(4, bool)) == (0.0, 4.0)


# ---- in the engine


def noise(**given):
    return calibrate(**{"delta": DELTA, "max_items_per_user": BOUND, "eps": EPS, **given})


def test_the_engine_has_the_exact_law(flow):
    remember_two_rounds(flow)
    data, users = small_data()
    law = union_alone(TwoRoundLaw(flow, 4).law(users))
    sampler = PaddedSampler(
        BernoulliFlow2(), data, noise(eps=[EPS]), seed=6, devices=Devices.of(), callers=1,
        memory_budget=2**26, measure=metrics.released_words,
    )  # fmt: skip
    num = 250
    sets = metrics.unpack_words(sampler(0, num)["released"][:, 0], 4) @ (1 << np.arange(4))
    assert sum(law.values()) == pytest.approx(1, rel=1e-9)
    for out, p in law.items():
        count = int(np.sum(sets == sum(1 << i for i in out)))
        assert stats.binomtest(count, num, min(p, 1.0)).pvalue > 1e-8
    # Conditional means given the first round estimate the same mean; all are within [0, 1].
    weight = data.frequencies / data.num_pairs
    missed = 1 - (sets[:, None] >> np.arange(4) & 1) @ weight
    means = TwoRoundTrials(data, flow, seed=6).missing_masses(150)
    assert abs(missed.mean() - means.mean()) <= np.sqrt(17 / 2 * (1 / num + 1 / 150))


def test_numbers_of_the_engine_depend_on_the_trial_alone(flow):
    remember_two_rounds(flow)
    other = dataclasses.replace(flow, eps=2 * EPS)  # less is spent than claimed
    remember_two_rounds(other)
    data, _ = small_data()
    given = {"mechanism": "bernoulli-flow-2", "seed": 4}
    whole = simulate(data, noise(eps=[EPS, 2 * EPS]), num_trials=40, **given)
    assert np.unique(whole.missing_mass).size > 3
    # The same pair of flows and the same draws at both points.
    np.testing.assert_array_equal(whole.missing_mass[:, 0], whole.missing_mass[:, 1])
    for options in ({"chunk_size": 3, "num_threads": 1}, {"num_threads": 3, "chunk_size": 16}):
        part = simulate(data, noise(), num_trials=30, first_trial=10, **given, **options)
        np.testing.assert_array_equal(part.missing_mass, whole.missing_mass[10:, 0])
        np.testing.assert_array_equal(part.num_released, whole.num_released[10:, 0])


def test_flows_are_remembered_if_they_keep_their_promise(flow):
    remember_two_rounds(flow)
    assert known_two_rounds(EPS, DELTA, BOUND) is flow
    with pytest.raises(InvalidInput, match="at most delta"):
        remember_two_rounds(dataclasses.replace(flow, adding=flow.adding + DELTA))
    with pytest.raises(InvalidInput, match=r"at least 0\.0378 for two rounds"):
        simulate(small_data()[0], noise(eps=0.03), "bernoulli-flow-2", num_trials=1)


# ---- audit


@dataclasses.dataclass(frozen=True, eq=False)
class WithoutFloor(TwoRoundFlow):
    """The mistake that the floor of classes prevents."""

    def second_classes(self, set_sizes, left):
        return np.minimum(left, self.max_items_per_user)


@dataclasses.dataclass(frozen=True)
class Careless(BernoulliFlow2):
    def flow(self, eps, delta, max_items_per_user):
        right = super().flow(eps, delta, max_items_per_user)
        return WithoutFloor(
            **{each.name: getattr(right, each.name) for each in dataclasses.fields(right)}
        )


CLAIM = {"eps": EPS, "delta": DELTA, "max_items_per_user": BOUND}


def runs(users):
    return tuple(Run(tuple(sorted(held)), copies) for held, copies in users)


def test_the_audit_sees_the_exact_law(flow):
    remember_two_rounds(flow)
    _, users = small_data()
    clipped_twice = [(frozenset({0, 1, 2}), 2), (frozenset({0, 3}), 9), (frozenset({3}), 2)]
    for those in (users, clipped_twice):
        (law,) = subject("bernoulli-flow-2", **CLAIM).laws([runs(those)])
        expected = TwoRoundLaw(flow, 4).law(those)
        seen = {(first, first | second): p for (first, second), p in law.probabilities.items()}
        assert len(seen) == len(law.probabilities) and seen.keys() <= expected.keys()
        for out, p in expected.items():
            assert seen.get(out, 0.0) == pytest.approx(p, rel=1e-9, abs=1e-18)


def test_the_audit_accuses_a_second_round_without_the_floor(flow):
    remember_two_rounds(flow)
    right = audit(subject("bernoulli-flow-2", **CLAIM), seconds=None, max_evaluations=60)
    assert not right.accused and right.found_delta > 0.99 * DELTA
    first, second = right.entries()["event"]["worst_outcome"]
    assert set(first) <= set(range(8)) and isinstance(second, list)
    others = runs([(frozenset({0, 2}), 20), (frozenset({1}), 3)])
    pair = Pair(others, (0, 1))
    careless = subject(Careless(), **CLAIM)
    assert examine(careless, pair).limits.low > 2 * DELTA
    assert examine(subject(BernoulliFlow2(), **CLAIM), pair).limits.high < DELTA


def test_the_search_finds_the_mistake_by_itself(flow):
    remember_two_rounds(flow)
    found = audit(subject(Careless(), **CLAIM), seconds=None, max_evaluations=300)
    assert found.accused


@pytest.mark.slow
def test_a_long_audit_accuses_nobody(flow):
    remember_two_rounds(flow)
    right = audit(subject("bernoulli-flow-2", **CLAIM), seconds=None, max_evaluations=3000)
    assert not right.accused
