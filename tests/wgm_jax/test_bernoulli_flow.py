"""Bernoulli flow selection: its law, its exact mean, soundness, and planted bugs.

Release probabilities are compared with a second, slow reading of the definition; frequencies of
trials with exact laws. False alarms: below 100 binomial tests at LEVEL, under 1e-6 in all.
"""

import dataclasses
import itertools
from fractions import Fraction
from functools import cache
from math import exp

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from experiments.audit import Pair, Run, audit, subject
from theory import (
    InvalidInput,
    ItemClasses,
    Profile,
    UserItems,
    calibrate,
    certificate,
    exact_quantile,
)
from theory.flow import calibrate_flow
from theory.flow.exact import flow_miss_probabilities
from theory.flow.release_table import ReleaseTable, base_state, most_telling
from wgm_jax import simulate
from wgm_jax.bits import random_bits
from wgm_jax.coins import coins, probability_words
from wgm_jax.set_union.bernoulli_flow import BernoulliFlow
from wgm_jax.set_union.flows import known_flow, remember

LEVEL = 1e-8
TRIALS = 20_000
EPS, DELTA, BOUND = 1.0, 1e-5, 4
# Trials are run where a few holders are many.
LARGE = {"eps": 3.0, "delta": 1e-2}
# Two users are clipped at Delta0 = 4, and only they hold items 4 and 5.
SETS = [(0, 1, 2, 3, 4), (0, 1, 2, 3, 4, 5), (0, 1), (2,), *[(0, 1, 2)] * 2, *[(1, 3)] * 2]


def noise(**changes):
    given = {"eps": EPS, "delta": DELTA, "max_items_per_user": BOUND} | changes
    return calibrate(**given)


def large_flow(bound):
    return known_flow(LARGE["eps"], LARGE["delta"], bound)


# ---- the definition, slowly


def node(grid, index):
    """Release probability at a node of the grid."""
    if index in (0, grid.num_cells):
        return float(index > 0)
    return 1 / (1 + exp(-(index - 1 - grid.half_cells) * grid.cell_width))


def moved(durations, position, time):
    """Position after some time, cell by cell."""
    cell, share = int(position), position - int(position)
    while cell < len(durations):
        left = (1 - share) * durations[cell]
        if time < left:
            return cell + share + time / durations[cell]
        time, cell, share = time - left, cell + 1, 0.0
    return float(cell)


def group_release(group, counts):
    best = 0.0
    firsts = [group.first_class, *(group.last_of_block[:-1] + 1)]
    blocks = [range(a, b + 1) for a, b in zip(firsts, group.last_of_block, strict=True)]
    for last in range(len(blocks)):
        if not any(counts.get(t, 0) for t in blocks[last]):
            continue
        position = float(group.starts[last])
        for durations, block in zip(group.durations[: last + 1], blocks, strict=False):
            for t in block:
                time = counts.get(t, 0) * group.time_constants[t - group.first_class]
                position = moved(durations, position, float(time))
        cell = min(int(position), group.grid.num_cells - 1)
        low, high = node(group.grid, cell), node(group.grid, cell + 1)
        best = max(best, low + (position - cell) * (high - low))
    return best


def slow_release(flow, counts):
    """Largest release probability over structures of the union of their groups."""
    chances = []
    for parts in flow.structures:
        miss = 1.0
        for index in parts:
            miss *= 1 - group_release(flow.groups[index], counts)
        chances.append(1 - miss)
    return max(chances)


def fast_release(flow, counts):
    return probabilities(flow, counts)[0]


def miss_of(flow, counts):
    return probabilities(flow, counts)[1]


def probabilities(flow, counts):
    sizes = np.array(sorted(counts), np.int64)
    holders = np.array([counts[t] for t in sorted(counts)], np.int64)
    release, miss = flow.probabilities(np.array([0, sizes.size]), sizes, holders)
    assert release[0] + miss[0] == pytest.approx(1, abs=1e-12)
    return release[0], miss[0]


def test_release_probabilities_are_those_of_the_definition():
    flow, generator = known_flow(EPS, DELTA, BOUND), np.random.default_rng(0)
    assert len(flow.structures) == 3
    assert fast_release(flow, {}) == 0 == slow_release(flow, {})
    for _ in range(60):
        chosen = generator.choice(BOUND, size=generator.integers(1, BOUND + 1), replace=False)
        counts = {int(t) + 1: int(generator.integers(0, 14)) for t in chosen}
        assert fast_release(flow, counts) == pytest.approx(slow_release(flow, counts), abs=1e-11)


