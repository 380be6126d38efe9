"""Laws of Bernoulli sums against exact rational, extended-precision and high-precision sums."""

from fractions import Fraction
from itertools import product

import mpmath
import numpy as np
import pytest
from scipy.special import ndtr

from theory import InvalidInput
from theory.bernoulli_sums import LatticeLaw, bernoulli_sum_law, chernoff_quantile
from theory.hard_zipf import hard_zipf_profile


def ints(*values):
    return np.array(values, np.int64)


def floats(*values):
    return np.array(values, np.float64)


def rational_law(weights, miss, multiplicity):
    """P(X = v), v = 0.., by convolution of fractions."""
    law = [Fraction(1)]
    for weight, chance, times in zip(weights, miss, multiplicity, strict=True):
        for _ in range(times):
            longer = [Fraction(0)] * (len(law) + weight)
            for value, probability in enumerate(law):
                longer[value] += probability * (1 - chance)
                longer[value + weight] += probability * chance
            law = longer
    return law


def binomial(n, p):
    """Bin(n, p) in extended precision, by ratios from the mode: (first value, probabilities)."""
    spread = 12 * np.sqrt(n * p * (1 - p)) + 80
    first, last = max(0, int(n * p - spread)), min(n, int(n * p + spread))
    values = np.arange(first, last, dtype=np.longdouble)
    ratios = (n - values) / (values + 1) * (np.longdouble(p) / (1 - np.longdouble(p)))
    mode = min(max(int(n * p), first), last) - first
    above, below = np.cumprod(ratios[mode:]), np.cumprod(1 / ratios[:mode][::-1])[::-1]
    weights = np.concatenate((below, [np.longdouble(1)], above))
    return first, weights / weights.sum()


def dense_law(weights, miss, hit, multiplicity):
    """(first value, probabilities) by convolution in extended precision, no Fourier transform."""
    first, law = 0, np.ones(1, np.longdouble)
    for weight, lost, kept, times in zip(weights, miss, hit, multiplicity, strict=True):
        start, counts = binomial(int(times), min(lost, kept))
        if lost > kept:
            start, counts = int(times) - start - counts.size + 1, counts[::-1]
        stretched = np.zeros((counts.size - 1) * weight + 1, np.longdouble)
        stretched[::weight] = counts
        first, law = first + start * int(weight), np.convolve(law, stretched)
        support = np.flatnonzero(law > 1e-25)
        first, law = first + int(support[0]), law[support[0] : support[-1] + 1]
    return first, law


def assert_same_law(law, first, pmf, error=1e-13):
    """Every cdf value within the stated error, which is itself small."""
    assert law.error < error
    values = np.arange(min(first, law.first) - 2, max(first + pmf.size, law.last) + 3)
    below = np.concatenate(([0.0], np.cumsum(pmf)))
    exact = below[np.clip(values - first + 1, 0, pmf.size)]
    assert np.max(np.abs(law.cdf(values) - exact)) <= law.error
    above = np.concatenate(([0.0], np.cumsum(pmf[::-1])))[::-1]
    exact = above[np.clip(values - first + 1, 0, pmf.size)]
    assert np.max(np.abs(law.sf(values) - exact)) <= law.error


def random_classes(rng, classes, top_weight, top_times):
    """Miss probabilities of all kinds: certain, nearly certain either way, and in between."""
    small = 10.0 ** rng.uniform(-20, 0, classes) / 2
    miss, hit = small, 1 - small
    swapped = rng.random(classes) < 0.5
    miss, hit = np.where(swapped, hit, miss), np.where(swapped, miss, hit)
    middle = rng.random(classes) < 0.4
    share = rng.random(classes)
    miss, hit = np.where(middle, share, miss), np.where(middle, 1 - share, hit)
    certain = rng.random(classes) < 0.1
    miss, hit = np.where(certain, swapped, miss), np.where(certain, ~swapped, hit)
    weights = rng.integers(1, top_weight, classes, endpoint=True)
    return weights, miss, hit, rng.integers(1, top_times, classes, endpoint=True)


