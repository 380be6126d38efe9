"""Both samplers have the law of the mechanism, item by item and jointly, on 36 settings.

Items have 1, 2, 4, ... users, so that the number of missed pairs spells the set of missed items.

False alarms: every p-value below is of an exact test and is compared with LEVEL; there are fewer
than 5,000 of them, hence below 1e-6 in all. Seeds are fixed.
"""

from functools import cache

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtr

from theory import Profile, UserItems
from theory.calibration import calibrate
from theory.flow.exact import flow_miss_probabilities
from wgm_jax import fates, registry, synthetic
from wgm_jax.engine import simulate
from wgm_jax.wgm import WeightedGaussian, base_histogram

LEVEL = 1e-10
ITEMS = 7
TRIALS = 25_000
# Everything is simulated, the usual choice, nearly everything is left to the rare stage.
RARE = (0.0, fates.RARE, 0.3)
SETTINGS = [(seed, bound, rare) for seed in range(4) for bound in (1, 2, 3) for rare in RARE]


def spelling_data(seed):
    """Item i is held by 2^i of 70 users; most users hold several."""
    rng = np.random.default_rng(seed)
    chosen = [rng.choice(70, 2**item, replace=False) for item in range(ITEMS)]
    users = np.concatenate(chosen)
    items = np.repeat(np.arange(ITEMS), 2 ** np.arange(ITEMS))
    return UserItems.from_codes(users, items)


def calibration(bound):
    # Low thresholds, so that every item is sometimes released and sometimes not.
    return calibrate(eps=[1.0, 3.0], delta=0.1, max_items_per_user=bound)


def missed_sets(trials, data):
    """(trials, items, points) bool."""
    pairs = np.rint(trials.missing_mass * data.num_pairs).astype(np.int64)
    sets = (pairs[:, None, :] >> np.arange(ITEMS)[None, :, None]) & 1 > 0
    np.testing.assert_array_equal(sets.sum(axis=1), trials.num_missed)
    weights = 2.0 ** np.arange(ITEMS)[:, None]
    squares = np.sum(sets * weights**2, axis=1)
    np.testing.assert_allclose((trials.missing_mass_l2 * data.num_pairs) ** 2, squares, rtol=1e-6)
    largest = np.max(sets * weights, axis=1)
    np.testing.assert_allclose(trials.max_missing_mass * data.num_pairs, largest, rtol=1e-12)
    return sets


def reference_sets(data, found, trials, seed):
    """The same by whole arrays of NumPy: a user keeps the items of its smallest random keys."""
    bound = int(found.max_items_per_user[0])
    rng = np.random.default_rng(seed)
    held = np.zeros((data.num_users, ITEMS), bool)
    held[np.repeat(np.arange(data.num_users), data.set_sizes), data.items] = True
    keys = np.where(held, rng.random((trials, *held.shape)), 2.0)
    bar = np.sort(keys, axis=2)[:, :, min(bound, ITEMS) - 1, None]
    kept = (keys <= bar) & held
    weights = np.sum(kept / np.sqrt(np.minimum(held.sum(axis=1), bound))[:, None], axis=1)
    noise = rng.standard_normal((trials, ITEMS))[:, :, None]
    released = weights[:, :, None] + found.sigma * noise > found.threshold
    return ~(released & (weights > 0)[:, :, None])


def simulated(seed, bound, rare, sampler, monkeypatch, trials=TRIALS, mechanism="wgm"):
    monkeypatch.setattr(fates, "RARE", rare)
    monkeypatch.setattr(fates, "RARE_CONSTANT", rare)
    data = spelling_data(seed)
    found = calibration(bound) if mechanism == "wgm" else in_range(bound)
    options = {"num_trials": trials, "seed": 100 + seed, "sampler": sampler}
    ours = simulate(data, found, mechanism, **options)
    return data, found, missed_sets(ours, data)


def in_range(bound):
    """Flows exist up to delta = 0.01; at these eps they need few holders, too."""
    return calibrate(eps=[2.0, 5.0], delta=0.01, max_items_per_user=bound)


