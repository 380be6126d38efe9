"""One block of `wgm bounds`: every bound at one eps and one Delta0, and what they say in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from experiments.cli._output import number, out, percent, say, table

if TYPE_CHECKING:
    from experiments.cells import Case
    from theory import Bound, Calibration
    from wgm_jax import Censoring

# Upper bounds on the missing mass, tightest first.
_UPPER = ("upper_instance_star", "upper_instance", "upper_zipf", "upper_printed")


@dataclass(frozen=True, eq=False)
class Ladder:
    """Bounds on one data set at one calibration.

    Attributes:
        case: The data set.
        is_max: Delta0 was asked for as "max".
        calibration: A single one.
        beta: Failure probability of the upper bounds.
        bounds: As `experiments.cells.ladder` makes them.
        exact_mean: Exact mean of the missing mass, None where users are clipped.
        other: The calibration by the other method.
        other_value: Exact mean, or else [U2*], with the other method.
        censoring: Whether anything can be released.
    """

    case: Case
    is_max: bool
    calibration: Calibration
    beta: float
    bounds: dict[str, Bound]
    exact_mean: float | None
    other: Calibration
    other_value: float
    censoring: Censoring

    @classmethod
    def of(
        cls, case: Case, *, eps: float, delta: float, bound: int | str, beta: float, method: str
    ) -> Ladder:
        """Compute a block."""
        from experiments.cells import ladder
        from theory import Profile, calibrate, exact_mean_unclipped, instance_bound
        from wgm_jax.censored import censoring

        count = case.contribution_bound(bound)
        profile = Profile.from_user_items(case.data, max_items_per_user=count)
        both = {
            name: calibrate(eps=eps, delta=delta, max_items_per_user=count, method=name)
            for name in ("split", "full")
        }
        chosen, other = both.pop(method), *both.values()
        if profile.clipped:
            mean = None
            other_value = float(instance_bound(profile, other, beta, tau="u1_star").value)
        else:
            mean = float(exact_mean_unclipped(case.data, chosen))
            other_value = float(exact_mean_unclipped(case.data, other))
        return cls(
            case=case,
            is_max=bound == "max",
            calibration=chosen,
            beta=beta,
            bounds=ladder(profile, chosen, beta),
            exact_mean=mean,
            other=other,
            other_value=other_value,
            censoring=censoring(case.data, chosen),
        )

    def value(self, name: str) -> float:
        """A bound, raw."""
        return float(self.bounds[name].value)

    @property
    def best_upper(self) -> str:
        """Name of the smallest upper bound on the missing mass, the earliest of equal ones."""
        return min(_UPPER, key=self.value)

    def entries(self) -> dict[str, Any]:
        """The block for JSON."""
        noise, data = self.calibration, self.case.data
        zipf = self.bounds["upper_zipf"].details
        names = (*_UPPER, "upper_max", "tau", "tau_star")
        return {
            "dataset": self.case.name,
            "users": data.num_users,
            "items": data.num_items,
            "pairs": data.num_pairs,
            "max_set_size": data.max_set_size,
            "eps": noise.eps,
            "delta": noise.delta,
            "max_items_per_user": noise.max_items_per_user,
            "max_items_is_max": self.is_max,
            "method": noise.method,
            "beta": self.beta,
            "sigma": noise.sigma,
            "threshold": noise.threshold,
            "spent_delta": noise.spent_delta,
            "lower_bound": self.value("lower_instance"),
            "exact_mean": self.exact_mean,
            "certificate": None,
            **{name: self.value(name) for name in names},
            "zipf": {"s": zipf["s"], "log_constant": zipf["log_constant"]},
            "vacuous": [n for n in (*_UPPER, "upper_max") if bool(self.bounds[n].vacuous)],
            "delta_times_users": noise.delta * data.num_users,
            "other_method": {
                "method": self.other.method,
                "sigma": self.other.sigma,
                "threshold": self.other.threshold,
                "exact_mean" if self.exact_mean is not None else "upper_instance_star": (
                    self.other_value
                ),
            },
            "notes": [self.censoring.message] if self.censoring.everything else [],
        }

    @property
    def sentence(self) -> str:
        """What the block says, in words."""
        upper, lower = self.value(self.best_upper), percent(self.value("lower_instance"))
        sure = f"with {100 * (1 - self.beta):g} % probability, at most {percent(upper)}"
        mean = None if self.exact_mean is None else percent(self.exact_mean)
        if mean is not None:
            said = f"WGM leaves {mean} of the mass on average"
            said += f" and, {sure}" if upper < 1 else ""
        elif upper < 1:
            said = f"WGM leaves, {sure} of the mass"
        else:
            said = "no upper bound says anything (wgm simulate shows what WGM leaves)"
        floor = f"no private mechanism can leave less than {lower} on average on these data"
        start = f"With Δ0 = {self.calibration.max_items_per_user:,}"
        return f"{start} {said}; {floor}.{self._with_other_method}"

    @property
    def _with_other_method(self) -> str:
        """What the other calibration would do to the mean, or to the bound."""
        known = self.exact_mean is not None
        now = self.value("upper_instance_star") if self.exact_mean is None else self.exact_mean
        value = percent(self.other_value)
        if min(now, self.other_value) >= 1 or value == percent(now):
            return ""
        full = self.other.method == "full"
        name = "Full-δ calibration" if full else "The paper's split calibration"
        return f" {name} would {'leave' if known else 'make the bound'} {value}."


def print_ladder(block: Ladder) -> None:
    """One block: the ladder as a table, and a sentence."""
    noise = block.calibration
    largest = ", the largest set" if block.is_max else ""
    made = f"σ = {number(noise.sigma)} · T = {number(noise.threshold)} ({noise.method})"
    count = f"Δ0 = {noise.max_items_per_user:,}{largest}"
    say("", f"{count} · ε = {noise.eps:g} · {made}", style="bold")
    quantile = f"{100 * (1 - block.beta):g} %"
    zipf = block.bounds["upper_zipf"].details
    shape = f"s = {number(zipf['s'], 3)}, ln C = {number(zipf['log_constant'], 3)}"
    made = table("bound", "what", "for", "missing mass", left=3)
    lower = percent(block.value("lower_instance"))
    made.add_row("[L2] ≥", "any sound private mechanism", "mean", lower)
    mean = percent(block.exact_mean) if block.exact_mean is not None else "– (users are clipped)"
    made.add_row("[E2] =", "WGM, exact", "mean", mean)
    told = {
        "upper_instance_star": f"frequency {number(block.value('tau_star'), 6)}, exact binomials",
        "upper_instance": f"frequency {number(block.value('tau'), 6)}, Theorem 3.3's τ",
        "upper_zipf": f"Theorem 3.3, {shape}",
        "upper_printed": "Theorem 3.3 as printed",
    }
    for name, what in told.items():
        bound = block.bounds[name]
        style = "bold" if name == block.best_upper and not bool(bound.vacuous) else ""
        made.add_row(f"{bound.tag} ≤", what, quantile, _upper(block.value(name)), style=style)
    largest_mass = _upper(block.value("upper_max"))
    made.add_row("[U∞] ≤", "largest missed item, Theorem 3.6", quantile, largest_mass)
    out().print(made)
    if block.censoring.everything:
        say(_capital(block.censoring.message) + ".")
    say(block.sentence)


def closing(blocks: list[Ladder]) -> str | None:
    """Which of several Delta0 is best; None where there is nothing to choose."""
    first = blocks[0].calibration.eps
    group = [b for b in blocks if b.calibration.eps == first]
    best = min(group, key=lambda b: b.value(b.best_upper))
    value = best.value(best.best_upper)
    if len(group) < 2 or value >= 1:
        return None
    at = "" if len(group) == len(blocks) else f" at ε = {first:g}"
    count = best.calibration.max_items_per_user
    return f"Of these Δ0, {count:,} has the smallest bound{at} ({percent(value)})."


def _upper(value: float) -> str:
    return percent(value) if value < 1 else f"vacuous ({number(value, 3)})"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
