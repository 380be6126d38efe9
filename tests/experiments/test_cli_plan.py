"""`wgm plan`: JSON, words, files, and one line for everything that is wrong."""

import json
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from experiments.planning import (
    best_contribution_bound,
    least_eps,
    least_pairs,
    least_scale,
    zipf_classes,
)
from theory import UserItems

PRIVACY = ("--eps", "0.5", "--delta", "1e-3")
ZIPF = ("--zipf-s", "1.5", "--zipf-constant", "30", "--set-size", "12")


# Item x has 200 - 20 x holders; every user holds 1 to 10 items.
SETS = [{item for item in range(10) if user < 200 - 20 * item} for user in range(200)]
CLASSES = UserItems.from_sets(SETS).item_classes


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    rows = [f"u{user},i{item}" for user, items in enumerate(SETS) for item in sorted(items)]
    file = tmp_path / "buys.csv"
    file.write_text("user,item\n" + "\n".join(rows) + "\n")
    return file


# ---- answers


def test_best_bound_of_a_file(told, csv):
    found = told("plan", csv, *PRIVACY)
    plan = best_contribution_bound(CLASSES, eps=0.5, delta=1e-3)
    assert (found["find"], found["answer"], found["max_items_per_user"]) == (
        "max-items", plan.answer, plan.answer,
    )  # fmt: skip
    noise = plan.outcome.calibration
    assert (found["sigma"], found["threshold"]) == (noise.sigma, noise.threshold)
    assert (found["eps"], found["delta"], found["method"]) == (0.5, 1e-3, "split")
    assert (found["statistic"], found["target"], found["beta"]) == ("mean", None, 0.05)
    assert found["value"] == found["exact_mean"] == plan.value
    assert found["certificate"] == plan.outcome.certificate > found["value"]
    assert found["lower_bound"] == plan.outcome.lower_bound
    assert found["oracle_gap"] == plan.outcome.oracle_gap
    assert found["curve"] == plan.curve.to_frame().to_dicts() and found["complete"] is True
    assert [row["max_items_per_user"] for row in found["curve"]] == list(range(1, 11))
    assert (found["users"], found["items"], found["pairs"]) == (200, 10, 1100)
    assert (found["dataset"], found["max_set_size"]) == ("buys", 10)
    other = found["other_method"]
    assert (other["method"], other["exact_mean"]) == ("full", plan.other.mean)
    assert other["answer"] == plan.other_answer
    assert any("spends privacy beyond" in note for note in found["notes"])


def test_method_and_statistic(told, csv):
    found = told(
        "plan", csv, *PRIVACY, "--method", "full", "--statistic", "quantile", "--beta", 0.1
    )
    plan = best_contribution_bound(
        CLASSES, eps=0.5, delta=1e-3, method="full", statistic="quantile", beta=0.1
    )
    assert found["answer"] == plan.answer
    assert found["value"] == found["certificate"] == plan.outcome.certificate
    assert found["other_method"]["method"] == "split" and found["beta"] == 0.1
    assert min(row["certificate"] for row in found["curve"]) == found["value"]


def test_least_eps_of_a_file(told, csv):
    setting = ("--find", "eps", "--target", 0.3, "--delta", "1e-3")
    found = told("plan", csv, *setting, "--max-items-per-user", 4)
    plan = least_eps(CLASSES, target=0.3, delta=1e-3, max_items_per_user=4)
    assert found["answer"] == found["eps"] == plan.answer and found["value"] <= 0.3
    assert found["other_method"]["answer"] == plan.other_answer < plan.answer
    assert plan.answer in [row["eps"] for row in found["curve"]] and found["complete"] is False
    largest = told("plan", csv, *setting, "--max-items-per-user", "max")
    assert largest["max_items_per_user"] == 10


def test_least_number_of_times_the_users(told, csv):
    found = told(
        "plan", csv, *PRIVACY, "--find", "pairs", "--target", 0.1, "--max-items-per-user", 4
    )
    plan = least_scale(CLASSES, target=0.1, eps=0.5, delta=1e-3, max_items_per_user=4)
    assert found["answer"] == plan.answer > 1
    assert (found["users"], found["pairs"]) == (200, 1100)  # those there are
    assert [row["scale"] for row in found["curve"]] == plan.curve.at.tolist()


