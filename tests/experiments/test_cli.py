"""The command line: contracts of --json, one-line errors, exit statuses, nothing half-written."""

import gzip
import json
import math
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from theory import (
    Profile,
    UserItems,
    calibrate,
    exact_mean,
    exact_quantile,
    hinge_bound,
    instance_bound,
    instance_lower_bound,
    miss_probabilities,
    oracle_gap,
    zipf_bound,
)

PRIVACY = ("--eps", "1", "--delta", "1e-5", "--max-items-per-user")
GRID = """
[data]
kind = "zipf_profile"
s = 1.5
C = 8
N = 500
set_sizes = { law = "constant", mean = 1 }
[privacy]
eps = [1, 10]
delta = 1e-5
max_items_per_user = [1, "max"]
[run]
trials = 20
"""


# Item x has 200 - 20 x holders; every user holds 1 to 10 items.
SETS = [{item for item in range(10) if user < 200 - 20 * item} for user in range(200)]


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    rows = [f"u{user},i{item}" for user, items in enumerate(SETS) for item in sorted(items)]
    file = tmp_path / "buys.csv"
    file.write_text("user,item\n" + "\n".join(rows) + "\nu0,i0\n")
    return file


# ---- contracts


def test_calibrate(told):
    found = told("calibrate", *PRIVACY, "100")
    record = calibrate(eps=1.0, delta=1e-5, max_items_per_user=100)
    assert found["sigma"] == record.sigma
    assert found["threshold"] == record.threshold
    assert found["spent_delta"] == record.spent_delta
    assert (found["eps"], found["delta"], found["max_items_per_user"]) == (1.0, 1e-5, 100)
    assert (found["users_with_full_sets"], found["users_with_one_item"]) == (208, 21)
    full = told("calibrate", *PRIVACY, "100", "--method", "full")
    assert (
        full["threshold"]
        == calibrate(eps=1.0, delta=1e-5, max_items_per_user=100, method="full").threshold
    )


def test_calibrate_grid(told):
    found = told("calibrate", "--eps", "0.1,1", "--eps", "10", *PRIVACY[2:], "1,100")
    cells = [(row["max_items_per_user"], row["eps"]) for row in found["grid"]]
    assert cells == [(k, e) for k in (1, 100) for e in (0.1, 1.0, 10.0)]
    assert found["sigma"] == found["grid"][0]["sigma"]


def test_profile(told, csv):
    found = told("profile", csv)
    data = UserItems.from_sets(SETS)
    assert found["users"] == 200
    assert found["items"] == 10
    assert found["pairs"] == data.num_pairs == 1100
    assert found["max_set_size"] == 10
    assert found["median_set_size"] == data.median_set_size
    assert found["top_count"] == 200
    assert found["duplicates_removed"] == 1
    assert found["top_items"][0] == {"item": "i0", "users": 200}
    assert found["zipf"] == found["zipf_certificates"][1]
    for row in found["zipf_certificates"]:
        assert row["tail"] <= row["tail_bound"]


def test_profile_writes_plots_with_their_numbers(told, csv, tmp_path):
    import polars as pl

    found = told("profile", csv, "--out", tmp_path / "out")
    assert all(Path(file).stat().st_size > 0 for file in found["files"])
    shares = pl.read_csv(tmp_path / "out" / "rank_frequency.csv")
    assert shares["frequency"].to_list() == [200 - 20 * i for i in range(10)]
    for index in range(3):
        envelope = shares[f"envelope_{index}"] * (1 + 1e-12)
        assert (shares["frequency"] <= envelope).all()
    sizes = pl.read_csv(tmp_path / "out" / "set_sizes.csv")
    assert sizes["size"].to_list() == list(range(1, 11))
    assert sizes["users"].to_list() == pytest.approx([i / 10 for i in range(1, 11)])


def test_regime_map(told, tmp_path):
    import polars as pl

    found = told("calibrate", *PRIVACY, "100", "--regime-map", tmp_path / "maps")
    assert len(found["plots"]) == 3
    points = pl.read_csv(tmp_path / "maps" / "regime_map_100.csv")
    near = (pl.col("delta") - 1e-5).abs() < 1e-12, (pl.col("eps") - 1.0).abs() < 1e-9
    at = points.row(by_predicate=near[0] & near[1], named=True)
    record = calibrate(eps=1.0, delta=1e-5, max_items_per_user=100)
    ratio = record.sigma / math.sqrt(math.log(1e5))
    assert (at["value"], at["threshold"]) == pytest.approx((ratio, record.threshold), rel=1e-9)


