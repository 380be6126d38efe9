"""Stored calibrations of the Bernoulli flow, and what the commands say of them."""

import json
from pathlib import Path

import numpy as np
import pytest

from experiments import flow_store
from experiments.cli.app import main
from theory import UserItems, calibrate
from theory.flow import FlowCalibration, calibrate_flow
from wgm_jax.set_union import flows
from wgm_jax.set_union.flows import known_flow, known_two_rounds

ASKED = {"eps": 1.5, "delta": 1e-4, "max_items_per_user": 2}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(flows, "_KNOWN", {})
    monkeypatch.setattr(flows, "_TWO_ROUNDS", {})
    return tmp_path


def probabilities(flow):
    return flow.probabilities(np.array([0, 1, 2]), np.array([1, 2]), np.array([5, 9]))[0]


def test_a_calibration_is_made_once_and_read_bit_by_bit(monkeypatch):
    stages = []
    made = flow_store.stored_flow(**ASKED, progress=lambda stage, share: stages.append(share))
    assert stages and 0 < max(stages) <= 1
    assert flow_store.flow_file(*ASKED.values()).is_file()
    assert np.array_equal(
        probabilities(made), probabilities(calibrate_flow(**ASKED, accountant="bellman"))
    )
    monkeypatch.setattr("theory.flow.calibrate_flow", None)
    assert flow_store.stored_flow(**ASKED) is made  # this process has it
    monkeypatch.setattr(flows, "_KNOWN", {})
    read = flow_store.stored_flow(**ASKED)
    assert read is not made
    assert np.array_equal(probabilities(read), probabilities(made))
    assert read.certificate.delta == made.certificate.delta


@pytest.mark.parametrize("damage", ["time constant", "truncated", "other parameters", "empty"])
def test_a_damaged_or_foreign_file_is_never_used(damage, monkeypatch):
    made = flow_store.stored_flow(**ASKED)
    file = flow_store.flow_file(*ASKED.values())
    content = json.loads(file.read_text())
    if damage == "time constant":
        content["groups"][0]["time_constants"][0] *= 1.1
        file.write_text(json.dumps(content))
    elif damage == "truncated":
        file.write_text(file.read_text()[:-40])
    elif damage == "other parameters":
        other = flow_store.stored_flow(**{**ASKED, "eps": 2.0})
        file.write_text(json.dumps(other.to_dict()))
    else:
        file.write_bytes(b"")
    monkeypatch.setattr(flows, "_KNOWN", {})
    again = flow_store.stored_flow(**ASKED)
    assert again.eps == ASKED["eps"]
    assert np.array_equal(probabilities(again), probabilities(made))
    assert json.loads(file.read_text()) == made.to_dict()


def test_a_cache_that_cannot_be_written_is_done_without(cache):
    (cache / "wgm-jax").write_text("a file where a folder should be")
    assert flow_store.stored_flow(**ASKED).certificate.delta <= ASKED["delta"]


def test_ready_flows_are_those_that_the_mechanism_finds():
    grid = calibrate(eps=[1.5, 2.0], delta=1e-4, max_items_per_user=2)
    ready = flow_store.ready_flows(grid)
    assert [flow.eps for flow in ready] == [1.5, 2.0]
    assert all(known_flow(flow.eps, 1e-4, 2) is flow for flow in ready)


def test_ready_bounds_are_those_of_files_and_of_this_process(monkeypatch):
    assert flow_store.ready_bounds(1.5, 1e-4) == ()
    for bound in (3, 1):
        flow_store.stored_flow(**{**ASKED, "max_items_per_user": bound})
    monkeypatch.setattr(flows, "_KNOWN", {})
    known_flow(1.5, 1e-4, 2)  # has no file
    assert flow_store.ready_bounds(1.5, 1e-4) == (1, 2, 3)
    assert flow_store.ready_bounds(2.0, 1e-4) == ()


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as stop:
        main([*arguments])
    seen = capsys.readouterr()
    return stop.value.code, seen.out, seen.err


COMMAND = ("calibrate", "--mechanism", "bernoulli-flow", "--delta", "1e-4")


