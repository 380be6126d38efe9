"""The curve over Delta0 and the oracle gap: numbers of theory, verdicts that can fail."""

import numpy as np
import polars as pl
import pytest
from matplotlib.colors import to_hex

from experiments.figures import delta0, gap
from experiments.figures.data import Case
from experiments.plots import style as look
from experiments.plots.contribution_panels import contribution_panels
from experiments.plots.gaps import gap_chart
from theory import (
    InvalidInput,
    Profile,
    UserItems,
    calibrate,
    exact_mean,
    instance_lower_bound,
    oracle_gap,
)

SETTINGS = {"eps": [1.0, 0.1], "delta": 1e-5}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(1)
    sets = [set((rng.pareto(1.1, rng.integers(1, 13)) * 2).astype(int)) for _ in range(900)]
    return UserItems.from_sets(sets)


@pytest.fixture(scope="module")
def frame(data):
    return delta0.contribution_rows(Case("steam", data), SETTINGS)


def test_the_curve_is_the_exact_mean(data, frame):
    assert frame["eps"].unique().sort().to_list() == [0.1, 1.0]
    for row in frame.iter_rows(named=True):
        bound = row["max_items_per_user"]
        profile = Profile.from_user_items(data, max_items_per_user=bound)
        for method in ("split", "full"):
            noise = calibrate(eps=row["eps"], delta=1e-5, max_items_per_user=bound, method=method)
            assert row[method] == pytest.approx(exact_mean(profile, noise), rel=1e-9)
        least = instance_lower_bound(profile, eps=row["eps"], delta=1e-5).value
        assert row["lower_bound"] == pytest.approx(least, rel=1e-9)
    for _, rows in frame.group_by("eps"):
        bounds = rows["max_items_per_user"].to_list()
        assert bounds[0] == 1 and bounds[-1] == data.max_set_size == rows["max_set_size"][0]


def test_the_gap_is_theorys_at_the_best_bound(data, frame):
    table = gap.gap_table(frame.with_columns(made_by=pl.lit("contribution")))
    _, drawn = gap_chart(table)
    for row in drawn.iter_rows(named=True):
        method = {"wgm": "split", "wgm (full)": "full"}[row["series"]]
        curve = frame.filter(pl.col("eps") == row["eps"]).sort(method)
        bound = curve["max_items_per_user"][0]
        profile = Profile.from_user_items(data, max_items_per_user=bound)
        noise = calibrate(eps=row["eps"], delta=1e-5, max_items_per_user=bound, method=method)
        assert row["gap"] == pytest.approx(oracle_gap(profile, noise), rel=1e-9)


# ---- drawing


def curve(dataset="steam", eps=1.0, best=10, floor=0.1, rest=None):
    """E[MM] 0.5 at the best of Delta0 = 1, 10, 100, and `rest` elsewhere."""
    first, last = rest or (0.8, 0.52)
    values = {1: first, 10: 0.6, 100: last} | {best: 0.5}
    return pl.DataFrame(
        {
            "dataset": dataset, "max_set_size": 100, "eps": eps, "delta": 1e-5,
            "max_items_per_user": list(values), "split": list(values.values()),
            "full": [value - 0.01 for value in values.values()], "lower_bound": floor,
        }
    )  # fmt: skip


def test_panels_plot_the_rows_and_mark_the_best():
    frame = pl.concat([curve(), curve(eps=0.1, best=100), curve("imdb", best=1)])
    figure, data = contribution_panels(frame)
    assert data.filter("best")["max_items_per_user"].to_list() == [10, 100, 1]
    axes = {axis.get_title(): axis for axis in figure.axes}
    for (name, eps), rows in frame.group_by("dataset", "eps"):
        drawn = {line.get_label(): line for line in axes[name].lines}
        for column, label in (("split", "split [P1]"), ("full", "full [P3]")):
            line = drawn[f"{label}, {eps:g}"]
            assert line.get_xdata().tolist() == rows["max_items_per_user"].to_list()
            assert line.get_ydata().tolist() == rows[column].to_list()
            assert to_hex(line.get_color()).upper() == (look.BLUE if eps == 1 else look.VERMILLION)
        assert drawn[f"[L2], any mechanism, {eps:g}"].get_ydata().tolist() == [0.1] * 3
        assert drawn[f"best, {eps:g}"].get_ydata().tolist() == [0.5]
    figure.draw_without_rendering()
    with pytest.raises(InvalidInput, match="lower_bound"):
        contribution_panels(frame.drop("lower_bound"))
    with pytest.raises(InvalidInput, match="at most 3"):
        contribution_panels(pl.concat([curve(eps=eps) for eps in (0.1, 0.2, 0.5, 1.0)]))