def test_small_laws_are_those_of_exact_fractions():
    rng = np.random.default_rng(1)
    for _ in range(300):
        classes = int(rng.integers(1, 6))
        weights = rng.integers(1, 13, classes)
        times = rng.integers(1, 5, classes)
        # Multiples of 1/256 are exact in float64, and so are their complements.
        miss = rng.choice(ints(0, 1, 2, 3, 100, 128, 200, 255, 256), classes) / 256.0
        exact = rational_law(weights.tolist(), [Fraction(p) for p in miss], times.tolist())
        law = bernoulli_sum_law(weights, miss, 1 - miss, times)
        assert np.all(law.pmf >= 0)
        assert_same_law(law, 0, np.array([np.longdouble(float(p)) for p in exact]))
        mean = float(sum(v * p for v, p in enumerate(exact)))
        assert law.mean == pytest.approx(mean, rel=1e-12)
        for u in (0.5, 3.0, 7.25):
            excess = float(sum(max(v - Fraction(u), 0) * p for v, p in enumerate(exact)))
            shortfall = float(sum(max(Fraction(u) - v, 0) * p for v, p in enumerate(exact)))
            assert law.excess(u) == pytest.approx(excess, rel=1e-11, abs=1e-12)
            assert law.shortfall(u) == pytest.approx(shortfall, rel=1e-11, abs=1e-12)


@pytest.mark.parametrize("seed", range(12))
def test_random_laws_are_those_of_a_dense_convolution(seed):
    rng = np.random.default_rng(seed)
    classes = random_classes(rng, 150, 25, 3)  # sums of weights near 4000
    assert_same_law(bernoulli_sum_law(*classes), *dense_law(*classes))


@pytest.mark.parametrize("seed", range(6))
def test_large_multiplicities_and_a_few_large_weights(seed):
    rng = np.random.default_rng(seed)
    many = random_classes(rng, 8, 5, 10**5)
    heavy = (ints(1000, 3331), floats(0.3, 1e-9), floats(0.7, 1 - 1e-9), ints(2, 1))
    classes = tuple(np.concatenate(pair) for pair in zip(many, heavy, strict=True))
    assert_same_law(bernoulli_sum_law(*classes), *dense_law(*classes), error=1e-12)


@pytest.mark.parametrize(
    ("n", "p"), [(1, 0.5), (2, 0.5), (10**3, 0.01), (10**7, 0.5), (10**7, 2**-7), (10**9, 3e-7)]
)
@pytest.mark.parametrize("flipped", [False, True])
def test_one_class_is_a_binomial(n, p, flipped):
    miss, hit = (1 - p, p) if flipped else (p, 1 - p)
    first, pmf = binomial(n, p)
    if flipped:
        first, pmf = n - first - pmf.size + 1, pmf[::-1]
    law = bernoulli_sum_law(ints(1), floats(miss), floats(hit), ints(n))
    assert_same_law(law, first, pmf, error=4e-12 if n == 10**7 else 1e-12)


def test_the_binomial_oracle_is_right():
    first, pmf = binomial(10**7, 0.25)
    with mpmath.workdps(40):
        for k in (2_500_000, 2_503_000):
            exact = (
                mpmath.binomial(10**7, k) * mpmath.mpf(0.25) ** k * mpmath.mpf(0.75) ** (10**7 - k)
            )
            assert float(pmf[k - first]) == pytest.approx(float(exact), rel=1e-14)


def test_a_zipfian_profile_of_ten_million_pairs():
    profile = hard_zipf_profile(1.0, 1.5, 10**7)
    margin = (profile.frequencies - 18.163) / 3.884
    classes = (profile.frequencies, ndtr(-margin), ndtr(margin), profile.multiplicity)
    certain = (classes[1] < 1e-30) | (classes[2] < 1e-30)
    constant = int((profile.frequencies * profile.multiplicity)[certain & (margin < 0)].sum())
    first, pmf = dense_law(*(part[~certain] for part in classes))
    assert_same_law(bernoulli_sum_law(*classes), first + constant, pmf, error=1e-12)


def test_a_million_million_pairs():
    """Nearly certain singletons, and many undecided items: positions are exact integers."""
    weights, times = ints(1, 3, 10**11 + 7), ints(10**9, 2 * 10**5, 9)
    miss, hit = floats(1 - 5e-6, 0.4, 1.0), floats(5e-6, 0.6, 0.0)
    law = bernoulli_sum_law(weights, miss, hit, times)
    first, pmf = dense_law(weights[:2], miss[:2], hit[:2], times[:2])
    assert law.first > 9 * (10**11 + 7)
    assert_same_law(law, first + 9 * (10**11 + 7), pmf, error=1e-12)


@pytest.mark.parametrize("chance", [0.0, 1e-300, 1e-21])
def test_what_is_all_but_certain_is_a_constant(chance):
    law = bernoulli_sum_law(ints(10**12, 7), floats(chance, 1.0), floats(1.0, chance), ints(100, 3))
    assert (law.first, law.pmf.tolist()) == (21, [1.0])
    assert (law.cdf(20), law.cdf(21), law.sf(20), law.sf(21)) == (0.0, 1.0, 1.0, 0.0)
    assert law.error >= 103 * chance
    assert law.beyond >= 100 * 10**12 * chance


