"""Plots of exact numbers: what is drawn is what was computed."""

import numpy as np
import pytest

from experiments.decades import decades
from experiments.plots import ladder_plot, missing_mass_curves, ratio_curves
from theory import InvalidInput, calibrate, exact_mean, hard_zipf_profile

BLOCK = {
    "dataset": "$shop_1%",
    "eps": 1.0,
    "max_items_per_user": 10,
    "lower_bound": 0.09,
    "exact_mean": 0.5,
    "quantile": 0.52,
    "quantile_method": "simulated",
    "certificate_hinge": 0.53,
    "certificate_chernoff": 0.54,
    "upper_instance_star": 0.9,
    "upper_instance": 1.0,
    "upper_zipf": 3.0,
}


@pytest.fixture(scope="module")
def over():
    return decades(exponents=(1.5, 2.0), pairs=(10**4, 10**8, 10**12))


def test_decades_are_exact_rows_without_trials(over):
    assert over.height == 6
    assert over["trials"].to_list() == [0] * 6
    for row in over.iter_rows(named=True):
        profile = hard_zipf_profile(1.0, row["s"], row["num_pairs"])
        noise = calibrate(eps=1.0, delta=1e-5, max_items_per_user=1)
        assert row["exact_mean"] == pytest.approx(exact_mean(profile, noise), rel=1e-12)
        assert row["lower_instance"] < row["exact_mean"] < row["exact_quantile"]
        assert row["exact_quantile"] <= row["certificate_hinge"] <= row["certificate_chernoff"]


def test_ratios_are_bounds_over_the_exact_mean(over):
    figure, data = ratio_curves(over, title="$x_1")
    figure.draw_without_rendering()
    assert set(data["series"]) == {"[U3]", "[U2]", "[U2*]", "[E6]", "[L2]"}
    below = data["series"] == "[L2]"
    assert (data.filter(below)["ratio"] < 1).all() and (data.filter(~below)["ratio"] > 1).all()
    row = over.row(0, named=True)
    first = data.filter(
        (data["series"] == "[L2]") & (data["s"] == row["s"]) & (data["num_pairs"] == 1e4)
    )
    assert first["ratio"].item() == row["lower_instance"] / row["exact_mean"]
    lines = [line for axes in figure.axes for line in axes.lines if len(line.get_xdata()) == 3]
    drawn = {tuple(np.asarray(line.get_ydata(), float)) for line in lines}
    expected = data.filter((data["series"] == "[E6]") & (data["s"] == 2.0))["ratio"]
    assert tuple(expected) in drawn


def test_curves_without_trials_show_the_exact_mean(over):
    figure, data = missing_mass_curves(over, "num_pairs")
    figure.draw_without_rendering()
    assert "median" not in data["series"] and "mean" in data["series"]
    labels = {text.get_text() for axes in figure.axes for text in axes.texts}
    assert "WGM" in labels
    assert not any("simulated" in text.get_text() for text in figure.legends[0].get_texts())


def test_a_ladder_has_a_marker_for_every_rung():
    other = {**BLOCK, "max_items_per_user": 100, "quantile_method": "exact", "exact_mean": 0.4}
    unknown = {**BLOCK, "max_items_per_user": 1000, "quantile": None, "exact_mean": None}
    figure, data = ladder_plot([BLOCK, other, unknown])
    figure.draw_without_rendering()
    assert data.height == 8 + 8 + 6
    (axes,) = figure.axes
    markers = [line for line in axes.lines if line.get_marker() not in ("None", "", None)]
    full = [line for line in markers if line.get_markerfacecolor() != "white"]
    hollow = [line for line in markers if line.get_markerfacecolor() == "white"]
    # Hollow: two vacuous bounds each, and the simulated quantile.
    assert sorted(len(line.get_xdata()) for line in hollow) == [2, 2, 3]
    assert sorted(len(line.get_xdata()) for line in full) == [4, 5, 6]
    assert figure.legends[0].get_title().get_text() == r"\$shop_1%"


def test_nothing_to_draw_is_refused(over):
    with pytest.raises(InvalidInput, match="blocks = 0"):
        ladder_plot([])
    with pytest.raises(InvalidInput, match="must hold rows with an exact mean"):
        ratio_curves(over.clear())
