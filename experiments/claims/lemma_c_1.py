"""Lemma C.1: sigma = Theta(sqrt(log 1/delta)/eps), T = Theta(...), with explicit constants."""

from __future__ import annotations

from collections.abc import Iterator

from experiments.claims._claim import Cell, Claim, Settings
from experiments.statistics.evidence import Side
from experiments.verdict import ExactEvidence
from theory import calibrate
from theory.asymptotics import sandwich

_EPS = (1e-3, 0.01, 0.1, 1.0, 10.0, 100.0)
_DELTA = (1e-2, 1e-5, 1e-10)
_BOUNDS = (1, 100, 10**6)


def _family(settings: Settings) -> Iterator[Cell]:
    for eps in sorted({*_EPS, *settings.eps}):
        for delta in sorted({*_DELTA, settings.delta}):
            for bound in _BOUNDS:
                cell = {"eps": eps, "delta": delta, "max_items_per_user": bound}
                at = sandwich(calibrate(eps=eps, delta=delta, max_items_per_user=bound))
                for name, value, low, high in (
                    ("sigma", at.sigma, at.sigma_lower, at.sigma_upper),
                    ("T", at.threshold, at.threshold_lower, at.threshold_upper),
                ):
                    # sigma and T are rounded up by less than 1e-9, so the lower form is strict.
                    slip = 1e-9 * value
                    sides: tuple[tuple[Side, float], ...] = (("upper", high), ("lower", low))
                    for side, bound_value in sides:
                        evidence = ExactEvidence(
                            value - slip if side == "upper" else value,
                            bound_value,
                            side,
                            unit_range=False,
                            note=f"{name} against its {side} form",
                        )
                        yield {**cell, "quantity": name, "side": side}, evidence


CLAIMS = (
    Claim(
        name="lemma-c.1",
        title="Lemma C.1 sigma and T, explicit",
        kind="both, exact",
        statement="The smallest sigma is Theta(sqrt(log(1/delta))/eps) and T is "
        "Theta(max(sigma sqrt(log(Delta0/delta)), 1)).",
        explicit="sigma <= (z + sqrt(z^2 + 2 eps))/(2 eps) and <= 1/(2 Phi^-1((1 + delta')/2)), "
        "T <= 1 + sigma sqrt(2 ln(Delta0/delta')), with lower forms of the same shape.",
        family=_family,
    ),
)