def test_a_profile_without_users(told):
    found = told("plan", *ZIPF, "--pairs", "1e4", *PRIVACY)
    plan = best_contribution_bound(zipf_classes(1.5, 30.0, 9996, 12), eps=0.5, delta=1e-3)
    assert (found["answer"], found["value"]) == (plan.answer, plan.value)
    assert (found["pairs"], found["users"], found["max_set_size"]) == (9996, 833, 12)
    assert found["dataset"] == "Zipf s = 1.5, C = 30, sets of 12"
    assert any("N is 4 less than asked for" in note for note in found["notes"])
    assert any("nobody's data" in note for note in found["notes"])


def test_least_pairs_of_a_profile(told):
    setting = ("--find", "pairs", "--target", 0.4, *PRIVACY)
    found = told("plan", "--zipf-s", 1.5, *setting)
    plan = least_pairs(s=1.5, target=0.4, eps=0.5, delta=1e-3)
    assert found["answer"] == found["pairs"] == found["users"] == plan.answer
    assert found["items"] is None and found["max_items_per_user"] == 1
    clipped = told("plan", *ZIPF, *setting, "--max-items-per-user", 3)
    assert clipped["max_items_per_user"] == 3 and clipped["answer"] == 12 * clipped["users"]


def test_least_eps_of_a_profile_needs_no_bound_where_sets_have_one_item(told):
    setting = ("--find", "eps", "--target", 0.3, "--delta", "1e-3", "--pairs", 9996)
    assert told("plan", "--zipf-s", 1.5, *setting)["max_items_per_user"] == 1


def test_every_bound_on_demand(told):
    """The largest set is beyond what is tried completely for certificates."""
    data = ("--zipf-s", 1.5, "--zipf-constant", 300, "--set-size", 60, "--pairs", 6000)
    setting = (*data, *PRIVACY, "--statistic", "quantile")
    some, every = told("plan", *setting), told("plan", *setting, "--all")
    assert (some["complete"], every["complete"]) == (False, True)
    assert len(some["curve"]) < len(every["curve"]) == 60
    assert any("of the 60 Δ0 were tried" in note for note in some["notes"])
    assert any("All Δ0 from 1 to 60" in note for note in every["notes"])


# ---- words and files


def test_words(wgm, csv):
    status, out, err = wgm("plan", csv, *PRIVACY)
    plan = best_contribution_bound(CLASSES, eps=0.5, delta=1e-3)
    assert status == 0
    assert "buys · 200 users · 10 items · 1,100 pairs · δ × users = 0.2" in out
    assert "Which Δ0 leaves least? · ε = 0.5 · δ = 0.001" in out
    assert f"With Δ0 = {plan.answer} WGM leaves {100 * plan.value:#.3g} % of the mass" in out
    assert "no private algorithm can leave less than" in out
    assert "spends privacy beyond the mechanism's ε" in " ".join(out.split())
    assert "wgm plan --zipf-s 1.5 --pairs 1e6" in " ".join(out.split())
    assert "All Δ0 from 1 to 10 were tried." in out
    assert f"wgm bounds {csv} --eps 0.5 --delta 0.001 --max-items-per-user {plan.answer}" in err
    assert wgm("plan", csv, *PRIVACY, "-q")[2] == ""


