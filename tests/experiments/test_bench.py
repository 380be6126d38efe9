"""The benchmark suite: its competitors run the mechanism, and its numbers are in place."""

import dataclasses
import json
import sys
from itertools import combinations

import numpy as np
import polars as pl
import pytest
from scipy import stats

import experiments.bench
from experiments.bench import Case, SelectionCase, SelectionSettings, Settings, selection
from experiments.bench.limits import LIMITS, Limits, lanes_work
from experiments.bench.numpy_peer import NumpyTrials, _Pick, _Shuffle, _Sort
from experiments.bench.rounds import Spread, in_turns
from experiments.bench.suite import _growth
from experiments.bench.trials import _checked
from experiments.bench.user_loop import UserLoopTrials
from experiments.bench.ways import NumpyProcesses
from experiments.cli import main
from experiments.plots import bench_plot
from experiments.statistics.means import mean_interval
from theory import InvalidInput, Profile, UserItems, calibrate, miss_probabilities
from wgm_jax.synthetic import SetSizes, zipf_draws

ALPHA = 1e-7
SMALL = zipf_draws(
    s=1.2, num_pairs=600, set_sizes=SetSizes("lognormal", mean=8, spread=1.1), support=60
)


def exact_mean(data, noise):
    bound = int(noise.max_items_per_user)
    profile = Profile.from_user_items(data, max_items_per_user=bound)
    return miss_probabilities(profile, noise).mean_missing_mass


# ---- the competitors run the mechanism


@pytest.mark.parametrize(
    ("bound", "way"),
    [
        (1, "pick"),
        (1, "shuffle"),
        (1, "sort"),
        (2, "shuffle"),
        (2, "sort"),
        (10, "shuffle"),
        (10, "sort"),
        (SMALL.max_set_size, None),
    ],
)
def test_mean_of_numpy_is_the_exact_one(bound, way):
    noise = calibrate(eps=1.0, delta=1e-3, max_items_per_user=bound)
    masses = NumpyTrials(SMALL, noise, seed=5, way=way).missing_masses(6000)
    low, high = mean_interval(masses, alpha=ALPHA)
    assert low <= exact_mean(SMALL, noise) <= high
    # So narrow that a bound wrong by one would show.
    other = calibrate(eps=1.0, delta=1e-3, max_items_per_user=bound)
    other = dataclasses.replace(other, threshold=other.threshold + 0.3)
    assert not low <= exact_mean(SMALL, other) <= high


def test_mean_of_the_loop_is_the_exact_one():
    noise = calibrate(eps=1.0, delta=1e-3, max_items_per_user=2)
    masses = UserLoopTrials(SMALL, noise, seed=5).missing_masses(800)
    low, high = mean_interval(masses, alpha=ALPHA)
    assert low <= exact_mean(SMALL, noise) <= high and high - low < 0.1


def test_light_items_are_released_as_often_as_they_should():
    """Released items of weight 1 are binomial; all are among those whose noise is thinned."""
    data = UserItems.from_codes(np.arange(3000), np.arange(3000))
    noise = calibrate(eps=1.0, delta=1.8e-3, max_items_per_user=1)
    trials = NumpyTrials(data, noise, seed=3)
    assert trials._heavy.size == 0
    released = round(float(np.sum(1 - trials.missing_masses(3000))) * 3000)
    probability = float(stats.norm.sf((noise.threshold - 1) / noise.sigma))
    assert stats.binomtest(released, 3000 * 3000, probability).pvalue > ALPHA
    assert released > 5000


@pytest.mark.parametrize("made", [_Shuffle, _Sort])
@pytest.mark.parametrize("keep", [1, 2, 3])
def test_every_subset_is_as_likely_and_independent_of_the_last(made, keep):
    """Users of 4 and 5 items; joint counts of what user 1 keeps in two trials in a row."""
    sizes = np.array([4, 5])
    draw = made(np.random.default_rng(7), np.arange(9), np.array([0, 4]), sizes, keep)
    seen = []
    for _ in range(6000):
        kept = np.sort(draw())
        assert kept.size == 2 * keep and np.unique(kept).size == 2 * keep
        assert np.count_nonzero(kept < 4) == keep
        seen.append(tuple(kept[:keep].tolist()))
    subsets = list(combinations(range(4), keep))
    places = [subsets.index(kept) for kept in seen]
    counts = np.zeros((len(subsets), len(subsets)), int)
    np.add.at(counts, (places[:-1], places[1:]), 1)
    least = min(
        stats.binomtest(int(count), len(seen) - 1, len(subsets) ** -2.0).pvalue
        for count in counts.ravel()
    )
    assert least * counts.size > ALPHA


