"""A small sweep with the real simulation behind it."""

import polars as pl
import pytest

from experiments.sweep import parse_grid, sweep

pytest.importorskip("experiments.cells")

GRID = {
    "data": [
        {"kind": "hard_zipf", "s": 2, "C": 1, "N": 300},
        # Its top item has more copies than there are users: this data set cannot be made.
        {"kind": "zipf_profile", "s": 3, "C": 1, "N": 300, "set_sizes": {"mean": 100}},
    ],
    "privacy": {"eps": [0.5, 5], "delta": 1e-5, "max_items_per_user": [1, "max"]},
    "run": {"trials": 40, "seed": 3},
}


def test_sweep_simulates_records_failures_and_resumes(tmp_path):
    grid = parse_grid(GRID)
    result = sweep(grid, tmp_path, keep_trials=True)
    assert [failure.cell for failure in result.failures] == [c.name for c in grid.cells[4:]]
    assert all("set_sizes" in failure.error for failure in result.failures)
    frame = pl.read_parquet(result.table)
    assert frame["cell"].to_list() == [cell.name for cell in grid.cells[:4]]
    assert frame["eps"].to_list() == [0.5, 5.0] * 2
    assert frame["max_items_per_user"].to_list() == [1, 1, 1, 1]  # one item per user
    assert frame["trials"].unique().to_list() == [40] and len(result.samplers) == 1
    means = frame["mm_mean"].to_list()
    assert means[0] > means[1] > 0
    assert means[:2] == means[2:]  # "max" is 1 here, and the seed is the same
    for cell, mean in zip(grid.cells, means, strict=False):
        trials = pl.read_parquet(tmp_path / "cells" / f"{cell.name}.trials.parquet")
        assert trials.height == 40 and trials["missing_mass"].mean() == pytest.approx(mean)

    before = (tmp_path / "results.parquet").read_bytes()
    (tmp_path / "cells" / f"{grid.cells[1].name}.json").unlink()
    again = sweep(grid, tmp_path, keep_trials=True)
    assert (again.computed, again.skipped) == (5, 3)  # failed cells are tried again
    assert (tmp_path / "results.parquet").read_bytes() == before
