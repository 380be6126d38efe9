"""Tails of weight plus noise against high precision, simulation, and one method by the other."""

from itertools import combinations

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr
from scipy.stats import binom

from theory import calibrate, recursion, weight_laws
from theory.weight_laws import log_none_kept, noisy_tails

METHODS = ("recursion", "set sizes", "inversion")


def force(monkeypatch, method):
    """Have one of the methods do all classes."""
    direct = method != "inversion"
    monkeypatch.setattr(
        weight_laws, "_recursion_pays", lambda laws, rows, *_: np.full(rows.size, direct)
    )
    price = 0.0 if method == "set sizes" else 1e300
    for module in (recursion, weight_laws):
        monkeypatch.setattr(
            module, "size_by_size_time", lambda laws, rows: np.full(rows.size, price)
        )


def tails(base, holders, calibration):
    """(miss, hit), one class per entry of base; holders: a dict set size -> count for each."""
    sizes = [np.array(sorted(held), np.int64) for held in holders]
    counts = [np.array([held[s] for s in sorted(held)], np.int64) for held in holders]
    offsets = np.cumsum([0] + [len(held) for held in holders])
    miss, hit = noisy_tails(
        np.array(base, np.float64), offsets, np.concatenate(sizes), np.concatenate(counts),
        max_items_per_user=int(np.max(calibration.max_items_per_user)),
        sigma=np.atleast_1d(calibration.sigma), threshold=np.atleast_1d(calibration.threshold),
    )  # fmt: skip
    return (miss, hit) if calibration.shape else (miss[0], hit[0])


def slow_tails(base, held, calibration):
    """Enumeration of K, holder by holder, in 50 digits."""
    with mpmath.workdps(50):
        law = [mpmath.mpf(1)]
        for size, count in held.items():
            keep = mpmath.mpf(calibration.max_items_per_user) / int(size)
            for _ in range(int(count)):
                kept = [0] + [chance * keep for chance in law]
                law = [a + b * (1 - keep) for a, b in zip(kept, [*law, 0], strict=True)]
        return summed(base, enumerate(law), calibration)


def summed(base, law, calibration):
    root = mpmath.sqrt(calibration.max_items_per_user)
    miss = hit = mpmath.mpf(0)
    for k, chance in law:
        margin = (calibration.threshold - mpmath.mpf(base) - k / root) / calibration.sigma
        nothing = base == 0 and k == 0
        miss += chance * (1 if nothing else mpmath.ncdf(margin))
        hit += chance * (0 if nothing else mpmath.ncdf(-margin))
    return miss, hit


def assert_promise(got, exact, relative=1e-11):
    """The promise (ten times sharper): relative above 1e-30, 1e-40 absolute below."""
    for (value,), true in zip(got, exact, strict=True):
        allowed = relative * true if true > 1e-30 else mpmath.mpf(1e-40)
        assert abs(mpmath.mpf(float(value)) - true) <= allowed, (float(value), float(true))


def random_case(seed, most_holders, noisy):
    """One class and a calibration; small or large against the threshold, few or many sizes."""
    rng = np.random.default_rng(seed)
    bound = int(rng.choice([1, 2, 10, 100]))
    while True:
        eps, delta = 10 ** rng.uniform(-2, 1.31), 10 ** rng.uniform(-30, -1)
        made = calibrate(eps=float(eps), delta=float(delta), max_items_per_user=bound)
        if made.sigma * bound**0.5 > 0.25 or not noisy:
            break
    holders = int(rng.integers(1, most_holders))
    stretch = 10 ** rng.uniform(-1, rng.uniform(-0.9, 5), size=holders)
    sizes, counts = np.unique(bound + 1 + (bound * stretch).astype(np.int64), return_counts=True)
    mean = np.sum(bound / sizes * counts) / np.sqrt(bound)
    near = made.threshold - mean + made.sigma * rng.uniform(-6, 6)
    base = [0.0, 0.0, float(rng.uniform(0, 3)), max(0.0, float(near))][rng.integers(4)]
    return base, dict(zip(sizes.tolist(), counts.tolist(), strict=True)), made


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", range(30))
def test_random_classes_agree_with_enumeration(seed, method, monkeypatch):
    force(monkeypatch, method)
    base, held, made = random_case(seed, 90, noisy=method == "inversion")
    assert_promise(tails([base], [held], made), slow_tails(base, held, made))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", range(3))
def test_larger_classes_agree_with_enumeration(seed, method, monkeypatch):
    force(monkeypatch, method)
    base, held, made = random_case(1000 + seed, 300, noisy=True)
    assert_promise(tails([base], [held], made), slow_tails(base, held, made))


@pytest.mark.parametrize("bound", [1, 10, 100])
def test_small_noise_agrees_with_enumeration(bound):
    # Noise far below a step of the weight: K is all that counts.
    rng = np.random.default_rng(bound)
    made = calibrate(eps=1e5, delta=1e-9, max_items_per_user=bound)
    for base in (0.0, 0.3, 0.995):
        sizes, counts = np.unique(bound + rng.integers(1, 9 * bound + 2, 70), return_counts=True)
        held = dict(zip(sizes.tolist(), counts.tolist(), strict=True))
        assert_promise(tails([base], [held], made), slow_tails(base, held, made))