def upper_hull(step):
    """Corners of the convex hull of a map's vertices and of (1, 1), from above."""
    points = sorted({*zip(step.before.tolist(), step.after.tolist(), strict=True), (1.0, 1.0)})
    hull = []
    for x, y in points:
        while len(hull) > 1:
            (x0, y0), (x1, y1) = hull[-2:]
            if (x1 - x0) * (y - y0) < (y1 - y0) * (x - x0):
                break
            hull.pop()
        hull.append((x, y))
    return np.transpose(hull)


def test_one_more_holder_moves_an_item_by_no_more_than_the_certified_map():
    flow, generator = known_flow(EPS, DELTA, BOUND), np.random.default_rng(1)
    hulls = {t: upper_hull(flow.step_map(t)) for t in range(1, BOUND + 1)}
    for _ in range(60):
        counts = {t: int(generator.integers(0, 10)) for t in range(1, BOUND + 1)}
        t = int(generator.integers(1, BOUND + 1))
        before = fast_release(flow, counts)
        after = fast_release(flow, counts | {t: counts[t] + 1})
        assert before <= after <= np.interp(before, *hulls[t]) * (1 + 1e-9)


def test_rows_of_the_table_are_the_holders_given_one_by_one():
    flow = known_flow(EPS, DELTA, BOUND)
    data = UserItems.from_sets(SETS)
    classes = data.item_classes
    state = base_state(classes, flow)
    table = ReleaseTable.of(state, np.full(classes.frequencies.size, 50))
    for row, (first, last) in enumerate(itertools.pairwise(classes.offsets)):
        sizes, counts = classes.sizes[first:last], classes.counts[first:last]
        base = dict(zip(sizes.tolist(), counts.tolist(), strict=True))
        base = {t: n for t, n in base.items() if t <= BOUND}
        for extra in (0, 1, 2, 17, 50):
            known = base | {BOUND: base.get(BOUND, 0) + extra}
            found = table.release[table.offsets[row] + extra]
            assert found == pytest.approx(fast_release(flow, known), rel=1e-9, abs=0)
        sure = int(most_telling(state)[row])
        assert miss_of(flow, base | {BOUND: base.get(BOUND, 0) + sure}) == 0


# ---- coins


def test_probabilities_become_integers_without_loss():
    small = np.array([0.0, 0.5, 0.25, 1e-9, 3e-17, 0.1, 2.0**-128, 1e-15])
    release = np.concatenate((small, 1 - small))
    words = probability_words(release, np.concatenate((1 - small, small))).astype(object)
    numbers = sum(word << 32 * (3 - i) for i, word in enumerate(words))
    likely = [number >> 127 for number in numbers]
    counts = [number - (flag << 127) for number, flag in zip(numbers, likely, strict=True)]
    exact = [int(Fraction(float(p)) * 2**128) for p in np.tile(small, 2)]
    exact = [min(count, 2**127 - 1) for count in exact]
    assert counts == exact
    assert likely == [int(p > 0.5) for p in release]


def test_further_words_decide_where_the_first_is_tied():
    key = jax.random.key(3, impl="threefry2x32")
    first = random_bits(jax.random.fold_in(key, 0), (64,)) & jnp.uint32(2**31 - 1)
    drawn = random_bits(jax.random.fold_in(key, 0), (64,))
    tied = np.asarray(first == drawn)
    rest = random_bits(jax.random.fold_in(key, 1), (3, 64))
    more, full = jnp.uint32(1), jnp.full(64, 2**32 - 1, jnp.uint32)
    none = jnp.zeros(64, jnp.uint32)
    # The first word alone decides against, the second and the last in favour.
    assert not np.any(coins(key, (first, none, none, none)) & tied)
    assert np.all(coins(key, (first, full, none, none))[tied])
    assert np.all(coins(key, (first, rest[0], rest[1], rest[2] + more))[tied])
    assert not np.any(coins(key, (first, rest[0], rest[1], rest[2]))[tied])
    # The same where entries are looked up.
    turned = tuple(word[::-1] for word in (first, rest[0], rest[1], rest[2] + more))
    assert np.all(coins(key, turned, jnp.arange(63, -1, -1))[tied])
    assert 20 < tied.sum() < 44


# ---- trials


@cache
def released_sets(mechanism, bound):
    """Released items of many trials, (TRIALS, items)."""
    data = UserItems.from_sets(SETS)
    calibration = noise(**LARGE, max_items_per_user=[bound])
    state = mechanism.prepare(data, calibration)
    point = dataclasses.replace(state, words=tuple(word[0] for word in state.words))
    keys = jax.vmap(jax.random.fold_in, (None, 0))(
        jax.random.key(11, impl="threefry2x32"), jnp.arange(TRIALS, dtype=jnp.uint32)
    )
    run = jax.jit(jax.vmap(lambda key, state: mechanism.run(key, state).released, (0, None)))
    return np.asarray(run(keys, point))


