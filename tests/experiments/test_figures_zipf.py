"""The Zipf figures: their numbers are theory's, and every verdict can come out either way."""

import numpy as np
import polars as pl
import pytest

from experiments.figures.zipf import DELTA, KINDS, SPECS, decade_rows, sweep_rows
from experiments.figures.zipf_statements import judge_decades, judge_sweeps
from experiments.plots.missing_mass import Sweep, missing_mass_sweeps
from theory import (
    InvalidInput,
    Profile,
    calibrate,
    exact_mean,
    hard_zipf_bound,
    hard_zipf_profile,
    instance_lower_bound,
    miss_probabilities,
    zipf_bound,
)
from wgm_jax.synthetic import SetSizes, zipf_draws

SPEC = {spec.name: spec for spec in SPECS}


# ---- numbers


@pytest.fixture(scope="module")
def sweep():
    settings = {
        "sweep": "small", "x": "num_pairs", "s": [2.0], "pairs": [200, 400], "eps": [1.0],
        "max_items_per_user": [2], "support": 1000, "delta": 1e-3, "beta": 0.05,
        "set_sizes": {"law": "geometric", "mean": 2, "cap": 5}, "trials": 30, "seed": 4,
    }  # fmt: skip
    return sweep_rows(None, settings)


def test_sweep_rows_are_exact_and_simulated(sweep):
    assert sweep["num_pairs"].to_list() == [200, 400]
    assert sweep["trials"].unique().to_list() == [30] and sweep["seed"].unique().to_list() == [4]
    for row in sweep.iter_rows(named=True):
        data = zipf_draws(
            s=2.0, num_pairs=row["num_pairs"], set_sizes=SetSizes("geometric", mean=2, cap=5),
            support=1000, seed=4,
        )  # fmt: skip
        bound = row["max_items_per_user"]
        profile = Profile.from_user_items(data, max_items_per_user=bound)
        noise = calibrate(eps=1.0, delta=1e-3, max_items_per_user=bound)
        assert row["exact_mean"] == pytest.approx(exact_mean(profile, noise), rel=1e-9)
        assert row["upper_zipf"] == pytest.approx(zipf_bound(profile, noise, 0.05).value, rel=1e-9)
        assert row["mm_q05"] <= row["mm_q50"] <= row["mm_q95"]


def test_decade_rows_are_theorys():
    settings = {
        "s": 2.0, "pairs": [1000, 10_000], "eps": [0.1, 1.0], "deltas": [1e-3], "delta": 1e-5,
        "beta": 0.05,
    }  # fmt: skip
    frame = decade_rows(None, settings)
    points = frame.select("varies", "num_pairs", "eps", "delta").rows()
    assert points == [
        ("num_pairs", 1000, 1.0, 1e-5), ("num_pairs", 10_000, 1.0, 1e-5),
        ("eps", 10_000, 0.1, 1e-5), ("eps", 10_000, 1.0, 1e-5), ("delta", 10_000, 1.0, 1e-3),
    ]  # fmt: skip
    for row in frame.iter_rows(named=True):
        profile = hard_zipf_profile(1.0, 2.0, row["num_pairs"])
        given = {"eps": row["eps"], "delta": row["delta"]}
        noise = calibrate(**given, max_items_per_user=1)
        mean = miss_probabilities(profile, noise).mean_missing_mass
        assert row["exact_mean"] == pytest.approx(float(mean), rel=1e-12)
        least = hard_zipf_bound(1.0, 2.0, row["num_pairs"], **given).value
        assert row["lower_theorem"] == pytest.approx(least, rel=1e-12)
        least = instance_lower_bound(profile, **given).value
        assert row["lower_instance"] == pytest.approx(least, rel=1e-12)


def test_tasks_need_no_data_and_follow_trials_and_seed():
    assert len(SPEC["zipf"].tasks([], 7, 1)) == 6 and len(SPEC["zipf-decades"].tasks([], 7, 1)) == 4
    for name, spec in SPEC.items():
        tasks = spec.tasks([], 7, 1)
        assert {task.kind for task in tasks} <= set(KINDS)
        assert (tasks == spec.tasks(["steam"], 8, 2)) == (name == "zipf-decades")
    assert {task.settings["delta"] for task in SPEC["zipf"].tasks([], 7, 1)} == {DELTA}


# ---- drawing


def test_sweeps_plot_the_rows(sweep):
    one = sweep.head(1)
    figure, data = missing_mass_sweeps(
        [Sweep(sweep, "num_pairs", "first"), Sweep(one, "eps", "second")], columns=2
    )
    first, second = figure.axes
    assert first.get_title() == "first" and first.get_ylim() == second.get_ylim()
    assert "pairs" in first.get_xlabel() and "varepsilon" in second.get_xlabel()
    drawn = {line.get_label(): line for line in first.lines}
    for label, column in (("mean", "exact_mean"), ("median", "mm_q50")):
        assert drawn[label].get_xdata().tolist() == sweep["num_pairs"].to_list()
        assert drawn[label].get_ydata().tolist() == sweep[column].to_list()
    series = data.filter((pl.col("panel") == 0) & (pl.col("series") == "[L2]"))
    assert series["y"].to_list() == sweep["lower_instance"].to_list()
    assert data.filter(pl.col("panel") == 1)["axis"].unique().to_list() == ["eps"]
    with pytest.raises(InvalidInput, match="one for each eps"):
        missing_mass_sweeps([Sweep(sweep, "eps", "")])
    with pytest.raises(InvalidInput, match="panel"):
        missing_mass_sweeps([])


