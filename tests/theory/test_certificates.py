"""Certificates of the missing mass against complete enumeration of small data sets."""

from itertools import combinations

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import binom, norm

from theory import Calibration, InvalidInput, Profile, UserItems
from theory.bernoulli_sums import bernoulli_sum_law
from theory.certificates import (
    certificate,
    chernoff_bound,
    exact_exceedance,
    exact_max_quantile,
    exact_quantile,
    hinge_bound,
    max_missing_mass_bracket,
    missing_mass_law,
    variance_bound,
)
from theory.miss_probability import MissProbabilities, miss_probabilities

SLACK = 1e-12


def random_sets(rng):
    """At most five users and five items, every item held by somebody."""
    num_items = int(rng.integers(1, 6))
    sets = []
    for _ in range(int(rng.integers(1, 6))):
        size = int(rng.integers(1, num_items + 1))
        sets.append(sorted(rng.choice(num_items, size, replace=False).tolist()))
    names = sorted(set().union(*sets))
    return [[names.index(item) for item in held] for held in sets], len(names)


class Enumerated:
    """Exact law of the set of missed items: all subsamples, then all noises.

    Attributes:
        law: [2^items], probability that exactly the items of the bit pattern are missed.
        missed: [2^items, items], the bits.
    """

    def __init__(self, sets, num_items, *, bound, sigma, threshold):
        self.frequencies = np.bincount(np.concatenate(sets), minlength=num_items)
        self.num_pairs = int(self.frequencies.sum())
        self.clipped = max(len(held) for held in sets) > bound
        # Probability of every vector of kept copies, as a number in base 6: at most five users.
        counts = np.zeros(6**num_items)
        counts[0] = 1.0
        base = np.zeros(num_items)
        for held in sets:
            if len(held) <= bound:
                base[held] += len(held) ** -0.5
                continue
            steps = [sum(6**item for item in kept) for kept in combinations(held, bound)]
            longer = np.zeros_like(counts)
            for step in steps:
                longer[step:] += counts[: counts.size - step] / len(steps)
            counts = longer
        states = np.flatnonzero(counts)
        copies = states[:, None] // 6 ** np.arange(num_items) % 6
        weight = base + copies / np.sqrt(bound)
        margin = (weight - threshold) / sigma
        miss = np.where(weight == 0, 1.0, ndtr(-margin))
        hit = np.where(weight == 0, 0.0, ndtr(margin))
        joint = counts[states, None]
        for item in range(num_items):
            joint = np.concatenate(
                (joint * hit[:, [item]], joint * miss[:, [item]]), axis=1
            )  # pattern bit `item` is 1 where missed
        self.law = joint.sum(axis=0)
        self.missed = np.arange(2**num_items)[:, None] >> np.arange(num_items) & 1
        self.pairs = self.missed @ self.frequencies
        self.largest = np.max(self.missed * self.frequencies, axis=1)

    def misses(self):
        """The marginals, item by item, as the functions under test take them."""
        return MissProbabilities(
            miss=np.minimum(self.law @ self.missed, 1.0),
            hit=np.minimum(self.law @ (1 - self.missed), 1.0),
            frequencies=self.frequencies.astype(np.int64),
            multiplicity=np.ones(self.frequencies.size, np.int64),
            num_pairs=self.num_pairs,
            independent=not self.clipped,
        )

    def above(self, values, bound):
        """P(values > bound), a bound that was rounded down by 1e-12 is forgiven."""
        return float(self.law[values > bound * (1 + SLACK)].sum())

    def below(self, values, bound):
        return float(self.law[values < bound * (1 - SLACK)].sum())


def random_enumerations(number, seed):
    rng = np.random.default_rng(seed)
    for _ in range(number):
        sets, num_items = random_sets(rng)
        bound = int(rng.integers(1, 4))
        heaviest = max(
            sum(min(len(held), bound) ** -0.5 for held in sets if item in held)
            for item in range(num_items)
        )
        noise = {
            "sigma": float(np.exp(rng.uniform(np.log(0.05), np.log(2.0)))),
            "threshold": float(rng.uniform(-0.3, 1.2 * heaviest)),
        }
        beta = float(np.exp(rng.uniform(np.log(0.01), np.log(0.5))))
        exact = Enumerated(sets, num_items, bound=bound, **noise)
        yield exact, beta, (sets, bound, noise)


