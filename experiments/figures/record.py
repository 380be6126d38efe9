"""What a figure is: where its numbers come from, how it is drawn, and what it says of the paper."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from experiments.figures.task import Task

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

Verdict = Literal["reproduced", "with reservation", "not reproduced"]
VERDICTS: tuple[Verdict, ...] = ("reproduced", "with reservation", "not reproduced")


@dataclass(frozen=True)
class Statement:
    """A sentence of the paper, and what became of it here.

    Attributes:
        source: Where the paper says it, such as "Section 5.1, Figure 1".
        says: What it says, in our words.
        verdict: Computed from the numbers, never typed in.
        number: The numbers that decide it.
        note: What else a reader should know.

    Example:
        >>> Statement("Section 5", "WGM is best", "reproduced", "12 of 13").verdict
        'reproduced'
    """

    source: str
    says: str
    verdict: Verdict
    number: str
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The record as plain Python values."""
        return asdict(self)


def verdict_of(good: int, bad: int, total: int) -> Verdict:
    """All good: reproduced. More than half bad: not. Otherwise with reservation.

    Example:
        >>> verdict_of(4, 0, 4), verdict_of(3, 1, 4), verdict_of(1, 3, 4), verdict_of(3, 0, 4)
        ('reproduced', 'with reservation', 'not reproduced', 'with reservation')
    """
    if good == total:
        return "reproduced"
    return "not reproduced" if 2 * bad > total else "with reservation"


@dataclass(frozen=True)
class FigureSpec:
    """One figure.

    Attributes:
        name: What `wgm figure` calls it: "1" to "13" as in the paper, or a word.
        stem: File name without suffix, such as "figure-01".
        title: One line.
        paper: What the paper shows there and says of it, in our words; None if it has no such
            figure.
        tasks: tasks(present, trials, seed): from the presets that are present to the work to be
            done; no tasks without the data it needs. Equal tasks of several figures are done once.
            May give a heavy data set fewer trials; the caption says so.
        draw: From the results of the tasks to the figure and the plotted numbers. The results are
            concatenated (diagonally), with a column `made_by`: the kind of the task.
        judge: From the same results to statements; none where the data present cannot tell.
        caption: From the same results: data, trials, seed, delta, intervals. What the paper says
            and the verdicts are added by `full_caption`.
        trials: Trials if the user asks for no number.
        prepare: Called before workers start with the tasks to be done; once for all figures that
            name the same function, with the tasks of all of them.
    """

    name: str
    stem: str
    title: str
    paper: str | None
    tasks: Callable[[Sequence[str], int, int], list[Task]]
    draw: Callable[[pl.DataFrame], tuple[Figure, pl.DataFrame]]
    judge: Callable[[pl.DataFrame], list[Statement]]
    caption: Callable[[pl.DataFrame], str]
    trials: int = 20
    prepare: Callable[[Sequence[Task]], None] | None = None


def full_caption(spec: FigureSpec, frame: pl.DataFrame, statements: Sequence[Statement]) -> str:
    """Caption with what the paper says and the verdicts; their numbers are in the statements.

    Example:
        >>> found = [Statement("Section 5", "WGM is best", "reproduced", "12 of 13")]
        >>> spec = FigureSpec("1", "figure-01", "Losses", "WGM is best.", lambda p, t, s: [],
        ...                   lambda f: None, lambda f: found, lambda f: "Three data sets.")
        >>> full_caption(spec, None, found)
        'Three data sets. The paper: WGM is best. Found here: reproduced (WGM is best).'
    """
    parts = [spec.caption(frame)]
    if spec.paper:
        parts.append(f"The paper: {spec.paper}")
    if statements:
        found = "; ".join(f"{each.verdict} ({each.says})" for each in statements)
        parts.append(f"Found here: {found}.")
    return " ".join(part.strip() for part in parts if part.strip())
