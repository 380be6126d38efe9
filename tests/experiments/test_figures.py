"""`wgm figure`: resumable tasks, complete folders, captions, bad input, JSON."""

import dataclasses
import gzip
import importlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

from experiments.comparison import compare
from experiments.figures import registry, run, set_union
from experiments.figures.data import DATA_SETS, absent, in_group, load_case, sources
from experiments.figures.record import FigureSpec, Statement
from experiments.figures.statements import COLUMNS
from experiments.figures.task import Task
from experiments.figures.workers import Schedule
from experiments.loading import PRESETS, load
from theory import InvalidInput

REAL_FIGURES, REAL_KINDS = registry.figures, registry.kinds
BOUNDS = (1, 3)
# A tiny collection of raw files in the layouts of three presets.
# Games of 60 players, drawn once with a fixed rule; the first ten are held by many.
PLAYERS = {f"u{i}": {f"game, {(i * j) % (7 + j)}" for j in range(1, 2 + i % 5)} for i in range(60)}
BASKETS = [sorted({(i * j) % (5 + 2 * j) for j in range(1, 3 + i % 4)}) for i in range(80)]
EVERYTHING = [
    f"{stem}.{suffix}"
    for stem in ("bernoulli-flow", "figure-01", "figure-08", "figure-09", "figure-10")
    for suffix in ("csv", "parquet", "pdf", "svg")
] + ["manifest.json", "statements.csv", "statements.md", "statements.parquet"]


def write_collection(folder: Path) -> Path:
    """`steam` compressed, `retail` plain, beside things that are no data."""
    for name in ("steam", "retail", "book-crossing"):
        (folder / name).mkdir(parents=True)
    (folder / "README.md").write_text("not data")
    rows = [
        f'{user},"{game}",{what},1.0,0\n'
        for user, games in PLAYERS.items()
        for game in sorted(games)
        for what in ("purchase", "play")
    ]
    (folder / "steam" / "steam-200k.csv.gz").write_bytes(
        gzip.compress("".join(rows).encode(), mtime=0)
    )
    lines = [" ".join(map(str, basket)) + "\n" for basket in BASKETS]
    (folder / "retail" / "retail.dat").write_text("".join(lines))
    return folder


@pytest.fixture(scope="module")
def collection(tmp_path_factory):
    return write_collection(tmp_path_factory.mktemp("collection"))


@pytest.fixture(autouse=True)
def small(monkeypatch, tmp_path_factory):
    """Few and small settings, no collection but the one given, no cache but these tests'."""
    monkeypatch.setattr(set_union, "BOUNDS", BOUNDS)
    monkeypatch.setattr(set_union, "FLOW_BOUND", 4)
    monkeypatch.setattr(set_union, "DELTA", 1e-3)
    kinds = {"set-union": set_union.compared}
    monkeypatch.setattr(registry, "figures", lambda: set_union.SPECS)
    monkeypatch.setattr(registry, "kinds", lambda: kinds)
    monkeypatch.setattr("experiments.figures.data.data_folder", lambda: None)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "figures-cache"))


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """Folder and JSON of one whole run, which is made by the first test that asks."""
    return tmp_path_factory.mktemp("out"), {}


@pytest.fixture
def folder(first, made):
    return first[0]


@pytest.fixture
def made(first, collection, told):
    folder, kept = first
    if not kept:
        kept |= told("figure", "all", "--data", collection, "--out", folder, "--trials", "6")
    return kept


@pytest.fixture
def plain(monkeypatch):
    """Drawings without panels, where the panels do not matter."""
    specs = tuple(dataclasses.replace(spec, draw=draw_points) for spec in set_union.SPECS)
    monkeypatch.setattr(registry, "figures", lambda: specs)


@pytest.fixture
def again(folder, tmp_path, collection):
    """Another folder with the same numbers, and the options of a run there."""
    shutil.copytree(folder / "numbers", tmp_path / "again" / "numbers")
    return tmp_path / "again", (
        "--data", collection, "--out", tmp_path / "again", "--trials", "6",
    )  # fmt: skip


def tasks_run(monkeypatch):
    """Labels of the tasks that are run from here on."""
    labels = []
    real = run.run_job
    monkeypatch.setattr(run, "run_job", lambda job: (labels.append(job.task.label), real(job))[1])
    return labels


# ---- a whole folder


