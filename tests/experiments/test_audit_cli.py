"""`wgm audit`: its JSON, its table, its exit status; and the privacy profile plot."""

import dataclasses
import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from experiments.cli import main
from experiments.plots import privacy_profile, save
from experiments.plots.privacy_profile import claimed_profile
from theory._check import InvalidInput
from wgm_jax import registry

BUDGET = ("--evaluations", "20", "--max-items-per-user", "2")


@pytest.fixture
def wgm(capsys):
    """Run `wgm audit`: status, stdout, stderr."""

    def run(*arguments: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as stopped:
            main(["audit", *(str(argument) for argument in arguments)])
        captured = capsys.readouterr()
        return int(stopped.value.code or 0), captured.out, captured.err

    return run


@pytest.fixture
def planted(monkeypatch):
    """A private mechanism that is none, and a specimen, as the only ones in the registry."""
    path = Path(__file__).with_name("audit_bugs.py")
    spec = importlib.util.spec_from_file_location("audit_bugs", path)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "audit_bugs", module)
    spec.loader.exec_module(module)
    known = {info.name: info for info in registry.mechanisms()}
    liar = dataclasses.replace(known["wgm"], name="liar", target="audit_bugs:HalfSigma")
    honest = dataclasses.replace(liar, name="specimen", private=False)
    monkeypatch.setattr(registry, "_BUILT_IN", (known["wgm"], honest, liar))


def test_contract_of_json(wgm):
    status, out, _ = wgm("wgm", *BUDGET, "--json")
    told = json.loads(out)
    assert status == 0 and out.count("\n") == 1
    assert told["mechanism"] == "wgm" and told["accused"] is False and told["as_expected"]
    assert told["claimed_delta"] == 1e-5 and 4.9e-6 < told["found_delta"] <= 5e-6
    assert told["found_delta"] <= told["found_delta_upper"]
    assert told["evaluations"] + told["skipped"] >= 20 and told["seed"] == 0
    assert told["pair"]["extra"] and told["pair"]["users"] >= 2
    assert told["event"]["probability"] > 0 and len(told["profile"]["eps"]) == 9


def test_a_private_mechanism_that_is_accused_fails(wgm, planted):
    status, out, _ = wgm("liar", "--evaluations", "60", "--quiet")
    assert status == 1 and "ACCUSED" in out and "Worst pair" in out
    status, out, _ = wgm("specimen", "--evaluations", "60", "--json")
    told = json.loads(out)
    assert status == 0 and told["accused"] and told["as_expected"] and not told["private"]


def test_all(wgm, planted, tmp_path):
    folder = tmp_path / "results"
    status, out, _ = wgm("all", "--evaluations", "45", "--json", "--out", folder)
    told = json.loads(out)
    assert status == 1 and not told["as_expected"]
    assert [a["mechanism"] for a in told["audits"]] == ["wgm", "specimen", "liar"]
    assert [a["accused"] for a in told["audits"]] == [False, True, True]
    rows = pl.read_csv(folder / "privacy_profile.csv")
    assert rows.height == 27 and rows["accountant"].drop_nulls().len() == 9
    exact = rows.filter(pl.col("mechanism") == "wgm")
    assert (exact["found"] <= exact["accountant"] * (1 + 1e-9)).all()
    status, out, _ = wgm("all", *BUDGET)  # too few pairs to accuse anybody
    assert status == 0 and "* claims no privacy" in out and out.count("not accused") == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nothing",), "NAME nothing: must be all, or one of wgm"),
        (("wgm", "--eps", "-1"), "--eps -1: eps must be a number in [0, 1e5]"),
        (("wgm", "--delta", "2"), "--delta 2: delta must be in (0, 0.5]"),
        (("wgm", "--seconds", "0"), "--seconds 0: seconds must be a finite number above 0"),
        (("wgm", "--evaluations", "0"), "--evaluations 0: evaluations must be a whole number"),
        (("wgm", "--max-items-per-user", "0"), "--max-items-per-user 0: max_items_per_user must"),
        (("weighted-laplace", "--eps", "0"), "--eps 0: eps must be above 0 for Laplace noise"),
    ],
)
def test_bad_input(wgm, arguments, message):
    status, out, err = wgm(*arguments)
    assert status == 2 and out == "" and err.startswith("wgm: ") and err.count("\n") == 1
    assert message in err


# ---- plot


def frame(**changes):
    eps = np.linspace(0, 3, 7)
    columns = {
        "mechanism": ["a"] * 7 + ["$b_%"] * 7,
        "private": [True] * 7 + [False] * 7,
        "eps": np.tile(eps, 2),
        "found": [*np.exp(-5.0 * eps), *np.full(6, 3e-3), 0.0],
        "claimed_eps": 1.0,
        "claimed_delta": 1e-5,
        "accused": [False] * 7 + [True] * 7,
    }
    return pl.DataFrame(columns | changes)


def test_plotted_arrays(tmp_path):
    figure, data = privacy_profile(frame())
    assert data["allowed"].to_numpy()[2] == 1e-5  # at the claimed eps
    lines = {line.get_label(): line for axes in figure.axes for line in axes.lines}
    np.testing.assert_array_equal(lines["a"].get_ydata(), data["found"][:7])
    assert 0 < lines["$b_%"].get_ydata()[-1] < 1e-5  # zero has a place of its own
    assert lines["a"].get_color() != lines["$b_%"].get_color()
    assert len(save(figure, tmp_path / "profile", data)) == 3
    with pytest.raises(InvalidInput, match="found"):
        privacy_profile(frame().drop("found"))


def test_claimed_profile_is_attained_and_allowed():
    """Randomised response that fails with probability delta: (eps, delta)-DP, exactly."""
    eps, delta = 1.5, 0.01
    truth = (1 - delta) / (1 + np.exp(-eps))
    p = np.array([delta, 0.0, truth, 1 - delta - truth])
    q = np.array([0.0, delta, 1 - delta - truth, truth])
    for at in (0.0, 0.4, 1.0, 1.5, 2.0, 30.0):
        exact = np.maximum(p - np.exp(at) * q, 0).sum()
        assert claimed_profile(at, eps=eps, delta=delta) == pytest.approx(exact, rel=1e-12)
    assert claimed_profile(0.0, eps=1e5, delta=0.1) == pytest.approx(1.0)