def test_pick_takes_every_item_alike():
    draw = _Pick(np.random.default_rng(1), np.arange(7), np.array([0, 3]), np.array([3, 4]), 1)
    picked = np.array([draw() for _ in range(4000)])
    for user, values, size in ((0, range(3), 3), (1, range(3, 7), 4)):
        for value in values:
            count = int(np.count_nonzero(picked[:, user] == value))
            assert stats.binomtest(count, 4000, 1 / size).pvalue > ALPHA


def test_processes_draw_different_trials_at_every_point():
    grid = calibrate(eps=np.array([0.5, 2.0]), delta=1e-3, max_items_per_user=2)
    way = NumpyProcesses(SMALL, grid, processes=2, seed=1)
    try:
        seconds, masses = way.run(400)
    finally:
        way.close()
    assert seconds > 0 and masses.shape == (400, 2)
    assert not np.array_equal(masses[:200], masses[200:])
    for index, column in enumerate(masses.T):
        low, high = mean_interval(column.copy(), alpha=ALPHA)
        assert low <= exact_mean(SMALL, grid[index]) <= high


# ---- numbers


def test_rounds_take_turns():
    calls = []

    def timed(name):
        return lambda: calls.append(name) or float(len(calls))

    found = in_turns({"a": timed("a"), "b": timed("b")}, 3)
    assert calls == ["a", "b"] * 3
    assert found["b"].tolist() == [2.0, 4.0, 6.0]
    assert Spread.of(found["b"]) == Spread(4.0, 2.0, 6.0)


def test_a_wrong_mean_is_noticed():
    masses = np.random.default_rng(0).uniform(0.2, 0.4, (5000, 2))
    assert _checked(masses, np.array([0.3, 0.3]))["agrees"]
    assert not _checked(masses, np.array([0.3, 0.31]))["agrees"]


def test_growth_is_the_exponent_between_sizes():
    frame = pl.DataFrame(
        {
            "what": ["a"] * 3 + ["b"],
            "num_pairs": [10**6, 10**4, 10**5, 10**4],
            "max_items_per_user": [70, 50, 60, 10],
            "max_items_is_max": [True, True, True, False],
            "s": 1.2,
            "seconds": [4e-1, 4e-5, 4e-3, 1.0],
        }
    )
    (row,) = _growth(frame, "what", "seconds")
    assert row["max_items_per_user"] == "max" and row["num_pairs"] == [10**4, 10**5, 10**6]
    assert row["exponent"] == pytest.approx(2.0)


def test_work_counts_slots_of_open_items():
    """An item at the threshold is open; one far below and one far above it are not."""
    noise = calibrate(eps=np.array([1.0]), delta=1e-5, max_items_per_user=1)
    near = round(float(noise.threshold[0]))
    sets = [{"near", f"only {i}"} for i in range(near)] + [{"far"}] * 1000 + [{"near"}] * near
    work = lanes_work(UserItems.from_sets(sets), noise)
    assert (work["open_items"], work["open_slots"]) == (1, near)
    assert (work["adds"], work["random_bits"]) == (near, 16 * near + 32)


def test_limits_are_rates():
    limits = Limits(steps=64, memory=2**16)
    rates = {name: limits.measure(name, 0.01) for name in LIMITS}
    assert all(np.isfinite(rate) and rate > 1e5 for rate in rates.values())


# ---- the command


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """`wgm bench --quick --json` of a tiny suite: status, object, folder."""
    tiny = Settings(
        name="tiny",
        cases=(Case(num_pairs=400, points=(1, 2)),),
        exact_pairs=(400, 800),
        seconds=0.002,
    )
    folder = tmp_path_factory.mktemp("bench")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(experiments.bench, "QUICK", tiny)
        with (folder / "stdout").open("w+") as out, pytest.raises(SystemExit) as stopped:
            patch.setattr(sys, "stdout", out)
            main(["bench", "--quick", "--json", "--quiet", "--repeats", "2", "-o", str(folder)])
    return stopped.value.code, json.loads((folder / "stdout").read_text()), folder


def test_command_writes_tables_plot_and_manifest(ran):
    status, told, folder = ran
    assert status == 0 and told["agrees"] and told["suite"] == "tiny"
    trials = pl.read_parquet(folder / "trials.parquet")
    assert trials.height == len(told["trials"]) == 7
    for name in ("trials", "exact"):
        frame = pl.read_parquet(folder / f"{name}.parquet")
        assert pl.read_csv(folder / f"{name}.csv").columns == frame.columns
    assert set(trials.select("points", "way").rows()) == {
        (points, way) for points in (1, 2) for way in ("lanes", "padded", "numpy")
    } | {(1, "loop")}
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["settings"]["repeats"] == 2 and manifest["results"]["agrees"]
    names = ("seconds.svg", "seconds.pdf", "seconds.csv")
    assert all((folder / name).stat().st_size for name in names)


