"""Lemma B.1: how much Gumbel noise peeling needs, checked by zero-concentrated privacy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Literal

import numpy as np

from experiments.claims._claim import Cell, Claim, Settings
from experiments.verdict import ExactEvidence
from theory import peeling_scale

_EPS = (0.01, 0.1, 1.0, 10.0)
_DELTA = (1e-2, 1e-5, 1e-10)
_ROUNDS = (1, 5, 10, 20, 50, 100, 200)
# Every order above 1 proves a delta: the grid's least is a proof, if not the best one.
_ORDERS = 1 + np.geomspace(1e-6, 1e8, 20_001)


def proved_delta(eps: float, k: int, scale: float) -> float:
    """Delta that k rounds of peeling keep at eps: 0 by pure composition, else by the best order.

    A round is (1/scale)-bounded range, so 1/(8 scale^2)-zCDP, and for every order a
    delta <= e^((a-1)(a rho - eps)) (1 - 1/a)^a / (a - 1).
    """
    if k / scale <= eps * (1 + 1e-12):
        return 0.0
    a, rho = _ORDERS, k / (8 * scale**2)
    log_delta = (a - 1) * (a * rho - eps) + a * np.log1p(-1 / a) - np.log(a - 1)
    return float(np.exp(min(0.0, float(log_delta.min()))))


def _family(conversion: Literal["paper", "tight"]) -> Callable[[Settings], Iterable[Cell]]:
    def cells(settings: Settings) -> Iterator[Cell]:
        for eps in sorted({*_EPS, *settings.eps} - {0.0}):
            for delta in sorted({*_DELTA, settings.delta}):
                for k in _ROUNDS:
                    scale = float(peeling_scale(eps=eps, delta=delta, k=k, conversion=conversion))
                    cell = {"eps": eps, "delta": delta, "k": k}
                    # The grid misses the best order by less than 1e-5 of delta.
                    bound = delta * (1 + (1e-5 if conversion == "tight" else 0.0))
                    note = f"lambda {scale:.5g}"
                    yield (
                        cell,
                        ExactEvidence(
                            proved_delta(eps, k, scale), bound, "upper", tag="[K1]", note=note
                        ),
                    )

    return cells


CLAIMS = (
    Claim(
        name="lemma-b.1",
        title="Lemma B.1 [K1] noise of peeling",
        kind="upper, exact",
        statement="With lambda = 1/eps', eps' = max(eps/k, sqrt((8 ln(1/delta) + 8 eps)/k) - "
        "sqrt(8 ln(1/delta)/k)), peeling k items is (eps, delta)-DP.",
        explicit="k/lambda <= eps, or the best order of k/(8 lambda^2)-zCDP proves at most delta; "
        "the slack is what the paper's conversion gives away.",
        family=_family("paper"),
    ),
    Claim(
        name="lemma-b.1-tight",
        title="Lemma B.1 [K1] less noise",
        kind="upper, exact",
        statement="Lemma B.1 with the tighter conversion of zCDP (Canonne, Kamath, Steinke 2020).",
        explicit="The smaller lambda still proves delta: 28.6 in place of 34.7 at eps = 1, "
        "delta = 1e-5, k = 200.",
        family=_family("tight"),
    ),
)
