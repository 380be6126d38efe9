"""The plot of a plan: plotted numbers, the mark, the axes."""

import re

import numpy as np
import polars as pl
import pytest
from matplotlib.colors import to_hex

from experiments.plots import plan_curve, save
from theory import InvalidInput

NASTY = "$x_% <b>&\x00\n名" + "long" * 30


def frame(axis="max_items_per_user", *, certificate=False, points=12):
    at = np.unique(np.rint(np.geomspace(1, 1000, points)).astype(np.int64))
    split = 0.5 + 0.02 * (np.log(at) - 3) ** 2
    made = {axis: at, "split": split, "full": split - 0.01}
    made |= {"certificate": split + 0.02} if certificate else {}
    return pl.DataFrame({**made, "lower_bound": np.full(at.size, 0.1)})


def line(figure, label):
    (found,) = [line for axes in figure.axes for line in axes.lines if line.get_label() == label]
    return found


def texts(figure):
    return [text.get_text() for axes in figure.axes for text in axes.texts]


@pytest.mark.parametrize("certificate", [False, True])
def test_every_number_is_plotted_and_returned(certificate):
    given = frame(certificate=certificate)
    figure, data = plan_curve(given, answer=7 if 7 in given["max_items_per_user"] else 12)
    columns = {"[P1]": "split", "[P3]": "full", "[L2]": "lower_bound"}
    columns |= {"certificate": "certificate"} if certificate else {}
    assert set(data["series"]) == set(columns)
    for name, column in columns.items():
        drawn, rows = line(figure, name), data.filter(pl.col("series") == name)
        assert drawn.get_xdata().tolist() == given["max_items_per_user"].to_list()
        assert drawn.get_ydata().tolist() == given[column].to_list() == rows["y"].to_list()
        assert rows["x"].to_list() == given["max_items_per_user"].to_list()
    labels = [text for text in texts(figure) if "Delta" not in text and "reach" not in text]
    expected = {"split [P1]", "full [P3]", "[L2]"} | ({"95 % split"} if certificate else set())
    assert set(labels) == expected


@pytest.mark.parametrize(
    ("certificate", "method", "marked", "column"),
    [
        (False, "split", "[P1]", "split"),
        (False, "full", "[P3]", "full"),
        (True, "full", "certificate", "certificate"),
    ],
)
def test_the_answer_is_marked_on_its_curve(certificate, method, marked, column):
    given = frame(certificate=certificate)
    best = int(np.argmin(given["split"].to_numpy()))
    answer = int(given["max_items_per_user"][best])
    figure, data = plan_curve(given, answer=answer, method=method, beta=0.1)
    point = line(figure, "answer")
    assert (point.get_xdata()[0], point.get_ydata()[0]) == (answer, given[column][best])
    (row,) = data.filter(pl.col("answer")).rows(named=True)
    assert row == {"series": marked, "x": answer, "y": given[column][best], "answer": True}
    value = f"{given[column][best]:.3g}"
    assert rf"$\Delta_0$ = {answer}" + f"\n{value}" in texts(figure)
    assert certificate == (f"90 % {method}" in texts(figure))


@pytest.mark.parametrize(
    ("axis", "text"),
    [
        ("max_items_per_user", r"$\Delta_0$ = 1,000"),
        ("eps", r"$\varepsilon$ = 1,000"),
        ("num_pairs", "$N$ = 1,000"),
        ("scale", "1,000 times"),
    ],
)
def test_every_axis_has_its_name(axis, text):
    figure, _ = plan_curve(frame(axis), answer=1000, target=0.55)
    (axes,) = figure.axes
    assert axes.get_xscale() == "log" and axes.get_xlabel()
    assert text in "".join(texts(figure)) and "target" in texts(figure)
    assert axes.get_ylabel() == "expected missing mass"
    assert any(line.get_ydata()[0] == 0.55 for line in axes.lines)


def test_the_vertical_axis_starts_at_0_or_is_logarithmic():
    near = plan_curve(frame(), answer=1000)[0].axes[0]
    assert near.get_yscale() == "linear" and near.get_ylim()[0] == 0
    # Over many decades, and with a lower bound that falls to 0.
    far = pl.DataFrame(
        {
            "eps": [0.01, 0.1, 1.0, 10.0],
            "split": [0.9, 0.3, 0.01, 0.001],
            "full": [0.8, 0.2, 0.009, 0.0009],
            "lower_bound": [0.5, 0.1, 1e-9, 0.0],
        }
    )
    figure, data = plan_curve(far, answer=1.0, target=0.01)
    (axes,) = figure.axes
    low, high = axes.get_ylim()
    assert axes.get_yscale() == "log" and 1e-5 < low < 9e-4 and high > 0.9
    assert data.filter(pl.col("series") == "[L2]")["y"].to_list() == [0.5, 0.1, 1e-9, 0.0]
    assert "out of reach of any private algorithm" not in texts(figure)
    assert "[L2] ↓" in texts(figure)
    assert "out of reach of any private algorithm" in texts(plan_curve(frame(), answer=1000)[0])


def test_one_point_and_nasty_names(tmp_path):
    one = frame(points=1)
    figure, data = plan_curve(one, answer=1, title=NASTY)
    assert data.height == 3 and line(figure, "[P1]").get_marker() == "_"
    written = save(figure, tmp_path / "plan", data, formats=["svg", "png"])
    assert all(path.stat().st_size > 100 for path in written)


def test_curves_differ_without_colour():
    figure, _ = plan_curve(frame(certificate=True), answer=1000)
    names = ("[P1]", "[P3]", "certificate")
    dashes = {str(line(figure, name)._dash_pattern) for name in names}
    assert len(dashes) == 3
    assert len({to_hex(line(figure, name).get_color()) for name in (*names, "[L2]")}) == 4


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda f: f.rename({"max_items_per_user": "k"}), "must start with one of"),
        (lambda f: f.drop("full"), "column full"),
        (lambda f: f.head(0), "must have rows"),
    ],
)
def test_bad_frames_are_refused(change, text):
    with pytest.raises(InvalidInput, match=text):
        plan_curve(change(frame()), answer=1)


def test_bad_settings_are_refused():
    with pytest.raises(InvalidInput, match=re.escape("answer = 5.5: must be one of the values")):
        plan_curve(frame(), answer=5.5)
    with pytest.raises(InvalidInput, match="method"):
        plan_curve(frame(), answer=1, method="half")
    with pytest.raises(InvalidInput, match="beta"):
        plan_curve(frame(), answer=1, beta=1.0)