def test_words_for_every_question(wgm, csv):
    _, out, _ = wgm(
        "plan", csv, "--find", "eps", "--target", 0.3, "--delta", "1e-3",
        "--max-items-per-user", 4, "-q",
    )  # fmt: skip
    plan = least_eps(CLASSES, target=0.3, delta=1e-3, max_items_per_user=4)
    assert "Which ε leaves at most 30.0 %? · δ = 0.001 · Δ0 = 4" in out
    assert f"ε = {plan.other_answer:g} would do for it" in out and f"{plan.answer:g}" in out
    setting = ("--find", "pairs", "--target", 0.1, *PRIVACY, "--max-items-per-user", 4, "-q")
    _, out, err = wgm("plan", csv, *setting)
    plan = least_scale(CLASSES, target=0.1, eps=0.5, delta=1e-3, max_items_per_user=4)
    assert f"With {plan.answer} times as many users like these WGM leaves" in out
    # With so many users delta is too large, and somebody says so.
    assert plan.answer * 200 * 1e-3 < 1 or "so large a δ" in err
    _, out, _ = wgm("plan", csv, *setting[:3], 0.99, *setting[4:])
    assert "With the users there are WGM leaves" in out
    _, out, err = wgm("plan", "--zipf-s", 1.5, "--find", "pairs", "--target", 0.1, *PRIVACY, "-q")
    assert "How much data leave at most 10.0 %?" in out and "so large a δ" in err
    assert "nobody's data" in out


def test_a_target_that_no_bound_reaches_is_said(wgm, csv):
    plan = best_contribution_bound(CLASSES, eps=0.5, delta=1e-3)
    target = (plan.value + plan.outcome.lower_bound) / 2
    _, out, _ = wgm("plan", csv, *PRIVACY, "--target", target, "-q")
    assert f"No Δ0 tried reaches the target {target:g} at ε = 0.5." in out
    _, out, _ = wgm("plan", csv, *PRIVACY, "--target", 0.99, "-q")
    assert "reaches the target" not in out


def test_files(told, csv, tmp_path):
    found = told("plan", csv, *PRIVACY, "--out", tmp_path / "plan")
    names = ["plan.svg", "plan.pdf", "plan.csv", "plan.json", "manifest.json"]
    assert [Path(file).name for file in found["files"]] == names
    assert all(Path(file).stat().st_size > 100 for file in found["files"])
    written = json.loads((tmp_path / "plan" / "plan.json").read_text())
    assert written == {name: value for name, value in found.items() if name != "files"}
    numbers = pl.read_csv(tmp_path / "plan" / "plan.csv")
    curve = numbers.filter(pl.col("series") == "[P1]")
    assert curve["y"].to_list() == [row["split"] for row in found["curve"]]
    assert curve.filter(pl.col("answer"))["x"].to_list() == [found["answer"]]
    settings = json.loads((tmp_path / "plan" / "manifest.json").read_text())["settings"]
    assert settings["find"] == "max-items" and settings["paths"] == ["buys.csv"]
    setting = ("--find", "eps", "--target", 0.3, "--delta", "1e-3", "--pairs", 1e4)
    assert told("plan", "--zipf-s", 1.5, *setting, "--out", tmp_path / "eps")["files"]
    assert (tmp_path / "eps" / "plan.pdf").stat().st_size > 100