def test_bounds(told, csv):
    found = told("bounds", csv, *PRIVACY, "max", "--beta", "0.1")
    data = UserItems.from_sets(SETS)
    noise = calibrate(eps=1.0, delta=1e-5, max_items_per_user=10)
    profile = Profile.from_user_items(data, max_items_per_user=10)
    assert found["lower_bound"] == instance_lower_bound(profile, eps=1.0, delta=1e-5).value
    miss = miss_probabilities(profile, noise)
    assert found["exact_mean"] == pytest.approx(miss.mean_missing_mass, rel=1e-12)
    assert found["quantile"] == exact_quantile(miss, 0.9)
    assert found["quantile_method"] == "exact"
    assert found["certificate"] == found["certificate_hinge"] == hinge_bound(miss, 0.1).value
    assert found["quantile"] <= found["certificate_hinge"] <= found["certificate_chernoff"]
    assert found["oracle_gap"] == pytest.approx(oracle_gap(profile, noise), rel=1e-12)
    full = calibrate(eps=1.0, delta=1e-5, max_items_per_user=10, method="full")
    other = found["other_method"]["exact_mean"]
    assert other == pytest.approx(exact_mean(profile, full), rel=1e-12)
    assert other < found["exact_mean"]
    assert found["upper_instance"] == instance_bound(profile, noise, 0.1).value
    assert found["tau"] == instance_bound(profile, noise, 0.1).details["tau"]
    assert found["upper_zipf"] == zipf_bound(profile, noise, 0.1).value
    assert found["upper_instance_star"] <= found["upper_instance"]
    assert found["tau_star"] <= found["tau"]
    assert found["max_items_per_user"] == 10 and found["max_items_is_max"]
    assert found["lower_bound"] <= found["exact_mean"]
    assert found["delta_times_users"] == pytest.approx(200e-5)
    assert "ladder" not in found


def test_bounds_at_several_contribution_bounds(told, csv):
    found = told("bounds", csv, *PRIVACY, "2,max", "--trials", "50")
    clipped, whole = found["ladder"]
    assert (clipped["max_items_per_user"], whole["max_items_per_user"]) == (2, 10)
    # Delta0 = 2 clips users: the mean is exact all the same, the quantile is not.
    assert (clipped["quantile_method"], whole["quantile_method"]) == ("simulated", "exact")
    assert (clipped["trials"], whole["trials"]) == (50, 0)
    for entry in (clipped, whole):
        assert entry["lower_bound"] <= entry["exact_mean"] <= entry["certificate"]
    assert told("bounds", csv, *PRIVACY, "2", "--trials", "0")["quantile"] is None


def test_simulate(told, csv, tmp_path):
    out = tmp_path / "results"
    arguments = ("simulate", csv, *PRIVACY, "max", "--trials", "400", "--seed", "3")
    found = told(*arguments, "--out", out)
    mass = found["missing_mass"]
    assert mass["q05"] <= mass["q50"] <= mass["q95"]
    # 95 % interval at a fixed seed; the exact mean is known as nobody is clipped.
    assert mass["mean_low"] <= found["exact_mean"] <= mass["mean_high"]
    assert found["seconds"] > 0 and found["sampler"] and found["notes"] == []
    assert (found["trials"], found["seed"], found["mechanism"]) == (400, 3, "wgm")
    assert 0 <= found["num_released"]["q05"] <= 10
    assert told(*arguments)["missing_mass"] == mass  # a seed fixes the numbers

    import polars as pl

    trials = pl.read_parquet(out / "trials.parquet")
    assert trials.height == 400
    assert trials["missing_mass"].mean() == pytest.approx(mass["mean"], rel=1e-12)
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["seeds"] == 3 and manifest["versions"]["jax"]
    assert str(tmp_path) not in json.dumps(manifest)  # results travel
    drawn = [f"histogram.{suffix}" for suffix in ("csv", "pdf", "svg")]
    names = sorted(path.name for path in out.iterdir())
    assert names == [*drawn, "manifest.json", "trials.parquet"]


def test_simulate_several_eps(told, csv):
    found = told("simulate", csv, "--eps", "1,10", *PRIVACY[2:], "1", "--trials", "1e2")
    assert [row["eps"] for row in found["grid"]] == [1.0, 10.0]
    low, high = (row["missing_mass"]["mean"] for row in found["grid"])
    assert low > high
    assert found["missing_mass"]["mean"] == low


