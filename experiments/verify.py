"""The main job: simulate every cell of a grid, hold every claim against it, judge, write down."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.cells import Case, NeedsTrials, as_table, exceedances, rows, run_case
from experiments.claims import Cell, Claim, Settings
from experiments.decades import decades
from experiments.statistics.evidence import Looks
from experiments.verdict import Verdict, claim_success, judge
from theory import hard_zipf_profile
from theory._notebook import notebook_table

if TYPE_CHECKING:
    import polars as pl

# The default grid. Small sets keep L low, so that [U3] says something at every s.
EXPONENTS = (1.2, 1.5, 2.0, 3.0)
PAIRS = (10_000, 100_000, 1_000_000)
BETAS = (0.01, 0.05, 0.2, 0.5)
_MEAN_SIZE, _LARGEST_SIZE = 3.0, 30


@dataclass(frozen=True)
class Outcome:
    """What was found about one claim.

    Attributes:
        claim: The claim.
        verdicts: One per cell.
        success: True, False, or None where nothing was decided (undecided or all vacuous).
        needs_trials: The claim can only be simulated, and nothing was.
    """

    claim: Claim
    verdicts: Sequence[Verdict]
    success: bool | None
    needs_trials: bool = False

    def count(self, verdict: str) -> int:
        """Number of cells with this verdict."""
        return sum(v.verdict == verdict for v in self.verdicts)

    @property
    def slack(self) -> tuple[float, float] | None:
        """Least and largest slack over cells that say something."""
        found = [v.slack for v in self.verdicts if v.slack is not None and v.verdict != "vacuous"]
        return (min(found), max(found)) if found else None


@dataclass(frozen=True)
class Verification:
    """Outcomes of all claims, the row of numbers of every cell, exceedances of every bound."""

    outcomes: Sequence[Outcome]
    cells: pl.DataFrame
    exceedances: pl.DataFrame
    seconds: float
    sampler: str

    @property
    def status(self) -> int:
        """Exit status: 0 as claimed, 1 a claim fails, 3 something is undecided.

        A claim whose bound is vacuous in every cell neither succeeds nor fails.
        """
        if any(outcome.success is False for outcome in self.outcomes):
            return 1
        return 3 if any(outcome.count("undecided") for outcome in self.outcomes) else 0

    def verdict_frame(self) -> pl.DataFrame:
        """One row per verdict; the settings of the cell as columns and as JSON text."""
        import json

        import polars as pl

        table = []
        for outcome in self.outcomes:
            for verdict in outcome.verdicts:
                entry = verdict.to_dict()
                cell = entry.pop("cell")
                for name in ("dataset", "eps", "max_items_per_user"):
                    entry[name] = cell.get(name)
                entry["eps"] = None if entry["eps"] is None else str(entry["eps"])
                table.append({**entry, "cell": json.dumps(cell, ensure_ascii=False)})
        return pl.DataFrame(table, infer_schema_length=None)

    def to_frame(self) -> pl.DataFrame:
        """The verdicts as a table, as `verdict_frame`."""
        return self.verdict_frame()

    def _repr_html_(self) -> str:
        words = {True: "as expected", False: "not as expected", None: "not decided"}
        kinds = ("proved", "confirmed", "refuted", "undecided", "vacuous")
        return notebook_table(
            f"{len(self.outcomes)} claims, {self.seconds:.0f} s",
            ("claim", "outcome", *kinds, "least slack", "largest slack"),
            (
                (
                    outcome.claim.title,
                    words[outcome.success],
                    *(outcome.count(kind) for kind in kinds),
                    *(outcome.slack or (None, None)),
                )
                for outcome in self.outcomes
            ),
            self.sampler,
        )


def default_cases(seed: int = 0) -> list[Case]:
    """The synthetic Zipfian data sets of the default grid, smallest first."""
    from wgm_jax.synthetic import SetSizes, zipf_draws

    sizes = SetSizes("geometric", mean=_MEAN_SIZE, cap=_LARGEST_SIZE)
    return [
        Case(
            name=f"zipf s={s:g} N={pairs:.0e}".replace("e+0", "e"),
            data=zipf_draws(s=s, num_pairs=pairs, set_sizes=sizes, seed=seed),
            settings={"kind": "zipf_draws", "s": s, "N": pairs},
        )
        for s in EXPONENTS
        for pairs in PAIRS
    ]


def beyond_memory() -> list[Case]:
    """Hard Zipfian data of up to N = 1e12 pairs: sizes only, so exact methods only."""
    return [
        Case(
            name=f"hard zipf s={s:g} N={pairs:.0e}".replace("e+", "e"),
            data=hard_zipf_profile(1.0, s, pairs),
            settings={"kind": "hard_zipf", "s": s, "C": 1.0, "N": pairs},
        )
        for s in EXPONENTS
        for pairs in (10**8, 10**12)
    ]


def verify(
    cases: Sequence[Case],
    claims: Sequence[Claim],
    settings: Settings,
    *,
    max_items_per_user: Sequence[int | str] = (1, 10, "max"),
    method: str = "split",
    level: float = 0.01,
    looks: Looks = "one",
    progress: Callable[[int, int, str], Any] | None = None,
) -> Verification:
    """Judge claims on data sets.

    Args:
        cases: Data sets.
        claims: Claims to judge.
        settings: eps, delta, beta, trials and seed. Without trials no random number is drawn:
            what exact methods decide is decided, the rest is undecided or needs trials.
        max_items_per_user: Contribution bounds; "max" is the largest set of each data set.
        method: Calibration method of the simulated mechanism.
        level: Family-wise level over the cells of one claim, per kind of error.
        looks: "one" if this is the only look at these trials ([V1]), "many" if trials may be added
            ([V2]). Claims on data of their own are always judged at one look.
        progress: Called as progress(done, total, label) before each piece of work.

    Returns:
        A `Verification`.
    """
    import polars as pl

    start = time.perf_counter()
    observing = [claim for claim in claims if claim.observe is not None]
    families = [claim for claim in claims if claim.family is not None]
    grid = [(case, bound) for case in cases for bound in _distinct(case, max_items_per_user)]
    # The grid is simulated even without a claim about it: its numbers and plots are asked for.
    total = len(grid) + len(families)
    tell = progress or (lambda done, total, label: None)
    evidence: dict[str, list[Cell]] = {claim.name: [] for claim in claims}
    silent: set[str] = set()
    table: list[dict[str, Any]] = []
    exceeded: list[dict[str, Any]] = []
    for done, (case, bound) in enumerate(grid):
        tell(done, total, f"{case.name}, Δ0 = {bound}")
        run = run_case(
            case,
            max_items_per_user=bound,
            eps=settings.eps,
            delta=settings.delta,
            beta=settings.beta,
            method=method,
            num_trials=settings.num_trials,
            seed=settings.seed,
        )
        for claim in observing:
            try:
                evidence[claim.name].extend(_cells(claim.observe, run))
            except NeedsTrials:
                silent.add(claim.name)
        table.extend(rows(run))
        exceeded.extend(exceedances(run, BETAS))
    for done, claim in enumerate(families, start=len(grid)):
        tell(done, total, claim.title)
        evidence[claim.name].extend(_cells(claim.family, settings))
    tell(total, total, "")

    outcomes = []
    for claim in claims:
        verdicts = judge(
            claim.name,
            evidence[claim.name],
            level=level,
            expected=claim.expected,
            looks="one" if claim.observe is None else looks,
            seed=settings.seed,
        )
        success = claim_success(verdicts, claim.expected)
        outcomes.append(Outcome(claim, verdicts, success, claim.name in silent))
    return Verification(
        outcomes=outcomes,
        cells=as_table(table),
        exceedances=pl.DataFrame(exceeded, infer_schema_length=None),
        seconds=time.perf_counter() - start,
        sampler=table[0]["sampler"] if table else "none",
    )


def verify_until_decided(
    cases: Sequence[Case],
    claims: Sequence[Claim],
    settings: Settings,
    *,
    max_trials: int,
    **options: Any,
) -> Verification:
    """Judge claims; double the trials of those on the grid that are undecided, up to a cap.

    Trial i is the same at every look, so each look extends the one before and the tests of [V2]
    hold at all of them. The table of cells is that of the first look.

    Args:
        cases: Data sets.
        claims: Claims to judge.
        settings: With the number of trials of the first look.
        max_trials: Cap on the trials of a cell; not above the first look: one look, [V1].
        **options: As for `verify`.

    Returns:
        A `Verification`.
    """
    options["looks"] = "many" if max_trials > settings.num_trials else "one"
    result = verify(cases, claims, settings, **options)
    while settings.num_trials < max_trials:
        undecided = [
            outcome.claim
            for outcome in result.outcomes
            if outcome.claim.observe is not None and outcome.count("undecided")
        ]
        if not undecided:
            break
        settings = replace(settings, num_trials=min(2 * settings.num_trials, max_trials))
        again = verify(cases, undecided, settings, **options)
        newer = {outcome.claim.name: outcome for outcome in again.outcomes}
        result = replace(
            result,
            outcomes=[newer.get(o.claim.name, o) for o in result.outcomes],
            seconds=result.seconds + again.seconds,
        )
    return result


def _distinct(case: Case, bounds: Sequence[int | str]) -> list[int | str]:
    """The bounds without repeats on these data: "max" stands for a number equal to it."""
    largest = case.contribution_bound("max")
    asked = list(dict.fromkeys(bounds))
    return [bound for bound in asked if "max" not in asked or bound != largest]


def _cells(find: Callable[[Any], Iterable[Cell]] | None, about: Any) -> list[Cell]:
    return [] if find is None else list(find(about))


def write(result: Verification, folder: Path, *, settings: dict[str, Any]) -> list[str]:
    """Write tables, plots and the manifest; returns the names of the files.

    The manifest comes last: a folder with a manifest is complete.
    """
    from experiments.sweep.store import manifest, write_atomic, write_json

    names = []
    frames = {
        "verdicts": result.verdict_frame(),
        "cells": result.cells,
        "exceedances": result.exceedances,
    }
    for name, frame in frames.items():
        write_atomic(folder / f"{name}.parquet", frame.write_parquet)
        write_atomic(folder / f"{name}.csv", frame.write_csv)
        names += [f"{name}.parquet", f"{name}.csv"]
    names += _plots(result, folder)
    write_json(
        folder / "manifest.json",
        manifest(
            "verify",
            settings=settings,
            seeds=[settings["seed"]],
            sampler=result.sampler,
            seconds=round(result.seconds, 1),
            files=names,
            claims=[_about(outcome) for outcome in result.outcomes],
        ),
    )
    return [*names, "manifest.json"]


def _about(outcome: Outcome) -> dict[str, Any]:
    """What a reader of the folder should know about a claim, also one from outside the package."""
    names = ("name", "title", "kind", "statement", "explicit", "expected", "twin")
    about = {name: getattr(outcome.claim, name) for name in names}
    return {**about, "own_data": outcome.claim.observe is None}


def _plots(result: Verification, folder: Path) -> list[str]:
    from experiments.plots import (
        exceedance,
        missing_mass_curves,
        ratio_curves,
        save,
        slack,
        verify_overview,
    )

    cells = result.cells
    names: list[str] = []
    drawn: dict[str, tuple[Any, pl.DataFrame]] = {}
    for x in ("num_pairs", "eps", "s", "max_items_per_user"):
        # What is neither on the axis nor a panel stays at one value: Δ0 at L, or N at its largest.
        frame = (
            cells.filter(cells["max_items_is_max"])
            if x in ("num_pairs", "s")
            else cells.filter(cells["N_asked"].fill_null(0) == cells["N_asked"].fill_null(0).max())
        )
        if frame[x].null_count() or frame[x].n_unique() < 2:
            continue
        drawn[f"missing-mass-{x}"] = missing_mass_curves(frame, x)
    if any(outcome.claim.name == "corollary-3.4" for outcome in result.outcomes):
        over = decades()
        drawn["decades-missing-mass"] = missing_mass_curves(over, "num_pairs")
        drawn["decades-ratio"] = ratio_curves(over)
    if result.cells["trials"].max():
        drawn["slack"] = slack(cells)
    drawn["overview"] = verify_overview(result.verdict_frame())
    # The cell with most data and noise says most; the others are in exceedances.parquet.
    shown = result.exceedances
    if shown.height:
        shown = shown.filter(~shown["vacuous"])
    if shown.height:
        last = shown.row(-1, named=True)
        keys = ("dataset", "max_items_per_user", "eps")
        one = shown.filter(*(shown[key] == last[key] for key in keys))
        title = f"{last['dataset']}, Δ0 = {last['max_items_per_user']}, ε = {last['eps']:g}"
        drawn["exceedance"] = exceedance(one, title=title)
    for name, (figure, plotted) in drawn.items():
        names += [path.name for path in save(figure, folder / name, plotted)]
    return names
