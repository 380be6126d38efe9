"""One block of `wgm bounds`: every bound at one eps and one Delta0, and what they say in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from experiments.cli._output import number, out, percent, say, table

if TYPE_CHECKING:
    from experiments.cells import Run
    from theory import Bound, Calibration
    from wgm_jax import Censoring

# Upper bounds on the missing mass, from the one that looks closest at the data on.
_UPPER = (
    "certificate_hinge",
    "certificate_chernoff",
    "upper_instance_star",
    "upper_instance",
    "upper_zipf",
    "upper_printed",
)


@dataclass(frozen=True, eq=False)
class Ladder:
    """Bounds on one data set at one calibration.

    Attributes:
        run: The data set at one Delta0 and a grid of eps.
        index: Place in the grid.
        other: The calibration by the other method, and the exact mean with it.
        censoring: Whether anything can be released.
    """

    run: Run
    index: int
    other: tuple[Calibration, float | None]
    censoring: Censoring | None

    @classmethod
    def blocks(cls, run: Run) -> list[Ladder]:
        """One block per eps of a run."""
        from theory import calibrate, miss_probabilities
        from wgm_jax.censored import censoring

        noise, known = run.calibration, run.miss is not None
        other = calibrate(
            eps=noise.eps,
            delta=noise.delta,
            max_items_per_user=noise.max_items_per_user,
            method="full" if noise.method == "split" else "split",
        )
        means = miss_probabilities(run.profile, other).mean_missing_mass if known else None
        return [
            cls(
                run=run,
                index=index,
                other=(other[index], None if means is None else float(means[index])),
                censoring=censoring(run.profile, noise[index]) if known else None,
            )
            for index in range(len(noise))
        ]

    @property
    def noise(self) -> Calibration:
        """The calibration."""
        return self.run.calibration[self.index]

    def bound(self, name: str) -> Bound:
        """A bound by name."""
        return self.run.bounds[name].at(self.index)

    def value(self, name: str) -> float:
        """A bound, raw."""
        return float(self.bound(name).value)

    @property
    def upper(self) -> list[str]:
        """Names of the upper bounds on the missing mass that are known."""
        return [name for name in _UPPER if name in self.run.bounds]

    @property
    def best_upper(self) -> str:
        """Name of the smallest upper bound, the first of equal ones."""
        return min(self.upper, key=self.value)

    @property
    def mean(self) -> float | None:
        """Exact mean of the missing mass."""
        means = self.run.exact_mean
        return None if means is None else float(means[self.index])

    @property
    def quantile(self) -> tuple[float, str] | None:
        """The (1 - beta)-quantile, and how it is known."""
        from experiments.statistics.slopes import empirical_quantile

        run, interval = self.run, self.run.intervals["missing_mass"][self.index]
        if interval is not None and interval[0] == interval[1]:
            return interval[0], "exact"
        if run.simulated is None:
            return None
        mass = run.simulated.missing_mass[:, self.index]
        return empirical_quantile(mass, 1 - run.beta), "simulated"

    @property
    def gap(self) -> float | None:
        """Oracle gap: the exact mean over the least that any private mechanism can leave."""
        lower = self.value("lower_instance")
        return None if self.mean is None or lower <= 0 else self.mean / lower

    @property
    def largest_missed(self) -> tuple[float, float] | None:
        """Bracket of the (1 - beta)-quantile of the largest missed mass [E7]."""
        interval = self.run.intervals["max_missing_mass"][self.index]
        return None if interval is None else interval[:2]

    def entries(self) -> dict[str, Any]:
        """The block for JSON."""
        noise, profile, run = self.noise, self.run.profile, self.run
        zipf = self.bound("upper_zipf").details
        quantile, largest = self.quantile, self.largest_missed
        known = run.intervals["missing_mass"][self.index]
        names = (*_UPPER, "upper_max", "tau", "tau_star")
        told = [name for name in self.upper if name.startswith("certificate")]
        users, everything = profile.num_users, self.censoring and self.censoring.everything
        return {
            "dataset": run.case.name,
            "users": users,
            "items": profile.num_items,
            "pairs": profile.num_pairs,
            "max_set_size": profile.max_set_size,
            "eps": noise.eps,
            "delta": noise.delta,
            "max_items_per_user": noise.max_items_per_user,
            "max_items_is_max": run.is_max,
            "method": noise.method,
            "beta": run.beta,
            "sigma": noise.sigma,
            "threshold": noise.threshold,
            "spent_delta": noise.spent_delta,
            "lower_bound": self.value("lower_instance"),
            "exact_mean": self.mean,
            "oracle_gap": self.gap,
            "quantile": quantile[0] if quantile else None,
            "quantile_method": quantile[1] if quantile else None,
            "quantile_low": known[0] if known else None,
            "quantile_high": known[1] if known else None,
            "certificate": min((self.value(name) for name in told), default=None),
            **{name: self.value(name) if name in run.bounds else None for name in names},
            "max_quantile_low": largest[0] if largest else None,
            "max_quantile_high": largest[1] if largest else None,
            "zipf": {"s": zipf["s"], "log_constant": zipf["log_constant"]},
            "vacuous": [n for n in (*self.upper, "upper_max") if bool(self.bound(n).vacuous)],
            "tightest": self.best_upper,
            "trials": 0 if run.simulated is None else run.simulated.num_trials,
            "delta_times_users": None if users is None else noise.delta * users,
            "other_method": {
                "method": self.other[0].method,
                "sigma": self.other[0].sigma,
                "threshold": self.other[0].threshold,
                "exact_mean": self.other[1],
            },
            "notes": [self.censoring.message] if self.censoring and everything else [],
        }

    @property
    def sentence(self) -> str:
        """What the block says, in words."""
        upper, lower = self.value(self.best_upper), percent(self.value("lower_instance"))
        if self.quantile is not None and self.quantile[1] == "exact":
            upper = self.quantile[0]
        sure = f"with {100 * (1 - self.run.beta):g} % probability, at most {percent(upper)}"
        if self.mean is not None:
            said = f"WGM leaves {percent(self.mean)} of the mass on average"
            said += f" and, {sure}" if upper < 1 else ""
        elif upper < 1:
            said = f"WGM leaves, {sure} of the mass"
        else:
            said = "no upper bound says anything (wgm simulate shows what WGM leaves)"
        floor = f"no private mechanism can leave less than {lower} on average on these data"
        gap = "" if self.gap is None else f" (oracle gap {number(self.gap, 3)}×)"
        start = f"With Δ0 = {self.noise.max_items_per_user:,}"
        return f"{start} {said}; {floor}{gap}.{self._with_other_method}"

    @property
    def _with_other_method(self) -> str:
        """What the other calibration would leave on average."""
        made, mean = self.other
        if mean is None or percent(mean) == percent(self.mean):
            return ""
        name = "Full-δ" if made.method == "full" else "The paper's split"
        return f" {name} calibration would leave {percent(mean)}."


def print_ladder(block: Ladder) -> None:
    """One block: the ladder as a table, and a sentence."""
    noise, run = block.noise, block.run
    largest = ", the largest set" if run.is_max else ""
    made = f"σ = {number(noise.sigma)} · T = {number(noise.threshold)} ({noise.method})"
    count = f"Δ0 = {noise.max_items_per_user:,}{largest}"
    say("", f"{count} · ε = {noise.eps:g} · {made}", style="bold")
    level = f"{100 * (1 - run.beta):g} %"
    zipf = block.bound("upper_zipf").details
    shape = f"s = {number(zipf['s'], 3)}, ln C = {number(zipf['log_constant'], 3)}"
    made = table("bound", "what", "for", "missing mass", left=3)
    lower = percent(block.value("lower_instance"))
    made.add_row("[L2] ≥", "any sound private mechanism", "mean", lower)
    if block.mean is not None:
        made.add_row("[E2] =", "WGM, exact", "mean", percent(block.mean))
    known = run.intervals["missing_mass"][block.index]
    if block.quantile is not None and block.quantile[1] == "simulated":
        seen = f"WGM, simulated, {run.trials.num_trials:,} trials"
        made.add_row("≈", seen, level, percent(block.quantile[0]))
    elif block.quantile is not None:
        made.add_row("[E3] =", "WGM, exact law", level, percent(block.quantile[0]))
    elif known is not None:
        low, high = map(percent, known[:2])
        made.add_row("[E6] ≈", "WGM, the quantile lies between", level, f"{low}..{high}")
    told = {
        "certificate_hinge": "hinge certificate, nothing simulated",
        "certificate_chernoff": "Chernoff certificate",
        "upper_instance_star": f"frequency {number(block.value('tau_star'), 6)}, exact binomials",
        "upper_instance": f"frequency {number(block.value('tau'), 6)}, Theorem 3.3's τ",
        "upper_zipf": f"Theorem 3.3, {shape}",
        "upper_printed": "Theorem 3.3 as printed",
    }
    for name in block.upper:
        bound = block.bound(name)
        tightest = name == block.best_upper and not bool(bound.vacuous)
        mark = "◀ " if tightest else ""
        made.add_row(
            f"{bound.tag} ≤",
            told[name],
            level,
            mark + _upper(block.value(name)),
            style="bold" if tightest else "",
        )
    if block.largest_missed is not None:
        low, high = map(percent, block.largest_missed)
        exact = "[E3] =" if low == high else "[E7] ≤"
        shown = high if low == high else f"{low}..{high}"
        made.add_row(exact, "largest missed item", level, shown)
    made.add_row(
        "[U∞] ≤", "largest missed item, Theorem 3.6", level, _upper(block.value("upper_max"))
    )
    out().print(made)
    if block.censoring is not None and block.censoring.everything:
        say(_capital(block.censoring.message) + ".")
    say(block.sentence)


def closing(blocks: list[Ladder]) -> str | None:
    """Which of several Delta0 is best; None where there is nothing to choose."""
    first = blocks[0].noise.eps
    group = [b for b in blocks if b.noise.eps == first]
    if len(group) < 2:
        return None
    at = "" if len(group) == len(blocks) else f" at ε = {first:g}"
    if all(b.mean is not None for b in group):
        best = min(group, key=lambda b: b.mean or 0.0)
        value, what = best.mean or 0.0, "leaves least on average"
    else:
        best = min(group, key=lambda b: b.value(b.best_upper))
        value, what = best.value(best.best_upper), "has the smallest bound"
    if value >= 1:
        return None
    count = best.noise.max_items_per_user
    return f"Of these Δ0, {count:,} {what}{at} ({percent(value)})."


def _upper(value: float) -> str:
    return percent(value) if value < 1 else f"vacuous ({number(value, 3)})"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
