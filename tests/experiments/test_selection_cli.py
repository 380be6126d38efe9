"""`wgm topk` and `wgm hitting-set`: contracts, errors, tables that fit, the same in plots."""

import json
import math
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

from experiments.plots import save, selection_curves
from experiments.selection import compare, methods
from experiments.selection.compare import mean_of
from experiments.selection.methods import parse_k_bar
from theory import (
    InvalidInput,
    UserItems,
    greedy_hitting_set,
    hitting_game_scale,
    user_peeling_scale,
)

# Item x has 200 - 20 x holders.
SETS = [[item for item in range(10) if user < 200 - 20 * item] for user in range(200)]
GRID = ("-k", "2,5,20", "--eps", "4,1", "--delta", "1e-5", "--max-items-per-user", "10")
NASTY = "$x_% <b>&\x00\n名" + "long" * 30


@pytest.fixture(scope="module")
def data():
    return UserItems.from_sets(SETS)


@pytest.fixture(scope="module")
def csv(tmp_path_factory):
    file = tmp_path_factory.mktemp("data") / "buys.csv"
    rows = [f"u{user},i{item}" for user, items in enumerate(SETS) for item in items]
    file.write_text("user,item\n" + "\n".join(rows) + "\n")
    return file


@pytest.fixture(scope="module")
def found(data):
    return {
        task: compare(
            data, task, eps=[4.0, 1.0], delta=1e-5, k=[2, 5, 20], max_items_per_user=10,
            num_trials=20, dataset="buys",
        )
        for task in ("top-k", "hitting-set")
    }  # fmt: skip


# ---- the library


def test_means_and_intervals_are_those_of_the_trials(found):
    result = found["top-k"]
    table = result.table().filter(pl.col("role") == "method")
    for number, method in enumerate(result.methods):
        record = result.trials[number]
        metrics = (
            ("missing_mass", record.top_k_missing_mass),
            ("l1_loss", record.l1_loss / 1100),
            ("num_released", record.num_released),
        )
        for metric, values in metrics:
            rows = table.filter((pl.col("method") == method.label) & (pl.col("metric") == metric))
            assert rows.select("eps", "k").rows() == [
                (e, k) for e in (4.0, 1.0) for k in (2, 5, 20)
            ]
            means = values.reshape(20, -1).mean(axis=0)
            assert rows["mean"].to_numpy() == pytest.approx(means, rel=1e-12, abs=1e-15)
            # Student's quantile at 19 degrees of freedom, from a table.
            half = 2.093024 * values.reshape(20, -1).std(axis=0, ddof=1) / math.sqrt(20)
            assert (rows["high"] - rows["mean"]).to_numpy() == pytest.approx(half, rel=1e-5)


def test_bounds_are_in_order(found):
    for result in found.values():
        metric = result.metrics[0]
        rows = result.table().filter(pl.col("metric") == metric)
        wide = rows.pivot("role", index=["eps", "k"], values="mean", aggregate_function="min")
        assert wide.height == 6
        assert (wide["method"] <= wide["nothing"] + 1e-12).all()
        # Lower bounds are for what is private on an unknown domain.
        private = rows.filter(pl.col("private") & ~pl.col("public_domain"))
        least = rows.filter(pl.col("role") == "least").select("eps", "k", least="mean")
        joined = private.join(least, on=["eps", "k"])
        assert (joined["high"] >= joined["least"] - 1e-12).all()


def test_greedy_is_the_reference_and_k_above_the_items_takes_them_all(found, data):
    result = found["hitting-set"]
    _, hits = greedy_hitting_set(data, 5)
    missed = result.samples([m.label for m in result.methods].index("greedy"), "missed_share")
    assert (missed[:, :, 1] == 1 - hits[-1] / 200).all()
    public = found["top-k"].trials[[m.name for m in found["top-k"].methods].index("peeling-public")]
    assert (public.num_released[:, :, 2] == 10).all() and (public.l1_loss >= 0).all()


def test_the_best_is_the_least_mean_and_its_lead_is_paired(found):
    result = found["top-k"]
    for entry in result.best():
        e, j = result.trials[0].eps.index(entry.eps), result.trials[0].k.index(entry.k)
        losses = {
            m.label: result.samples(i, "missing_mass")[:, e, j]
            for i, m in enumerate(result.methods)
            if not m.public_domain
        }
        assert entry.mean == min(loss.mean() for loss in losses.values())
        lead = losses[entry.rival] - losses[entry.method]
        assert entry.ahead == mean_of(lead) and entry.ahead.mean >= 0
        assert entry.alone == (entry.ahead.low > 0)