def test_claims_and_mechanisms(told):
    found = told("claims")["claims"]
    assert {"name", "title", "kind", "statement", "explicit", "expected", "twin"} <= set(found[0])
    assert "theorem-3.2" in [claim["name"] for claim in found]
    assert len({claim["name"] for claim in found}) == len(found)
    only = told("claims", "theorem-3.2-full")["claims"]
    assert [claim["name"] for claim in only] == ["theorem-3.2-full"]
    first = told("mechanisms")["mechanisms"][0]
    assert (first["name"], first["task"], first["private"]) == ("wgm", "set-union", True)


def test_sweep_resumes_and_reports_failures(wgm, told, tmp_path, monkeypatch):
    grid, out = tmp_path / "grid.toml", tmp_path / "results"
    grid.write_text(GRID)
    found = told("sweep", grid, "--out", out, "--keep-trials")
    assert (found["cells"], found["computed"], found["failed"], found["ok"]) == (4, 4, 0, True)
    table = Path(found["table"]).read_bytes()
    again = told("sweep", grid, "--out", out, "--keep-trials")
    assert (again["computed"], again["skipped"]) == (0, 4)
    assert Path(again["table"]).read_bytes() == table

    grid.write_text(GRID.replace("N = 500", "N = 600"))
    status, _, err = wgm("sweep", grid, "--out", out)
    assert status == 2 and "--force" in err and err.count("\n") == 1

    def fail(*args, **kwargs):
        raise RuntimeError("out of luck")

    monkeypatch.setattr("experiments.cells.run_case", fail)
    status, out_text, err = wgm("sweep", grid, "--out", out, "--force", "--json")
    assert status == 1
    failures = json.loads(out_text)["failures"]
    assert len(failures) == 4 and "out of luck" in failures[0]["error"]
    status, out_text, err = wgm("sweep", grid, "--out", out, "--force")
    assert status == 1 and err.count("out of luck") == 4


# ---- what a reader sees


def test_bounds_end_with_a_sentence(wgm, csv):
    status, out, err = wgm("bounds", csv, *PRIVACY, "max", "--quiet")
    assert (status, err) == (0, "")
    last = out.rstrip("\n").rsplit("\n", 1)[1]
    assert last.startswith("With Δ0 = 10 WGM leaves ")
    assert "no private mechanism can leave less than" in last
    assert "Full-δ calibration would leave" in last


@pytest.mark.parametrize("command", ["bounds", "simulate"])
def test_everything_censored_is_said(wgm, tmp_path, command):
    file = tmp_path / "few.csv"
    file.write_text("user,item\na,x\nb,x\nb,y\n")
    more = ("--trials", "10") if command == "simulate" else ()
    _, out, _ = wgm(command, file, *PRIVACY, "100", *more)
    assert "Nothing can be released but by chance: the largest weight is 1.7" in out
    assert "the threshold 20.8 (Δ0 = 100)" in out
    assert "208 users with full sets, 21 with one item" in out


def test_a_large_delta_is_warned_about(wgm, csv):
    _, out, err = wgm("bounds", csv, "--eps", "1", "--delta", "0.01", *PRIVACY[4:], "1", "-q")
    assert "δ × users = 2" in out
    assert err.startswith("wgm: warning: δ × users = 2 ≥ 1") and err.count("\n") == 1
    _, _, err = wgm("bounds", csv, *PRIVACY, "1", "--quiet")
    assert err == ""


def test_labels_are_never_markup_or_control_characters(wgm, tmp_path):
    file = tmp_path / "odd.csv"
    label = "[red]\x1b[31m" + "x" * 200
    file.write_text(f"user,item\na,{label}\nb,{label}\n")
    _, out, _ = wgm("profile", file)
    assert "[red]\\x1b[31mxx" in out
    assert "\x1b" not in out