def test_calibrate_tells_certificate_and_holders(capsys):
    flow = flow_store.stored_flow(**ASKED)
    point = ("--eps", "1.5", "--max-items-per-user", "2")
    status, out, _ = run(capsys, *COMMAND, *point, "--json")
    told = json.loads(out)
    assert status == 0
    assert told["certified_delta"] == flow.certificate.delta <= 1e-4
    assert [row["kept_items"] for row in told["classes"]] == [1, 2]
    assert told["classes"][1]["holders_for_half"] == flow.holders(2)
    assert told["classes"][0]["proof"] == "exact"
    assert all(row["delta_adding"] <= 1e-4 for row in told["classes"])
    status, out, _ = run(capsys, *COMMAND, *point, "-q")
    assert status == 0
    assert "Certified δ" in out and f"{flow.holders(2):.1f}" in out


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--eps", "11", "--max-items-per-user", "2"), "--eps 11"),
        (("--eps", "1", "--max-items-per-user", "1001"), "--max-items-per-user 1001"),
    ],
)
def test_bad_input_is_one_line(capsys, given, said):
    status, out, err = run(capsys, *COMMAND, *given)
    assert (status, out) == (2, "")
    assert err.startswith(f"wgm: {said}") and err.count("\n") == 1


def test_bounds_and_plan_tell_what_a_flow_would_leave(capsys, tmp_path):
    data = tmp_path / "pairs.csv"
    rows = [f"u{user},i{item}" for user in range(60) for item in range(1 + user % 3)]
    data.write_text("user,item\n" + "\n".join(rows) + "\n")
    given = (
        str(data),
        "--eps",
        "1.5",
        "--delta",
        "1e-4",
        "--mechanism",
        "bernoulli-flow",
        "--json",
    )
    status, out, _ = run(capsys, "bounds", *given, "--max-items-per-user", "1,2")
    told = json.loads(out)["ladder"]
    assert status == 0
    from theory import Profile
    from theory.flow.exact import flow_miss_probabilities

    users = [set(range(1 + user % 3)) for user in range(60)]
    for entry, bound in zip(told, (1, 2), strict=True):
        profile = Profile.from_user_items(UserItems.from_sets(users), max_items_per_user=bound)
        flow = flow_store.stored_flow(**{**ASKED, "max_items_per_user": bound})
        expected = flow_miss_probabilities(profile, flow).mean_missing_mass
        assert entry["bernoulli_flow"]["exact_mean"] == pytest.approx(expected, rel=1e-12)
    means = {entry["max_items_per_user"]: entry["bernoulli_flow"]["exact_mean"] for entry in told}
    status, out, _ = run(capsys, "plan", *given, "--flow-max-items", "3")
    best = json.loads(out)["bernoulli_flow"]
    assert status == 0
    tried = {entry["max_items_per_user"]: entry["exact_mean"] for entry in best["tried"]}
    assert set(tried) == {1, 2, 3}  # two were at hand
    assert tried == pytest.approx(tried | means, rel=1e-12)
    assert best["exact_mean"] == min(tried.values()) == tried[best["max_items_per_user"]]
    assert best["exact_mean"] < best["certificate"] <= 1
    status, out, _ = run(capsys, "plan", *given[:-1], "-q", "--statistic", "quantile")
    assert status == 0 and "the best of 1, 2, 3" in " ".join(out.split())


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--mechanism", "bernoulli-flow", "--find", "pairs"), "is not there for --find pairs"),
        (("--flow-max-items", "3"), "--flow-max-items"),
        (("--mechanism", "bernoulli-flow", "--flow-max-items", "2000"), "1000"),
    ],
)
def test_what_a_plan_cannot_say_of_a_flow(capsys, tmp_path, more, said):
    data = tmp_path / "pairs.csv"
    data.write_text("user,item\n" + "".join(f"u{user},a\n" for user in range(60)))
    given = ("--eps", "1.5", "--delta", "1e-4", *more)
    if "pairs" in more:
        given += ("--target", "0.5", "--max-items-per-user", "1")
    status, out, err = run(capsys, "plan", str(data), *given, "-q")
    assert (status, out) == (2, "")
    assert said in err and err.count("\n") == 1