def test_gap_chart_orders_by_the_first_eps_and_survives_a_bound_of_zero():
    rows = [("a", 1.0, 0.2, 0.1), ("b", 1.0, 0.9, 0.1), ("b", 0.1, 0.9, 0.8), ("c", 0.1, 0.5, 0.0)]
    frame = pl.DataFrame(
        rows, schema=["dataset", "eps", "missing_mass", "lower_bound"], orient="row"
    ).with_columns(series=pl.lit("wgm"))
    figure, data = gap_chart(frame)
    assert data["gap"].to_list() == pytest.approx([2.0, 9.0, 1.125, np.inf])
    names = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert names == ["b", "a", "c"]
    assert "∞" in [text.get_text() for text in figure.axes[1].texts]
    figure.draw_without_rendering()
    with pytest.raises(InvalidInput, match="must differ"):
        gap_chart(pl.concat([frame, frame]))


# ---- verdicts


@pytest.mark.parametrize(
    ("frame", "verdict"),
    [
        (curve(best=100), "reproduced"),
        (curve(best=10, rest=(0.8, 0.549)), "with reservation"),
        (curve(best=10, rest=(0.8, 0.5501)), "not reproduced"),
        (pl.concat([curve(best=100), curve("imdb", best=10)]), "with reservation"),
    ],
)
def test_as_large_as_the_largest_set(frame, verdict):
    said = delta0.judge(frame)[0]
    assert said.verdict == verdict
    largest = int((delta0.choices(frame)["best"] == 100).sum())
    assert f"in {largest} of" in said.number


@pytest.mark.parametrize(("first", "verdict"), [(1.04, "reproduced"), (1.03, "not reproduced")])
def test_subsampling_can_dominate(first, verdict):
    frame = pl.concat([curve(rest=(first, 0.52)), curve("imdb", best=1)])
    said = delta0.judge(frame)[1]
    assert said.verdict == verdict and "smaller in 1 of 2 cases" in said.number


def gaps(*floors, flow=()):
    """One data set for each [L2]; E[MM] of the WGM is 0.5 at its best."""
    names = [f"set-{i}" for i in range(len(floors))]
    parts = [
        curve(name, floor=floor).with_columns(made_by=pl.lit("contribution"))
        for name, floor in zip(names, floors, strict=True)
    ]
    for name, floor, mass in zip(names, floors, flow, strict=False):
        row = {"dataset": name, "eps": 1.0, "made_by": "set-union", "mechanism": "bernoulli-flow"}
        parts.append(pl.DataFrame([{**row, "missing_mass": mass, "lower_bound": floor}]))
    return pl.concat(parts, how="diagonal")


@pytest.mark.parametrize(
    ("floors", "verdict"),
    [
        ((0.25, 0.3), "reproduced"),
        ((0.25, 0.2), "with reservation"),
        ((0.25, 0.01), "with reservation"),
        ((0.25, 0.01, 0.02), "not reproduced"),
    ],
)
def test_near_optimal(floors, verdict):
    (said,) = gap.judge(gaps(*floors))
    assert said.verdict == verdict and "flow" not in said.note
    far = sum(0.5 / floor > 10 for floor in floors)
    assert f"above 10 in {far} of {len(floors)} cases" in said.number


def test_the_flow_is_told_beside_the_wgm():
    frame = gaps(0.25, 0.2, flow=(0.4, 0.55))
    table = gap.gap_table(frame)
    assert table.filter(pl.col("series") == "bernoulli-flow")["missing_mass"].to_list() == [
        0.4,
        0.55,
    ]
    (said,) = gap.judge(frame)
    assert "in 1 of 2 cases, by -10.0 to 20.0 %" in said.note


def test_the_gap_needs_the_flow_of_the_set_union_figures_only():
    tasks = gap.gap_tasks(["steam", "imdb"], 20, 0)
    kinds = [(task.kind, task.dataset) for task in tasks]
    assert sorted(kinds) == sorted(
        (kind, name) for kind in ("contribution", "set-union") for name in ("steam", "imdb")
    )
    # Equal to those of Figures 1 and 8, so they are run once.
    from experiments.figures.set_union import union_tasks

    assert all(
        task in union_tasks(["steam", "imdb"], 20, 0)
        for task in tasks
        if task.kind != "contribution"
    )
    assert gap.gap_tasks([], 20, 0) == delta0.contribution_tasks([], 20, 0) == []