@pytest.fixture(scope="module")
def enumerations():
    return list(random_enumerations(2000, seed=11))


def test_the_enumeration_is_a_law_of_the_mechanism(enumerations):
    """Two thousand data sets, most of them clipped and undecided, so that the rest says much."""
    for exact, _, _ in enumerations:
        assert exact.law.sum() == pytest.approx(1, abs=1e-12)
    assert sum(exact.clipped for exact, _, _ in enumerations) > 700
    undecided = [exact.law.max() < 0.99 for exact, _, _ in enumerations]
    assert sum(undecided) > 1400


def test_enumerated_marginals_are_the_exact_ones(enumerations):
    for exact, _, (sets, bound, noise) in enumerations[:100]:
        data = UserItems.from_sets([set(held) for held in sets])
        made = Calibration(1.0, 1e-5, bound, "split", noise["sigma"], noise["threshold"])
        profile = Profile.from_user_items(data, max_items_per_user=bound)
        mean = miss_probabilities(profile, made).mean_missing_mass
        expected = exact.law @ exact.pairs / exact.num_pairs
        assert mean == pytest.approx(expected, rel=1e-10)
        assert exact.misses().mean_missing_mass == pytest.approx(expected, rel=1e-12)


def test_certificates_cover(enumerations):
    """[E5] and [E6], both sides, at a level drawn for each data set; [E6] lies inside [E5]."""
    for exact, beta, _ in enumerations:
        misses = exact.misses()
        shares = exact.pairs / exact.num_pairs
        chernoff = [chernoff_bound(misses, beta, side=side).value for side in ("lower", "upper")]
        hinge = [hinge_bound(misses, beta, side=side).value for side in ("lower", "upper")]
        for lower, upper in (chernoff, hinge):
            assert exact.above(shares, upper) <= beta + SLACK
            assert exact.below(shares, lower) <= beta + SLACK
        assert chernoff[0] - SLACK <= hinge[0] <= hinge[1] <= chernoff[1] + SLACK
        assert chernoff[1] <= shares.max() + SLACK
        if not exact.clipped:
            law = exact.law[np.argsort(-shares)]
            left = np.clip(beta - np.concatenate(([0.0], np.cumsum(law)[:-1])), 0, law)
            tail_mean = left @ np.sort(shares)[::-1] / beta
            assert hinge[1] == pytest.approx(tail_mean, abs=1e-11)


def test_misses_are_below_independent_ones_in_convex_order(enumerations):
    """[E4]: the mean of every hinge, and the variance, are at most those of the independent sum."""
    largest = 0.0
    for exact, _, _ in enumerations[:600]:
        misses = exact.misses()
        law = bernoulli_sum_law(misses.frequencies, misses.miss, misses.hit, misses.multiplicity)
        for u in range(exact.num_pairs):
            hinge = float(exact.law @ np.maximum(exact.pairs - u, 0))
            assert hinge <= law.excess(u) + SLACK * exact.num_pairs
            if not exact.clipped:
                assert hinge == pytest.approx(law.excess(u), abs=SLACK * exact.num_pairs)
        shares = exact.pairs / exact.num_pairs
        variance = float(exact.law @ (shares - exact.law @ shares) ** 2)
        bound = variance_bound(misses)
        assert variance <= bound + SLACK
        if not exact.clipped:
            assert variance == pytest.approx(bound, abs=SLACK)
        else:
            largest = max(largest, bound - variance)
    assert largest > 0.01  # the association is visible somewhere


def test_the_quantile_of_the_largest_missed_mass_is_in_its_bracket(enumerations):
    for exact, beta, _ in enumerations:
        misses = exact.misses()
        largest = exact.largest / exact.num_pairs
        for level in (beta, 0.05):
            lower, upper = max_missing_mass_bracket(misses, level)
            assert exact.above(largest, upper.value) <= level + SLACK
            assert lower.value == 0 or exact.above(largest, lower.value - 1e-6) >= level - SLACK
            assert lower.value <= upper.value
            if not exact.clipped:
                assert lower.value == upper.value
                assert exact_max_quantile(misses, 1 - level) == pytest.approx(lower.value)


