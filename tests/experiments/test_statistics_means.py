"""Betting intervals and e-values: validity by enumeration of all outcomes where that is finite."""

import numpy as np
import pytest
from scipy import stats

from experiments.statistics.means import (
    empirical_bernstein_lower,
    empirical_bernstein_upper,
    log_e_above,
    log_e_below,
    mean_interval,
    mean_lower,
    mean_upper,
)
from theory._check import InvalidInput


def bernoulli(successes, trials):
    return np.repeat([1.0, 0.0], [successes, trials - successes])


@pytest.mark.parametrize("trials", [1, 20, 150])
@pytest.mark.parametrize("rate", [0.001, 0.02, 0.3, 0.5, 0.9, 0.999])
def test_bernoulli_evidence_is_valid_exactly(trials, rate):
    k = np.arange(trials + 1)
    pmf = stats.binom.pmf(k, trials, rate)
    outcomes = [bernoulli(i, trials) for i in k]
    log_above = log_e_above(np.stack(outcomes, axis=1), np.full(trials + 1, rate))
    log_below = log_e_below(np.stack(outcomes, axis=1), np.full(trials + 1, rate))
    # Fair bets: the expectation is 1, not only at most 1.
    log_pmf = stats.binom.logpmf(k, trials, rate)
    assert np.sum(np.exp(log_pmf + log_above)) == pytest.approx(1.0, rel=1e-9)
    assert np.sum(np.exp(log_pmf + log_below)) == pytest.approx(1.0, rel=1e-9)
    for alpha in (0.2, 0.05, 1e-3):
        assert pmf @ (log_above >= -np.log(alpha)) <= alpha
        assert pmf @ (log_below >= -np.log(alpha)) <= alpha


def test_three_point_law_is_covered_exactly():
    """All compositions of 30 samples on {0, 0.3, 1}; the limits themselves are checked."""
    trials, law, values = 30, np.array([0.5, 0.3, 0.2]), np.array([0.0, 0.3, 1.0])
    mean, alpha, missed_low, missed_high = float(law @ values), 0.1, 0.0, 0.0
    for a in range(trials + 1):
        for b in range(trials + 1 - a):
            counts = np.array([a, b, trials - a - b])
            weight = stats.multinomial.pmf(counts, trials, law)
            x = np.repeat(values, counts)
            missed_low += weight * (mean_lower(x, alpha=alpha) > mean)
            missed_high += weight * (mean_upper(x, alpha=alpha) < mean)
    assert 0 < missed_low <= alpha
    assert 0 < missed_high <= alpha


@pytest.mark.parametrize("rate", [0.05, 0.5])
def test_any_number_of_looks_is_valid_exactly(rate):
    """P(the running evidence against the truth ever reaches 1/alpha), by dynamic programming."""
    trials, alpha = 250, 0.1
    alive = np.zeros(trials + 2)
    alive[0] = 1.0
    for r in range(1, trials + 1):
        alive[1:] = alive[1:] * (1 - rate) + alive[:-1] * rate
        alive[0] *= 1 - rate
        k = np.arange(r + 1)
        samples = (np.arange(r)[:, None] < k).astype(float)
        alive[: r + 1][log_e_above(samples, rate) >= -np.log(alpha)] = 0.0
    assert 0.001 < 1 - alive.sum() <= alpha


@pytest.mark.parametrize(("a", "b"), [(2, 5), (0.1, 3), (50, 50)])
def test_beta_variables_are_covered(a, b):
    """1,000 intervals at 0.05: more misses than the bound below have probability < 1e-7."""
    rng = np.random.default_rng(20250)
    samples = rng.beta(a, b, (200, 1000))
    mean, alpha = np.full(1000, a / (a + b)), 0.05
    most = stats.binom.isf(1e-7, 1000, alpha)
    for log_e in (log_e_above, log_e_below):
        assert np.count_nonzero(log_e(samples, mean) >= -np.log(alpha)) <= most
    for lower, upper in [(empirical_bernstein_lower, empirical_bernstein_upper)]:
        assert np.count_nonzero(lower(samples, alpha=alpha) > mean) <= most
        assert np.count_nonzero(upper(samples, alpha=alpha) < mean) <= most


