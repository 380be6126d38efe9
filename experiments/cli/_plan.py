"""`wgm plan`: the best contribution bound, the least eps, or how much data a target needs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from experiments.cli._cases import Scan, one_case
from experiments.cli._flow import (
    WithFlow,
    best_flow,
    best_flow_sentence,
    check_mechanism,
    flow_means,
    flow_sentence,
    made_flows,
)
from experiments.cli._options import (
    Beta,
    DataOptions,
    Delta,
    Method,
    OutFolder,
    OutputOptions,
    contribution_bounds,
    grouped,
)
from experiments.cli._output import hint, print_json, progress, say, warn_about_delta
from experiments.cli._plan_text import entries, notes, print_plan, settings
from experiments.cli._zipf import ZipfOptions, renamed
from experiments.flow_store import NAME

if TYPE_CHECKING:
    from experiments.cells import Case
    from experiments.planning import Plan
    from theory.item_classes import ItemClasses

_FINDS = ("max-items", "eps", "pairs")


@grouped
def plan(
    data: DataOptions,
    zipf: ZipfOptions,
    *,
    find: Annotated[
        str,
        typer.Option(
            metavar="WHAT",
            help="max-items: the best Δ0; eps: the least ε; pairs: the least N, or for DATA how "
            "many times the users.",
        ),
    ] = "max-items",
    eps: Annotated[
        float | None, typer.Option(metavar="E", help="Privacy parameter ε, unless it is sought.")
    ] = None,
    delta: Delta,
    max_items_per_user: Annotated[
        str | None,
        typer.Option(metavar="K", help="Contribution bound Δ0, or max, unless it is sought."),
    ] = None,
    target: Annotated[
        float | None,
        typer.Option(metavar="X", help="Missing mass that is to be reached, in (0, 1)."),
    ] = None,
    statistic: Annotated[
        str,
        typer.Option(
            metavar="mean|quantile", help="Plan E[MM], or what holds with probability 1 - β."
        ),
    ] = "mean",
    beta: Beta = 0.05,
    method: Method = "split",
    mechanism: WithFlow = "wgm",
    flow_max_items: Annotated[
        list[str] | None,
        typer.Option(
            metavar="K[,K...]",
            help="Also try a Bernoulli flow at these Δ0; one that is new takes up to minutes.",
        ),
    ] = None,
    scan: Scan = False,
    every: Annotated[
        bool, typer.Option("--all", help="Try every Δ0, however long it takes.")
    ] = False,
    out_folder: OutFolder = None,
    output: OutputOptions,
) -> None:
    """Which Δ0, which ε, how much data: exact answers without simulation.

    For DATA, or for Zipfian data that are nobody's (--zipf-s). With --out also a plot.

    Example: wgm plan --zipf-s 1.5 --pairs 1e6 --find eps --target 0.1 --delta 1e-5
    """
    from experiments.loading.errors import DataError

    asked = _Question(
        data, zipf, scan, find, eps, delta, max_items_per_user, target, statistic, beta
    )
    asked.check(method)
    check_mechanism(mechanism)
    if mechanism == NAME and find == "pairs":
        accepted = "is not there for --find pairs; it needs --find max-items or --find eps"
        raise DataError(f"--mechanism {mechanism}", accepted)
    more = _flow_bounds(flow_max_items, find, mechanism)
    if every and find != "max-items":
        raise DataError("--all", f"says nothing to --find {find}; leave it out")
    with progress("planning", quiet=output.quiet) as update:
        found, about = asked.answer(method, True if every else None, update)
        update(1, 1)
    times = found.answer if found.curve.axis == "scale" else 1
    warn_about_delta(delta, int(about["users"] * times))
    said = [*notes(found, public=zipf.given), *asked.notes]
    told = entries(asked.name, about, found, said)
    if mechanism == NAME:
        noise = found.outcome.calibration
        bounds = [noise.max_items_per_user]
        if find == "max-items":
            bounds = _tried_bounds(noise.eps, delta, more, bounds[0])
        with progress("certifying", quiet=output.quiet) as update:
            flows = made_flows([noise.eps], delta, bounds, update)
        if find == "max-items":
            told["bernoulli_flow"] = best_flow(asked.case(), flows, beta, statistic)
        else:
            (told["bernoulli_flow"],) = flow_means(asked.case(), flows, beta)
    if out_folder is not None:
        told["files"] = _write(out_folder, asked, found, told)
    if output.json:
        print_json(told)
        return
    print_plan(asked.name, about, found, said)
    if "bernoulli_flow" in told:
        flow = told["bernoulli_flow"]
        same = "With the same ε, δ and Δ0, " + flow_sentence(flow, beta)
        say("", best_flow_sentence(flow, beta) if "tried" in flow else same)
    if "files" in told:
        say("", "Files: " + " ".join(told["files"]))
    if data.given and find == "max-items":
        hint(
            f"Next: wgm bounds {data.shell} --eps {eps:g} --delta {delta:g} "
            f"--max-items-per-user {found.answer}",
            quiet=output.quiet,
        )


def _flow_bounds(asked: list[str] | None, find: str, mechanism: str) -> list[int]:
    """Further Δ0 at which a flow is to be tried."""
    from experiments.loading.errors import DataError
    from theory._check import invalid

    if asked is None:
        return []
    if mechanism != NAME or find != "max-items":
        needed = f"needs --mechanism {NAME} and --find max-items"
        raise DataError("--flow-max-items", needed)
    bounds = contribution_bounds(asked, [])
    if "max" in bounds:
        invalid("flow_max_items", "max", "must be whole numbers from 1 to 1000")
    return [int(bound) for bound in bounds]


def _tried_bounds(eps: float, delta: float, more: list[int], best: int) -> list[int]:
    """Δ0 of the flows to try: those asked for, those that exist, or else near WGM's best one."""
    from experiments.flow_store import ready_bounds
    from theory.flow.calibration import LARGEST_MAX_ITEMS

    tried = sorted({*more, *ready_bounds(eps, delta)})
    return tried or [min(best, LARGEST_MAX_ITEMS)]


