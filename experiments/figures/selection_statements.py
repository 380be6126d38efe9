"""From paired differences of selections to what the paper's sentences are worth."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from experiments.figures.data import DATA_SETS
from experiments.figures.record import VERDICTS, Statement, Verdict
from experiments.figures.selection_rows import FEATURED

if TYPE_CHECKING:
    import polars as pl

# A share of all pairs or users that can be seen in a plot with a linear axis, and one that cannot.
_VISIBLE = 0.01
_NOTHING = 0.001
# Pairs of a data set that can stand for a large one; those of the paper have 2.5 million and more.
LARGE = 250_000


@dataclass(frozen=True)
class Point:
    """A method and its rivals at one k; losses and leads are shares.

    Attributes:
        k: Items selected.
        loss: Mean loss of the method.
        leads: Rival -> what it loses more: mean, and its 95 % interval.
    """

    k: int
    loss: float
    leads: Mapping[str, tuple[float, float, float]]

    @property
    def rival(self) -> str:
        """The hardest rival."""
        return min(self.leads, key=lambda name: self.leads[name][0])

    @property
    def lead(self) -> float:
        """What the hardest rival loses more; negative where it is ahead."""
        return self.leads[self.rival][0]

    @property
    def at_least(self) -> float:
        """Lead that is more than chance."""
        return min(low for _, low, _ in self.leads.values())

    @property
    def ahead(self) -> bool:
        """Whether every rival loses more, by more than chance."""
        return self.at_least > 0

    @property
    def behind(self) -> bool:
        """Whether some rival loses less, by more than chance."""
        return any(high < 0 for _, _, high in self.leads.values())

    @property
    def nothing_lost(self) -> bool:
        """Whether there is nothing to be ahead in."""
        return self.loss + max(self.lead, 0.0) < _NOTHING


def points(
    frame: pl.DataFrame, *, eps: float, metric: str, ours: str, rivals: Sequence[str]
) -> dict[str, list[Point]]:
    """Points of every data set with more than one trial, ascending in k.

    Args:
        frame: From `selection_rows`.
        eps: Privacy parameter.
        metric: Metric.
        ours: Label of the method.
        rivals: Labels of its rivals.
    """
    import polars as pl

    rows = frame.filter(
        (pl.col("eps") == eps)
        & (pl.col("metric") == metric)
        & (pl.col("method") == ours)
        & (pl.col("trials") > 1)
    )
    made: dict[str, list[Point]] = {}
    for (name, k), part in rows.sort("k").group_by("dataset", "k", maintain_order=True):
        loss = part.filter(pl.col("role") == "method")["mean"].item()
        leads = part.filter((pl.col("role") == "ahead") & pl.col("rival").is_in(list(rivals)))
        told = leads.select("rival", "mean", "low", "high").iter_rows()
        made.setdefault(name, []).append(
            Point(k, loss, {each: tuple(rest) for each, *rest in told})
        )
    order = frame["dataset"].unique(maintain_order=True).to_list()
    return {name: made[name] for name in order if name in made}


# ---- verdicts on one data set


def smaller_everywhere(those: Sequence[Point]) -> Verdict:
    """Smaller than all at every k; reservation where it is behind by less than a plot would show.

    Points where neither loses anything say nothing.
    """
    told = [each for each in those if not each.nothing_lost or each.ahead or each.behind]
    if told and all(each.ahead for each in told):
        return "reproduced"
    visible = min(each.lead for each in those) < -_VISIBLE
    never = told and not any(each.ahead for each in told)
    return "not reproduced" if visible or never else _RESERVED


def outperforms(those: Sequence[Point]) -> Verdict:
    """Ahead somewhere and nowhere behind; reservation if ahead by more than behind elsewhere."""
    leads = [each.lead for each in those]
    if not any(each.ahead for each in those) or max(leads) <= -min(leads):
        return "not reproduced"
    return "reproduced" if all(each.at_least >= -_NOTHING for each in those) else _RESERVED


def comparable(those: Sequence[Point], within: float) -> Verdict:
    """Surely behind by at most `within`; reservation if so at half of all k."""
    good = sum(each.at_least >= -within for each in those)
    if good == len(those):
        return "reproduced"
    return _RESERVED if 2 * good >= len(those) else "not reproduced"


def grows(steps: Sequence[tuple[float, float]], last: float) -> Verdict:
    """The lead surely never falls; reservation where it falls by less than a plot would show.

    Args:
        steps: Change of the lead from k to k: mean, and the lower end of its interval.
        last: Lead at the largest k.
    """
    if last <= 0 or any(mean < -_VISIBLE for mean, _ in steps):
        return "not reproduced"
    return "reproduced" if all(low >= -_NOTHING for _, low in steps) else _RESERVED


_RESERVED: Verdict = "with reservation"


def overall(verdicts: Mapping[str, Verdict]) -> Verdict | None:
    """One verdict on the paper's panels: the worst of its own data sets.

    A part of one of its data sets, or such a part alone, is ground for reservation only.

    Args:
        verdicts: Data set -> verdict; data sets that the paper does not show are left out.

    Returns:
        The verdict; None without any of the paper's panels.
    """
    shown: dict[str, Verdict] = {name: each for name, each in verdicts.items() if name in FEATURED}
    own: list[Verdict] = [each for name, each in shown.items() if DATA_SETS[name].own]
    if not shown:
        return None
    worst = max(own or list(shown.values()), key=VERDICTS.index)
    if worst == "reproduced" and (not own or set(shown.values()) != {"reproduced"}):
        return _RESERVED
    return _RESERVED if not own and worst == "not reproduced" else worst


# ---- words


def leads_in_words(those: Sequence[Point]) -> str:
    """Where a method is ahead and where behind, in points.

    Example:
        >>> leads_in_words([Point(5, 0.1, {"other": (-0.002, -0.003, -0.001)}),
        ...                 Point(10, 0.1, {"other": (0.2, 0.1, 0.3)})])
        'ahead at k = 10 (by 20.0), behind at 5 (by 0.20)'
    """
    parts = []
    for word, chosen in (
        ("ahead", [each for each in those if each.ahead]),
        ("behind", [each for each in those if each.behind]),
        ("level", [each for each in those if not each.ahead and not each.behind]),
    ):
        if not chosen:
            continue
        where = ", ".join(str(each.k) for each in chosen)
        if word != "level":
            where += f" (by {', '.join(in_points(abs(each.lead)) for each in chosen)})"
        parts.append(f"{word} at {'' if parts else 'k = '}{where}")
    return ", ".join(parts)


def in_points(share: float) -> str:
    """A share in per cent with two digits that count.

    Example:
        >>> [in_points(share) for share in (0.428, -0.0136, 0.0002, 2e-6, 0.0)]
        ['42.8', '−1.36', '0.02', '0.0002', '0']
    """
    value = 100 * share
    digits = 1 if abs(value) >= 9.95 else 2 if abs(value) >= 0.0095 else 4
    text = f"{abs(value):.{digits}f}" if digits < 4 else f"{round(abs(value), 4):.1g}"
    return f"−{text}" if value < 0 and text != "0" else text


def by_data_set(found: Mapping[str, Any], words: Callable[[Any], str]) -> str:
    """Words for every data set of the paper's panels, after its name."""
    return "; ".join(f"{name}: {words(found[name])}" for name in FEATURED if name in found)


