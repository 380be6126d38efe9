"""One look for all plots: sizes, colours, literal text, log axes with a place for zero.

Nothing here touches matplotlib's global settings beyond the `with` block of `styled`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import matplotlib
import numpy as np
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter

# Widths in inches: one and two columns of a paper, without its margins.
COLUMN, PAGE = 3.3, 6.8

# Okabe and Ito's palette, told apart by every common kind of colour vision.
BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
YELLOW, BLUE, VERMILLION, PURPLE = "#F0E442", "#0072B2", "#D55E00", "#CC79A7"
BAND, FAINT, GREY = "#D0D0D0", "#F1F1F1", "#777777"

_FONT = "DejaVu Sans"  # shipped with matplotlib: the same picture on every machine
_RC: dict[str, Any] = {
    "font.family": [_FONT],
    "font.size": 7.5,
    "mathtext.fontset": "dejavusans",
    "text.usetex": False,
    "axes.titlesize": 7.5,
    "axes.labelsize": 7.5,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.prop_cycle": cycler(color=[BLUE, VERMILLION, GREEN, PURPLE]),
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.minor.width": 0.4,
    "ytick.minor.width": 0.4,
    "xtick.major.size": 3,
    "ytick.major.size": 3,
    "xtick.minor.size": 1.6,
    "ytick.minor.size": 1.6,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "legend.handlelength": 1.8,
    "legend.columnspacing": 1.3,
    "legend.handletextpad": 0.5,
    "lines.linewidth": 1.1,
    "lines.markersize": 3.6,
    "hatch.linewidth": 0.5,
    "figure.constrained_layout.use": True,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "savefig.dpi": 300,
    # Glyphs as outlines show everywhere; in PDF, TrueType stays searchable.
    "svg.fonttype": "path",
    "svg.hashsalt": "wgm",
    "pdf.fonttype": 42,
}

F = TypeVar("F", bound=Callable[..., Any])


@contextmanager
def style() -> Iterator[None]:
    """Our settings on top of matplotlib's defaults, whatever the user's matplotlibrc says."""
    with matplotlib.rc_context():
        # Only the defaults of what we draw with; the backend must not be touched.
        backend = matplotlib.rcParams["backend"]
        settings: Any = {**matplotlib.rcParamsDefault, "backend": backend, **_RC}
        matplotlib.rcParams.update(settings)
        yield


def styled(function: F) -> F:
    """Decorator: run a function under `style`."""

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        with style():
            return function(*args, **kwargs)

    return run  # type: ignore[return-value]


# ---- text


def literal(text: object, width: int = 40) -> str:
    r"""A name from the data as matplotlib text that shows exactly it: no mathtext, no boxes.

    Control characters and characters the font lacks become Python escapes; names longer than
    `width` lose their middle.

    Example:
        >>> literal("$x_%"), literal("a" * 50, width=9), literal("a\nb")
        ('\\$x_%', 'aaaa…aaaa', 'a\\nb')
    """
    name = str(text)
    if len(name) > width:
        half = (width - 1) // 2
        name = f"{name[: width - 1 - half]}…{name[len(name) - half :]}"
    glyphs = get_font(findfont(FontProperties(family=[_FONT])))
    shown = [
        c
        if c.isprintable() and glyphs.get_char_index(ord(c))
        else c.encode("unicode_escape", "backslashreplace").decode()
        for c in name
    ]
    # matplotlib shows "\$" as "$", inside and outside of mathtext.
    return "".join(shown).replace("$", r"\$")


def number(value: float | int, digits: int = 3) -> str:
    r"""A number in mathtext, powers of ten as such.

    Example:
        >>> number(0.25), number(1e-05), number(3.2e12)
        ('0.25', '$10^{-5}$', '$3.2\\times 10^{12}$')
    """
    if value == 0 or not math.isfinite(value) or 1e-3 <= abs(value) < 1e5:
        return f"{value:,.{digits}g}" if abs(value) < 1000 else f"{value:,.0f}"
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    mantissa = mantissa.rstrip("0").rstrip(".")
    power = f"10^{{{int(exponent)}}}"
    return f"${power}$" if mantissa == "1" else rf"${mantissa}\times {power}$"


# ---- axes


def log_ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Round numbers in [low, high] for a log axis: powers of ten, or 1-2-5 steps if it is short.

    Example:
        >>> log_ticks(0.15, 1.2), log_ticks(1e-6, 10.0, most=4)
        ([0.2, 0.5, 1.0], [1e-06, 0.0001, 0.01, 1.0])
    """
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    decades = last - first + 1
    # 20,000 between powers of ten reads badly; 0.2 and 0.5 read well.
    if decades >= (2 if high >= 1e4 else 3):
        step = math.ceil(decades / most)
        # Multiples of the step, so that 1 is among them.
        start = math.ceil(first / step) * step
        return [float(f"1e{power}") for power in range(start, last + 1, step)]
    for steps in ((1, 2, 5), (1, 1.5, 2, 3, 5, 7)):
        candidates = [float(f"{m}e{p}") for p in range(first - 1, last + 1) for m in steps]
        ticks = [t for t in candidates if low * (1 - 1e-9) <= t <= high * (1 + 1e-9)]
        if len(ticks) >= 2:
            return ticks
    return ticks or [low]


