"""The missing-mass plot: what is plotted is what was given, and what is vacuous looks so."""

import numpy as np
import polars as pl
import pytest

from experiments.plots import missing_mass_curves
from theory._check import InvalidInput


def ladder(exponents=(1.5, 2.0), pairs=(1e4, 1e5, 1e6), dataset="zipf", eps=1.0):
    rows = []
    for s in exponents:
        for n in pairs:
            mass = n ** (-(s - 1) / s)
            rows.append(
                {
                    "dataset": f"{dataset} {s} {n:g}",
                    "s": s,
                    "C": 1.0,
                    "N_asked": n,
                    "num_pairs": int(n),
                    "eps": eps,
                    "delta": 1e-5,
                    "beta": 0.05,
                    "max_items_per_user": int(n**0.3),
                    "max_items_is_max": True,
                    "method": "split",
                    "mechanism": "wgm",
                    "mm_q05": 4 * mass,
                    "mm_q50": 5 * mass,
                    "mm_q95": 6 * mass,
                    "exact_mean": 5.1 * mass,
                    "lower_instance": mass,
                    "upper_instance_star": 7 * mass,
                    "upper_instance": 9 * mass,
                    "upper_zipf": 30 * mass,
                    "upper_printed": 60 * mass,
                }
            )
    return pl.DataFrame(rows)


def panels(figure):
    return [axes for axes in figure.axes if axes.get_visible()]


def lines(axes, label):
    return [line for line in axes.lines if line.get_label() == label]


def texts(figure):
    figure.draw_without_rendering()
    found = [t.get_text() for axes in figure.axes for t in axes.texts]
    return found + [axes.get_title() for axes in figure.axes]


def test_plotted_arrays_equal_the_rows():
    frame = ladder()
    figure, data = missing_mass_curves(frame.sample(fraction=1, shuffle=True, seed=1))
    for i, (s, axes) in enumerate(zip((1.5, 2.0), panels(figure), strict=True)):
        rows = frame.filter(pl.col("s") == s)
        for series, column in (("median", "mm_q50"), ("mean", "exact_mean")):
            (line,) = lines(axes, series)
            np.testing.assert_array_equal(line.get_xdata(), rows["num_pairs"])
            np.testing.assert_array_equal(line.get_ydata(), rows[column])
        (markers,) = lines(axes, "[U2*] points")
        np.testing.assert_array_equal(markers.get_ydata(), rows["upper_instance_star"])
        drawn = data.filter((pl.col("panel") == i) & (pl.col("series") == "median"))
        np.testing.assert_array_equal(drawn["low"], rows["mm_q05"])
        np.testing.assert_array_equal(drawn["high"], rows["mm_q95"])


def test_vacuous_stretches_are_dotted_hollow_and_visible():
    frame = ladder(exponents=(2.0,))  # 60 / sqrt(N) for [U3p]: 0.6 at the least N
    frame = frame.with_columns(upper_zipf=pl.Series([1e9, 0.5, 0.1]))
    figure, data = missing_mass_curves(frame)
    (axes,) = panels(figure)
    (dotted,) = lines(axes, "[U3] vacuous")
    (solid,) = lines(axes, "[U3]")
    assert dotted.get_linestyle() == ":" and solid.get_linestyle() == "-"
    # Solid takes over where the raw bound crosses 1.
    crossing = solid.get_xdata()[0]
    assert 1e4 < crossing < 1e5 and solid.get_ydata()[0] == 1.0
    assert np.interp(np.log(crossing), np.log([1e4, 1e5]), np.log([1e9, 0.5])) == pytest.approx(0)
    (hollow,) = lines(axes, "[U3] points vacuous")
    assert hollow.get_markerfacecolor() == "white"
    assert 1 < hollow.get_ydata()[0] < axes.get_ylim()[1]
    assert not lines(axes, "[U2] vacuous")
    # The numbers stay raw.
    assert data.filter(pl.col("series") == "[U3]")["y"].to_list() == [1e9, 0.5, 0.1]
    assert data["vacuous"].sum() == 1