@pytest.mark.parametrize("value", [0.0, 1e-9, 0.25, 1 - 1e-9, 1.0])
def test_point_masses_are_never_missed_and_shrink_like_one_over_n(value):
    for trials in (1, 10, 10_000):
        low, high = mean_interval(np.full(trials, value), alpha=0.01)
        assert 0 <= low <= value <= high <= 1
    assert high - low < 2 * (np.log(2 / 0.01) + np.log(16)) / 10_000


def test_evidence_equals_the_plain_product_and_the_mixture():
    rng = np.random.default_rng(3)
    x, m = rng.uniform(0, 1, 40), 0.35
    capital = np.mean([np.prod(1 + f * (x / m - 1)) for f in 0.5 ** np.arange(16)])
    assert np.exp(log_e_above(x, m)) == pytest.approx(capital, rel=1e-12)
    prefixes = max(float(log_e_above(x[:t], m)) for t in range(41))
    assert log_e_above(x, m, running=True) == pytest.approx(prefixes, rel=1e-12)


def test_order_and_columns():
    rng = np.random.default_rng(4)
    x = rng.beta(1, 3, (300, 3))
    means = np.array([0.2, 0.25, 0.3])
    together = log_e_above(x, means)
    apart = [log_e_above(x[:, i], means[i]) for i in range(3)]
    np.testing.assert_allclose(together, apart, rtol=1e-12)
    np.testing.assert_allclose(log_e_above(x[::-1], means), together, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(log_e_below(1 - x, 1 - means), together, rtol=1e-9, atol=1e-9)


def test_limits_are_the_ends_of_the_evidence():
    x = np.random.default_rng(5).beta(0.5, 20, 2000)
    alpha = 1e-4
    low, high = mean_lower(x, alpha=alpha), mean_upper(x, alpha=alpha)
    assert low < np.mean(x) < high
    assert log_e_above(x, low) >= -np.log(alpha) > log_e_above(x, low * (1 + 1e-9))
    assert log_e_below(x, high) >= -np.log(alpha) > log_e_below(x, high * (1 - 1e-9))


def test_intervals_are_nested_in_alpha_and_halves_make_the_whole():
    x = np.random.default_rng(6).beta(2, 5, 500)
    intervals = [mean_interval(x, alpha=alpha) for alpha in (1e-8, 1e-4, 0.01, 0.3, 0.9)]
    assert np.all(np.diff([i.low for i in intervals]) > 0)
    assert np.all(np.diff([i.high for i in intervals]) < 0)
    assert intervals[2] == (mean_lower(x, alpha=0.005), mean_upper(x, alpha=0.005))


def test_narrow_enough_to_be_of_use():
    """Half-width near sigma sqrt(2 (ln(1/alpha) + ln 16) / R), and below empirical Bernstein."""
    x = np.random.default_rng(7).beta(20, 60, 5000)
    alpha = 1e-4
    width = np.mean(x) - mean_lower(x, alpha=alpha)
    assert width < 1.1 * np.std(x) * np.sqrt(2 * (np.log(1 / alpha) + np.log(16)) / x.size)
    assert width < np.mean(x) - empirical_bernstein_lower(x, alpha=alpha)


def test_degenerate_samples():
    empty = np.array([])
    assert mean_interval(empty, alpha=0.1) == (0.0, 1.0)
    assert log_e_above(empty, 0.5) == 0.0 and log_e_above(empty, 0.5, running=True) == 0.0
    # A mean of 0 is contradicted by one positive sample; a mean of 1 by one below 1.
    assert log_e_above(np.array([0.0, 0.1]), 0.0) == np.inf
    assert log_e_above(np.zeros(5), 0.0) == 0.0
    assert log_e_below(np.array([1.0, 0.9]), 1.0, running=True) == np.inf
    rare = np.zeros(100_000)
    rare[0] = 1e-6
    assert 0 <= mean_lower(rare, alpha=0.01) <= 1e-11
    assert mean_lower(np.array([0.5]), alpha=1 - 1e-9) <= 0.5


@pytest.mark.parametrize("bad", [[0.5, np.nan], [1.1], [-0.1], 0.5])
def test_samples_outside_the_unit_interval_are_refused(bad):
    with pytest.raises(InvalidInput, match="samples"):
        log_e_above(bad, 0.5)
    with pytest.raises(InvalidInput, match="two trials"):
        empirical_bernstein_lower([0.5], alpha=0.1)