def test_captions_tell_trials_and_settings(sweep):
    told = SPEC["zipf"].caption(sweep)
    assert "30 trials" in told and "seed 4" in told and "geometric, mean 2, at most 5" in told
    _, data = SPEC["zipf"].draw(sweep)
    assert not {"[U2*]", "[U3p]"} & set(data["series"])


# ---- verdicts


def seen(quantile=0.1, zipf=0.5, means=(0.3, 0.2)):
    """Two sizes of one sweep over N, and two exponents of another."""
    common = {"trials": 100, "mm_quantile": quantile, "upper_zipf": [zipf, 0.5]}
    common |= {"upper_instance": 0.3, "certificate_hinge": 0.12, "upper_printed": [1.5, 0.7]}
    common |= {"exact_mean": list(means)}
    return pl.concat(
        [
            pl.DataFrame(
                {**common, "sweep": "N", "x": "num_pairs", "num_pairs": [100, 1000], "s": 2.0}
            ),
            pl.DataFrame(
                {**common, "sweep": "s", "x": "s", "num_pairs": [100, 100], "s": [1.5, 2.0]}
            ),
        ]
    )


@pytest.mark.parametrize(
    ("given", "verdict"),
    [
        ({}, "reproduced"),
        ({"zipf": 1.0}, "with reservation"),
        ({"quantile": 0.51}, "not reproduced"),
        ({"quantile": 0.51, "zipf": 1.0}, "not reproduced"),
    ],
)
def test_theorem_3_3_holds(given, verdict):
    said = judge_sweeps(seen(**given))[0]
    assert said.verdict == verdict
    if not given:
        assert "[U3] 5.00–5.00, [U2] 3.00–3.00, hinge certificate 1.20–1.20" in said.number
        assert "in 2 of 4 settings" in said.note


@pytest.mark.parametrize(
    ("means", "verdict"), [((0.3, 0.2), "reproduced"), ((0.2, 0.2), "not reproduced")]
)
def test_the_missing_mass_falls(means, verdict):
    _, *falls = judge_sweeps(seen(means=means))
    assert [said.verdict for said in falls] == [verdict] * 2
    assert "0.2 over N = 100 … 1e3" in falls[0].number


def decades(*, slope=-0.5, bound_slope=-0.5, eps_slope=-0.5, least_slope=None, drift=1.0):
    """Power laws with s = 2, for which the paper's exponent is -1/2."""
    pairs, eps = 10.0 ** np.arange(9, 13), np.array([0.01, 0.1, 1.0, 10.0])
    least = eps_slope if least_slope is None else least_slope
    parts = [
        {
            "varies": "num_pairs", "num_pairs": pairs, "eps": 1.0, "delta": 1e-5,
            "exact_mean": pairs**slope, "upper_zipf": 4 * pairs**bound_slope,
            "lower_theorem": pairs**slope / 3,
        },
        {
            "varies": "eps", "num_pairs": 1e12, "eps": eps, "delta": 1e-5,
            "exact_mean": 1e-6 * eps**eps_slope, "upper_zipf": 1.0,
            "lower_theorem": 1e-6 * eps**least / 3,
        },
        {
            "varies": "delta", "num_pairs": 1e12, "eps": 1.0, "delta": [1e-8, 1e-5],
            "exact_mean": [1.0, drift], "upper_zipf": 1.0, "lower_theorem": 1 / 3,
        },
    ]  # fmt: skip
    frame = pl.concat([pl.DataFrame(part) for part in parts])
    return frame.with_columns(s=pl.lit(2.0), lower_instance=pl.col("lower_theorem") * 2)


@pytest.mark.parametrize(
    ("given", "verdicts"),
    [
        ({}, "rrr"),
        ({"slope": -0.492, "bound_slope": -0.508}, "rrr"),
        ({"slope": -0.488}, "nrr"),
        ({"bound_slope": -0.512}, "nrr"),
        ({"eps_slope": -0.6}, "rwr"),
        ({"eps_slope": -0.6, "least_slope": -0.5}, "rnn"),
        ({"drift": 1.49}, "rrr"),
        ({"drift": 1.51}, "rrn"),
    ],
)
def test_rates_and_the_distance_to_the_lower_bound(given, verdicts):
    found = judge_decades(decades(**given))
    words = {"r": "reproduced", "w": "with reservation", "n": "not reproduced"}
    assert [said.verdict for said in found] == [words[letter] for letter in verdicts]
    if not given:
        assert "s = 2: −0.500 and −0.500 for −0.500" in found[0].number
        assert "over N = 1e10 … 1e12" in found[0].number
        assert "3.00–3.00 over δ = 1e-8 … 1e-5" in found[2].number
        assert "1.50–1.50" in found[2].note