def test_ratios_are_taken_within_rounds(ran):
    rows = ran[1]["trials"]
    for row in rows:
        assert (
            row["seconds_per_1000_low"] <= row["seconds_per_1000"] <= row["seconds_per_1000_high"]
        )
        if row["way"] == "lanes":
            assert row["times_lanes"] == 1.0 and row["first_start_seconds"] > 0
            assert 0 < row["open_items"] <= row["num_items"]
        if row["points"] == 1:
            assert row["times_one_point"] == 1.0
    exact = ran[1]["exact"]
    assert {row["times_numpy"] for row in exact if row["what"] == "numpy trials"} == {1.0}
    assert {row["what"] for row in exact if row["max_items_is_max"]} >= {"law", "certificate"}
    grown = {(row["what"], row["max_items_per_user"]) for row in ran[1]["growth"]}
    assert {("mean", "10"), ("law", "max")} <= grown


def test_table_fits_a_terminal(ran, monkeypatch, capsys):
    from experiments.bench import Findings
    from experiments.cli import _bench

    monkeypatch.setenv("COLUMNS", "80")
    told = ran[1]
    schema = {"num_pairs": pl.List(pl.Int64), "seconds": pl.List(pl.Float64)}
    found = Findings(
        settings=Settings("tiny", (), ()),
        machine=told["machine"],
        trials=pl.DataFrame(told["trials"], infer_schema_length=None),
        exact=pl.DataFrame(told["exact"], infer_schema_length=None),
        growth=pl.DataFrame(told["growth"], schema_overrides=schema),
        notes=("padded left out",),
    )
    _bench._print(found)
    shown = capsys.readouterr().out
    assert max(len(line) for line in shown.splitlines()) <= 80
    assert "padded left out" in shown and "MEANS DISAGREE" not in shown
    wrong = dataclasses.replace(found, trials=found.trials.with_columns(agrees=pl.lit(False)))
    _bench._print(wrong)
    assert "MEANS DISAGREE" in capsys.readouterr().out


# ---- selections


@pytest.fixture(scope="module")
def selected(tmp_path_factory):
    """`wgm bench --suite selection --quick --json` of a tiny suite: status, object, folder."""
    tiny = SelectionSettings(
        "tiny", (SelectionCase(10**4, k=8),), trials=8, peer_trials=2, largest_sets=10**4
    )
    folder = tmp_path_factory.mktemp("selection")
    arguments = ["--suite", "selection", "--quick", "--json", "--quiet", "--repeats", "2"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(experiments.bench, "SELECTION_QUICK", tiny)
        with (folder / "stdout").open("w+") as out, pytest.raises(SystemExit) as stopped:
            patch.setattr(sys, "stdout", out)
            main(["bench", *arguments, "-o", str(folder)])
    return stopped.value.code, json.loads((folder / "stdout").read_text()), folder


def test_selections_are_those_of_plain_numpy_and_of_sets(selected):
    status, told, folder = selected
    assert status == 0 and told["agrees"] and told["suite"] == "tiny"
    assert told["machine"].keys() == {"cores", "load_before", "load_after"}
    rows = told["selections"]
    assert pl.read_parquet(folder / "selections.parquet").to_dicts() == rows
    assert pl.read_csv(folder / "selections.csv").height == len(rows)
    assert json.loads((folder / "manifest.json").read_text())["settings"]["repeats"] == 2
    ways = {}
    for row in rows:
        ways.setdefault(row["task"], []).append(row["way"])
        assert row["seconds_low"] <= row["seconds"] <= row["seconds_high"]
        assert row["times_ours"] == 1.0 or row["way"] != "wgm-jax"
    with_sets = ways.pop("hitting set, found domain")
    assert with_sets == ["wgm-jax", "numpy", "sets"]
    assert len(ways) == 5 and all(found == ["wgm-jax", "numpy"] for found in ways.values())
    # Domains of the WGM are not empty, and not everything.
    found, public = (
        row["domain_size"]
        for row in rows
        if row["way"] == "numpy" and row["task"].startswith("top-k")
    )
    assert 5 < found < public / 10


@pytest.mark.parametrize(
    "peer", ["top_k", "limited_domain", "hitting_set_by_pairs", "hitting_set_by_sets"]
)
def test_a_selection_that_differs_is_noticed(peer, monkeypatch):
    """The last item of every choice is another one."""
    right = getattr(selection.peers, peer)

    def wrong(*arguments):
        chosen = right(*arguments)
        return [*chosen[:-1], -7]

    monkeypatch.setattr(selection.peers, peer, wrong)
    tiny = SelectionSettings(
        "tiny", (SelectionCase(10**4, k=8),), trials=8, peer_trials=1, repeats=1
    )
    found = selection.run_selection_suite(tiny)
    assert not found.agrees
    differing = set(found.selections.filter(~pl.col("agrees"))["task"])
    assert len(differing) == (1 if peer == "hitting_set_by_sets" else 2)


def test_table_of_selections_fits_a_terminal(selected, monkeypatch, capsys):
    from experiments.bench import SelectionFindings
    from experiments.cli._bench_selection import print_selections

    monkeypatch.setenv("COLUMNS", "80")
    frame = pl.DataFrame(selected[1]["selections"], infer_schema_length=None)
    found = SelectionFindings(SelectionSettings("tiny", ()), selected[1]["machine"], frame)
    print_selections(found)
    shown = capsys.readouterr().out
    assert max(len(line) for line in shown.splitlines()) <= 80 and "the same items" in shown
    print_selections(dataclasses.replace(found, selections=frame.with_columns(agrees=False)))
    assert "CHOICES DISAGREE" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--suite", "all"), "--suite all: suite must be trials or selection"),
        (("--quick", "--large"), "large must not be given with --quick"),
        (("--repeats", "0"), "--repeats 0: repeats must be"),
        (("--seed", "-1"), "--seed -1: seed must be"),
    ],
)
def test_bad_options_are_one_line(arguments, said, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["bench", *arguments])
    captured = capsys.readouterr()
    assert stopped.value.code == 2 and captured.out == ""
    assert captured.err.count("\n") == 1 and said in captured.err