def least_joint_p_value(ours, theirs):
    """Smallest p-value over all single items, pairs of items, and pairs of grid points."""
    events = [(a, b) for a in range(ITEMS) for b in range(a, ITEMS)]
    p_values = []
    for point in (0, 1):
        for a, b in events:
            both = [np.sum(sets[:, a, point] & sets[:, b, point]) for sets in (ours, theirs)]
            table = [[k, len(sets) - k] for k, sets in zip(both, (ours, theirs), strict=True)]
            p_values.append(stats.fisher_exact(table).pvalue)
    return min(p_values)


def exact_miss(oracle, data, found):
    """(items, points) miss probabilities [E1]."""
    bound = int(found.max_items_per_user[0])
    sets = np.split(data.items, data.offsets[1:-1])
    base, laws = oracle.weight_laws(sets, data.num_items, bound)
    miss = []
    for item, law in enumerate(laws):
        weights = (base[item] + np.arange(law.size) * bound**-0.5)[:, None]
        missed = np.where(weights > 0, ndtr((found.threshold - weights) / found.sigma), 1.0)
        miss.append(np.minimum(law @ missed, 1.0))
    return np.array(miss)


@pytest.mark.parametrize(("seed", "bound", "rare"), SETTINGS)
def test_joint_law_and_exact_marginals_of_the_fast_sampler(oracle, seed, bound, rare, monkeypatch):
    data, found, ours = simulated(seed, bound, rare, "lanes", monkeypatch)
    exact = exact_miss(oracle, data, found)
    for item in range(ITEMS):
        for point in (0, 1):
            count = int(ours[:, item, point].sum())
            assert stats.binomtest(count, TRIALS, float(exact[item, point])).pvalue > LEVEL
    theirs = reference_sets(data, found, 8_000, seed)
    assert least_joint_p_value(ours, theirs) > LEVEL


@pytest.mark.parametrize(("seed", "bound"), [(s, b) for s in range(4) for b in (1, 2, 3)])
def test_the_same_of_the_padded_sampler(oracle, seed, bound, monkeypatch):
    data, found, ours = simulated(seed, bound, fates.RARE, "padded", monkeypatch)
    _, _, fast = simulated(seed, bound, fates.RARE, "lanes", monkeypatch)
    assert least_joint_p_value(ours, fast) > LEVEL
    theirs = reference_sets(data, found, 8_000, seed)
    assert least_joint_p_value(ours, theirs) > LEVEL


# What a user of t kept items adds to each, for mechanisms that are a sum and a tail.
SHARES = {
    "gaussian-count": lambda t: 1.0,
    "laplace-count": lambda t: 1.0,
    "korolova": lambda t: 1.0,
    "weighted-laplace": lambda t: 1 / t,
    "optimal-selection": lambda t: 1.0,
}


@cache
def by_copies(name, seed, bound):
    """Exact miss probabilities (items, points), from the law of K and the mechanism's tail."""
    data, found = spelling_data(seed), in_range(bound)
    mechanism = registry.get(name)
    if name == "bernoulli-flow":
        profile = Profile.from_user_items(data, max_items_per_user=bound)
        misses = flow_miss_probabilities(profile, mechanism.flows(found))
        return misses.miss[:, data.item_classes.class_of_item].T
    now, share = mechanism.parameters(found).round(0), SHARES[name]
    base, laws = np.zeros(ITEMS), [np.ones(1) for _ in range(ITEMS)]
    for items in np.split(data.items, data.offsets[1:-1]):
        for item in items:
            if items.size <= bound:
                base[item] += share(items.size)
            else:
                laws[item] = np.convolve(laws[item], [1 - bound / items.size, bound / items.size])
    misses = []
    for weight, law in zip(base, laws, strict=True):
        weights = (weight + np.arange(law.size) * share(bound))[:, None]
        miss = np.where(weights > 0, mechanism.probabilities(weights, now)[1], 1.0)
        misses.append(np.minimum(law @ miss, 1.0))
    return np.array(misses)


