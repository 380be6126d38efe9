"""One way to exact misses, and no bound of the WGM beside another mechanism."""

import numpy as np
import pytest

from experiments import cells
from experiments.exact_misses import exact_misses
from theory import Profile, UserItems, calibrate, certificate
from theory.flow.exact import flow_miss_probabilities
from wgm_jax.set_union.flows import known_flow

SETS = [*[(0, 1, 2)] * 20, *[(0, 3)] * 15, *[(1,)] * 9, (4,)]
EPS, DELTA, BOUND = (1.5, 3.0), 1e-3, 2


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def row(mechanism, trials=0):
    run = cells.run_case(
        cells.Case("small", UserItems.from_sets(SETS)), max_items_per_user=BOUND, eps=EPS,
        delta=DELTA, mechanism=mechanism, num_trials=trials,
    )  # fmt: skip
    return run, cells.rows(run)


def test_a_flow_has_its_own_means_and_certificates_and_no_bound_of_the_wgm():
    run, rows = row("bernoulli-flow", trials=50)
    profile = Profile.from_user_items(UserItems.from_sets(SETS), max_items_per_user=BOUND)
    for at, eps in zip(rows, EPS, strict=True):
        misses = flow_miss_probabilities(profile, known_flow(eps, DELTA, BOUND))
        assert at["exact_mean"] == pytest.approx(misses.mean_missing_mass, rel=1e-12)
        sure = min(at["certificate_hinge"], at["certificate_chernoff"], 1.0)
        assert sure == pytest.approx(float(certificate(misses, 0.05).value), rel=1e-9)
        assert all(at[name] is None for name in cells.WGM_BOUNDS)
        assert at["oracle_gap"] == pytest.approx(at["exact_mean"] / at["lower_instance"])
        assert at["zipf_s"] > 0
    assert cells.exceedances(run, [0.05]) == []


def test_the_wgm_has_all_bounds_and_a_policy_only_the_lower_one():
    run, rows = row("wgm", trials=50)
    assert all(np.isfinite(at[name]) for at in rows for name in cells.WGM_BOUNDS)
    assert len(cells.exceedances(run, [0.05])) == 3 * len(EPS)
    _, others = row("policy-laplace")
    for at, ours in zip(others, rows, strict=True):
        assert at["exact_mean"] is None and "certificate_hinge" not in at
        assert at["lower_instance"] == ours["lower_instance"]
        assert at["zipf_s"] == ours["zipf_s"]
        assert set(at) <= set(ours)


def test_a_single_calibration_and_a_grid_agree():
    profile = Profile.from_user_items(UserItems.from_sets(SETS), max_items_per_user=BOUND)
    grid = calibrate(eps=list(EPS), delta=DELTA, max_items_per_user=BOUND)
    for name in ("wgm", "bernoulli-flow"):
        whole = exact_misses(name, profile, grid)
        for index in range(len(EPS)):
            single = exact_misses(name, profile, grid[index])
            assert whole.at(index).miss == pytest.approx(single.miss, rel=1e-12)
    bare = Profile.from_frequencies([60, 5], max_set_size=9, max_items_per_user=BOUND)
    assert exact_misses("bernoulli-flow", bare, grid) is None is exact_misses("wgm", bare, grid)
