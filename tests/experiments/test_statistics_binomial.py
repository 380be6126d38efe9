"""[V1]: coverage and validity by exact enumeration, never by simulation."""

import mpmath
import numpy as np
import pytest
from scipy import stats

from experiments.statistics.binomial import (
    as_p_value,
    clopper_pearson_lower,
    clopper_pearson_upper,
    log_p_confirm,
    log_p_refute,
)
from theory._check import InvalidInput

RATES = np.concatenate([[1e-6, 1e-3], np.linspace(0.01, 0.99, 99), [1 - 1e-3, 1 - 1e-6]])


@pytest.mark.parametrize("trials", [1, 2, 7, 50, 1000])
@pytest.mark.parametrize("alpha", [0.2, 0.05, 1e-4])
def test_limits_miss_with_probability_at_most_alpha_at_every_rate(trials, alpha):
    k = np.arange(trials + 1)
    lower = clopper_pearson_lower(k, trials, alpha=alpha)
    upper = clopper_pearson_upper(k, trials, alpha=alpha)
    pmf = stats.binom.pmf(k, trials, RATES[:, None])
    # Rates equal to a limit up to rounding are not misses.
    misses_low = np.sum(pmf * (lower > RATES[:, None] * (1 + 1e-12)), axis=1)
    misses_high = np.sum(pmf * (upper < RATES[:, None] * (1 - 1e-12)), axis=1)
    assert np.max(misses_low) <= alpha * (1 + 1e-9)
    assert np.max(misses_high) <= alpha * (1 + 1e-9)


def test_limits_are_attained_not_merely_valid():
    # At the limit itself the tail probability is alpha: a wider interval would fail this.
    k, trials, alpha = np.arange(1, 50), 50, 0.01
    lower = clopper_pearson_lower(k, trials, alpha=alpha)
    upper = clopper_pearson_upper(k - 1, trials, alpha=alpha)
    np.testing.assert_allclose(stats.binom.sf(k - 1, trials, lower), alpha, rtol=1e-10)
    np.testing.assert_allclose(stats.binom.cdf(k - 1, trials, upper), alpha, rtol=1e-10)


def test_closed_forms_at_the_ends():
    assert clopper_pearson_lower(0, 9, alpha=0.3) == 0.0
    assert clopper_pearson_upper(9, 9, alpha=0.3) == 1.0
    assert clopper_pearson_upper(0, 0, alpha=0.3) == 1.0
    np.testing.assert_allclose(clopper_pearson_lower(9, 9, alpha=1e-20), 1e-20 ** (1 / 9))
    np.testing.assert_allclose(
        clopper_pearson_upper(0, 9, alpha=1e-20), 1 - 1e-20 ** (1 / 9), rtol=1e-13
    )


def test_limits_are_nested_in_alpha_and_ordered_in_k():
    alphas = np.array([1e-12, 1e-6, 1e-3, 0.05, 0.3])[:, None]
    k = np.arange(41)
    lower = clopper_pearson_lower(k, 40, alpha=alphas)
    upper = clopper_pearson_upper(k, 40, alpha=alphas)
    assert np.all(np.diff(lower, axis=0) >= 0) and np.all(np.diff(upper, axis=0) <= 0)
    assert np.all(np.diff(lower, axis=1) > 0) and np.all(np.diff(upper, axis=1) > 0)
    assert np.all(lower <= k / 40) and np.all(k / 40 <= upper)


@pytest.mark.parametrize("beta", [0.003, 0.05, 0.5, 0.97])
def test_p_values_agree_with_the_limits_and_are_exact_at_beta(beta):
    trials = 60
    k = np.arange(trials + 1)
    confirm = np.exp(log_p_confirm(k, trials, beta=beta))
    refute = np.exp(log_p_refute(k, trials, beta=beta))
    pmf = stats.binom.pmf(k, trials, beta)
    np.testing.assert_allclose(confirm, np.cumsum(pmf), rtol=1e-10)
    np.testing.assert_allclose(refute, np.cumsum(pmf[::-1])[::-1], rtol=1e-10)
    for alpha in (0.1, 0.01, 1e-5):
        upper = clopper_pearson_upper(k, trials, alpha=alpha)
        lower = clopper_pearson_lower(k, trials, alpha=alpha)
        np.testing.assert_array_equal(confirm <= alpha, upper <= beta)
        np.testing.assert_array_equal(refute <= alpha, lower >= beta)


@pytest.mark.parametrize(("k", "trials", "beta"), [(3, 40_000, 0.05), (200, 50_000, 0.3)])
def test_deep_tails_are_bounded_from_above_and_close(k, trials, beta):
    with mpmath.workdps(40):
        p = mpmath.mpf(beta)
        terms = [mpmath.binomial(trials, i) * p**i * (1 - p) ** (trials - i) for i in range(k + 1)]
        exact = float(mpmath.log(mpmath.fsum(terms)))
    assert exact < -700  # float64 would say exp(-inf)
    assert exact - 1e-6 <= log_p_confirm(k, trials, beta=beta) <= exact + 0.05
    # The mirror image: many successes at a small rate.
    mirrored = log_p_refute(trials - k, trials, beta=1 - beta)
    np.testing.assert_allclose(mirrored, log_p_confirm(k, trials, beta=beta), rtol=1e-9)


def test_figures_of_the_verdict_section():
    """beta = 0.05, alpha = 1e-4: R >= 180 with K = 0; R about 2,100 for power 0.99 at beta/2."""
    alpha, beta = 1e-4, 0.05
    first = next(r for r in range(1, 1000) if log_p_confirm(0, r, beta=beta) <= np.log(alpha))
    assert first == 180

    def power(trials):
        k = np.arange(trials + 1)
        confirmed = clopper_pearson_upper(k, trials, alpha=alpha) <= beta
        return float(np.sum(stats.binom.pmf(k, trials, beta / 2)[confirmed]))

    enough = next(r for r in range(1500, 3000, 10) if power(r) >= 0.99)
    assert 2050 <= enough <= 2150


def test_p_values_are_never_zero_and_broadcast():
    assert as_p_value(-1e6) > 0 and as_p_value(1.0) == 1.0
    assert log_p_confirm(np.zeros((2, 1)), [10, 20, 30], beta=0.1).shape == (2, 3)
    assert log_p_confirm(5, 5, beta=0.1) == 0.0 and log_p_refute(0, 5, beta=0.1) == 0.0


@pytest.mark.parametrize("bad", [(6, 5), (-1, 5), (0.5, 5), (np.nan, 5), (0, 2.5), (0, -1)])
def test_impossible_counts_are_refused(bad):
    with pytest.raises(InvalidInput, match="must be whole numbers"):
        log_p_confirm(*bad, beta=0.1)
    with pytest.raises(InvalidInput, match="alpha"):
        clopper_pearson_lower(1, 2, alpha=0.0)
