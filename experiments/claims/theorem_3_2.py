"""Theorem 3.2: the calibrated WGM is (eps, delta)-DP."""

from __future__ import annotations

from collections.abc import Iterator

from experiments.claims._claim import Cell, Claim, Settings
from experiments.verdict import ExactEvidence
from theory import calibrate

# Corners of everything people use; the settings' own eps and delta come on top.
_EPS = (0.0, 0.01, 0.1, 1.0, 10.0, 100.0)
_DELTA = (1e-2, 1e-5, 1e-10, 1e-30)
_BOUNDS = (1, 10, 100, 10**6)


def _family(method: str, share: float):
    def cells(settings: Settings) -> Iterator[Cell]:
        for eps in sorted({*_EPS, *settings.eps}):
            for delta in sorted({*_DELTA, settings.delta}):
                for bound in _BOUNDS:
                    made = calibrate(eps=eps, delta=delta, max_items_per_user=bound, method=method)
                    cell = {"eps": eps, "delta": delta, "max_items_per_user": bound}
                    # The accountant is exact to 1e-9, and sigma and T were rounded up by less.
                    spent = float(made.spent_delta)
                    yield cell, ExactEvidence(spent, share * delta, "upper", tag="[P2]")

    return cells


CLAIMS = (
    Claim(
        name="theorem-3.2",
        title="Theorem 3.2 [P1] calibration is private",
        kind="upper, exact",
        statement="With delta_G(eps; sigma) <= delta/2 and T >= max_t t^(-1/2) + sigma "
        "Phi^-1((1 - delta/2)^(1/t)), the WGM is (eps, delta)-DP.",
        explicit="The exact accountant [P2] gives at most delta/2: the paper's calibration "
        "spends half of its budget.",
        family=_family("split", 0.5),
    ),
    Claim(
        name="theorem-3.2-full",
        title="Theorem 3.2 [P3] with all of delta",
        kind="upper, exact",
        statement="delta in place of delta/2 in both conditions is still (eps, delta)-DP.",
        explicit="The exact accountant [P2] gives at most delta.",
        family=_family("full", 1.0),
    ),
)
