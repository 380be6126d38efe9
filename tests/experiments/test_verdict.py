"""Verdicts: error rates of the engine itself, by enumeration through `judge`."""

import json
import math
from itertools import product

import numpy as np
import pytest
from scipy import stats

from experiments.statistics.slopes import SlopeFit
from experiments.verdict import (
    ExactEvidence,
    MeanEvidence,
    QuantileEvidence,
    SlopeEvidence,
    claim_success,
    judge,
)
from theory._check import InvalidInput


def counted(exceedances, trials, *, beta=0.1):
    """A cell in which exactly this many trials exceed the bound."""
    samples = np.repeat([0.9, 0.1], [exceedances, trials - exceedances])
    return QuantileEvidence(samples, bound=0.5, beta=beta)


def decisions(cells, **settings):
    settings = {"level": 0.01, **settings}
    return [v.verdict for v in judge("claim", [({}, cell) for cell in cells], **settings)]


@pytest.mark.parametrize(("beta", "trials"), [(0.1, 150), (0.5, 40)])
def test_one_look_errs_with_probability_at_most_the_level_at_every_rate(beta, trials):
    level = 0.01
    k = np.arange(trials + 1)
    seen = np.array([decisions([counted(i, trials, beta=beta)])[0] for i in k])
    assert {"confirmed", "refuted", "undecided"} == set(seen)
    for rate in np.linspace(0.0, 1.0, 101):
        wrong = "refuted" if rate <= beta else "confirmed"
        assert stats.binom.pmf(k, trials, rate) @ (seen == wrong) <= level


@pytest.mark.parametrize("kind", ["quantile", "mean"])
def test_many_looks_err_with_probability_at_most_the_level_at_every_rate(kind):
    """All 4,096 orders of 12 trials, each judged at its best prefix."""
    level, edge, trials = 0.25, 0.3, 12
    sequences = np.array(list(product([0.0, 1.0], repeat=trials)))
    if kind == "quantile":
        cells = [QuantileEvidence(x, bound=0.5, beta=edge) for x in sequences]
    else:
        cells = [MeanEvidence(x, bound=edge, side="upper") for x in sequences]
    seen = np.array([decisions([cell], level=level, looks="many")[0] for cell in cells])
    assert {"confirmed", "refuted"} <= set(seen)
    ones = sequences.sum(axis=1)
    for rate in np.append(np.linspace(0.0, 1.0, 101), np.nextafter(edge, 1)):
        weight = rate**ones * (1 - rate) ** (trials - ones)
        wrong = "refuted" if rate <= edge else "confirmed"
        assert weight @ (seen == wrong) <= level


def test_family_of_two_cells_errs_at_most_at_the_level():
    """Both cells at the edge of their null, then one true and one false: all (K1, K2)."""
    trials, level = 40, 0.05
    k = range(trials + 1)
    beta = 0.1
    seen = {
        pair: decisions([counted(i, trials) for i in pair], level=level) for pair in product(k, k)
    }
    above = np.nextafter(beta, 1)
    for rates in [(beta, beta), (above, above), (beta, above), (0.4, beta), (0.001, above)]:
        pmf = [stats.binom.pmf(np.arange(trials + 1), trials, rate) for rate in rates]
        false_confirm = false_refute = 0.0
        for (a, b), found in seen.items():
            weight = pmf[0][a] * pmf[1][b]
            pairs = list(zip(rates, found, strict=True))
            false_confirm += weight * any(r > beta and v == "confirmed" for r, v in pairs)
            false_refute += weight * any(r <= beta and v == "refuted" for r, v in pairs)
        assert false_confirm <= level and false_refute <= level


@pytest.mark.parametrize("looks", ["one", "many"])
def test_planted_claims_among_forty_cells(looks):
    """Level 1e-7: a false alarm here has at most that probability. The false claim is found."""
    rng = np.random.default_rng(11)
    honest = [QuantileEvidence(rng.uniform(size=3000), bound=0.975, beta=0.05) for _ in range(39)]
    planted = QuantileEvidence(rng.uniform(size=3000), bound=0.85, beta=0.05)
    found = decisions([*honest[:20], planted, *honest[20:]], level=1e-7, looks=looks)
    assert found[20] == "refuted"
    assert set(found[:20] + found[21:]) <= {"confirmed", "undecided"}
    assert found.count("confirmed") > 20