def test_a_domain_that_is_empty_selects_nothing(data):
    point = {"eps": [2e-3, 1e-3], "delta": 1e-9, "k": [3], "max_items_per_user": 10}
    peeling, users = methods("top-k", ["peeling"]), methods("hitting-set", ["user-peeling"])
    top = compare(data, "top-k", peeling, **point, num_trials=20)
    assert (top.samples(0, "num_released") == 0).all()
    assert top.samples(0, "missing_mass") == pytest.approx((200 + 180 + 160) / 1100)
    hits = compare(data, "hitting-set", users, **point, num_trials=20, domain_share=Fraction(1, 4))
    assert (hits.samples(0, "missed_share") == 1).all()


@pytest.mark.parametrize(
    ("text", "expected"),
    [("k", {"multiple": 1}), ("2.5k", {"multiple": 2.5}), ("inf", {"k_bar": math.inf})],
)
def test_sizes_of_limited_domains(text, expected):
    assert parse_k_bar(text) == expected


@pytest.mark.parametrize("text", ["0.5k", "0", "-3", "1.5", "many", "nank", ""])
def test_bad_sizes_of_limited_domains(text):
    with pytest.raises(InvalidInput, match='k_bar .*must be "k", a multiple of at least 1'):
        parse_k_bar(text)


# ---- the commands


def test_topk_prints_and_writes_what_the_library_finds(wgm, told, csv, found, tmp_path):
    out = tmp_path / "out"
    told_now = told("topk", csv, *GRID, "--trials", "20", "--out", out)
    assert told_now["results"] == json.loads(json.dumps(found["top-k"].rows())) or _close(
        told_now["results"], found["top-k"].rows()
    )
    assert [best["k"] for best in told_now["best"]] == [2, 5, 20, 2, 5, 20]
    assert told_now["users"] == 200 and told_now["trials"] == 20
    assert all(name.rsplit("/", 1)[0] == str(out) for name in told_now["files"])
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["settings"]["shares"] == [0.5, 0.5] and manifest["seeds"] == 0
    assert str(tmp_path) not in json.dumps(manifest["results"])
    frame = pl.read_parquet(out / "trials.parquet")
    assert frame.height == 20 * 6 * len(found["top-k"].methods)
    plotted = pl.read_csv(out / "comparison.csv")
    table = pl.read_parquet(out / "comparison.parquet").filter(pl.col("metric") != "num_released")
    assert plotted["mean"].to_list() == pytest.approx(table["mean"].to_list(), rel=1e-15)


def _close(one, other):
    return all(
        a["mean"] == pytest.approx(b["mean"], rel=1e-12)
        and all(a[key] == b[key] for key in ("eps", "k", "metric", "method", "role"))
        for a, b in zip(one, other, strict=True)
    )


@pytest.mark.parametrize("command", ["topk", "hitting-set"])
def test_tables_fit_a_terminal_and_end_in_a_sentence(wgm, csv, monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "80")
    status, out, err = wgm(command, csv, *GRID, "--trials", "20")
    assert status == 0 and "Next: wgm" in err
    tables = [line for line in out.splitlines() if not line.startswith(("±", "At ", "ε = "))]
    assert max(len(line.replace("\u0304", "")) for line in tables) <= 80
    last = out.rstrip().splitlines()[-1]
    assert last.startswith("ε = 1: ") and "At k = 20" in last.replace("at k = 20", "At k = 20")
    assert "[L4]" in out if command == "topk" else "[L5]" in out
    assert ("*: takes the union" in out) and (("†: not private" in out) == (command != "topk"))


def test_mechanism_and_share_restrict(told, csv):
    more = ("--mechanism", "limited-domain", "--k-bar", "k,inf", "--trials", "5")
    rows = told("topk", csv, *GRID, *more)["results"]
    labels = dict.fromkeys(row["method"] for row in rows if row["role"] == "method")
    assert list(labels) == ["limited-domain k̄=k", "limited-domain k̄=∞"]
    assert {row["role"] for row in rows} == {"method", "nothing", "least"}
    shares = ("--domain-share", "0.25,0.75", "--mechanism", "user-peeling", "--trials", "20")
    assert told("hitting-set", csv, *GRID, *shares)["trials"] == 20


def test_the_exact_accountant_makes_less_noise(told, csv):
    point = {"eps": 2.0, "delta": 5e-6, "k": 5}
    # The early stop has the same noise; that of greedy stays none.
    names = ("user-peeling", "user-peeling-public", "user-peeling-early-stop", "greedy")
    scales, guarantees = {}, {}
    for accountant in ("closed", "exact"):
        made = [m.make() for m in methods("hitting-set", names, accountant=accountant)]
        chosen = [getattr(each, "selector", each).noise_scale(**point) for each in made]
        assert chosen == [chosen[0]] * 3 + [0]
        scales[accountant] = chosen[0]
        more = ("--mechanism", "user-peeling", "--accountant", accountant, "--trials", "20")
        rows = told("hitting-set", csv, *GRID, *more)["results"]
        guarantees[accountant] = [row["mean"] for row in rows if row["role"] == "guarantee"]
    assert scales["closed"] == user_peeling_scale(**point)
    assert scales["exact"] == hitting_game_scale(**point) < scales["closed"]
    pairs = list(zip(guarantees["exact"], guarantees["closed"], strict=True))
    assert len(pairs) == 6 and all(less <= more for less, more in pairs)
    assert any(less < more < 1 for less, more in pairs)


