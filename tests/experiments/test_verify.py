"""`verify` on a small data set: no claim of the paper fails, and everything is written down."""

import json
from functools import partial

import numpy as np
import polars as pl
import pytest

import experiments.verify as module
from experiments.cells import Case, rows, run_case
from experiments.claims import Claim, Settings, claims, select
from experiments.statistics.means import mean_interval
from experiments.verdict import ExactEvidence, QuantileEvidence
from experiments.verify import verify, write
from theory import InvalidInput, hard_zipf_profile
from wgm_jax.synthetic import SetSizes, zipf_draws

SETTINGS = Settings(eps=(0.1, 1.0, 10.0), num_trials=200)


@pytest.fixture(scope="module")
def case():
    sizes = SetSizes("geometric", mean=3, cap=30)
    data = zipf_draws(s=1.5, num_pairs=3000, set_sizes=sizes, seed=0)
    return Case("zipf", data, {"kind": "zipf_draws", "s": 1.5, "N": 3000})


@pytest.fixture(scope="module")
def bounds(case):
    """Delta0 = 2, and the largest set asked for twice: by its number and as "max"."""
    return (2, case.data.max_set_size, "max")


@pytest.fixture(scope="module")
def labels():
    return []


@pytest.fixture(scope="module")
def result(case, bounds, labels):
    observing = [claim for claim in claims() if claim.observe is not None]
    return verify(
        [case],
        observing,
        SETTINGS,
        max_items_per_user=bounds,
        progress=lambda done, total, label: labels.append((done, total, label)),
    )


def own(name, *evidence):
    """A claim about nothing but this evidence."""
    cells = [({"index": index}, each) for index, each in enumerate(evidence)]
    texts = dict.fromkeys(("title", "kind", "statement", "explicit"), name)
    return Claim(name=name, family=lambda settings: cells, **texts)


def test_no_claim_is_refuted(result):
    refuted = [v for o in result.outcomes for v in o.verdicts if v.verdict == "refuted"]
    assert refuted == []
    assert result.status in (0, 3)
    assert all(outcome.success is not False for outcome in result.outcomes)
    confirmed = {o.claim.name for o in result.outcomes if o.count("confirmed") + o.count("proved")}
    assert {"lemma-3.1", "lemma-c.4", "theorem-3.3-instance", "theorem-3.5"} <= confirmed


def test_there_is_one_row_per_bound_and_eps(result, case):
    seen = result.cells.select("max_items_per_user", "eps", "max_items_is_max").rows()
    largest = case.data.max_set_size
    assert seen == [(b, eps, b == largest) for b in (2, largest) for eps in SETTINGS.eps]


def test_max_is_not_simulated_a_second_time(labels, result):
    assert [label for _, _, label in labels] == ["zipf, Δ0 = 2", "zipf, Δ0 = max", ""]
    assert [done for done, _, _ in labels] == [0, 1, 2]


def test_exceedances_are_nested_in_beta_and_their_intervals_hold_the_fraction(result):
    frame = result.exceedances
    assert frame.height == 6 * 3 * len(module.BETAS)
    assert (frame["low"] <= frame["fraction"]).all()
    assert (frame["fraction"] <= frame["high"]).all()
    for _, group in frame.group_by("bound", "max_items_per_user", "eps"):
        values = group.sort("beta")["value"].to_numpy()
        assert np.all(np.diff(values) <= 0)


@pytest.mark.parametrize("bound", [2, "max"])
def test_the_exact_mean_lies_in_the_interval_of_the_trials(case, bound):
    run = run_case(
        case, max_items_per_user=bound, eps=SETTINGS.eps, delta=SETTINGS.delta, num_trials=200
    )
    for index, row in enumerate(rows(run)):
        mass = np.ascontiguousarray(run.trials.missing_mass[:, index])
        low, high = mean_interval(mass, alpha=1e-7)
        assert low <= row["exact_mean"] <= high
        assert row["oracle_gap"] == row["exact_mean"] / row["lower_instance"] > 1
        assert (row["exact_quantile"] is None) == (bound == 2)


def test_trials_agree_with_certificates_and_exact_quantiles(case):
    for bound in (2, "max"):
        run = run_case(
            case, max_items_per_user=bound, eps=(0.1, 1.0), delta=1e-5, num_trials=2000, beta=0.05
        )
        for index, interval in enumerate(run.intervals["missing_mass"]):
            low, high, source = interval
            mass = run.trials.missing_mass[:, index]
            # True exceedance rates are at most 5 % above `high`, more than 5 % below `low`:
            # 161 and 47 of 2,000 have probability below 1e-7 by the exact binomial law.
            assert np.count_nonzero(mass > high * (1 + 1e-12)) < 161
            assert np.count_nonzero(mass >= low * (1 - 1e-12)) > 47
            assert (low == high) == (source == "[E3] exact law") == (bound == "max")