def check_frequencies(seen, chances):
    for count, chance in zip(seen, chances, strict=True):
        assert stats.binomtest(int(count), TRIALS, float(chance)).pvalue > LEVEL


def masses(law, items):
    """Probability of every set of items, as a number whose bits are the items."""
    found = np.zeros(2**items)
    for weight, hits, misses in zip(law.weights, law.released, law.missed, strict=True):
        for index in range(2**items):
            bits = np.array([index >> x & 1 for x in range(items)], bool)
            found[index] += weight * np.prod(np.where(bits, hits, misses))
    return found


@pytest.mark.parametrize("bound", [4, 6])
def test_trials_have_the_law_that_the_audit_sees(bound):
    flow = subject(BernoulliFlow(), **LARGE, max_items_per_user=bound)
    (law,) = flow.laws([tuple(Run(items) for items in SETS)])
    assert law.num_components > 1 or bound == 6
    released = released_sets(BernoulliFlow(), bound)
    assert not released[:, 6:].any()
    index = released[:, :6].astype(np.int64) @ (1 << np.arange(6))
    # Likely sets one by one, then every item.
    chances, seen = masses(law, 6), np.bincount(index, minlength=64)
    likely = np.argsort(-chances)[:8]
    check_frequencies(seen[likely], np.minimum(chances[likely], 1.0))
    check_frequencies(released[:, :6].sum(axis=0), law.weights @ law.released)


@pytest.mark.parametrize("bound", [4, 6])
def test_exact_misses_are_the_marginals_of_the_law(bound):
    flow = subject(BernoulliFlow(), **LARGE, max_items_per_user=bound)
    (law,) = flow.laws([tuple(Run(items) for items in SETS)])
    data = UserItems.from_sets(SETS)
    found = flow_miss_probabilities(
        Profile.from_user_items(data, max_items_per_user=bound), large_flow(bound)
    )
    rows = data.item_classes.class_of_item
    assert found.miss[rows] == pytest.approx(law.weights @ law.missed, rel=1e-11)
    assert found.hit[rows] == pytest.approx(law.weights @ law.released, rel=1e-8)
    assert found.independent == (bound == 6)
    mean = data.frequencies @ (law.weights @ law.missed) / data.num_pairs
    assert found.mean_missing_mass == pytest.approx(mean, rel=1e-12)
    mass = (~released_sets(BernoulliFlow(), bound)[:, :6] @ data.frequencies) / data.num_pairs
    sure = certificate(found, 0.01).value
    assert stats.binomtest(int(np.sum(mass > sure)), TRIALS, 0.01, "greater").pvalue > LEVEL
    if found.independent:
        level = float(exact_quantile(found, 0.7))
        below = np.sum(mass < level - 1e-9), np.sum(mass <= level + 1e-9)
        assert stats.binomtest(int(below[0]), TRIALS, 0.7, "greater").pvalue > LEVEL
        assert stats.binomtest(int(below[1]), TRIALS, 0.7, "less").pvalue > LEVEL


def test_many_clipped_holders_by_recursion_and_by_convolution():
    """One class of 300 holders alike: K is binomial; the law of two sizes is a convolution."""
    flow = known_flow(EPS, DELTA, BOUND)
    sizes, counts = np.array([9, 40]), np.array([60, 200])
    release = ReleaseTable.of(
        flow.prepare(np.array([0, 0]), np.array([], np.int64), np.array([], np.int64)),
        np.array([260]),
    )
    laws = [
        stats.binom.pmf(np.arange(n + 1), n, BOUND / s) for n, s in zip(counts, sizes, strict=True)
    ]
    expected = np.convolve(*laws) @ release.miss
    classes = ItemClasses.from_counts(np.zeros(2, np.int64), sizes, counts)
    profile = Profile.from_classes(classes, max_items_per_user=BOUND)
    found = flow_miss_probabilities(profile, [flow, flow])
    assert found.miss == pytest.approx(np.full((2, 1), expected), rel=1e-11)