def log_axis(
    axes: Axes, which: str, low: float, high: float, zero: float | None = None, most: int = 6
) -> None:
    """Make one axis logarithmic over [low, high], with ticks of our own.

    Args:
        axes: Where.
        which: "x" or "y".
        low: Lower limit, the place of zero included.
        high: Upper limit.
        zero: Where values of 0 are drawn; that place gets a tick "0", and no tick lies below it.
        most: Most labelled powers of ten.
    """
    getattr(axes, f"set_{which}scale")("log")
    getattr(axes, f"set_{which}lim")(low, high)
    axis = axes.xaxis if which == "x" else axes.yaxis
    lowest = low if zero is None else zero * 1.5
    ticks = log_ticks(lowest, high, most)
    axis.set_major_locator(FixedLocator(ticks if zero is None else [zero, *ticks]))
    powers = len(ticks) > 1 and (max(ticks) >= 1e4 or min(ticks) < 1e-3)

    def show(value: float, _position: int | None) -> str:
        if zero is not None and math.isclose(value, zero):
            return "0"
        if powers and abs(round(math.log10(value)) - math.log10(value)) < 1e-9:
            return f"$10^{{{round(math.log10(value))}}}$"
        return number(value)

    axis.set_major_formatter(FuncFormatter(show))
    decades = math.log10(high / lowest)
    if decades <= 12:
        minor = LogLocator(subs=tuple(range(2, 10))).tick_values(lowest, high)
        inside = [t for t in minor if lowest <= t <= high]
        axis.set_minor_locator(FixedLocator(inside))
    else:
        axis.set_minor_locator(FixedLocator([]))
    axis.set_minor_formatter(NullFormatter())


def subplots(
    rows: int, columns: int, *, height: float, width: float | None = None, share: bool = True
) -> tuple[Figure, list[Axes]]:
    """A figure without pyplot, and its axes row by row.

    Args:
        rows: Rows of panels.
        columns: Columns of panels; one column is column-wide unless `width` says otherwise.
        height: Height of one row, inches.
        width: Width of the figure, inches.
        share: Whether all panels share both axes.
    """
    wide = width if width is not None else (COLUMN if columns == 1 else PAGE)
    figure = Figure(figsize=(wide, height * rows), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.03, h_pad=0.03, wspace=0.02)  # type: ignore[union-attr]
    grid = figure.subplots(rows, columns, sharex=share, sharey=share, squeeze=False)
    return figure, list(grid.flat)


def key_above(
    figure: Figure, handles: Sequence[Any], columns: int | None = None, title: str | None = None
) -> None:
    """The key, and the figure's title, above the panels, where they cover nothing."""
    figure.legend(
        handles,
        [handle.get_label() for handle in handles],
        loc="outside upper center",
        ncols=columns or len(handles),
        borderaxespad=0.2,
        title=None if title is None else literal(title, width=60),
        title_fontsize=8,
    )


def positive(values: Any) -> np.ndarray:
    """The finite values above 0, flat."""
    array = np.asarray(values, np.float64).ravel()
    return array[np.isfinite(array) & (array > 0)]