def elsewhere(verdicts: Mapping[str, Verdict]) -> str:
    """How many of the data sets that the paper does not show come out how."""
    others = {name: each for name, each in verdicts.items() if name not in FEATURED}
    parts = []
    for verdict in VERDICTS:
        names = [name for name, each in others.items() if each == verdict]
        if names:
            parts.append(f"{verdict} on {', '.join(names)}")
    return f"On data sets that the paper does not show here: {'; '.join(parts)}." if parts else ""


def idle(frame: pl.DataFrame, *, eps: float, metric: str) -> list[str]:
    """Data sets where no method that finds its own domain does better than to release nothing."""
    import polars as pl

    rows = frame.filter((pl.col("eps") == eps) & (pl.col("metric") == metric))
    nothing = rows.filter(pl.col("role") == "nothing").select("dataset", "k", nothing="mean")
    open_ = rows.filter(pl.col("private") & ~pl.col("public_domain")).join(
        nothing, on=["dataset", "k"], maintain_order="left"
    )
    worth = open_.group_by("dataset", maintain_order=True).agg(
        (1 - pl.col("mean") / pl.col("nothing")).max()
    )
    return [name for name, most in worth.rows() if most < _VISIBLE]


def idle_in_words(names: Sequence[str]) -> str:
    """A sentence, if there are any."""
    return f"Nothing to speak of is released on {', '.join(names)}." if names else ""


def large(frame: pl.DataFrame) -> dict[str, int]:
    """Data sets that can stand for the paper's large ones, and their pairs, the largest first."""
    pairs = dict(frame.select("dataset", "pairs").unique().rows())
    fit = [name for name in pairs if DATA_SETS[name].group == "large" and pairs[name] >= LARGE]
    return {name: pairs[name] for name in sorted(fit, key=lambda name: -pairs[name])}


def statement(
    source: str,
    says: str,
    verdicts: Mapping[str, Verdict],
    number: str,
    notes: Iterable[str] = (),
) -> list[Statement]:
    """One statement from verdicts by data set; none where no panel of the paper is there."""
    verdict = overall(verdicts)
    if verdict is None:
        return []
    note = " ".join(each for each in (*notes, elsewhere(verdicts)) if each)
    return [Statement(source, says, verdict, number, note)]