# ---- the plot


def rows(n=10**5, bound=10, s=1.2, points=1, unclipped=False, **seconds):
    return [
        {
            "num_pairs": n,
            "max_items_per_user": bound,
            "max_items_is_max": unclipped,
            "s": s,
            "points": points,
            "way": way,
            "seconds_per_1000": value,
            "seconds_per_1000_low": value / 2,
            "seconds_per_1000_high": value * 2,
        }
        for way, value in seconds.items()
    ]


def test_plot_shows_one_setting_varied_at_a_time():
    frame = pl.DataFrame(
        rows(lanes=0.02, numpy=0.2)
        + rows(points=16, lanes=0.03, numpy=3.0)
        + rows(n=10**6, lanes=0.2, numpy=4.0)
        + rows(bound=473, unclipped=True, lanes=0.001)
    )
    figure, data = bench_plot(frame)
    assert [panel.get_xlabel() for panel in figure.axes] == [
        "user-item pairs $N$",
        r"contribution bound $\Delta_0$",
        r"points of an $\varepsilon$ grid",
    ]
    for panel, axis in zip(figure.axes, ("num_pairs", "max_items_per_user", "points"), strict=True):
        for line in panel.lines:
            way = {"lanes, JAX": "lanes", "NumPy, a process per core": "numpy"}.get(
                line.get_label()
            )
            part = data.filter((pl.col("axis") == axis) & (pl.col("way") == str(way)))
            assert list(line.get_xdata()) == part["place"].to_list()
            assert list(line.get_ydata()) == part["median"].to_list()
    sizes, bounds = (data.filter(pl.col("axis") == a) for a in ("num_pairs", "max_items_per_user"))
    assert sizes["x"].to_list() == sizes["place"].to_list()
    assert set(bounds.select("x", "place").rows()) == {(10.0, 0.0), (473.0, 1.0)}
    grid = data.filter((pl.col("axis") == "points") & (pl.col("way") == "lanes"))
    assert grid.select("x", "median", "low", "high").rows() == [
        (1.0, 0.02, 0.01, 0.04), (16.0, 0.03, 0.015, 0.06),
    ]  # fmt: skip
    assert "max" in [text.get_text() for text in figure.axes[1].get_xticklabels()]
    assert {text.get_text() for text in figure.axes[0].texts} == {"$N^{1.00}$", "$N^{1.30}$"}


def test_plot_of_a_single_case_and_of_none():
    figure, data = bench_plot(pl.DataFrame(rows(lanes=0.02)))
    assert len(figure.axes) == 1 and data.height == 1
    with pytest.raises(InvalidInput, match="rows"):
        bench_plot(pl.DataFrame(rows(lanes=0.02)).head(0))
    with pytest.raises(InvalidInput, match="points"):
        bench_plot(pl.DataFrame(rows(lanes=0.02)).drop("points"))
