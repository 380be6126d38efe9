"""Small pictures inside tables: where numbers lie on one logarithmic axis.

They repeat the numbers beside them, so they are hidden from screen readers; colours are classes of
the page, for light and dark.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

_HEIGHT, _EDGE = 20, 7
# Outlines around (0, 0); one shape per kind of bound, so that colour is not needed.
_SHAPES = {
    "tick": "M0-6V6",
    "dot": "M-3.2 0a3.2 3.2 0 1 0 6.4 0a3.2 3.2 0 1 0-6.4 0",
    "down": "M-4-3.4H4L0 4z",
    "up": "M-4 3.4H4L0-4z",
    "square": "M-3.2-3.2H3.2V3.2H-3.2z",
    "diamond": "M0-4.2L4.2 0L0 4.2L-4.2 0z",
    "ring": "M-3 0a3 3 0 1 0 6 0a3 3 0 1 0-6 0",
}


@dataclass(frozen=True)
class Mark:
    """One number on a strip: its shape, and a class that gives its colour."""

    value: float | None
    shape: str
    kind: str


@dataclass(frozen=True)
class Axis:
    """A logarithmic axis from `low` to `high` on a strip of `width` units."""

    low: float
    high: float
    width: int = 220

    def place(self, value: float) -> float:
        """Where a number lies; beyond the ends: at the end.

        Example:
            >>> Axis(1.0, 100.0, width=214).place(10.0)
            107.0
        """
        share = math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)
        return round(_EDGE + min(share, 1.0) * (self.width - 2 * _EDGE), 1)

    def ticks(self) -> list[float]:
        """Powers of ten inside, with steps between them where there are few."""
        first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
        steps = {1: (1, 2, 5), 2: (1, 3)}.get(last - first, (1,))
        every = [float(f"{m}e{power}") for power in range(first, last + 1) for m in steps]
        return [t for t in every if self.low * 0.999 <= t <= self.high * 1.001]

    def head(self, suffix: str = "", scale: float = 1.0) -> Markup:
        """The axis itself, with numbers, for the head of a column."""
        texts = Markup().join(
            Markup('<text x="{}" y="13">{}{}</text>').format(
                self.place(tick), f"{tick * scale:g}", suffix
            )
            for tick in self.ticks()
        )
        return self._svg(texts, "strip axis")

    def strip(
        self, marks: Sequence[Mark], *, band: tuple[float, float] | None = None, bar: bool = False
    ) -> Markup:
        """One row: ticks, a band, and the marks that have a value.

        Args:
            marks: In the order of drawing.
            band: Ends of a bar behind the marks.
            bar: Whether the band is thick.
        """
        middle = _HEIGHT / 2
        parts = [
            Markup('<path class="tick" d="M{0} 2V{1}"/>').format(self.place(t), _HEIGHT - 2)
            for t in self.ticks()
        ]
        if band is not None:
            start, end = (self.place(value) for value in band)
            parts.append(
                Markup('<rect class="band" x="{}" y="{}" width="{}" height="{}" rx="1.5"/>').format(
                    start, middle - (4 if bar else 1.5), max(round(end - start, 1), 1.5),
                    8 if bar else 3,
                )
            )  # fmt: skip
        parts += [
            Markup('<path class="{}" transform="translate({} {})" d="{}"/>').format(
                mark.kind, self.place(mark.value), middle, _SHAPES[mark.shape]
            )
            for mark in marks
            if mark.value is not None
        ]
        return self._svg(Markup().join(parts), "strip")

    def _svg(self, content: Markup, kind: str) -> Markup:
        return Markup('<svg class="{}" viewBox="0 0 {} {}" aria-hidden="true">{}</svg>').format(
            kind, self.width, _HEIGHT, content
        )


def key(shape: str, kind: str) -> Markup:
    """A mark by itself, for the key of a table."""
    return Markup(
        '<svg class="strip" viewBox="-7 -7 14 14" width="14" height="14" aria-hidden="true">'
        '<path class="{}" d="{}"/></svg>'
    ).format(kind, _SHAPES[shape])