def test_a_bracket_is_closed_where_its_sum_is_exactly_beta():
    misses = MissProbabilities(
        miss=np.array([0.25, 0.25, 0.25]),
        hit=np.array([0.75, 0.75, 0.75]),
        frequencies=np.array([1, 3, 2]),
        multiplicity=np.array([2, 1, 1]),
        num_pairs=7,
        independent=False,
    )
    lower, upper = max_missing_mass_bracket(misses, 0.5)
    assert upper.value == 1 / 7  # one item of 3, one of 2: 0.25 + 0.25
    assert lower.value == 1 / 7  # 1 - 0.75^2 = 0.4375, and with those of 1 it is 0.68
    assert max_missing_mass_bracket(misses, 0.4999)[1].value == 2 / 7
    assert max_missing_mass_bracket(misses, 0.4374)[0].value == 2 / 7


def test_other_weights_cover_too(enumerations):
    for exact, beta, _ in enumerations[:300]:
        misses = exact.misses()
        ones, squares = np.ones_like(misses.frequencies), (exact.frequencies / exact.num_pairs) ** 2
        number, power = exact.missed.sum(axis=1), exact.missed @ squares
        assert exact.above(number, hinge_bound(misses, beta, weights=ones).value) <= beta + SLACK
        assert exact.above(number, chernoff_bound(misses, beta, weights=ones).value) <= beta + SLACK
        upper = chernoff_bound(misses, beta, weights=squares).value
        lower = chernoff_bound(misses, beta, weights=squares, side="lower").value
        assert exact.above(power, upper) <= beta + SLACK
        assert exact.below(power, lower) <= beta + SLACK
        variance = float(exact.law @ (power - exact.law @ power) ** 2)
        assert variance <= variance_bound(misses, weights=squares) + SLACK


def test_exact_quantiles_and_exceedances_are_those_of_the_enumeration(enumerations):
    for exact, beta, _ in [case for case in enumerations if not case[0].clipped][:200]:
        misses = exact.misses()
        shares = exact.pairs / exact.num_pairs
        for q in (beta, 0.5, 1 - beta):
            value = exact_quantile(misses, q)
            assert 1 - exact.above(shares, value) >= q - SLACK
            assert exact.above(shares, value - 1e-9) > 1 - q - SLACK
            # As a float k/N the value itself is not exceeded by k, whatever the rounding.
            assert exact_exceedance(misses, value) == pytest.approx(
                exact.above(shares, value), abs=SLACK
            )
        assert exact_exceedance(misses, -0.1) == 1.0
        assert exact_exceedance(misses, 1.0) == 0.0


def larger(seed, *, classes=150, grid=(), independent=True):
    rng = np.random.default_rng(seed)
    frequencies = np.sort(rng.integers(1, 60, classes))[::-1].copy()
    multiplicity = rng.integers(1, 9, classes)
    centre = rng.uniform(10, 30, (*grid, 1))
    margin = (frequencies - centre) / rng.uniform(2, 6, (*grid, 1))
    return MissProbabilities(
        miss=ndtr(-margin),
        hit=ndtr(margin),
        frequencies=frequencies,
        multiplicity=multiplicity,
        num_pairs=int(frequencies @ multiplicity),
        independent=independent,
    )


@pytest.mark.parametrize("seed", range(6))
def test_exact_quantile_hinge_and_chernoff_are_in_order(seed):
    misses = larger(seed)
    for beta in (0.5, 0.1, 0.05, 1e-3, 1e-6):
        exact = exact_quantile(misses, 1 - beta)
        hinge, chernoff = hinge_bound(misses, beta), chernoff_bound(misses, beta)
        assert exact <= hinge.value + SLACK
        assert hinge.value <= chernoff.value + SLACK
        best = certificate(misses, beta)
        assert best.value == min(hinge.value, chernoff.value)
        assert exact_exceedance(misses, best.value) <= beta
        low = [hinge_bound(misses, beta, side="lower"), chernoff_bound(misses, beta, side="lower")]
        assert low[1].value - SLACK <= low[0].value <= exact_quantile(misses, beta) + SLACK