def test_all_figures_come_with_drawings_numbers_captions_and_statements(made, folder):
    assert sorted(p.name for p in folder.iterdir() if p.is_file()) == sorted(EVERYTHING)
    assert [each["name"] for each in made["figures"]] == ["1", "8", "9", "10", "bernoulli-flow"]
    for each in made["figures"]:
        assert [name.rsplit("/", 1)[1] for name in each["files"]] == [
            f"{each['stem']}.{suffix}" for suffix in ("svg", "pdf", "csv", "parquet")
        ]
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["command"] == "figure" and manifest["seeds"] == 0
    stems = [each["stem"] for each in made["figures"]]
    assert manifest["files"][:5] == [f"{stem}.svg" for stem in stems]
    assert list(manifest["captions"]) == stems
    for each in made["figures"]:
        assert manifest["captions"][each["stem"]]["caption"] == each["caption"]
        assert manifest["captions"][each["stem"]]["title"] == each["title"]
    assert manifest["figures"]["figure-01"] == {
        "name": "1", "trials": 6, "seed": 0, "data": ["retail"],
    }  # fmt: skip
    assert manifest["missing"] == made["missing"] == absent_names()
    assert manifest["versions"]["wgm-jax"]
    assert not list((folder / "numbers").glob(".*"))


def absent_names():
    return [name for name in DATA_SETS if name not in ("steam", "retail")]


def test_captions_say_data_trials_seed_delta_paper_and_verdict(made):
    first, eighth = (each["caption"] for each in made["figures"][:2])
    for words in (
        "retail (not in the paper)", "δ = 0.001",
        "policies: 6 ", "seed 0", "95 %", "The paper: average missing mass", "within 5 %",
    ):  # fmt: skip
        assert words in first, words
    assert "steam (Steam Games)" in eighth and "retail" not in eighth
    for row in made["statements"]:
        caption = next(e["caption"] for e in made["figures"] if e["name"] == row["figure"])
        assert f"{row['verdict']} ({row['says']})" in caption


def test_the_table_of_statements_is_the_same_in_every_form(made, folder):
    rows = made["statements"]
    assert pl.read_parquet(folder / "statements.parquet").to_dicts() == rows
    assert tuple(rows[0]) == COLUMNS
    text = (folder / "statements.md").read_text()
    assert len(re.findall(r"^\| .*\*\*", text, re.M)) == len(rows)
    counted = dict(
        (name, int(count))
        for count, name in re.findall(r"(\d+) ([a-z ]+)[,.]", text.split("\n")[0])
    )
    for verdict, count in counted.items():
        assert count == sum(row["verdict"] == verdict for row in rows)
    assert sum(counted.values()) == len(rows) == 12


def test_numbers_are_those_of_a_comparison(made, folder, collection):
    data = load(collection / "steam", preset="steam")
    assert data.num_users == len(PLAYERS)
    expected = compare(
        data, dataset="steam", eps=[1.0, 0.1], delta=1e-3, max_items_per_user=list(BOUNDS),
        mechanisms=list(set_union.MECHANISMS), num_trials=6, seed=0,
    ).to_frame()  # fmt: skip
    flows = compare(
        data, eps=[1.0, 0.1], delta=1e-3, max_items_per_user=[4], mechanisms=["bernoulli-flow"]
    )
    columns = ["series", "x", "y", "low", "high"]
    for stem, eps in (("figure-08", 1.0), ("figure-10", 0.1)):
        drawn = pl.read_parquet(folder / f"{stem}.parquet").filter(panel="missing mass")
        assert drawn["dataset"].unique().to_list() == ["steam"]
        mine = drawn.filter(~pl.col("series").is_in(["[L2]", "bernoulli-flow"])).select(columns)
        theirs = expected.filter(eps=eps).select(
            series="mechanism", x="max_items_per_user", y="missing_mass", low="missing_mass_low",
            high="missing_mass_high",
        )  # fmt: skip
        order = ["series", "x"]
        assert mine.sort(order).equals(theirs.sort(order))
        flow = drawn.filter(series="bernoulli-flow")
        assert flow["x"].to_list() == [4]
        [direct] = flows.of("bernoulli-flow", eps)
        assert flow["y"].to_list() == [direct.missing_mass.mean]
    table = pl.read_csv(folder / "figure-08.csv")
    assert table.equals(pl.read_parquet(folder / "figure-08.parquet").select(table.columns))