@pytest.mark.parametrize("width", ["60", "80"])
def test_tables_fit_the_console(wgm, csv, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", width)
    _, out, _ = wgm("simulate", csv, "--eps", "0.1,1", *PRIVACY[2:], "max", "--trials", "50")
    table = out[out.index("\nε ") + 1 : out.index("\nleast")].splitlines()
    assert all(len(row) <= int(width) for row in table)
    assert not re.search(r"\d…", out)  # no number is cut
    if width == "80":
        assert len(table) == 1 + 2 * 3
        assert "…" not in out


def test_shares_below_one_never_read_as_all():
    from experiments.cli._output import percent

    shares = (0.0, 1.0, 0.99999, 0.9951, 0.52, 1.2e-7, None)
    shown = ["0 %", "100 %", "99.99 %", "99.51 %", "52.0 %", "1.20e-05 %", "–"]
    assert [percent(share) for share in shares] == shown


# ---- bad input: one line, status 2


def _refused(result: tuple[int, str, str]) -> str:
    status, out, err = result
    assert status == 2
    assert out == ""
    assert err.startswith("wgm: ") and err.endswith("\n") and err.count("\n") == 1
    assert "Traceback" not in err
    return err[len("wgm: ") : -1]


_NUMBER_OR_MAX = 'max_items_per_user must be a whole number from 1 to 1e9, or "max"'


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--eps", "-1", "eps must be a number in [0, 1e5]"),
        ("--eps", "nan", "eps must be a number in [0, 1e5]"),
        ("--eps", "inf", "eps must be a number in [0, 1e5]"),
        ("--eps", "one", "eps must be a number, or numbers with commas"),
        ("--delta", "0", "delta must be in (0, 0.5]"),
        ("--delta", "1.5", "delta must be in (0, 0.5]"),
        ("--delta", "nan", "delta must be in (0, 0.5]"),
        ("--delta", "tiny", "delta must be a number"),
        ("--beta", "0", "beta must be in (0, 1)"),
        ("--beta", "1", "beta must be in (0, 1)"),
        ("--max-items-per-user", "0", _NUMBER_OR_MAX),
        ("--max-items-per-user", "2.5", _NUMBER_OR_MAX),
        ("--max-items-per-user", "many", _NUMBER_OR_MAX),
        ("--method", "half", "method must be one of split, full"),
    ],
)
def test_values_out_of_range(wgm, csv, option, value, message):
    given = {"--eps": "1", "--delta": "1e-5", "--max-items-per-user": "10", option: value}
    arguments = [part for pair in given.items() for part in pair]
    assert _refused(wgm("bounds", csv, *arguments)) == f"{option} {value}: {message}"


@pytest.mark.parametrize("value", ["0", "-1", "2.5", "nan"])
def test_number_of_trials(wgm, csv, value):
    message = _refused(wgm("simulate", csv, *PRIVACY, "1", "--trials", value))
    assert message.startswith(f"--trials {value}: trials must be a whole number of at least 1")


@pytest.mark.parametrize("missing", ["--eps", "--delta", "--max-items-per-user"])
@pytest.mark.parametrize("command", ["calibrate", "bounds", "simulate"])
def test_privacy_parameters_have_no_default(wgm, command, missing):
    given = {"--eps": "1", "--delta": "1e-5", "--max-items-per-user": "10"}
    del given[missing]
    arguments = [part for pair in given.items() for part in pair]
    assert _refused(wgm(command, *arguments)) == f"{missing} must be given; it has no default"


def _damaged(folder: Path) -> dict[str, Path]:
    files = {name: folder / name for name in ("binary.csv", "cut.csv.gz", "columns.csv", "no.csv")}
    files["binary.csv"].write_bytes(bytes(range(256)) * 20)
    files["cut.csv.gz"].write_bytes(gzip.compress(b"user,item\n" + b"a,b\n" * 999)[:-9])
    files["columns.csv"].write_text("customer,sku\na,b\n")
    return files


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("binary.csv", "a binary file, not text"),
        ("cut.csv.gz", "truncated gzip file"),
        ("columns.csv", "no column 'user' (columns: customer, sku); use --user-column"),
        ("no.csv", "no such file or folder"),
    ],
)
@pytest.mark.parametrize("command", ["profile", "simulate"])
def test_files_that_are_no_data(wgm, tmp_path, command, name, message):
    out = tmp_path / "results"
    more = (*PRIVACY, "1") if command == "simulate" else ()
    told = _refused(wgm(command, _damaged(tmp_path)[name], *more, "--out", out))
    assert f"{name}: {message}" in told
    assert not out.exists()


def test_unwritable_output_is_said_before_any_work(wgm, csv, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("kept")
    monkeypatch.chdir(tmp_path)  # a long path would be cut in the message
    monkeypatch.setattr("wgm_jax.engine.simulate", None)  # calling it would fail
    for out in ("file", "file/inside"):
        message = _refused(wgm("simulate", csv, *PRIVACY, "1", "--out", out))
        assert message.startswith(f"--out {out}: out must be a folder that can be written to")
        _refused(wgm("profile", csv, "--out", out))
    assert (tmp_path / "file").read_text() == "kept"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("profile", "--preset", "nowhere"), "--preset nowhere: preset must be one of steam, "),
        (("profile",), "DATA must name a file, a folder, or a data set by --preset NAME"),
        (("claims", "theorem-9"), "--claim theorem-9: claim must be one of theorem-3.2, "),
        (("profle",), "No such command 'profle'. Did you mean 'profile'?"),
        (("profile", "x", "--colour"), "No such option: --colour"),
        (("sweep", "none.toml"), "none.toml: must be a file that can be read"),
    ],
)
def test_unknown_names(wgm, arguments, message):
    assert _refused(wgm(*arguments)).startswith(message)


