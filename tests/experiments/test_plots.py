"""The other plots, their files, and text from the data."""

import os
import xml.etree.ElementTree as ElementTree

import matplotlib
import numpy as np
import polars as pl
import pytest

from experiments.plots import (
    exceedance,
    rank_frequency,
    regime_map,
    save,
    set_size_ecdf,
    slack,
    slack_table,
    verify_overview,
)
from experiments.plots.labels import spread
from experiments.plots.style import literal, log_ticks
from theory import Profile
from theory._check import InvalidInput
from theory.zipf import log_zipf_constant

NASTY = "$x_% <b>&\x00\n名😀" + "long" * 30


def lines(figure, label):
    return [line for axes in figure.axes for line in axes.lines if line.get_label() == label]


def exceedances():
    beta = [0.01, 0.05, 0.2]
    return pl.DataFrame(
        {
            "bound": ["[U2]"] * 3 + [NASTY] * 3,
            "beta": beta[::-1] + beta,
            "fraction": [0.02, 0.004, 0.0, 0.0, 0.0, 0.0],
            "low": [0.01, 0.001, 0.0, 0.0, 0.0, 0.0],
            "high": [0.03, 0.01, 0.005, 0.005, 0.005, 0.005],
        }
    )


# ---- files


def test_files_are_complete_equal_and_alone(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        written = save(*reversed_call(exceedance(exceedances()), tmp_path / folder / "plot_s1.5"))
        assert [p.name for p in written] == [f"plot_s1.5.{e}" for e in ("svg", "pdf", "csv")]
    assert sorted(os.listdir(tmp_path / "a")) == sorted(p.name for p in written)  # no leftovers
    for path in written:
        content = path.read_bytes()
        assert content and content == (tmp_path / "a" / path.name).read_bytes()
    ElementTree.fromstring(written[0].read_bytes())  # the nasty name leaves the XML intact
    assert pl.read_csv(written[2])["fraction"].to_list()[:3] == [0.0, 0.004, 0.02]


def reversed_call(made, stem):
    figure, data = made
    return figure, stem, data


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    made = reversed_call(exceedance(exceedances()), tmp_path / "plot")
    save(*made, formats=["svg"])
    before = (tmp_path / "plot.svg").read_bytes()

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        save(*made, formats=["svg"])
    assert (tmp_path / "plot.svg").read_bytes() == before
    assert sorted(os.listdir(tmp_path)) == ["plot.csv", "plot.svg"]


def test_formats_and_global_settings(tmp_path):
    before = dict(matplotlib.rcParams)
    made = reversed_call(exceedance(exceedances()), tmp_path / "plot")
    assert save(*made, formats=["png"])[0].read_bytes().startswith(b"\x89PNG")
    with pytest.raises(InvalidInput, match="format = gif"):
        save(*made, formats=["svg", "gif"])
    assert dict(matplotlib.rcParams) == before


# ---- text and axes


def test_literal_text():
    text = literal(NASTY)
    assert len(text) < 70 and text.startswith(r"\$x_% <b>&\x00\n\u540d")
    shown, mathematics = matplotlib.figure.Figure().text(0, 0, text)._preprocess_math(text)
    assert shown.startswith("$x_%") and mathematics is False


def test_spread_keeps_gaps_limits_and_order():
    wanted = np.array([0.99, 0.2, 0.98, 0.21, 0.5])
    placed = spread(wanted, 0.1, 0.0, 1.0)
    ordered = placed[np.argsort(wanted)]
    assert np.all(np.diff(ordered) >= 0.1 - 1e-12)
    assert placed.max() <= 1 and placed[4] == 0.5
    np.testing.assert_allclose(placed[[1, 3]], [0.155, 0.255])
    crowded = spread(np.zeros(30), 0.1, 0.0, 1.0)
    np.testing.assert_allclose(np.sort(crowded), np.linspace(0, 1, 30))


@pytest.mark.parametrize(("low", "high"), [(0.9, 1.4), (1e-300, 1.0), (0.3, 0.7), (6e3, 1.4e4)])
def test_every_log_axis_has_ticks(low, high):
    ticks = log_ticks(low, high)
    assert 1 <= len(ticks) <= 8 and low <= ticks[0] and ticks[-1] <= high


# ---- plots


def test_rank_frequency_touches_its_envelopes():
    frequencies = np.array([40, 20, 20, 9, 4, 1, 1, 1])
    pairs = [(s, float(log_zipf_constant(frequencies, s))) for s in (1.1, 3.0)]
    figure, data = rank_frequency(frequencies, pairs, tau=4, title=NASTY)
    assert data["rank"].to_list() == [1, 3, 4, 5, 8]
    assert data["frequency"].to_list() == [40, 20, 9, 4, 1]
    assert data["in_tail"].to_list() == [False, False, False, True, True]
    for i in range(2):
        ratio = data[f"envelope_{i}"] / data["frequency"]
        assert ratio.min() >= 1 - 1e-12
    assert (data["envelope_1"] / data["frequency"]).min() == pytest.approx(1)
    (line,) = lines(figure, "data")
    np.testing.assert_array_equal(line.get_ydata()[1:], data["frequency"])
    assert any("7.29 %" in text.get_text() for text in figure.axes[0].texts)  # tail: 7 of 96


def test_rank_frequency_of_large_and_degenerate_data():
    many = Profile.from_frequencies(np.arange(1, 30_001), max_set_size=1, max_items_per_user=1)
    _, data = rank_frequency(many, [(500.0, 5000.0)])
    assert data.height < 2500 and data["envelope_0"].is_finite().all()
    figure, _ = rank_frequency([7], [(2.0, 0.0)], tau=7)
    figure.draw_without_rendering()
    with pytest.raises(InvalidInput, match="certificates"):
        rank_frequency([7], [(2.0, 0.0)] * 5)


def test_set_size_ecdf():
    figure, data = set_size_ecdf(np.array([1, 1, 2, 6]), marks=[1, 2, 6], title=NASTY)
    assert data.rows() == [(1, 0.5, 0.4), (2, 0.75, 0.6), (6, 1.0, 1.0)]
    (steps,) = lines(figure, r"users with at most $k$ items")
    np.testing.assert_array_equal(steps.get_ydata()[1:-1], data["users"])
    figure.draw_without_rendering()
    with pytest.raises(InvalidInput, match="set_sizes"):
        set_size_ecdf(np.array([1.5]))


def test_regime_map():
    eps, delta = np.geomspace(1e-4, 1e4, 9), np.geomspace(1e-12, 0.1, 7)
    values = (1 + eps[:, None]) * (1 - np.log(delta))
    figure, data = regime_map(eps, delta, values, 3 * values)
    np.testing.assert_array_equal(data["value"].to_numpy().reshape(9, 7), values)
    np.testing.assert_array_equal(data["threshold"], 3 * data["value"])
    assert data.row(7)[:2] == (eps[1], delta[0])
    figure.draw_without_rendering()
    flat, _ = regime_map(eps, delta, np.ones((9, 7)))
    flat.draw_without_rendering()
    with pytest.raises(InvalidInput, match="shape"):
        regime_map(eps, delta, values.T)


def test_exceedance_is_sorted_and_shows_zero():
    figure, data = exceedance(exceedances(), title=NASTY)
    assert data.filter(pl.col("bound") == "[U2]")["beta"].to_list() == [0.01, 0.05, 0.2]
    (line,) = lines(figure, "[U2]")
    zero, *rest = line.get_ydata()
    assert rest == [0.004, 0.02] and figure.axes[0].get_ylim()[0] < zero < 0.004
    assert len(figure.axes) == 2
    with pytest.raises(InvalidInput, match="fraction"):
        exceedance(exceedances().drop("fraction"))


def test_slack_of_ladder_rows():
    cells = pl.DataFrame(
        {
            "dataset": [NASTY, "b", "c"],
            "mm_quantile": [0.1, 0.2, 0.0],
            "mm_mean": [0.08, 0.1, 0.0],
            "upper_zipf": [0.4, 1.5, 0.5],
            "lower_instance": [0.04, 0.05, 0.0],
        }
    )
    table = slack_table(cells)
    assert table["slack"].to_list() == [4.0, None, None, 2.0, 2.0, None]
    assert table["state"].to_list() == ["value", "vacuous", "no miss"] + ["value"] * 2 + ["vacuous"]
    figure, data = slack(cells)
    assert data["row"].to_list() == [0, 1, 2, 0, 1, 2]
    (points,) = lines(figure, "[U3]")
    assert points.get_xdata().tolist() == [4.0]
    (hollow,) = lines(figure, "[U3] vacuous")
    assert hollow.get_markerfacecolor() == "white" and hollow.get_xdata()[0] > 4
    figure.draw_without_rendering()


def test_slack_of_many_long_names_and_of_nothing_but_vacuous(tmp_path):
    names = [f"{NASTY} {i}" for i in range(13)]
    table = pl.DataFrame({"dataset": names, "bound": ["[U2]"] * 13, "slack": [0.3] + [2.0] * 12})
    save(*reversed_call(slack(table, title=NASTY), tmp_path / "many"))
    nothing = table.with_columns(slack=pl.lit(None, pl.Float64))
    _, data = slack(nothing)
    assert data["state"].unique().to_list() == ["vacuous"]


def test_overview_counts_cells():
    rows = [("a", "confirmed")] * 3 + [("a", "vacuous"), (NASTY, "refuted")]
    figure, data = verify_overview(pl.DataFrame(rows, schema=["claim", "verdict"], orient="row"))
    seen = data.filter(pl.col("cells") > 0).select("verdict", "cells", "share").rows()
    assert seen == [("confirmed", 3, 0.75), ("vacuous", 1, 0.25), ("refuted", 1, 1.0)]
    widths = [patch.get_width() for patch in figure.axes[0].patches]
    assert widths == [0.75, 0.25, 1.0]
    with pytest.raises(InvalidInput, match="verdict = maybe"):
        verify_overview(pl.DataFrame({"claim": ["a"], "verdict": ["maybe"]}))