# ---- going on


def test_after_a_kill_only_what_is_missing_is_run(again, folder, wgm, monkeypatch):
    out, options = again
    labels = tasks_run(monkeypatch)
    assert wgm("figure", "8", *options)[0] == 0
    assert labels == []
    before = {p.name: p.read_bytes() for p in out.iterdir() if p.is_file()}
    numbers = [
        file
        for file in sorted((out / "numbers").glob("set-union-steam-*.parquet"))
        if "bernoulli-flow-2" not in set(pl.read_parquet(file)["mechanism"])
    ]
    assert len(numbers) == 3  # two Delta0, and the flow
    for gone in ("manifest.json", "figure-08.svg", "statements.md"):
        (out / gone).unlink()
    numbers[0].unlink()
    (out / "numbers" / f".{numbers[1].name}.0011.tmp").write_bytes(b"half")
    assert wgm("figure", "8", *options)[0] == 0
    assert labels == ["set-union, steam"]
    assert numbers[0].exists() and not list((out / "numbers").glob(".*"))
    after = {p.name: p.read_bytes() for p in out.iterdir() if p.is_file()}
    assert after.keys() == before.keys()
    for name in before.keys() - {"manifest.json"}:
        assert after[name] == before[name], name
    for name in ("figure-08.svg", "figure-08.csv"):  # drawn by another call, the same to the byte
        assert after[name] == (folder / name).read_bytes()


def test_numbers_of_other_code_are_used_with_a_warning(again, plain, wgm, monkeypatch):
    out, options = again
    assert wgm("figure", "8", *options)[2].count("warning") == 0
    monkeypatch.setattr(run, "versions", lambda: {"source": "other"})
    status, _, err = wgm("figure", "8", *options)
    assert status == 0 and err.startswith("wgm: warning: 3 files in ")
    assert json.loads((out / "manifest.json").read_text())["older"] == 3


@pytest.mark.parametrize(
    "change", ["data", "seed", "trials", "version"],
)  # fmt: skip
def test_other_numbers_have_other_files(collection, tmp_path, change, monkeypatch):
    folder = write_collection(tmp_path / "data")
    [task] = set_union.union_tasks(["steam"], 6, 0)[:1]
    before = run.key_of(task, sources(folder))
    assert run.key_of(task, sources(collection)) == before  # wherever the files lie
    if change == "data":
        file = folder / "steam" / "steam-200k.csv.gz"
        content = bytearray(file.read_bytes())
        content[-1] ^= 1
        file.write_bytes(content)
    elif change == "version":
        monkeypatch.setattr("experiments.figures.task._version", lambda: "9.9")
    other = set_union.union_tasks(["steam"], 6 + (change == "trials"), int(change == "seed"))[0]
    assert run.key_of(other, sources(folder)) != before


def test_figures_share_their_tasks():
    present = ["steam", "retail"]
    specs = {spec.name: spec for spec in registry.figures()}
    keys = {
        name: {task.key() for task in specs[name].tasks(present, 20, 0)}
        for name in ("1", "8", "9", "10", "bernoulli-flow")
    }
    assert keys["1"] == keys["9"] and keys["8"] == keys["10"]
    two_rounds = keys["bernoulli-flow"] - (keys["1"] | keys["8"])
    assert len(two_rounds) == len(present)
    assert keys["bernoulli-flow"] - two_rounds == keys["1"] | keys["8"]


def test_figures_of_an_earlier_call_stay_in_the_folder(again, plain, told):
    out, options = again
    first, second = told("figure", "8", *options), told("figure", "1", *options)
    assert (first["tasks_run"], second["tasks_run"]) == (0, 0)

    def stems():
        return list(json.loads((out / "manifest.json").read_text())["captions"])

    assert stems() == ["figure-01", "figure-08"]
    rows = pl.read_parquet(out / "statements.parquet").to_dicts()
    assert rows == second["statements"] + first["statements"]
    # What was deleted, or belongs to another command, is forgotten.
    (out / "figure-08.svg").unlink()
    told("figure", "1", *options, "--preset", "retail")
    assert stems() == ["figure-01"]
    for text in (
        '{"command": "verify", "captions": {"figure-01": 3}}',
        '{"command": "figure", "captions": {"figure-01": {}}, "figures": {"figure-01": "1"}}',
        "[1, 2",
    ):
        (out / "manifest.json").write_text(text)
        told("figure", "8", *options)
        assert stems() == ["figure-08"]