def test_quantiles_are_least_values():
    law = LatticeLaw(5, floats(0.25, 0.0, 0.25, 0.5), 1e-16)
    assert [law.quantile(p) for p in (0.1, 0.25, 0.26, 0.5, 0.51, 1.0)] == [5, 5, 7, 7, 8, 8]
    assert [law.upper_quantile(p) for p in (0.9, 0.75, 0.74, 0.5, 0.49, 1e-9)] == [5, 5, 7, 7, 8, 8]
    assert law.cdf(ints(4, 5, 6, 7, 8, 9)).tolist() == [0, 0.25, 0.25, 0.5, 1, 1]
    assert law.sf(ints(4, 5, 6, 7, 8, 9)).tolist() == [1, 0.75, 0.75, 0.5, 0, 0]
    assert (law.last, law.mean) == (8, 7.0)


@pytest.mark.parametrize("beta", [0.5, 0.3, 0.05, 1e-6])
def test_tail_means_are_optimal_hinges(beta):
    rng = np.random.default_rng(4)
    law = bernoulli_sum_law(*random_classes(rng, 40, 9, 4))
    values = np.arange(law.first, law.last + 1)
    uppers = [u + law.excess(float(u)) / beta for u in values]
    lowers = [u - law.shortfall(float(u)) / beta for u in values]
    slack = (law.error * law.pmf.size + law.beyond) / beta + 1e-9
    assert 0 <= law.upper_tail_mean(beta) - min(uppers) <= slack
    assert -slack <= law.lower_tail_mean(beta) - max(lowers) <= 0


def exact_objective(weights, miss, hit, multiplicity, cost, t):
    """(ln E exp(t X) + cost)/t in 40 digits."""
    with mpmath.workdps(40):
        t, total = mpmath.mpf(t), mpmath.mpf(cost)
        for w, m, h, times in zip(weights, miss, hit, multiplicity, strict=True):
            rare, base = (mpmath.mpf(m), 0) if m <= h else (mpmath.mpf(h), w)
            step = w if m <= h else -w
            grown = mpmath.log1p(rare * mpmath.expm1(t * step))
            total += int(times) * (t * mpmath.mpf(base) + grown)
        return total / t


CHERNOFF_CASES = {
    "plain": (ints(3, 2, 1), floats(0.2, 0.5, 0.9), floats(0.8, 0.5, 0.1), ints(10, 100, 50)),
    "tiny": (ints(1, 40), floats(1e-250, 1e-12), floats(1.0, 1.0), ints(7, 10**6)),
    "denormal": (ints(10**6, 1), floats(5e-324, 0.5), floats(1.0, 0.5), ints(1, 1)),
    "certain": (ints(10**11, 5, 3), floats(1, 0, 0.5), floats(0, 1, 0.5), ints(9, 4, 30)),
    "1e12": (ints(1, 21), floats(1 - 5e-6, 0.4), floats(5e-6, 0.6), ints(10**9, 10**7)),
    "shares": (floats(1e-12, 2e-11), floats(0.9, 0.4), floats(0.1, 0.6), ints(10**9, 10**7)),
    "roots": (floats(0.5, 2**0.5), floats(0.01, 0.4), floats(0.99, 0.6), ints(1000, 17)),
}


@pytest.mark.parametrize("name", CHERNOFF_CASES)
@pytest.mark.parametrize("beta", [0.5, 0.05, 1e-12])
@pytest.mark.parametrize("side", ["upper", "lower"])
def test_chernoff_bounds_are_the_best_over_t(name, beta, side):
    classes = CHERNOFF_CASES[name]
    weights, miss, hit, times = classes
    value = chernoff_quantile(*classes, beta=beta, side=side)
    sign = 1 if side == "upper" else -1
    cost = -np.log(beta)
    spread = np.sqrt(float(times @ (weights.astype(float) ** 2 * miss * hit)))
    edge = sum(
        (mpmath.mpf(w) * int(n) for w, m, h, n in zip(*classes, strict=True)
         if (m > 0 if side == "upper" else h == 0)),
        mpmath.mpf(0),
    )  # fmt: skip

    def objective(log_t):
        return sign * exact_objective(weights, miss, hit, times, cost, sign * mpmath.exp(log_t))

    # Golden section on ln t: the objective falls, then rises.
    scale = max(spread, 1e-300)
    low, high = np.log(1e-4 / scale), np.log(1e-300 / scale) + 720
    high = min(high, np.log(1e5 / float(weights.min())))
    ratio = (np.sqrt(5) - 1) / 2
    inner = [high - ratio * (high - low), low + ratio * (high - low)]
    found = [objective(x) for x in inner]
    for _ in range(70):
        if found[0] < found[1]:
            high, inner[1], found[1] = inner[1], inner[0], found[0]
            inner[0] = high - ratio * (high - low)
            found[0] = objective(inner[0])
        else:
            low, inner[0], found[0] = inner[0], inner[1], found[1]
            inner[1] = low + ratio * (high - low)
            found[1] = objective(inner[1])
    best = sign * min(found)
    best = min(best, edge) if side == "upper" else max(best, edge)
    # Relative to the distance from the certain part, not to a total of 1e12.
    assert abs(value - best) <= 1e-9 * max(spread, 1e-300) + 4e-16 * abs(best)


