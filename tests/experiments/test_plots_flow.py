"""The plot of holders under the Bernoulli flow: its numbers, and a panel of the caller's."""

import math

import numpy as np
import polars as pl
import pytest

from experiments.plots import holders_curve, save
from experiments.plots.style import subplots
from theory import calibrate, optimal_selection_probability
from theory.flow import calibrate_flow


@pytest.fixture(scope="module")
def flow():
    return calibrate_flow(eps=1.0, delta=1e-5, max_items_per_user=12, accountant="closed-form")


def values(data, series):
    rows = data.filter(pl.col("series") == series)
    return rows["x"].to_list(), rows["y"].to_numpy()


def test_every_number_is_plotted_and_returned(flow):
    figure, data = holders_curve(flow)
    (axes,) = figure.axes
    for line in axes.lines:
        x, y = values(data, line.get_label())
        assert np.asarray(line.get_xdata()).tolist() == x == list(range(1, 13))
        np.testing.assert_array_equal(line.get_ydata(), y)
    assert {line.get_label() for line in axes.lines} == {"flow", "[P1]", "[P3]", "[L1]"}
    # With as many holders the item is as likely as not: just below and above by whole numbers.
    for t, holders in zip(*values(data, "flow"), strict=True):
        counts = np.array([math.floor(holders), math.ceil(holders)])
        release, _ = flow.probabilities(np.arange(3), np.full(2, t), counts)
        assert release[0] <= 0.5 <= release[1]
    for name, method in (("[P1]", "split"), ("[P3]", "full")):
        noise = calibrate(eps=1.0, delta=1e-5, max_items_per_user=12, method=method)
        at, holders = values(data, name)
        np.testing.assert_allclose(holders / np.sqrt(at), noise.threshold, rtol=1e-12)
    bound = set(values(data, "[L1]")[1])
    below = math.floor(min(bound))
    pi = optimal_selection_probability([below, below + 1], eps=1.0, delta=1e-5)
    assert len(bound) == 1 and pi[0] <= 0.5 < pi[1]


def test_a_panel_of_the_callers_and_a_single_class(tmp_path):
    figure, (_, right) = subplots(1, 2, height=2.0)
    flow = calibrate_flow(eps=0.5, delta=1e-6, max_items_per_user=1)
    drawn, data = holders_curve(flow, axes=right)
    assert drawn is figure and len(right.lines) == 4
    assert data["x"].to_list() == [1] * 4
    save(drawn, tmp_path / "holders", data, formats=("png",))