# ---- scheduling and workers


def test_a_data_set_stays_with_its_worker_and_idle_workers_help():
    tasks = [
        Task("k", name, {"i": i}) for name, n in (("a", 3), ("b", 1), ("c", 1)) for i in range(n)
    ]
    tasks.append(Task("k", None))
    schedule = Schedule(tasks, {"a": 5, "b": 9, "c": 1})
    took = {"x": [], "y": []}
    current = {"x": None, "y": None}
    for who in "xyxyxy":
        task = schedule.take(current[who])
        took[who].append((task.dataset, task.settings.get("i")))
        current[who] = task.dataset or current[who]
    assert took == {"x": [("b", 0), ("c", 0), (None, None)], "y": [("a", 0), ("a", 1), ("a", 2)]}
    assert schedule.take("a") is None
    helped = Schedule([Task("k", "a", {"i": i}) for i in range(3)], {"a": 1})
    assert [helped.take(at).settings["i"] for at in ("a", None, "b")] == [0, 1, 2]


def test_unreadable_data_cost_their_own_tasks_only(again, plain, tmp_path, wgm):
    out, options = again
    folder = write_collection(tmp_path / "data")
    (folder / "ml-100k").mkdir()
    (folder / "ml-100k" / "u.data").write_bytes(b"\x00\xff\x00")
    status, text, err = wgm("figure", "1", *options[2:], "--data", folder)
    assert status == 1
    assert err.count("wgm: warning:") == 1 and "u.data" in err
    manifest = json.loads((out / "manifest.json").read_text())
    assert "Data: retail (not in the paper)." in manifest["captions"]["figure-01"]["caption"]
    assert list(manifest["failed"]) == ["set-union, ml-100k"] and "figure-01" in text


def test_an_error_of_ours_is_not_hidden(collection, tmp_path, monkeypatch):
    def broken(case, settings):
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(registry, "kinds", lambda: {"k": broken})
    with pytest.raises(ZeroDivisionError, match="a bug"):
        run.run_tasks([Task("k", None)], tmp_path, sources={})


# ---- names and bad input