def test_a_bad_accountant_is_one_line(wgm, csv):
    status, out, err = wgm("hitting-set", csv, *GRID, "--accountant", "best")
    assert (status, out) == (2, "")
    assert err.startswith("wgm: --accountant best: accountant must be closed, exact or paper")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-k", "0"), "--k 0: k must be a whole number of at least 1"),
        (("-k", "2.5"), "--k 2.5: k must be a whole number of at least 1"),
        (("-k", "few"), "--k few: k must be a number, or numbers with commas"),
        (("--domain-share", "0.5,0.6"), "--domain-share 0.5,0.6: domain_share must be one share"),
        (("--domain-share", "1"), "--domain-share 1: domain_share must be one share in (0, 1)"),
        (("--eps", "0"), "--eps 0: eps must be a number in (0, 1e5]"),
        (("--trials", "0"), "--trials 0: trials must be a whole number of at least 1"),
        (("--max-items-per-user", "1,2"), "--max-items-per-user 1,2: max_items_per_user must be"),
        (("--mechanism", "wgm"), "--mechanism wgm: mechanism must be one of peeling, limited-"),
        (("--conversion", "best"), "--conversion best: conversion must be paper or tight"),
        (("--k-bar", "3"), "--k-bar 3: k_bar must be at least k = 5"),
        (("--k-bar", "0.1k"), '--k-bar 0.1k: k_bar must be "k", a multiple of at least 1'),
    ],
)
def test_bad_input_is_one_line(wgm, csv, arguments, message):
    given = [*GRID, "--trials", "5"]
    if arguments[0] in given:
        place = given.index(arguments[0])
        given[place : place + 2] = []
    status, out, err = wgm("topk", csv, *given, *arguments)
    assert (status, out) == (2, "")
    assert err.startswith(f"wgm: {message}") and err.count("\n") == 1


def test_help_has_an_example(wgm):
    for command in ("topk", "hitting-set"):
        status, out, _ = wgm(command, "--help")
        assert status == 0 and f"Example: wgm {command}" in " ".join(out.split())


# ---- plots


def lines(figure, label):
    return [line for axes in figure.axes for line in axes.lines if line.get_label() == label]


def test_every_number_is_plotted(found):
    for result in found.values():
        table = result.table().filter(pl.col("metric") != "num_released")
        figure, data = selection_curves(table, title=NASTY)
        panels = 2 * len([m for m in result.metrics if m != "num_released"])
        assert len(figure.axes) == panels
        drawn = 0
        for method in result.methods:
            rows = data.filter(pl.col("method") == method.label)
            for line, (_, part) in zip(
                lines(figure, method.label), rows.group_by("row", "panel", maintain_order=True),
                strict=True,
            ):  # fmt: skip
                assert line.get_xdata().tolist() == [2, 5, 20]
                assert line.get_ydata().tolist() in [
                    p.sort("k")["mean"].to_list() for _, p in rows.group_by("row", "panel")
                ]
                drawn += part.height
        assert drawn == data.filter(pl.col("role") == "method").height
        keep = ["eps", "k", "metric", "role", "method", "mean", "low", "high"]
        assert data.select(keep).equals(table.select(keep))
        (key,) = figure.legends
        texts = [text.get_text() for text in key.get_texts()]
        assert ("greedy (not private)" in texts) == (result.task == "hitting-set")


def test_one_point_and_unknown_methods(found, tmp_path):
    table = found["top-k"].table().filter(pl.col("metric") == "missing_mass")
    one = table.filter((pl.col("k") == 5) & (pl.col("eps") == 1.0))
    one = one.with_columns(pl.col("method").replace({"joint-public": NASTY}))
    figure, data = selection_curves(one)
    assert data.height == one.height
    written = save(figure, tmp_path / "one", data, formats=["svg", "png"])
    assert all(path.stat().st_size > 100 for path in written)


def test_bad_frames_are_refused(found):
    table = found["top-k"].table()
    for change, text in (
        (table.drop("low"), "column low"),
        (table.head(0), "must have rows"),
        (pl.concat([table, table.head(1)]), "must differ"),
        (table.with_columns(metric=pl.lit("gain")), "must be one of"),
    ):
        with pytest.raises(InvalidInput, match=text):
            selection_curves(change)


def test_mean_of_one_trial_has_no_width():
    assert mean_of(np.array([0.25])) == (0.25, 0.25, 0.25)