def test_all_vacuous_bounds_keep_their_order():
    names = ("upper_instance_star", "upper_instance", "upper_zipf", "upper_printed")
    frame = ladder().with_columns(pl.lit(5.0).alias(name) for name in names)
    figure, _ = missing_mass_curves(frame)
    (axes, _) = panels(figure)
    tags = ("[U2*]", "[U2]", "[U3]", "[U3p]")
    levels = [lines(axes, f"{tag} points vacuous")[0].get_ydata()[0] for tag in tags]
    assert all(np.diff(levels) > 0) and levels[0] > 1 and levels[-1] < axes.get_ylim()[1]


def test_zero_missing_mass_has_a_place_on_the_axis():
    frame = ladder(exponents=(3.0,)).with_columns(
        mm_q05=pl.lit(0.0), mm_q50=pl.lit(0.0), lower_instance=pl.lit(-0.1), exact_mean=None
    )
    figure, data = missing_mass_curves(frame)
    (axes,) = panels(figure)
    (median,) = lines(axes, "median")
    zero = median.get_ydata()[0]
    assert axes.get_ylim()[0] < zero < data.filter(pl.col("y") > 0)["y"].min()
    figure.draw_without_rendering()
    ticks = dict(zip(axes.get_yticks(), axes.get_yticklabels(), strict=True))
    assert ticks[zero].get_text() == "0"
    assert lines(axes, "[L2] points vacuous")
    assert "mean" not in data["series"]


def test_slope_triangle_is_drawn_once_and_only_against_pairs():
    figure, _ = missing_mass_curves(ladder())
    assert sum("(s-1)/s" in text for text in texts(figure)) == 1
    other, _ = missing_mass_curves(ladder(pairs=(1e5,)), "s")
    assert not any("(s-1)/s" in text for text in texts(other))


@pytest.mark.parametrize("x", ["num_pairs", "eps", "s", "max_items_per_user"])
def test_single_x(x):
    frame = ladder(exponents=(2.0,), pairs=(1e4,))
    figure, data = missing_mass_curves(frame, x)
    figure.draw_without_rendering()
    assert data["x"].unique().to_list() == [float(frame[x][0])]


def test_settings_that_differ_get_panels():
    frame = pl.concat([ladder(eps=0.1), ladder(eps=1.0)])
    figure, data = missing_mass_curves(frame)
    titles = [axes.get_title() for axes in panels(figure)]
    assert titles == [
        f"$s$ = {s}, $\\varepsilon$ = {e}" for e in ("0.1", "1") for s in ("1.5", "2")
    ]
    assert data["panel"].n_unique() == 4
    with pytest.raises(InvalidInput, match="by"):
        missing_mass_curves(frame, by=["s"])
    with pytest.raises(InvalidInput, match="rows"):
        missing_mass_curves(pl.concat([frame, frame]))


def test_names_of_data_sets_are_literal():
    name = "$x_%$ <b>"
    rows = [
        ladder((2.0,), (1e5,)).with_columns(
            dataset=pl.lit(data), s=None, N_asked=None, max_items_per_user=pl.lit(d)
        ).with_columns(max_items_is_max=pl.lit(False))
        for data in (name, "b")
        for d in (1, 10)
    ]  # fmt: skip
    figure, _ = missing_mass_curves(pl.concat(rows), "max_items_per_user")
    title = panels(figure)[0].title
    figure.draw_without_rendering()
    shown, mathematics = title._preprocess_math(title.get_text())
    assert shown == name and mathematics is False


def test_refusals():
    with pytest.raises(InvalidInput, match="x = N"):
        missing_mass_curves(ladder(), "N")
    with pytest.raises(InvalidInput, match="at least one row"):
        missing_mass_curves(ladder()[:0])
    with pytest.raises(InvalidInput, match="mm_q50"):
        missing_mass_curves(ladder().drop("mm_q50"))