@pytest.mark.parametrize("looks", ["one", "many"])
def test_mean_claims(looks):
    x = np.random.default_rng(12).beta(2, 6, 4000)  # mean 1/4
    cells = [
        MeanEvidence(x, bound=0.30, side="upper"),
        MeanEvidence(x, bound=0.20, side="upper"),
        MeanEvidence(x, bound=0.20, side="lower"),
        MeanEvidence(x, bound=0.30, side="lower"),
        MeanEvidence(x, bound=0.25, side="upper"),
    ]
    expected = ["confirmed", "refuted", "confirmed", "refuted", "undecided"]
    assert decisions(cells, level=1e-7, looks=looks) == expected


@pytest.mark.parametrize("side", ["upper", "lower"])
def test_one_look_at_a_mean_errs_at_most_at_the_level(side):
    trials, level = 80, 0.05
    k = np.arange(trials + 1)
    samples = [np.repeat([1.0, 0.0], [i, trials - i]) for i in k]
    found = np.array([decisions([MeanEvidence(x, 0.3, side)], level=level)[0] for x in samples])
    assert {"confirmed", "refuted", "undecided"} == set(found)
    for rate in np.linspace(0.01, 0.99, 99):
        true = rate <= 0.3 if side == "upper" else rate >= 0.3
        wrong = "refuted" if true else "confirmed"
        assert stats.binom.pmf(k, trials, rate) @ (found == wrong) <= level


def test_vacuous_bounds_are_no_success_and_take_no_level():
    strong, weak = counted(0, 120), counted(0, 80)
    vacuous = [
        QuantileEvidence(np.zeros(100), bound=1.0, beta=0.1),
        QuantileEvidence(np.zeros(100), bound=math.inf, beta=0.1),
        MeanEvidence(np.zeros(100), bound=0.0, side="lower"),
        ExactEvidence(0.2, bound=1.5, side="upper"),
        ExactEvidence(0.2, bound=-0.1, side="lower"),
    ]
    alone = judge("claim", [({}, strong), ({}, weak)], level=0.01)
    joined = judge("claim", [({}, cell) for cell in [*vacuous, strong, weak]], level=0.01)
    assert [v.verdict for v in joined] == ["vacuous"] * 5 + [v.verdict for v in alone]
    assert [v.p_confirm for v in joined[5:]] == [v.p_confirm for v in alone]
    assert joined[6].family == 2 and joined[0].success is None
    assert claim_success(joined[:5], "holds") is None
    assert claim_success(joined[:5], "refuted") is None
    # A weight or a ratio has no natural range: 1.5 says something there.
    assert decisions([ExactEvidence(1.2, 1.5, "upper", unit_range=False)]) == ["proved"]


def test_exact_evidence_respects_its_error():
    def decide(value, bound, side, error=0.0):
        return ExactEvidence(value, bound, side, error).decision

    assert decide(0.3, 0.4, "upper") == "proved"
    assert decide(0.4, 0.4, "upper") == "proved"
    assert decide(0.5, 0.4, "upper") == "refuted"
    assert decide(0.5, 0.4, "lower") == "proved"
    assert decide(0.3, 0.4, "lower") == "refuted"
    for side in ("upper", "lower"):
        assert decide(0.41, 0.4, side, 0.02) == "undecided"
        assert decide(0.39, 0.4, side, 0.02) == "undecided"
    (verdict,) = judge("erratum", [({}, ExactEvidence(0.5, 0.39945, "upper"))], level=0.01)
    assert (verdict.verdict, verdict.method, verdict.trials) == ("refuted", "exact", None)
    assert verdict.slack == pytest.approx(0.7989)


def test_exceedances_at_the_bound():
    """A share equal to the bound, up to rounding, is none; the next multiple of 1/N is one."""
    bound = 1 / 3
    near = np.array([bound, np.nextafter(bound, 1), bound + 1e-9, 0.9])
    assert QuantileEvidence(near, bound, 0.05).exceedances == 2
    below = np.array([bound, np.nextafter(bound, 0), bound - 1e-9, 0.1])
    assert QuantileEvidence(below, bound, 0.05, side="lower").exceedances == 2
    # Claims met with equality in every trial are confirmed.
    assert decisions([QuantileEvidence(np.full(1000, 0.5), 0.5, 0.05)]) == ["confirmed"]


