"""Erratum 1: Lemma C.2 and Theorem 3.3 with 1/(s-1) where s/(s-1) is needed."""

from __future__ import annotations

import math
from collections.abc import Iterator

from experiments.claims._claim import Cell, Claim, Settings, exact_below
from experiments.verdict import ExactEvidence
from theory import (
    Profile,
    ZipfCertificate,
    calibrate,
    lemma_c2_printed,
    miss_probabilities,
    quantile_interval,
    theorem_33_printed,
)

_TWO_ITEMS = ((7.0, 6 * math.log(2)), (29.5, 28.5 * math.log(2)))  # (s, ln C)


def _lemma(settings: Settings) -> Iterator[Cell]:
    # One user, two items, Delta0 = 1: one of the two is lost, so the lost mass is 1/2 always.
    profile = Profile.from_frequencies([1, 1], max_set_size=2, max_items_per_user=1)
    for s, log_constant in _TWO_ITEMS:
        certificate = ZipfCertificate(log_constant, s)
        value = float(lemma_c2_printed(profile, 0.5, certificate=certificate).value)
        cell = {"dataset": "1 user, 2 items", "s": s, "C": math.exp(log_constant), "beta": 0.5}
        yield cell, ExactEvidence(0.5, value, "upper")


def _theorem(settings: Settings) -> Iterator[Cell]:
    profile = Profile.from_frequencies([1], max_set_size=1, max_items_per_user=1)
    calibration = calibrate(eps=1.0, delta=1e-5, max_items_per_user=1)
    certificate = ZipfCertificate(0.0, 500.0)
    value = float(theorem_33_printed(profile, calibration, 0.05, certificate=certificate).value)
    cell = {"dataset": "1 user, 1 item", "s": 500.0, "C": 1.0, "eps": 1.0, "delta": 1e-5}
    interval = quantile_interval(miss_probabilities(profile, calibration), 0.05)
    yield cell, exact_below(interval, value, tag="[U3p]")


CLAIMS = (
    Claim(
        name="erratum-1-lemma-c.2",
        title="Erratum 1: Lemma C.2 as printed",
        kind="upper, 50 %",
        statement="MM(W, union of subsamples) <= C^(1/s)/(s-1) "
        "(ln((CN)^(1/s)/beta)/(p* N))^((s-1)/s).",
        explicit="One user with two items, Delta0 = 1, beta = 1/2: MM is 1/2 always.",
        family=_lemma,
        expected="refuted",
        twin="lemma-c.2",
    ),
    Claim(
        name="erratum-1-theorem-3.3",
        title="Erratum 1: Theorem 3.3 at large s",
        kind="upper, 95 %",
        statement="Theorem 3.3 with the constants of its proof, [U3p].",
        explicit="One user with one item, C = N = 1, s = 500: MM = 1 almost surely.",
        family=_theorem,
        expected="refuted",
        twin="theorem-3.3-zipf",
    ),
)
