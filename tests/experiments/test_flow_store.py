"""Stored calibrations of the Bernoulli flow, and what the commands say of them."""

import json

import numpy as np
import pytest

from experiments import flow_store
from experiments.cli.app import main
from theory import UserItems, calibrate
from theory.flow import calibrate_flow
from wgm_jax.set_union.flows import known_flow

ASKED = {"eps": 1.5, "delta": 1e-4, "max_items_per_user": 2}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
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
    read = flow_store.stored_flow(**ASKED)
    assert read is not made
    assert np.array_equal(probabilities(read), probabilities(made))
    assert read.certificate.delta == made.certificate.delta


@pytest.mark.parametrize("damage", ["time constant", "truncated", "other parameters", "empty"])
def test_a_damaged_or_foreign_file_is_never_used(damage):
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
    again = flow_store.stored_flow(**ASKED)
    assert again.eps == ASKED["eps"]
    assert np.array_equal(probabilities(again), probabilities(made))
    assert json.loads(file.read_text()) == made.to_dict()


def test_a_cache_that_cannot_be_written_is_done_without(cache):
    (cache / "wgm-jax").write_text("a file where a folder should be")
    assert flow_store.stored_flow(**ASKED).certificate.delta <= ASKED["delta"]


def test_ready_flows_are_those_that_the_mechanism_finds():
    grid = calibrate(eps=[1.5, 2.0], delta=1e-4, max_items_per_user=2)
    flows = flow_store.ready_flows(grid)
    assert [flow.eps for flow in flows] == [1.5, 2.0]
    assert all(known_flow(flow.eps, 1e-4, 2) is flow for flow in flows)


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
    status, out, _ = run(capsys, "plan", *given)
    assert status == 0
    assert json.loads(out)["bernoulli_flow"]["exact_mean"] < 1