@pytest.mark.parametrize("seed", range(40))
def test_no_more_than_beta_lies_beyond_a_chernoff_bound(seed):
    rng = np.random.default_rng(seed)
    classes = random_classes(rng, int(rng.integers(1, 30)), 9, 40)
    law = bernoulli_sum_law(*classes)
    for beta in (0.5, 0.1, 1e-3, 1e-9):
        upper = chernoff_quantile(*classes, beta=beta)
        lower = chernoff_quantile(*classes, beta=beta, side="lower")
        assert law.sf(int(np.floor(upper))) <= beta + law.error
        assert law.cdf(int(np.ceil(lower)) - 1) <= beta + law.error
        assert law.upper_tail_mean(beta) <= upper + (law.error * law.pmf.size + 1e-12) / beta


def test_chernoff_of_nothing_and_of_what_is_certain():
    empty = ints(), floats(), floats(), ints()
    assert chernoff_quantile(*empty, beta=0.1) == 0.0
    sure = ints(4, 9), floats(1.0, 0.0), floats(0.0, 1.0), ints(3, 5)
    assert chernoff_quantile(*sure, beta=0.1) == 12.0
    assert chernoff_quantile(*sure, beta=0.1, side="lower") == 12.0
    law = bernoulli_sum_law(*empty)
    assert (law.first, law.pmf.tolist()) == (0, [1.0])


def test_every_order_of_two_signs_and_sizes():
    """Classes on both sides of 1/2, rare and not: the signs of the shifts are right."""
    for p, q in product((0.001, 0.3, 0.7, 0.999), repeat=2):
        miss = floats(p, q)
        classes = (ints(2, 5), miss, 1 - miss, ints(30, 20))
        assert_same_law(bernoulli_sum_law(*classes), *dense_law(*classes))


def test_a_window_that_is_too_long_is_refused():
    classes = ints(10**11), floats(0.3), floats(0.7), ints(3)
    with pytest.raises(InvalidInput, match="window = 300000000001: must be at most 16777216"):
        bernoulli_sum_law(*classes)
    assert 10**11 < chernoff_quantile(*classes, beta=0.05) <= 3 * 10**11


GOOD = {"weights": ints(1, 2), "miss": floats(0.5, 0.1), "hit": floats(0.5, 0.9)}


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("miss", floats(0.5, 1.1), r"miss = 1.1: must be in \[0, 1\]"),
        ("miss", floats(-1e-9, 0.1), r"miss = -1e-09: must be in \[0, 1\]"),
        ("miss", floats(0.5, np.nan), r"miss = nan: must be in \[0, 1\]"),
        ("hit", floats(0.5, 0.8), "hit = 0.8: must be 1 - miss"),
        ("weights", ints(1, -2), "weights = -2: must be finite numbers of at least 0"),
        ("weights", ints(1, 2**62), "must sum to less than 2"),
        ("multiplicity", ints(1, 0), "must be whole numbers of at least 1"),
    ],
)
def test_bad_input_is_refused(name, value, message):
    arguments = {**GOOD, "multiplicity": ints(1, 1), name: value}
    with pytest.raises(InvalidInput, match=message):
        bernoulli_sum_law(**arguments)
    with pytest.raises(InvalidInput, match=message):
        chernoff_quantile(**arguments, beta=0.1)


@pytest.mark.parametrize("beta", [0.0, 1.0, -0.1, np.nan])
def test_levels_must_be_inside(beta):
    with pytest.raises(InvalidInput, match=r"must be in \(0, 1\)"):
        chernoff_quantile(**GOOD, multiplicity=ints(1, 1), beta=beta)


def test_values_must_be_whole():
    law = LatticeLaw(0, floats(1.0), 0.0)
    with pytest.raises(InvalidInput, match="v = 0.5: must be whole numbers"):
        law.cdf(0.5)
