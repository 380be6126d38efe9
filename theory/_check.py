"""Input checks, used at public edges only: every message names argument, value and range."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn, TypeAlias

import numpy as np

# A number or an array of numbers. Not numpy's ArrayLike, which names int only through complex.
Reals: TypeAlias = float | int | np.number | np.ndarray | Sequence[Any]

# Beyond these the closed forms leave float64: delta/Delta0 would be denormal, e**eps is not needed.
SMALLEST_DELTA = 1e-300
LARGEST_EPS = 1e5
LARGEST_CONTRIBUTION = 10**9


class InvalidInput(ValueError):
    """A public argument is outside its accepted range.

    Attributes:
        name: Argument, as written in Python (`max_items_per_user`).
        value: What was passed.
        accepted: The accepted range in words, such as "must be in (0, 0.5]".

    Example:
        >>> from theory import InvalidInput, calibrate
        >>> try:
        ...     calibrate(eps=1.0, delta=2.0, max_items_per_user=1)
        ... except InvalidInput as error:
        ...     print(error.name, error.accepted)
        delta must be in (0, 0.5]
    """

    def __init__(self, name: str, value: Any, accepted: str) -> None:
        self.name, self.value, self.accepted = name, value, accepted
        super().__init__(f"{name} = {_show(value)}: {accepted}")


def _show(value: Any) -> str:
    text = str(value) if isinstance(value, (str, int, float, np.generic)) else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def invalid(name: str, value: Any, accepted: str) -> NoReturn:
    """Raise `InvalidInput` for one argument."""
    raise InvalidInput(name, value, accepted)


def _floats(name: str, value: Reals, accepted: str) -> np.ndarray:
    """`value` as a float64 array; anything that is not a real number is refused."""
    try:
        array = np.asarray(value)
        if array.dtype.kind not in "iuf":
            raise TypeError
        return array.astype(np.float64)
    except (TypeError, ValueError):
        invalid(name, value, accepted)


def _within(name: str, value: Reals, accepted: str, ok: Any) -> np.ndarray:
    array = _floats(name, value, accepted)
    good = ok(array) & ~np.isnan(array)
    if not np.all(good):
        invalid(name, array[~good].flat[0], accepted)
    return array


def check_eps(eps: Reals) -> np.ndarray:
    """Privacy parameter eps, any shape, in [0, 1e5]."""
    accepted = "must be a number in [0, 1e5]"
    return _within("eps", eps, accepted, lambda v: (v >= 0) & (v <= LARGEST_EPS))


def check_delta(delta: Reals) -> np.ndarray:
    """Privacy parameter delta, any shape, in (0, 0.5]; below 1e-300 float64 has no room."""
    array = _within("delta", delta, "must be in (0, 0.5]", lambda v: (v > 0) & (v <= 0.5))
    if np.any(array < SMALLEST_DELTA):
        invalid("delta", array.min(), "must be in (0, 0.5], and at least 1e-300 in float64")
    return array


def check_beta(beta: Reals, name: str = "beta") -> np.ndarray:
    """Failure probability, any shape, in (0, 1)."""
    return _within(name, beta, "must be in (0, 1)", lambda v: (v > 0) & (v < 1))


def check_positive(name: str, value: Reals) -> np.ndarray:
    """A finite number above 0, any shape."""
    accepted = "must be a finite number above 0"
    return _within(name, value, accepted, lambda v: (v > 0) & np.isfinite(v))


def check_zipf_exponent(s: Reals, *, above: float = 1.0) -> np.ndarray:
    """Zipf exponent s, any shape; the mass bounds need s > 1."""
    accepted = f"must be a finite number above {above:g}"
    return _within("s", s, accepted, lambda v: (v > above) & np.isfinite(v))


def check_zipf_constant(constant: Reals) -> np.ndarray:
    """Zipf constant C, any shape, at least 1."""
    return _within(
        "C", constant, "must be a finite number of at least 1", lambda v: (v >= 1) & np.isfinite(v)
    )


def check_count(name: str, value: Any, *, minimum: int = 1, maximum: int | None = None) -> int:
    """A whole number of at least `minimum`; 10.0 and numpy integers are accepted, 2.5 is not."""
    upper = f" and at most {maximum}" if maximum is not None else ""
    accepted = f"must be a whole number of at least {minimum}{upper}"
    try:
        number = int(value)
        whole = not isinstance(value, (bool, str)) and number == value
    except (TypeError, ValueError, OverflowError):
        invalid(name, value, accepted)
    if not whole or number < minimum or (maximum is not None and number > maximum):
        invalid(name, value, accepted)
    return number


def check_max_items_per_user(value: Reals) -> np.ndarray:
    """Contribution bound Delta0, any shape, whole numbers from 1 to 1e9, as int64."""
    accepted = "must be a whole number from 1 to 1e9"
    array = _within(
        "max_items_per_user",
        value,
        accepted,
        lambda v: (v >= 1) & (v <= LARGEST_CONTRIBUTION) & (np.floor(v) == v),
    )
    return array.astype(np.int64)