def test_without_trials_everything_is_decided_by_exact_methods(case, tmp_path, monkeypatch):
    fewer = partial(module.decades, exponents=(1.5,), pairs=(10**4, 10**12))
    monkeypatch.setattr(module, "decades", fewer)
    settings = Settings(eps=(0.1, 1.0), num_trials=0)
    beyond = Case("W*", hard_zipf_profile(1.0, 1.5, 10**12), {"kind": "hard_zipf", "s": 1.5})
    found = verify([case, beyond], claims(), settings, max_items_per_user=(1, "max"))
    assert found.sampler == "exact"
    by_name = {outcome.claim.name: outcome for outcome in found.outcomes}
    silent = {name for name, outcome in by_name.items() if outcome.needs_trials}
    assert silent == set()
    decided = [o for name, o in by_name.items() if name not in silent]
    assert all(outcome.success is not False for outcome in decided)
    assert by_name["theorem-3.3-instance-star"].success is True
    methods = {v.method for outcome in found.outcomes for v in outcome.verdicts}
    assert methods == {"exact"}
    assert found.cells["mm_q50"].null_count() == found.cells.height
    assert found.cells["exact_mean"].null_count() == 0
    names = write(found, tmp_path, settings={"seed": 0})
    assert {"decades-ratio.svg", "missing-mass-num_pairs.svg"} <= set(names)


def test_data_without_users_cannot_be_simulated():
    beyond = Case("W*", hard_zipf_profile(1.0, 1.5, 10**6))
    with pytest.raises(InvalidInput, match="num_trials = 10: must be 0: W. has no users"):
        run_case(beyond, max_items_per_user=1, eps=(1.0,), delta=1e-5, num_trials=10)


def test_the_ladder_is_in_order(result):
    for row in result.cells.iter_rows(named=True):
        mean = row["mm_mean"] if row["exact_mean"] is None else row["exact_mean"]
        assert 0 < row["lower_instance"] <= mean
        assert row["mm_q05"] <= row["mm_q50"] <= row["mm_q95"] == row["mm_quantile"]
        # The median: 100 of 200 trials above a 95 % bound has probability below 1e-60.
        assert row["mm_q50"] <= row["upper_instance_star"]
        assert row["upper_instance_star"] <= row["upper_instance"] <= row["upper_zipf"]
        assert row["max_mm_q50"] <= row["upper_max"]
        assert row["tau_star"] <= row["tau"]


def test_a_claim_that_says_nothing_neither_succeeds_nor_fails(case):
    vacuous = own("empty", QuantileEvidence(np.full(100, 0.5), 1.0, 0.05))
    settings = Settings(eps=(1.0,), num_trials=10)
    chosen = (*select(["lemma-3.1"]), vacuous)
    found = verify([case], chosen, settings, max_items_per_user=(1,))
    proved, empty = found.outcomes
    assert (proved.success, empty.success) == (True, None)
    assert empty.count("vacuous") == 1
    assert empty.slack is None
    assert found.status == 0


def test_the_status_is_3_where_undecided_and_1_where_anything_failed():
    undecided = own("few", QuantileEvidence(np.full(5, 0.1), 0.5, 0.05))
    failed = own("false", ExactEvidence(0.5, 0.4, "upper"))
    assert verify([], [undecided], SETTINGS).status == 3
    assert verify([], [undecided, failed], SETTINGS).status == 1


def test_everything_written_reads_back(result, tmp_path):
    names = write(result, tmp_path, settings={"seed": SETTINGS.seed})
    assert names[-1] == "manifest.json"
    assert all((tmp_path / name).stat().st_size > 0 for name in names)
    assert pl.read_parquet(tmp_path / "cells.parquet").equals(result.cells)
    assert pl.read_parquet(tmp_path / "exceedances.parquet").equals(result.exceedances)
    verdicts = pl.read_parquet(tmp_path / "verdicts.parquet")
    assert verdicts.height == sum(len(outcome.verdicts) for outcome in result.outcomes)
    assert json.loads(verdicts["cell"][0])["dataset"] == "zipf"
    manifest = json.loads((tmp_path / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["files"] == names[:-1]


def test_a_folder_that_is_not_complete_has_no_manifest(result, tmp_path, monkeypatch):
    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(module, "_plots", fail)
    with pytest.raises(OSError, match="disk full"):
        write(result, tmp_path, settings={"seed": SETTINGS.seed})
    assert (tmp_path / "cells.parquet").is_file()
    assert not (tmp_path / "manifest.json").exists()