def binomial_tails(base, size, count, calibration):
    """Equal set sizes: K is binomial, in 45 digits over all that exceeds 1e-45."""
    with mpmath.workdps(45):
        keep = mpmath.mpf(calibration.max_items_per_user) / size
        mean, deviation = count * keep, mpmath.sqrt(count * keep * (1 - keep))
        first = max(0, int(mean - 16 * deviation - 30))
        last = min(count, int(mean + 16 * deviation + 150))
        chance = mpmath.exp(
            mpmath.loggamma(count + 1) - mpmath.loggamma(first + 1)
            - mpmath.loggamma(count - first + 1)
            + first * mpmath.log(keep) + (count - first) * mpmath.log1p(-keep)
        )  # fmt: skip
        law = []
        for k in range(first, last + 1):
            law.append((k, chance))
            chance = chance * (count - k) / (k + 1) * keep / (1 - keep)
        return summed(base, law, calibration)


@pytest.mark.parametrize(
    ("eps", "delta", "bound", "size", "count", "base"),
    [
        (1.0, 1e-5, 1, 100, 1500, 0.0),
        (1.0, 1e-5, 1, 10**6, 10**7, 0.0),
        (1.0, 1e-5, 1, 10**6, 50, 0.0),
        (1.0, 1e-30, 1, 10**6, 10**5, 0.0),
        (1.0, 1e-5, 10, 20, 120, 0.0),
        (0.1, 1e-10, 10, 11, 600, 5.0),
        (20.0, 1e-30, 1, 2, 70, 0.0),
        (20.0, 1e-30, 100, 10**9, 10**8, 0.0),
        (20.0, 1e-5, 100, 1000, 100, 1.5),
        (1e5, 1e-5, 1, 10**9, 10**9, 0.0),
        (1e5, 1e-5, 1, 10**12, 10**9, 0.0),
        (300.0, 1e-5, 1, 10**8, 10**9, 0.2),
        (0.0, 1e-30, 1, 3, 3000, 0.0),
        (0.5, 1e-5, 1, 10**9, 10**9, 0.0),
    ],
)
def test_equal_sets_agree_with_the_binomial(eps, delta, bound, size, count, base):
    made = calibrate(eps=eps, delta=delta, max_items_per_user=bound)
    got = tails([base], [{size: count}], made)
    assert_promise(got, binomial_tails(base, size, count, made))


def medium_classes(bound, threshold):
    """Fifty classes of 200 to 3,000 holders, of means about the threshold and far from it."""
    rng = np.random.default_rng(bound)
    holders, base = [], []
    for aim in np.geomspace(0.02, 4, 50):
        count = int(rng.integers(200, 3000))
        typical = max(1.05 * bound, count * np.sqrt(bound) / (aim * threshold))
        sizes = bound + 1 + ((typical - bound) * rng.lognormal(0, 0.7, count)).astype(np.int64)
        distinct, times = np.unique(sizes, return_counts=True)
        holders.append(dict(zip(distinct.tolist(), times.tolist(), strict=True)))
        base.append(float(rng.choice([0.0, rng.uniform(0, threshold)])))
    return base, holders


@pytest.mark.parametrize("bound", [1, 2, 10, 100])
def test_the_methods_agree_on_many_holders(bound, monkeypatch):
    made = calibrate(eps=[0.1, 1.0, 20.0], delta=[1e-5, 1e-5, 1e-30], max_items_per_user=bound)
    base, holders = medium_classes(bound, float(made.threshold[1]))
    force(monkeypatch, "recursion")
    direct = tails(base, holders, made)
    force(monkeypatch, "inversion")
    inverted = tails(base, holders, made)
    assert any(np.any((one > 1e-30) & (one < 1e-10)) for one in direct)
    for one, other in zip(direct, inverted, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-11, atol=1e-40)


@pytest.mark.parametrize("method", METHODS)
def test_many_classes_are_what_each_is_alone(method, monkeypatch):
    force(monkeypatch, method)
    made = calibrate(eps=[0.3, 1.0, 3.0], delta=1e-6, max_items_per_user=2)
    rng = np.random.default_rng(5)
    holders = [{}] + [{3: int(rng.integers(1, 40)), int(rng.integers(4, 60)): 7} for _ in range(40)]
    base = [0.7] + [float(rng.choice([0.0, 1.5])) for _ in range(40)]
    together = tails(base, holders, made)
    for place in range(0, 41, 8):
        for point in range(3):
            alone = tails(base[place : place + 1], holders[place : place + 1], made[point])
            for many, one in zip(together, alone, strict=True):
                np.testing.assert_allclose(many[point, place], one[0], rtol=1e-11, atol=1e-40)