def test_unknown_mechanism(wgm, csv):
    message = _refused(wgm("simulate", csv, *PRIVACY, "1", "--mechanism", "magic"))
    assert message.startswith("--mechanism magic: mechanism must be one of wgm")


def test_bad_grids_name_file_key_and_range(wgm, tmp_path):
    grid = tmp_path / "grid.toml"
    for line, bad, message in (
        ("eps = [1, 10]", "eps = -1", "privacy.eps = -1: must be a number in [0, 1e5]"),
        ("trials = 20", "trails = 20", "run.trails = 20: is not a key of [run]"),
        ("[run]", "[run", "must be TOML in UTF-8"),
    ):
        grid.write_text(GRID.replace(line, bad))
        told = _refused(wgm("sweep", grid, "--out", tmp_path / "results"))
        assert f"grid.toml: {message}" in told
    assert not (tmp_path / "results").exists()


# ---- lightness


def _fresh(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ("calibrate", *PRIVACY, "10"),
        ("profile", "DATA"),
        ("bounds", "DATA", *PRIVACY, "2,max"),
        ("claims",),
        ("mechanisms",),
    ],
    ids=lambda arguments: arguments[0],
)
def test_light_commands_do_not_import_jax(csv, arguments):
    typed = [str(csv) if part == "DATA" else part for part in arguments]
    out = _fresh(
        "import sys\n"
        "from experiments.cli import main\n"
        "try:\n"
        f"    main({typed!r})\n"
        "except SystemExit as stopped:\n"
        "    print('status', stopped.code, 'jax' in sys.modules)\n"
    )
    assert out.splitlines()[-1] == "status 0 False"


def test_help_is_light_and_complete():
    start = time.perf_counter()
    out = _fresh(
        "import sys\n"
        "from experiments.cli import main\n"
        "try:\n"
        "    main(['--help'])\n"
        "except SystemExit as stopped:\n"
        "    heavy = ('jax', 'polars', 'scipy', 'matplotlib')\n"
        "    print('status', stopped.code, [name for name in heavy if name in sys.modules])\n"
    )
    # The imports are the cause of slowness, and they do not depend on the machine's load.
    assert out.splitlines()[-1] == "status 0 []"
    assert time.perf_counter() - start < 10
    for command in ("verify", "simulate", "sweep", "profile", "bounds", "calibrate", "claims"):
        assert re.search(rf"\b{command}\b", out)


@pytest.mark.parametrize(
    "command", ["simulate", "sweep", "profile", "bounds", "calibrate", "claims", "mechanisms"]
)
def test_every_help_has_an_example(wgm, command):
    status, out, _ = wgm(command, "--help")
    assert status == 0
    assert f"Example: wgm {command}" in " ".join(out.split())


def test_a_second_run_finds_the_compiled_programs(csv, tmp_path):
    command = [sys.executable, "-c", "from experiments.cli import main; main()", "simulate"]
    command += [str(csv), *PRIVACY, "2", "--trials", "20", "--json"]
    base = {k: v for k, v in os.environ.items() if not k.startswith("JAX_")}
    environment = {**base, "XDG_CACHE_HOME": str(tmp_path)}
    seen = []
    for _ in range(2):
        done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
        assert done.stderr == ""
        files = tmp_path.joinpath("wgm-jax", "programs").iterdir()
        seen.append(sorted(path.name for path in files if not path.name.endswith("-atime")))
    assert seen[0] == seen[1] and seen[0]


def test_verify_without_trials(wgm, told, csv, tmp_path):
    arguments = ("verify", csv, "--exact", "--max-items-per-user", "2,max")
    arguments += ("--claim", "theorem-3.3", "--claim", "theorem-3.5", "--out", tmp_path / "out")
    status, out, err = wgm(*arguments)
    assert status == 0, err
    assert "no trials: exact methods" in out
    assert "as expected" in out.rsplit("\n", 3)[1] + out.rsplit("\n", 4)[1]
    found = told(*arguments)
    assert {verdict["method"] for verdict in found["verdicts"]} == {"exact"}
    assert all(cell["mm_q50"] is None and cell["exact_mean"] > 0 for cell in found["cells"])
    assert found["sampler"] == "exact"
    status, _, err = wgm(*arguments, "--max-trials", "1000")
    assert status == 2 and "--max-trials 1000: max_trials must be" in err
