"""Log-log slopes: regression, the exact resampling law of a quantile, and coverage."""

import numpy as np
import pytest
from scipy import stats

from experiments.statistics.slopes import (
    bootstrap_slope,
    empirical_quantile,
    log_log_slope,
    order_statistic_index,
)
from theory._check import InvalidInput

SIZES = np.array([1e3, 1e4, 1e5, 1e6])


def power_law(rng, exponent, trials, spread=0.3):
    """Trials whose every quantile is exactly proportional to N**exponent."""
    return [n**exponent * np.exp(spread * rng.standard_normal(trials)) for n in SIZES]


def test_slope_agrees_with_polyfit_on_every_row():
    y = np.exp(np.random.default_rng(0).standard_normal((5, 4)))
    expected = [np.polyfit(np.log(SIZES), np.log(row), 1)[0] for row in y]
    np.testing.assert_allclose(log_log_slope(SIZES, y), expected, rtol=1e-9)


@pytest.mark.parametrize(("quantile", "trials"), [(0.95, 1000), (0.95, 37), (0.5, 2), (0.05, 20)])
def test_quantile_is_the_order_statistic(quantile, trials):
    x = np.random.default_rng(1).uniform(size=trials)
    expected = np.quantile(x, quantile, method="inverted_cdf")
    assert empirical_quantile(x, quantile) == expected
    assert order_statistic_index(1e-9, trials) == 1
    assert order_statistic_index(1 - 1e-15, trials) == trials


def test_beta_shortcut_has_the_law_of_resampling():
    """Slopes against those of literal resampling: equal in law (fixed seed, p > 1e-6)."""
    rng = np.random.default_rng(2)
    cells = power_law(rng, -0.5, 60)
    fast = bootstrap_slope(SIZES, cells, replicates=4000, seed=5).replicates
    quantiles = np.stack(
        [
            np.quantile(rng.choice(c, (4000, c.size)), 0.95, axis=1, method="inverted_cdf")
            for c in cells
        ],
        axis=1,
    )
    assert stats.ks_2samp(fast, np.asarray(log_log_slope(SIZES, quantiles))).pvalue > 1e-6


def test_interval_covers_about_as_often_as_it_says():
    """200 intervals at 0.05. The bootstrap may miss 8 %; more has probability < 1e-6."""
    rng = np.random.default_rng(8)
    misses = 0
    for seed in range(200):
        fit = bootstrap_slope(
            SIZES, power_law(rng, -1 / 3, 400), alpha=0.05, replicates=500, seed=seed
        )
        misses += not fit.low <= -1 / 3 <= fit.high
    assert misses <= stats.binom.isf(1e-6, 200, 0.08)


def test_reproducible_nested_and_ordered():
    cells = power_law(np.random.default_rng(9), -0.5, 300)
    fit, same = bootstrap_slope(SIZES, cells, seed=3), bootstrap_slope(SIZES, cells, seed=3)
    np.testing.assert_array_equal(fit.replicates, same.replicates)
    wide = bootstrap_slope(SIZES, cells, seed=3, alpha=1e-3)
    assert wide.low < fit.low < fit.estimate < fit.high < wide.high
    assert fit.trials == 1200


def test_point_masses_have_no_spread_and_zero_trials_do_not_break_the_logarithm():
    fit = bootstrap_slope(SIZES, [np.full(50, n**-0.5) for n in SIZES])
    assert fit.low == pytest.approx(-0.5) and fit.high == pytest.approx(-0.5)
    sparse = [np.concatenate([np.zeros(45), np.full(5, 0.1)]) for _ in SIZES]
    assert np.all(np.isfinite(bootstrap_slope(SIZES, sparse).replicates))


def test_bad_input_is_refused():
    cells = [np.ones(10)] * 4
    with pytest.raises(InvalidInput, match="positive quantile"):
        bootstrap_slope(SIZES, [*cells[:3], np.zeros(10)])
    with pytest.raises(InvalidInput, match="4 cells"):
        bootstrap_slope(SIZES, cells[:3])
    with pytest.raises(InvalidInput, match="two distinct"):
        log_log_slope([2.0, 2.0], [1.0, 2.0])
    with pytest.raises(InvalidInput, match="positive finite"):
        log_log_slope([1.0, 2.0], [1.0, -2.0])