@pytest.mark.slow
def test_a_grid_repeats_its_points_trial_by_trial():
    data = UserItems.from_sets(SETS)
    grid = simulate(data, noise(eps=[1.0, 3.0], delta=1e-2), BernoulliFlow(), num_trials=64)
    for index, eps in enumerate((1.0, 3.0)):
        single = simulate(data, noise(eps=[eps], delta=1e-2), BernoulliFlow(), num_trials=64)
        assert np.array_equal(grid.missing_mass[:, [index]], single.missing_mass)
    # The same coins: whoever comes out at a small eps does at a larger one.
    assert np.all(grid.num_released[:, 0] <= grid.num_released[:, 1])
    assert grid.missing_mass.std(axis=0).min() > 0


def test_what_nobody_keeps_is_never_released():
    data = UserItems.from_sets([set(range(12))])
    calibration = noise(eps=[10.0], delta=1e-2, max_items_per_user=[4])
    state = BernoulliFlow().prepare(data, calibration)
    rows = np.asarray(state.first[:12])
    assert not any(word[0][rows].any() for word in state.words)
    # Coins that always show heads: only what was kept comes out.
    certain = tuple(
        np.where(np.isin(np.arange(word.shape[1]), rows), word, np.uint32(2**31 if i == 0 else 0))
        for i, word in enumerate(state.words)
    )
    point = dataclasses.replace(state, words=tuple(word[0] for word in certain))
    released = BernoulliFlow().run(jax.random.key(5, impl="threefry2x32"), point).released
    assert int(np.sum(released)) == 4


# ---- bad input


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("eps", {"eps": [11.0]}),
        ("eps", {"eps": [0.001]}),
        ("delta", {"eps": [1.0], "delta": 0.1}),
        ("delta", {"eps": [1.0], "delta": 1e-13}),
        ("max_items_per_user", {"eps": [1.0], "max_items_per_user": 1001}),
    ],
)
def test_outside_of_the_calibrated_range_nothing_is_released(name, changes):
    with pytest.raises(InvalidInput, match=name):
        simulate(UserItems.from_sets(SETS), noise(**changes), BernoulliFlow(), num_trials=1)


def test_a_union_that_rounds_to_just_above_one_is_a_probability():
    users = [*[(0,)] * 5, (0, 1), *[(0, 1, 2)] * 9, *[(0, 1, 2, 3)] * 52]
    raw, _ = known_flow(4.0, DELTA, BOUND).probabilities(
        np.array([0, 4]), np.arange(1, 5), np.array([5, 1, 9, 52])
    )
    release, miss = BernoulliFlow().probabilities(UserItems.from_sets(users), noise(eps=4.0))
    assert 1 - 1e-15 < raw[0] < 1 + 1e-15
    assert release.max() <= 1 and miss.min() >= 0


def test_sets_larger_than_the_bound_are_not_taken_for_kept_ones():
    with pytest.raises(InvalidInput, match="kept = a set of 6"):
        BernoulliFlow().probabilities(UserItems.from_sets(SETS), noise())


def test_a_flow_of_another_bound_and_an_overspent_one_are_refused():
    flow = known_flow(EPS, DELTA, BOUND)
    profile = Profile.from_user_items(UserItems.from_sets(SETS), max_items_per_user=3)
    with pytest.raises(InvalidInput, match="max_items_per_user"):
        flow_miss_probabilities(profile, flow)
    worse = dataclasses.replace(
        flow.certificate, adding=np.full_like(flow.certificate.adding, 2 * DELTA)
    )
    with pytest.raises(InvalidInput, match="must spend at most"):
        remember(dataclasses.replace(flow, certificate=worse))


# ---- the audit, and bugs that it must see


@dataclasses.dataclass(frozen=True)
class Faster(BernoulliFlow):
    """Time constants a tenth too large."""

    def flow(self, eps, delta, max_items_per_user):
        flow = super().flow(eps, delta, max_items_per_user)
        groups = tuple(
            dataclasses.replace(group, time_constants=1.1 * group.time_constants)
            for group in flow.groups
        )
        return dataclasses.replace(flow, groups=groups)


@dataclasses.dataclass(frozen=True)
class Specimen(BernoulliFlow):
    """Another way to a probability, class by class."""

    def probabilities(self, kept, calibration):
        (flow,) = self.flows(calibration)
        classes, chances = kept.item_classes, []
        for first, last in itertools.pairwise(classes.offsets):
            sizes, counts = classes.sizes[first:last], classes.counts[first:last]
            chances.append(
                self.release(flow, tuple(zip(sizes.tolist(), counts.tolist(), strict=True)))
            )
        release = np.array(chances)[classes.class_of_item]
        return release, 1 - release

    def release(self, flow, holders):
        raise NotImplementedError