def test_a_certificate_never_fails_for_tiny_beta():
    """The hinge has no digits left there: its error is added, and Chernoff is the smaller."""
    misses = larger(3)
    best = certificate(misses, 1e-14)
    assert best.value == chernoff_bound(misses, 1e-14).value < hinge_bound(misses, 1e-14).value
    # With nothing left to say, it says that between none and all of the mass is missed.
    assert hinge_bound(misses, 1e-20).value == 1.0
    assert hinge_bound(misses, 1e-20, side="lower").value == 0.0


@pytest.mark.parametrize("shape", [(3,), (3, 1), (2, 3)])
def test_a_grid_gives_arrays_of_its_shape(shape):
    misses = larger(5, grid=shape)
    bounds = [
        lambda at: certificate(at, 0.05).value,
        lambda at: hinge_bound(at, 0.05, side="lower").value,
        lambda at: max_missing_mass_bracket(at, 0.05)[1].value,
        lambda at: exact_quantile(at, 0.95),
        lambda at: exact_max_quantile(at, 0.95),
        lambda at: exact_exceedance(at, 0.3),
        variance_bound,
    ]
    for bound in bounds:
        values = bound(misses)
        assert values.shape == shape
        assert values.dtype == np.float64
        assert values.ravel().tolist() == [bound(misses.at(i)) for i in np.ndindex(*shape)]
    limits = certificate(misses, 0.05).value
    alone = [exact_exceedance(misses.at(i), limits[i]) for i in np.ndindex(*shape)]
    assert exact_exceedance(misses, limits).ravel().tolist() == alone


def test_records_say_what_they_are():
    misses = larger(1)
    upper, lower = chernoff_bound(misses, 0.1), hinge_bound(misses, 0.2, side="lower")
    assert (upper.tag, upper.side, upper.failure_probability) == ("[E5]", "upper", 0.1)
    assert (lower.tag, lower.side, lower.failure_probability) == ("[E6]", "lower", 0.2)
    assert {upper.source, lower.source} == {"negative association"}
    assert {upper.statistic, upper.metric} == {"quantile", "missing_mass"}
    low, high = max_missing_mass_bracket(larger(1, independent=False), 0.05)
    assert (low.side, high.side, high.metric) == ("lower", "upper", "max_missing_mass")
    assert low.value <= high.value
    assert upper.conditions != chernoff_bound(larger(1, independent=False), 0.1).conditions


def test_a_binomial_case_in_closed_form():
    """Equal items: N MM / frequency is binomial."""
    misses = MissProbabilities(
        miss=np.array([0.3]),
        hit=np.array([0.7]),
        frequencies=np.array([5]),
        multiplicity=np.array([10**5]),
        num_pairs=5 * 10**5,
        independent=True,
    )
    law = binom(10**5, 0.3)
    for q in (0.01, 0.5, 0.95, 0.999):
        assert exact_quantile(misses, q) == law.ppf(q) / 10**5
    bound = 30_250 / 10**5
    assert exact_exceedance(misses, bound) == pytest.approx(law.sf(30_250), rel=1e-9)
    assert missing_mass_law(misses).mean == pytest.approx(150_000, rel=1e-12)