def test_nothing_heavy_is_imported(csv):
    """No JAX for an answer without simulation, no matplotlib without --out."""
    code = (
        "import sys\n"
        "from experiments.cli import main\n"
        "try:\n"
        f"    main(['plan', '--zipf-s', '1.5', '--pairs', '100', *{PRIVACY}])\n"
        "finally:\n"
        "    assert not {'jax', 'matplotlib'} & set(sys.modules), 'heavy'\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0 and "heavy" not in done.stderr, done.stderr


# ---- bad input

EPS = ("--find", "eps", "--delta", "1e-3")
PAIRS = ("--find", "pairs", *PRIVACY)
PROFILE = ("--zipf-s", "1.5", "--pairs", "1e4")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (PRIVACY, "DATA must name a file or a folder; or give --preset NAME, or --zipf-s S"),
        (("--delta", "1e-3", *PROFILE), "--eps: must be given with --find max-items"),
        (("--eps", "1", *PROFILE), "--delta must be given; it has no default"),
        ((*EPS, *PROFILE), "--target: must be given with --find eps"),
        (
            ("DATA", *EPS, "--target", "0.3"),
            "--max-items-per-user: must be given with --find eps",
        ),
        ((*PAIRS, "--zipf-s", "1.5"), "--target: must be given with --find pairs"),
        (
            (*PAIRS, "--target", "0.3", *ZIPF),
            "--max-items-per-user: must be given with --find pairs",
        ),
        (
            (*PAIRS, "--target", "0.3", *PROFILE),
            "--pairs: is what --find pairs looks for; leave one of them out",
        ),
        (
            (*PRIVACY, *PROFILE, "--max-items-per-user", "3"),
            "--max-items-per-user: is what --find max-items looks for; leave it out",
        ),
        (
            (*EPS, "--eps", "1", *PROFILE, "--target", "0.3"),
            "--eps: is what --find eps looks for; leave it out",
        ),
        (
            (*EPS, *PROFILE, "--target", "0.3", "--all"),
            "--all: says nothing to --find eps; leave it out",
        ),
        (("DATA", *PRIVACY, *PROFILE), "--zipf-s: stands for DATA; give one of the two"),
        ((*PRIVACY, "--pairs", "1e4"), "--pairs: needs --zipf-s"),
        (("DATA", *PRIVACY, "--set-size", "4"), "--set-size: needs --zipf-s"),
        (
            (*PRIVACY, "--zipf-s", "1.5"),
            "--pairs: must be given with --zipf-s and --find max-items",
        ),
        (
            (*PRIVACY, *PROFILE, "--find", "n"),
            "--find n: find must be one of max-items, eps, pairs",
        ),
        (
            (*PRIVACY, *PROFILE, "--statistic", "median"),
            "--statistic median: statistic must be mean or quantile",
        ),
        (
            (*PRIVACY, *PROFILE, "--method", "half"),
            "--method half: method must be one of split, full",
        ),
        ((*PRIVACY, *PROFILE, "--beta", "0"), "--beta 0: beta must be in (0, 1)"),
        ((*PRIVACY, *PROFILE, "--beta", "1"), "--beta 1: beta must be in (0, 1)"),
        ((*PRIVACY, *PROFILE, "--target", "0"), "--target 0: target must be in (0, 1)"),
        ((*PRIVACY, *PROFILE, "--target", "1.5"), "--target 1.5: target must be in (0, 1)"),
        (
            ("--eps", "-1", "--delta", "1e-3", *PROFILE),
            "--eps -1: eps must be a number in [0, 1e5]",
        ),
        (("--eps", "x", "--delta", "1e-3", *PROFILE), "--eps x: eps must be a number"),
        (("--eps", "1", "--delta", "2", *PROFILE), "--delta 2: delta must be in (0, 0.5]"),
        (
            (*PRIVACY, "--zipf-s", "1", "--pairs", "9"),
            "--zipf-s 1: zipf_s must be a finite number above 1",
        ),
        (
            (*PRIVACY, *PROFILE, "--zipf-constant", "0.5"),
            "--zipf-constant 0.5: zipf_constant must be a finite number of at least 1",
        ),
        (
            (*PRIVACY, "--zipf-s", "1.5", "--pairs", "1e16"),
            "--pairs 1e+16: pairs must be a whole number of at least 1 and at most "
            "1000000000000000",
        ),
        (
            (*PRIVACY, *PROFILE, "--set-size", "2.5"),
            "--set-size 2.5: set_size must be a whole number of at least 1",
        ),
        (
            (*PRIVACY, *PROFILE, "--set-size", "100"),
            "--set-size 100: set_size must be at most 5: the most frequent item makes up 0.172 of "
            "the pairs; a larger constant C makes it rarer",
        ),
        (
            (*EPS, *PROFILE, "--target", "1e-6"),
            "--target 1e-06: no private algorithm can reach this: the least possible is 0.0171 "
            "(at eps = 1000, delta = 0.001, N = 10,000)",
        ),
        (
            ("--eps", "1", "--delta", "1e-5", *PROFILE, "--target", "0.01"),
            "--target 0.01: no private algorithm can reach this: the least possible is 0.102 "
            "(at eps = 1, delta = 1e-05, N = 10,000)",
        ),
    ],
)
def test_bad_input_is_one_line(wgm, csv, tmp_path, arguments, message):
    arguments = [csv if argument == "DATA" else argument for argument in arguments]
    status, out, err = wgm("plan", *arguments, "--out", tmp_path / "none")
    assert (status, out, err) == (2, "", f"wgm: {message}\n")
    assert not (tmp_path / "none").exists()
