"""A small results folder of `wgm verify` for tests of the report: every verdict, hostile names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from experiments import verify as module
from experiments.claims import Claim
from experiments.claims.registry import claims
from experiments.verdict import ExactEvidence, QuantileEvidence, claim_success, judge
from experiments.verify import Outcome, Verification

# Markup, quotes, a template expression, an end of script, a control character, right to left.
HOSTILE = (
    """<img src=x onerror="hacked=1">'"&{{ 7*7 }}</script><script>hacked=1</script>\x07\u202e"""
)
_SEEN = QuantileEvidence(np.full(1000, 0.2), bound=0.3, beta=0.05, tag="[U2]")
_FEW = QuantileEvidence(np.full(5, 0.2), bound=0.3, beta=0.05, tag="[U2*]", note="few [U1*]")
_TRUE = ExactEvidence(0.2, 0.4, "upper", tag="[U-inf]")
_FALSE = ExactEvidence(0.5, 0.4, "upper", tag="[U3p]", note=HOSTILE)
_VACUOUS = ExactEvidence(0.2, 1.5, "upper", tag="[U3]")

DRAWING = """<?xml version="1.0"?>
<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd">
<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"
 width="300pt" height="100pt" viewBox="0 0 300 100" onload="hacked=1">
 <metadata>someone's name</metadata>
 <style>@import url(http://evil.example/x.css); * {display: none}</style>
 <script>hacked = 1</script><!-- hacked -->
 <foreignObject><body xmlns="http://www.w3.org/1999/xhtml"><p>hacked</p></body></foreignObject>
 <defs><path id="a" d="M 0 0 L 10.123456 5.5" onclick="hacked=1"/>
  <clipPath id="c"><rect x="0" y="0" width="300" height="100"/></clipPath></defs>
 <g id="unused" clip-path="url(#c)" style="fill: url(#c); stroke: #0072b2; stroke-width: 2">
  <use xlink:href="#a" x="1" y="2"/><use xlink:href="http://evil.example/y.svg#z"/>
  <image xlink:href="http://evil.example/z.png"/>
  <a xlink:href="javascript:hacked=1"><path d="M0 0"/></a>
  <rect width="5" height="5" fill="url(http://evil.example/f)"
   style="fill:url(http://evil.example/g)"/>
  <text x="5" y="20">x &lt; y</text>
 </g>
</svg>"""


def folder(path: Path) -> Path:
    """Write the folder: one claim as expected, an erratum, a failed, an open and a silent one."""
    known = {claim.name: claim for claim in claims()}
    outside = Claim(
        name="outside",
        title=f"Outside {HOSTILE}",
        kind=HOSTILE,
        statement=f"MM <= tau^(1/s) {HOSTILE}",
        explicit=HOSTILE,
        family=lambda settings: [],
    )
    cells = {
        "theorem-3.3-instance": [_SEEN, _TRUE, _VACUOUS],
        "theorem-3.6": [_TRUE, _TRUE],
        "erratum-1-lemma-c.2": [_FALSE],
        "outside": [_TRUE, _FALSE],
        "theorem-3.3-instance-star": [_FEW],
        "theorem-3.3-zipf": [_VACUOUS],
        "corollary-3.4": [],
    }
    outcomes = []
    for name, evidence in cells.items():
        claim = outside if name == "outside" else known[name]
        settings = [
            {"dataset": HOSTILE if i == 0 else "plain", "eps": 1.0, "max_items_per_user": 10 + i,
             "delta": 1e-5, "s": 1.5}
            for i in range(len(evidence))
        ]  # fmt: skip
        found = judge(
            name, [*zip(settings, evidence, strict=True)], level=0.01, expected=claim.expected
        )
        outcomes.append(Outcome(claim, found, claim_success(found, claim.expected)))
    write(path, outcomes, ladder())
    return path


def ladder() -> pl.DataFrame:
    """Two rows of the ladder; the first has a bound that says nothing."""
    return pl.DataFrame(
        {
            "dataset": [HOSTILE, "plain"],
            "eps": [0.1, 1.0],
            "max_items_per_user": [10, 20],
            "max_items_is_max": [False, True],
            "num_users": [100, 200],
            "lower_instance": [0.2, 0.1],
            "exact_mean": [0.3, 0.25],
            "exact_quantile": [None, 0.30],
            "mm_q05": [0.28, 0.2],
            "mm_q95": [0.33, 0.31],
            "mm_quantile": [0.32, 0.31],
            "upper_instance": [0.64, 0.9],
            "upper_zipf": [1.7, 0.96],
        }
    )


def write(
    path: Path,
    outcomes: list[Outcome],
    cells: pl.DataFrame,
    settings: Mapping[str, Any] | None = None,
) -> None:
    """Write outcomes as `wgm verify` does, with two drawings in place of the plots."""

    def draw(_: Verification, where: Path) -> list[str]:
        for name in ("slack", "own-drawing"):
            (where / f"{name}.svg").write_text(DRAWING, encoding="utf-8")
        pl.DataFrame({"series": [HOSTILE], "x": [1.0]}).write_csv(where / "own-drawing.csv")
        return ["slack.svg", "own-drawing.svg", "own-drawing.csv"]

    told = {"eps": [1.0], "delta": 1e-5, "seed": 0, "data": HOSTILE, **(settings or {})}
    told["claims"] = [outcome.claim.name for outcome in outcomes]
    result = Verification(outcomes, cells, pl.DataFrame(), 1.0, "lanes, threefry2x32, cpu")
    plots = module._plots
    module._plots = draw
    try:
        path.mkdir(exist_ok=True)
        module.write(result, path, settings=told)
    finally:
        module._plots = plots