def test_lower_quantile_claims():
    x = np.random.default_rng(13).uniform(size=3000)
    good = QuantileEvidence(x, bound=0.02, beta=0.05, side="lower")
    bad = QuantileEvidence(x, bound=0.1, beta=0.05, side="lower")
    assert decisions([good, bad], level=1e-7) == ["confirmed", "refuted"]
    assert good.observed == pytest.approx(0.05, abs=0.02)
    assert good.slack == pytest.approx(good.observed / 0.02)


def slope(side, target, tolerance, centre=-0.5):
    replicates = np.linspace(centre - 0.02, centre + 0.02, 9999)
    fit = SlopeFit(centre, centre - 0.02, centre + 0.02, 0.01, replicates, 4000, 0)
    return SlopeEvidence(fit, target, tolerance, side)


def test_slope_claims():
    cells = [
        (slope("both", -0.5, 0.05), "confirmed"),
        (slope("both", -0.4, 0.05), "refuted"),
        (slope("both", -0.6, 0.05), "refuted"),
        (slope("both", -0.45, 0.05), "undecided"),
        (slope("upper", -0.4, 0.0), "confirmed"),
        (slope("upper", -0.6, 0.0), "refuted"),
        (slope("lower", -0.6, 0.0), "confirmed"),
        (slope("lower", -0.4, 0.0), "refuted"),
        (slope("upper", -0.51, 0.0), "undecided"),
    ]
    for cell, expected in cells:
        assert decisions([cell]) == [expected]
    with pytest.raises(InvalidInput, match="single look"):
        decisions([slope("both", -0.5, 0.1)], looks="many")


def test_claim_success():
    def verdicts(*words):
        proved = ExactEvidence(0.1, 0.2, "upper")
        forms = {
            "proved": proved,
            "confirmed": counted(0, 900),
            "refuted": ExactEvidence(0.3, 0.2, "upper"),
            "undecided": counted(1, 9),
            "vacuous": ExactEvidence(0.1, 1.2, "upper"),
        }
        found = judge("claim", [({}, forms[word]) for word in words], level=0.01)
        assert [v.verdict for v in found] == list(words)
        return found

    assert claim_success(verdicts("proved", "confirmed", "vacuous"), "holds") is True
    assert claim_success(verdicts("proved", "undecided"), "holds") is None
    assert claim_success(verdicts("refuted", "undecided", "proved"), "holds") is False
    assert claim_success(verdicts("refuted", "vacuous"), "refuted") is True
    assert claim_success(verdicts("refuted", "undecided"), "refuted") is None
    assert claim_success(verdicts("refuted", "confirmed"), "refuted") is False
    assert claim_success(verdicts("vacuous"), "holds") is None


def test_to_dict_is_strict_json():
    cell = {"dataset": "toy", "eps": np.float64(1.0), "Delta0": np.int64(3), "sizes": (1, 2)}
    empty = QuantileEvidence(np.array([]), bound=0.5, beta=0.05, tag="[U2]", note="no trials")
    endless = QuantileEvidence(np.zeros(3), bound=math.inf, beta=0.05)
    found = judge("claim", [(cell, empty), ({}, endless)], level=0.01, seed=7)
    first, second = json.loads(json.dumps([v.to_dict() for v in found], allow_nan=False))
    assert first["cell"] == {"dataset": "toy", "eps": 1.0, "Delta0": 3, "sizes": [1, 2]}
    assert (first["verdict"], first["observed"], first["slack"]) == ("undecided", None, None)
    assert (first["tag"], first["note"], first["seed"]) == ("[U2]", "no trials", 7)
    assert second["bound"] is None and second["verdict"] == "vacuous"
    assert found[0].expected == "holds" and found[0].success is None


def test_bad_input_is_refused():
    with pytest.raises(InvalidInput, match="level"):
        judge("claim", [], level=0.7)
    with pytest.raises(InvalidInput, match="beta"):
        counted(0, 5, beta=1.0)
    with pytest.raises(InvalidInput, match="samples"):
        QuantileEvidence(np.array([0.1, np.nan]), 0.5, 0.05)
    with pytest.raises(InvalidInput, match="samples"):
        MeanEvidence(np.array([1.5]), 0.5, "upper")
    with pytest.raises(InvalidInput, match="bound"):
        ExactEvidence(0.1, math.nan, "upper")
    with pytest.raises(InvalidInput, match="error"):
        ExactEvidence(0.1, 0.2, "upper", error=-1.0)