def test_calibrate_writes_certificate_holders_and_manifest(capsys, tmp_path):
    folder = tmp_path / "out"
    point = ("--eps", "1.5", "--max-items-per-user", "1,2", "--out", str(folder), "--json")
    status, out, _ = run(capsys, *COMMAND, *point)
    told = json.loads(out)
    assert status == 0
    assert sorted(folder.iterdir()) == sorted(map(Path, told["files"]))
    proved = FlowCalibration.from_dict(
        json.loads((folder / "certificate-eps-1.5-items-2.json").read_text())
    )
    flow = flow_store.stored_flow(**ASKED)
    assert np.array_equal(probabilities(proved), probabilities(flow))
    classes = (folder / "classes-eps-1.5-items-2.csv").read_text().splitlines()
    assert classes[0].startswith("eps,max_items_per_user,kept_items") and len(classes) == 3
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["command"] == "calibrate" and len(manifest["results"]) == 2
    assert run(capsys, "report", str(folder))[0] == 0
    page = (folder / "report.html").read_text()
    assert "holders-eps-1.5-items-2" in page
    refused = ("calibrate", "--eps", "1", "--delta", "1e-4", "--max-items-per-user", "2")
    status, _, err = run(capsys, *refused, "--out", str(folder))
    assert status == 2 and "--out" in err


# ---- two rounds


def test_two_rounds_are_made_once_and_read_bit_by_bit(monkeypatch, capsys):
    made = flow_store.stored_two_rounds(**ASKED)
    assert known_two_rounds(*ASKED.values()) is made is flow_store.stored_two_rounds(**ASKED)
    file = flow_store.two_rounds_file(*ASKED.values())
    monkeypatch.setattr(flows, "_TWO_ROUNDS", {})
    read = flow_store.stored_two_rounds(**ASKED)
    assert read is not made and read.to_dict() == made.to_dict() == json.loads(file.read_text())
    assert flow_store.ready_bounds(1.5, 1e-4) == (2,)  # of one round, which the second starts from
    # A damaged file is not believed, and made again.
    content = json.loads(file.read_text())
    content["cut"] = 0
    file.write_text(json.dumps(content))
    monkeypatch.setattr(flows, "_TWO_ROUNDS", {})
    assert flow_store.stored_two_rounds(**ASKED).to_dict() == made.to_dict()
    assert json.loads(file.read_text()) == made.to_dict()

    command = ("calibrate", "--mechanism", "bernoulli-flow-2", "--delta", "1e-4")
    point = ("--eps", "1.5", "--max-items-per-user", "2")
    status, out, _ = run(capsys, *command, *point, "--json")
    told = json.loads(out)
    assert status == 0 and told["file"] == file.name and told["cut"] == 1
    assert told["certified_delta"] == made.certified_delta <= 1e-4
    assert told["first_share_of_squared_eps"] == pytest.approx(0.07)
    assert told["first_share_of_delta"] == pytest.approx(0.1)
    one, two = told["classes"]
    assert one["holders_for_half_first"] is None
    assert two["holders_for_half_first"] == made.first.holders(2)
    assert two["holders_for_half_second"] == made.second.holders(2)
    status, out, _ = run(capsys, *command, *point, "-q")
    assert status == 0 and "Certified δ" in out and f"{made.first.holders(2):.1f}" in out


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--eps", "0.03"), "--eps 0.03: eps must be at least 0.0378"),
        (("--eps", "1", "--out", "there"), "--out there: out is for --mechanism bernoulli-flow"),
    ],
)
def test_what_cannot_be_calibrated_in_two_rounds(capsys, given, said):
    command = ("calibrate", "--mechanism", "bernoulli-flow-2", "--max-items-per-user", "2")
    status, out, err = run(capsys, *command, "--delta", "1e-4", *given)
    assert (status, out) == (2, "")
    assert said in err and err.count("\n") == 1
