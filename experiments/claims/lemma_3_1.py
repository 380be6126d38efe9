"""Lemma 3.1: no set of (C, s)-Zipfian data is larger than (C N)^(1/s)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from experiments.claims._claim import Cell, Claim
from experiments.verdict import ExactEvidence
from theory.zipf import log_zipf_constant

if TYPE_CHECKING:
    from experiments.cells import Run

_EXPONENTS = (1.1, 1.5, 2.0, 3.0, 10.0)


def _observe(run: Run) -> Iterator[Cell]:
    profile = run.profile
    for s in _EXPONENTS:
        log_constant = float(log_zipf_constant(profile, s))
        largest = (log_constant + math.log(profile.num_pairs)) / s
        yield (
            {**run.cell, "s": s},
            ExactEvidence(
                math.log(profile.max_set_size) - 1e-12,
                largest,
                "upper",
                # L = M = (C N)^(1/s) happens: logarithms equal up to rounding, hence 1e-12.
                unit_range=False,
                tag="[Z1]",
                note="natural logarithms of L and of (C N)^(1/s)",
            ),
        )


CLAIMS = (
    Claim(
        name="lemma-3.1",
        title="Lemma 3.1 [Z1] largest set",
        kind="upper, exact",
        statement="max_i |W_i| <= (C N)^(1/s) for (C, s)-Zipfian W.",
        explicit="L <= M <= (C N)^(1/s) with the smallest C for each s in "
        + ", ".join(f"{s:g}" for s in _EXPONENTS),
        observe=_observe,
    ),
)