def test_without_a_name_it_lists_them_in_80_columns(wgm, told):
    status, out, _ = wgm("figure")
    assert status == 0
    assert [line.split()[0] for line in out.splitlines()[1:] if line[0] != " "] == [
        "1", "8", "9", "10", "bernoulli-flow", "all",
    ]  # fmt: skip
    assert max(map(len, out.splitlines())) <= 80
    assert [each["name"] for each in told("figure")["figures"]][0] == "1"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["12a"], "NAME 12a: must be one of 1, 8, 9, 10, bernoulli-flow, all"),
        (["1", "--trials", "0"], "--trials 0: trials must be a whole number of at least 1 and at"),
        (["1", "--seed", "-1"], "--seed -1: seed must be a whole number of at least 0"),
        (
            ["1", "--jobs", "0"],
            "--jobs 0: jobs must be a whole number of at least 1 and at most 256",
        ),
        (["1", "--preset", "steem"], "--preset steem: preset must be one of reddit-posts, "),
        (["1"], "NAME 1: needs data sets: WGM_DATA, or --data DIR,"),
        (["1", "--preset", "steam"], "--preset steam: preset needs --data DIR, or WGM_DATA"),
        (["1", "--data", "nowhere"], "--data nowhere: data must be a folder"),
    ],
)
def test_bad_input_is_one_clear_line(wgm, arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    status, out, err = wgm("figure", *arguments)
    assert (status, out) == (2, "")
    assert err.startswith(f"wgm: {message}") and err.count("\n") == 1, err
    assert not list(tmp_path.iterdir())


def test_a_preset_without_files_is_not_present(collection, wgm):
    status, _, err = wgm("figure", "8", "--data", collection, "--preset", "book-crossing")
    assert status == 2
    assert err.startswith("wgm: --preset book-crossing: preset must be a folder with files in ")
    assert "book-crossing" in absent(collection) and len(absent(None)) == 13


def test_figures_without_data_work_without_data(tmp_path, told, monkeypatch):
    """A synthetic figure needs no collection; the others are left out, with the reason."""
    spec = FigureSpec(
        "made", "made", "Made", None,
        tasks=lambda present, trials, seed: [Task("made", None, {"trials": trials})],
        draw=draw_points,
        judge=lambda frame: [Statement("here", "all is well", "reproduced", "1 of 1")],
        caption=lambda frame: "One point.",
    )  # fmt: skip
    [union] = [each for each in registry.figures() if each.name == "1"]
    monkeypatch.setattr(registry, "figures", lambda: (union, spec))
    made = pl.DataFrame({"dataset": ["none"], "y": [0.5]})
    monkeypatch.setattr(registry, "kinds", lambda: {"made": lambda case, settings: made})
    found = told("figure", "all", "--out", tmp_path)
    assert found["left_out"] == {"1": "no data"} and found["tasks_run"] == 1
    assert [each["stem"] for each in found["figures"]] == ["made"]
    assert found["figures"][0]["caption"] == ("One point. Found here: reproduced (all is well).")


def draw_points(frame):
    from matplotlib.figure import Figure

    return Figure(), frame.select("dataset")


def test_names_stems_and_kinds_are_told_apart():
    specs = REAL_FIGURES()
    names = [spec.name for spec in specs]
    assert names[:13] == [str(number) for number in range(1, 14)]
    assert len(set(names)) == len({spec.stem for spec in specs}) == len(specs)
    modules = [importlib.import_module(f"experiments.figures.{m}") for m in registry._MODULES]
    assert len(REAL_KINDS()) == sum(len(module.KINDS) for module in modules)
    tasks = [task for spec in specs for task in spec.tasks(list(PRESETS), spec.trials, 0)]
    assert {task.kind for task in tasks} == REAL_KINDS().keys()
    for spec in specs:
        assert (spec.paper is not None) >= spec.name.isdigit()
        if spec.name.isdigit():
            assert spec.tasks([], spec.trials, 0) == []


def test_every_preset_has_a_place_and_a_group():
    assert DATA_SETS.keys() == PRESETS.keys()
    assert {name for name, each in DATA_SETS.items() if each.own} == {
        "steam", "amazon-magazine-subscriptions",
    }  # fmt: skip
    assert [*in_group(list(PRESETS), "large"), *in_group(list(PRESETS), "small")] == list(DATA_SETS)


def test_a_case_is_the_data_set_of_its_preset(collection):
    found = sources(collection, ["steam"])
    case = load_case("steam", found["steam"])
    assert case.name == "steam" and case.data.num_pairs == sum(map(len, PLAYERS.values()))
    with pytest.raises(InvalidInput, match="folder with one folder per data set"):
        sources(collection / "steam" / "steam-200k.csv.gz")


# ---- killed for real


@pytest.mark.slow
def test_a_killed_run_goes_on_where_it_stopped(tmp_path, collection):
    """Worker processes, killed with their parent; and the same numbers in one process."""
    environment = {
        **os.environ, "WGM_DATA": str(collection), "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }  # fmt: skip
    out = tmp_path / "out"
    command = [
        sys.executable, "-c", "from experiments.cli import main; main()", "figure", "1", "8",
        "--trials", "6", "--json", "--out",
    ]  # fmt: skip
    parallel = [*command, str(out), "--jobs", "2"]
    started = subprocess.Popen(parallel, env=environment, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 300
    while len(list(out.glob("numbers/*.parquet"))) < 3 and time.monotonic() < deadline:
        time.sleep(0.05)
    started.send_signal(signal.SIGKILL)
    started.wait()
    assert not (out / "manifest.json").exists()
    done = len(list(out.glob("numbers/*.parquet")))
    assert 3 <= done < 14
    finished = subprocess.run(parallel, env=environment, capture_output=True, check=True)
    left = 14 - json.loads(finished.stdout)["tasks_run"]  # two data sets, six Delta0 and the flow
    assert left >= done  # a worker may have finished one more before it noticed
    alone = tmp_path / "alone"
    subprocess.run([*command, str(alone)], env=environment, capture_output=True, check=True)
    names = {file.name for file in out.glob("numbers/*")}
    assert len(names) == 14 and names == {file.name for file in alone.glob("numbers/*")}
    for name in names:
        one, two = (pl.read_parquet(each / "numbers" / name) for each in (out, alone))
        assert one.drop("seconds").equals(two.drop("seconds"))
    assert (out / "figure-01.svg").read_bytes() == (alone / "figure-01.svg").read_bytes()