def test_without_clipped_holders_it_is_the_normal_law():
    made = calibrate(eps=[0.1, 2.0], delta=1e-5, max_items_per_user=4)
    base = np.array([0.5, 3.0, 40.0, 1e6])
    miss, hit = tails(base, [{}] * 4, made)
    margin = (made.threshold[:, None] - base) / made.sigma[:, None]
    np.testing.assert_allclose(miss, ndtr(margin), rtol=1e-14)
    np.testing.assert_allclose(hit, ndtr(-margin), rtol=1e-14)


def test_an_item_that_nobody_keeps_is_missed_even_below_a_negative_threshold():
    miss, hit = noisy_tails(
        np.zeros(1), np.array([0, 1]), np.array([4]), np.array([1]),
        max_items_per_user=1, sigma=np.array([0.1]), threshold=np.array([-50.0]),
    )  # fmt: skip
    assert (miss[0, 0], hit[0, 0]) == (0.75, 0.25)


@pytest.mark.parametrize("method", METHODS)
def test_popular_and_hopeless_items_are_certain(method, monkeypatch):
    force(monkeypatch, method)
    made = calibrate(eps=1.0, delta=1e-5, max_items_per_user=1)
    miss, hit = tails([0.0, 0.0, 500.0], [{2: 100_000}, {10**9: 3}, {9: 5}], made)
    assert (miss[0], hit[0]) == (0.0, 1.0)
    assert miss[1] == pytest.approx(1.0, abs=1e-7)
    assert hit[1] == pytest.approx(3e-9 * ndtr((1 - made.threshold) / made.sigma), rel=1e-7)
    assert (miss[2], hit[2]) == (0.0, 1.0)


def test_chance_that_nobody_keeps_an_item():
    logs = log_none_kept(
        np.zeros(3), np.array([0, 2, 2, 3]), np.array([10**9, 10**12, 10**9]),
        np.array([1, 10**9, 1]), max_items_per_user=10**9 - 1,
    )  # fmt: skip
    with mpmath.workdps(40):
        last = mpmath.log(mpmath.mpf(1) / 10**9)
        both = last + 10**9 * mpmath.log1p(-mpmath.mpf(10**9 - 1) / 10**12)
    np.testing.assert_allclose(logs, [float(both), 0.0, float(last)], rtol=1e-14)


SIZES = st.dictionaries(st.integers(4, 10**6), st.integers(1, 60), min_size=1, max_size=6)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    held=SIZES,
    added=st.integers(4, 10**6),
    base=st.just(0.0) | st.floats(0.01, 60),
    eps=st.floats(0.01, 100),
    log_delta=st.floats(-30, -1),
)
def test_probabilities_add_up_and_a_holder_more_helps(held, added, base, eps, log_delta):
    made = calibrate(eps=eps, delta=10**log_delta, max_items_per_user=3)
    more = {**held, added: held.get(added, 0) + 1}
    miss, hit = tails([base, base], [held, more], made)
    assert np.all((miss >= 0) & (miss <= 1) & (hit >= 0) & (hit <= 1))
    np.testing.assert_allclose(miss + hit, 1, atol=1e-14)
    # Equal to rounding where the added holder hardly ever keeps the item.
    assert miss[1] <= miss[0] * (1 + 1e-11) + 1e-40
    assert hit[1] >= hit[0] * (1 - 1e-11) - 1e-40


def test_ten_million_runs_of_the_mechanism_agree():
    """Subsampling of whole sets, noise and threshold; counts within exact binomial bounds."""
    sets, bound = [(0, 1, 2, 3), (0, 1, 2, 4), (0, 1, 5), (0, 6)], 2
    sigma, threshold = 0.6, 1.4
    releases = np.zeros(7, np.int64)
    rng, runs, block = np.random.default_rng(20240607), 10**7, 10**6
    for _ in range(runs // block):
        weights = np.zeros((7, block), np.float32)
        for held in sets:
            chosen = list(combinations(held, bound)) if len(held) > bound else [held]
            kept = np.zeros((7, len(chosen)), np.float32)
            for outcome, items in enumerate(chosen):
                kept[list(items), outcome] = bound**-0.5
            weights += kept[:, rng.integers(len(chosen), size=block)]
        noise = rng.standard_normal((7, block), dtype=np.float32)
        releases += np.sum((weights > 0) & (weights + sigma * noise > threshold), axis=1)
    base = np.zeros(7)
    base[[0, 6]] = bound**-0.5
    held = [
        {4: 2, 3: 1}, {4: 2, 3: 1}, {4: 2}, {4: 1}, {4: 1}, {3: 1}, {},
    ]  # fmt: skip
    sizes = np.concatenate([np.array(sorted(h), np.int64) for h in held])
    counts = np.concatenate([np.array([h[s] for s in sorted(h)], np.int64) for h in held])
    miss, hit = noisy_tails(
        base, np.cumsum([0] + [len(h) for h in held]), sizes, counts,
        max_items_per_user=bound, sigma=np.array([sigma]), threshold=np.array([threshold]),
    )  # fmt: skip
    below = binom.cdf(releases, runs, hit[0])
    above = binom.sf(releases - 1, runs, hit[0])
    assert np.all(np.minimum(below, above) > 5e-8), (releases / runs, hit)