@dataclasses.dataclass(frozen=True)
class Descending(Specimen):
    """Large sets first."""

    def release(self, flow, holders):
        (group,) = (flow.groups[parts[0]] for parts in flow.structures if len(parts) == 1)
        order = sorted(holders, reverse=True)
        position = group.starts[group.block_of(order[0][0]) :][:1]
        for t, count in order:
            clock = group.clocks[group.block_of(t)]
            time = group.grid.time(clock, position) + count * group.time_constant(t)
            position = group.grid.place(clock, time)
        return float(group.grid.at(position)[0][0])


@dataclasses.dataclass(frozen=True)
class Union(Specimen):
    """The union of the structures instead of their maximum."""

    def release(self, flow, holders):
        counts = dict(holders)
        misses = [1 - group_release(group, counts) for group in flow.groups]
        return 1 - float(np.prod(misses))


@dataclasses.dataclass(frozen=True)
class Unheld(BernoulliFlow):
    """An item that nobody keeps comes out with a little chance; so it does with a holder."""

    def probabilities(self, kept, calibration):
        release, _ = super().probabilities(kept, calibration)
        release = np.minimum(release + 3e-5, 1.0)
        return release, 1 - release


PLANTED = {Faster: 300, Descending: 400, Union: 60, Unheld: 60}


@pytest.mark.parametrize("bug", PLANTED)
def test_planted_bugs_are_accused(bug):
    wrong = subject(bug(), eps=EPS, delta=DELTA, max_items_per_user=2, name=bug.__name__)
    suspects = [
        Pair((Run((0,), n), Run((1,), n)), (0, 1), family="suspicion") for n in range(1, 24)
    ]
    found = audit(wrong, seconds=None, max_evaluations=PLANTED[bug], pairs=suspects)
    assert found.accused
    assert found.found_delta > 1.0001 * DELTA


def test_the_certificate_refuses_larger_time_constants_and_rising_ratios():
    flow = known_flow(EPS, DELTA, 2)
    with pytest.raises(InvalidInput, match="delta"):
        Faster().flow(EPS, DELTA, 2).verify()
    both = next(group for group in flow.groups if group.num_blocks == 2)
    with pytest.raises(InvalidInput, match="falling ratio"):
        dataclasses.replace(both, durations=both.durations[::-1].copy())


def test_the_mechanism_is_not_accused():
    right = subject(BernoulliFlow(), eps=EPS, delta=DELTA, max_items_per_user=2)
    found = audit(right, seconds=None, max_evaluations=700)
    assert not found.accused
    # New items alone spend all of delta; t = 1 is exact.
    assert found.found_delta > 0.999 * DELTA


@pytest.mark.slow
@pytest.mark.parametrize("eps", [0.2, 1.0, 4.0])
@pytest.mark.parametrize("bound", [1, 2, 3, 5])
def test_a_long_audit_accuses_nobody(eps, bound):
    right = subject(BernoulliFlow(), eps=eps, delta=DELTA, max_items_per_user=bound)
    found = audit(right, seconds=None, max_evaluations=6000, seed=bound)
    assert not found.accused


@pytest.mark.slow
def test_the_exact_mean_is_that_of_trials_on_a_larger_data_set():
    generator = np.random.default_rng(8)
    weights = 1 / np.arange(1, 401) ** 0.8
    users = [
        generator.choice(400, size=size, replace=False, p=weights / weights.sum()).tolist()
        for size in generator.integers(1, 40, size=2000)
    ]
    data = UserItems.from_sets(users)
    trials = simulate(
        data, noise(eps=[1.0], max_items_per_user=10), BernoulliFlow(), num_trials=4000
    )
    found = flow_miss_probabilities(
        Profile.from_user_items(data, max_items_per_user=10), known_flow(1.0, DELTA, 10)
    )
    # Misses are negatively associated, so the sum over items and trials has sub-Gaussian tails
    # with variance proxy sum of squares / 4 (Hoeffding).
    squares = float(np.sum((data.frequencies / data.num_pairs) ** 2))
    reach = np.sqrt(squares / 4 * 2 * np.log(2 / LEVEL) / trials.num_trials)
    assert abs(trials.missing_mass.mean() - found.mean_missing_mass) < reach
    assert 0.05 < found.mean_missing_mass < 0.95


@pytest.mark.slow
def test_closed_form_flows_are_released_too():
    made = calibrate_flow(eps=EPS, delta=DELTA, max_items_per_user=2, accountant="closed-form")
    mechanism = BernoulliFlow("closed-form")
    right = subject(mechanism, eps=EPS, delta=DELTA, max_items_per_user=2)
    assert mechanism.flow(EPS, DELTA, 2).holders(2) == made.holders(2)
    assert not audit(right, seconds=None, max_evaluations=4000).accused