# ---- the question


class _Question:
    """What was asked for; everything that can be wrong without the data is said before they are
    read.
    """

    def __init__(
        self,
        data: DataOptions,
        zipf: ZipfOptions,
        scan: bool,
        find: str,
        eps: float | None,
        delta: float,
        max_items_per_user: str | None,
        target: float | None,
        statistic: str,
        beta: float,
    ) -> None:
        self.data, self.zipf, self.scan, self.find = data, zipf, scan, find
        self.eps, self.delta, self.beta = eps, delta, beta
        self.bound, self.target, self.statistic = max_items_per_user, target, statistic
        self._case: Case | None = None

    @property
    def name(self) -> str:
        """Name of the data."""
        return self.zipf.name if self.zipf.given else self.data.name

    @property
    def notes(self) -> list[str]:
        """What was asked for and could not be had to the letter."""
        left = 0 if self.zipf.pairs is None else int(self.zipf.pairs) - self.zipf.num_pairs
        return [f"N is {left} less than asked for: a multiple of the set size."] if left else []

    @property
    def settings(self) -> dict[str, Any]:
        """What was given, for a manifest."""
        source = self.zipf.settings if self.zipf.given else self.data.settings
        names = ("find", "eps", "delta", "target", "statistic", "beta")
        chosen = {name: getattr(self, name) for name in names}
        return {**source, **chosen, "max_items_per_user": self.bound}

    def check(self, method: str) -> None:
        """Raise about the first option that is missing, too many or out of range."""
        from theory import calibrate
        from theory._check import check_beta, invalid
        from theory.calibration import check_method

        if self.find not in _FINDS:
            invalid("find", self.find, f"must be one of {', '.join(_FINDS)}")
        if self.statistic not in ("mean", "quantile"):
            invalid("statistic", self.statistic, "must be mean or quantile")
        self._check_source()
        self._check_given()
        check_method(method)
        check_beta(self.beta)
        if self.target is not None:
            check_beta(self.target, "target")
        eps = 1.0 if self.eps is None else self.eps
        calibrate(eps=eps, delta=self.delta, max_items_per_user=1)
        contribution_bounds(None if self.bound is None else [self.bound], [])

    def _check_source(self) -> None:
        from experiments.loading.errors import DataError
        from theory._check import invalid

        if self.zipf.given:
            self.zipf.check()
        if self.zipf.given and self.data.given:
            raise DataError("--zipf-s", "stands for DATA; give one of the two")
        if not self.zipf.given:
            if not self.data.given:
                accepted = "must name a file or a folder; or give --preset NAME, or --zipf-s S"
                invalid("DATA", "", accepted)
            return
        if self.find == "pairs" and self.zipf.pairs is not None:
            raise DataError("--pairs", "is what --find pairs looks for; leave one of them out")
        if self.find != "pairs" and self.zipf.pairs is None:
            raise DataError("--pairs", f"must be given with --zipf-s and --find {self.find}")

    def _check_given(self) -> None:
        from experiments.loading.errors import DataError

        one_item = self.zipf.given and self.zipf.size == 1
        needed = {
            "max-items": ("eps",),
            "eps": ("target", "max_items_per_user"),
            "pairs": ("eps", "target", "max_items_per_user"),
        }[self.find]
        given = {"eps": self.eps, "target": self.target, "max_items_per_user": self.bound}
        for name in needed:
            # Where all sets have one item, every Delta0 above 1 only costs.
            if given[name] is None and not (name == "max_items_per_user" and one_item):
                option = name.replace("_", "-")
                raise DataError(f"--{option}", f"must be given with --find {self.find}")
        sought = {"max-items": "max_items_per_user", "eps": "eps"}.get(self.find)
        if sought is not None and given[sought] is not None:
            option = sought.replace("_", "-")
            raise DataError(f"--{option}", f"is what --find {self.find} looks for; leave it out")

    def answer(
        self, method: str, complete: bool | None, update: Callable[[int, int, str], Any]
    ) -> tuple[Plan, dict[str, Any]]:
        """Look for it; the answer, and the sizes of the data."""
        from experiments.loading.errors import DataError
        from experiments.planning import Unreachable

        try:
            with renamed():
                return self._answer(method, complete, update)
        except Unreachable as error:
            raise DataError(f"--target {self.target:g}", error.accepted) from None

    def _answer(
        self, method: str, complete: bool | None, update: Callable[[int, int, str], Any]
    ) -> tuple[Plan, dict[str, Any]]:
        from experiments import planning
        from experiments.cells import Case
        from theory import Profile

        common: dict[str, Any] = {
            "delta": self.delta, "method": method, "statistic": self.statistic,
            "beta": self.beta, "target": self.target, "progress": update,
        }  # fmt: skip
        if self.zipf.given and self.find == "pairs":
            found = planning.least_pairs(
                s=self.zipf.zipf_s, constant=self.zipf.constant, set_size=self.zipf.size,
                eps=self.eps, max_items_per_user=self._bound(self.zipf.size), **common,
            )  # fmt: skip
            size = self.zipf.size
            return found, _sizes(None, found.answer // size, found.answer, size)
        if self.zipf.given:
            classes = self.zipf.classes()
            self._case = Case(self.zipf.name, Profile.from_classes(classes, max_items_per_user=1))
            users = classes.num_pairs // self.zipf.size
        else:
            self._case = case = one_case(self.data, self.zipf, scan=self.scan)
            classes, users = case.classes, case.data.num_users or 0
        largest = classes.max_set_size
        about = _sizes(classes, users, classes.num_pairs, largest)
        if self.find == "max-items":
            return planning.best_contribution_bound(
                classes, eps=self.eps, complete=complete, **common
            ), about
        common["max_items_per_user"] = self._bound(largest)
        if self.find == "eps":
            return planning.least_eps(classes, **common), about
        return planning.least_scale(classes, eps=self.eps, **common), about

    def case(self) -> Case:
        """The data, once they were read."""
        assert self._case is not None  # read by `answer`, unless N itself was asked for
        return self._case

    def _bound(self, largest: int) -> int:
        bound = contribution_bounds([self.bound or "max"], [])[0]
        return largest if bound == "max" else int(bound)


def _sizes(
    classes: ItemClasses | None, users: int | float, pairs: int | float, largest: int
) -> dict[str, Any]:
    items = None if classes is None else classes.num_items
    return {"users": users, "items": items, "pairs": pairs, "max_set_size": largest}


def _write(folder: Path, asked: _Question, found: Plan, told: dict[str, Any]) -> list[str]:
    """Plot, its numbers, and what was printed."""
    from experiments.plots import plan_curve, save
    from experiments.sweep.store import manifest, writable_folder, write_json

    writable_folder(folder)
    figure, numbers = plan_curve(
        found.curve.to_frame(),
        answer=found.answer,
        method=found.curve.method,
        target=found.target,
        beta=found.outcome.beta,
        title=f"{asked.name}, {settings(found, ', ')}",
    )
    files = save(figure, folder / "plan", numbers)
    write_json(folder / "plan.json", told)
    given = {**asked.settings, "method": found.curve.method}
    write_json(folder / "manifest.json", manifest("plan", settings=given))
    return [str(file) for file in (*files, folder / "plan.json", folder / "manifest.json")]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("plan")(plan)