@pytest.mark.parametrize("beta", [0.05, 1e-3])
def test_a_million_million_pairs(beta):
    """Against Chernoff and tail mean of the normal law with the same moments."""
    misses = MissProbabilities(
        miss=np.array([1 - 5e-6, 0.4, 1e-30, 0.0]),
        hit=np.array([5e-6, 0.6, 1.0, 1.0]),
        frequencies=np.array([1, 20, 200, 10**11]),
        multiplicity=np.array([10**9, 10**8, 10**6, 9]),
        num_pairs=10**9 + 20 * 10**8 + 200 * 10**6 + 9 * 10**11,
        independent=True,
    )
    mean = 10**9 * (1 - 5e-6) + 20 * 10**8 * 0.4
    spread = np.sqrt(10**9 * 5e-6 + 400 * 10**8 * 0.24)
    chernoff = np.sqrt(-2 * np.log(beta))
    hinge = norm.pdf(norm.isf(beta)) / beta
    for bound, distance in ((chernoff_bound, chernoff), (hinge_bound, hinge)):
        upper = bound(misses, beta).value * misses.num_pairs
        lower = bound(misses, beta, side="lower").value * misses.num_pairs
        assert (upper - mean) / spread == pytest.approx(distance, abs=1e-3)
        assert (lower - mean) / spread == pytest.approx(-distance, abs=1e-3)
    pairs = exact_quantile(misses, 1 - beta) * misses.num_pairs
    assert (pairs - mean) / spread == pytest.approx(norm.isf(beta), abs=1e-3)


def test_where_the_law_is_too_long_the_hinge_is_chernoff():
    misses = MissProbabilities(
        miss=np.array([0.4, 0.1]),
        hit=np.array([0.6, 0.9]),
        frequencies=np.array([10**11, 3]),
        multiplicity=np.array([9, 5]),
        num_pairs=9 * 10**11 + 15,
        independent=True,
    )
    for side in ("upper", "lower"):
        bound = hinge_bound(misses, 1e-3, side=side)
        assert bound.value == chernoff_bound(misses, 1e-3, side=side).value
        assert any("window of the law is too long" in text for text in bound.conditions)
    with pytest.raises(InvalidInput, match="window"):
        exact_quantile(misses, 0.5)


def test_certain_items_give_certain_bounds():
    misses = MissProbabilities(
        miss=np.array([0.0, 1.0]),
        hit=np.array([1.0, 0.0]),
        frequencies=np.array([7, 3]),
        multiplicity=np.array([1, 1]),
        num_pairs=10,
        independent=True,
    )
    for side in ("upper", "lower"):
        assert chernoff_bound(misses, 0.1, side=side).value == 0.3
        assert hinge_bound(misses, 0.1, side=side).value == 0.3
    assert exact_quantile(misses, 0.5) == 0.3
    assert exact_exceedance(misses, 0.3) == 0.0
    assert [bound.value for bound in max_missing_mass_bracket(misses, 0.1)] == [0.3, 0.3]
    assert variance_bound(misses) == 0.0


WITH_BETA = [certificate, chernoff_bound, hinge_bound, max_missing_mass_bracket]


@pytest.mark.parametrize("beta", [0.0, 1.0, -0.5, 2.0])
@pytest.mark.parametrize("function", [*WITH_BETA, exact_quantile, exact_max_quantile])
def test_levels_outside_are_refused(function, beta):
    with pytest.raises(InvalidInput, match=rf"(beta|q) = {beta}: must be in \(0, 1\)"):
        function(larger(0), beta)


@pytest.mark.parametrize("miss", [-0.1, 1.5, np.nan])
@pytest.mark.parametrize("function", [certificate, chernoff_bound, hinge_bound, exact_quantile])
def test_probabilities_outside_are_refused(function, miss):
    misses = MissProbabilities(
        miss=np.array([0.5, miss]),
        hit=np.array([0.5, 0.5]),
        frequencies=np.array([2, 1]),
        multiplicity=np.array([1, 1]),
        num_pairs=3,
        independent=True,
    )
    with pytest.raises(InvalidInput, match=rf"miss = {miss}: must be in \[0, 1\]"):
        function(misses, 0.1)


def test_exact_laws_need_independence_and_one_point():
    clipped = larger(0, independent=False)
    for call in (
        lambda: missing_mass_law(clipped),
        lambda: exact_quantile(clipped, 0.5),
        lambda: exact_max_quantile(clipped, 0.5),
        lambda: exact_exceedance(clipped, 0.5),
    ):
        with pytest.raises(InvalidInput, match="must be at least the largest set"):
            call()
    with pytest.raises(InvalidInput, match="must be one grid point"):
        missing_mass_law(larger(0, grid=(2,)))
    with pytest.raises(InvalidInput, match="bound = nan: must be a number"):
        exact_exceedance(larger(0), np.nan)