TABLED = [("bernoulli-flow", bound, rare) for bound in (1, 2, 3) for rare in RARE]
TABLED += [(name, 2, fates.RARE) for name in SHARES]


@pytest.mark.parametrize(("name", "bound", "rare"), TABLED)
def test_other_laws_by_kept_copies(name, bound, rare, monkeypatch):
    data, _, fast = simulated(1, bound, rare, "lanes", monkeypatch, mechanism=name)
    exact = by_copies(name, 1, bound)
    for item in range(ITEMS):
        for point in (0, 1):
            count = int(fast[:, item, point].sum())
            assert stats.binomtest(count, TRIALS, float(exact[item, point])).pvalue > LEVEL
    *_, slow = simulated(1, bound, rare, "padded", monkeypatch, trials=8_000, mechanism=name)
    assert least_joint_p_value(fast, slow) > LEVEL
    # Somebody is clipped, and something is open to chance.
    assert data.max_set_size > bound
    assert np.any((exact > 0.02) & (exact < 0.98))


def test_the_reference_has_the_law_of_the_oracle(oracle):
    data, found = spelling_data(0), calibration(2)
    sets = np.split(data.items, data.offsets[1:-1])
    rng = np.random.default_rng(5)
    slow = np.array(
        [
            ~oracle.released(
                sets,
                ITEMS,
                max_items_per_user=2,
                sigma=found.sigma[point],
                threshold=found.threshold[point],
                rng=rng,
            )
            for point in (0, 1)
            for _ in range(700)
        ]
    )
    slow = slow.reshape(2, 700, ITEMS).transpose(1, 2, 0)
    assert least_joint_p_value(reference_sets(data, found, 20_000, 8), slow) > LEVEL


@pytest.mark.parametrize("rare", RARE)
def test_the_comparison_sees_a_wrong_subset_size(rare, monkeypatch):
    data, _, ours = simulated(0, 3, rare, "lanes", monkeypatch)
    wrong = calibration(2)
    right = calibration(3)
    object.__setattr__(wrong, "sigma", right.sigma)
    object.__setattr__(wrong, "threshold", right.threshold)
    assert least_joint_p_value(ours, reference_sets(data, wrong, 8_000, 0)) < LEVEL


def test_all_three_kinds_of_fate_occur_in_the_settings(monkeypatch):
    kinds = set()
    for seed, bound, rare in SETTINGS:
        monkeypatch.setattr(fates, "RARE", rare)
        monkeypatch.setattr(fates, "RARE_CONSTANT", rare)
        data = spelling_data(seed)
        law = WeightedGaussian().count_law(data, calibration(bound))
        found = fates.fates(data, law)
        kinds |= set(zip(found.open.tolist(), found.missed.tolist(), strict=True))
    assert {(True, False), (False, True), (False, False)} <= kinds


@pytest.mark.parametrize("bound", [1, 2, 4])
def test_no_clipping_and_much_clipping_have_exact_means(oracle, bound):
    """Larger data, every metric that has an exact mean; z-scores of a mean over many trials."""
    sizes = synthetic.SetSizes("geometric", mean=3, cap=4)
    data = synthetic.zipf_draws(s=1.1, num_users=400, support=150, set_sizes=sizes, seed=6)
    found = calibrate(eps=[0.5, 2.0], delta=1e-3, max_items_per_user=bound)
    exact = exact_miss(oracle, data, found)
    if bound == 4:
        weights = base_histogram(data, bound)[:, None]
        np.testing.assert_allclose(exact, ndtr((found.threshold - weights) / found.sigma))
    trials = simulate(data, found, num_trials=20_000, seed=12, sampler="lanes")
    for observed, expected in (
        (trials.missing_mass, data.frequencies @ exact / data.num_pairs),
        (trials.num_missed, exact.sum(axis=0)),
        (trials.missing_mass_l2**2, data.frequencies**2 @ exact / data.num_pairs**2),
    ):
        deviation = observed.std(axis=0) / np.sqrt(len(observed))
        assert (np.abs(observed.mean(axis=0) - expected) < 6.5 * deviation).all()
