"""Certificates against trials on the real data sets present: valid, and within 5 % of the truth."""

import numpy as np
import pytest
from scipy.stats import binom

from experiments.cells import Case, run_case
from experiments.loading import PRESETS, load
from experiments.statistics.means import mean_interval

BETA = 0.05
# All checks of one run together: 13 data sets x 4 Delta0 x 2 eps x 3.
ALARM = 1e-6 / (13 * 4 * 2 * 3)


def check(data, name, bounds, num_trials):
    """Exact numbers of a data set against trials; returns certificate over simulated quantile."""
    case, ratios = Case(name, data), []
    for bound in bounds:
        run = run_case(
            case,
            max_items_per_user=bound,
            eps=(0.1, 1.0),
            delta=1e-5,
            beta=BETA,
            num_trials=num_trials,
        )
        for index, (low, high, _) in enumerate(run.intervals["missing_mass"]):
            mass = np.ascontiguousarray(run.trials.missing_mass[:, index])
            above = np.count_nonzero(mass > high * (1 + 1e-12))
            assert binom.sf(above - 1, num_trials, BETA) > ALARM, (bound, index, "high")
            reached = np.count_nonzero(mass >= low * (1 - 1e-12))
            assert binom.cdf(reached, num_trials, BETA) > ALARM, (bound, index, "low")
            mean = float(run.exact_mean[index])
            interval = mean_interval(mass, alpha=ALARM)
            assert interval[0] <= mean <= interval[1], (bound, index)
            assert run.bounds["lower_instance"].at(index).value <= mean * (1 + 1e-12)
            ratios.append(high / np.quantile(mass, 1 - BETA, method="inverted_cdf"))
    return ratios


@pytest.mark.parametrize("name", ["steam", "amazon-magazine-subscriptions"])
def test_two_small_sets(name, data_collection, monkeypatch):
    monkeypatch.setenv("WGM_DATA", str(data_collection))
    if not (data_collection / name).is_dir():
        pytest.skip(f"{name} is not in the collection")
    assert max(check(load(preset=name), name, (100, "max"), 400)) < 1.06


@pytest.mark.slow
@pytest.mark.parametrize("name", list(PRESETS))
def test_every_set(name, data_collection, monkeypatch):
    monkeypatch.setenv("WGM_DATA", str(data_collection))
    if not (data_collection / name).is_dir():
        pytest.skip(f"{name} is not in the collection")
    data = load(preset=name)
    num_trials = 10_000 if data.num_pairs < 2_000_000 else 2_000
    ratios = check(data, name, (1, 10, 100, "max"), num_trials)
    if data.num_pairs >= 100_000:
        assert max(ratios) <= 1.05
