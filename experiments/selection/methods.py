"""The methods that are compared, by task; their code is imported when one is used."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeAlias, cast

from theory import InvalidInput
from theory._check import check_count, invalid
from theory.peeling import Conversion
from wgm_jax.registry import MechanismInfo, get, mechanisms

Task: TypeAlias = Literal["top-k", "hitting-set"]
TOP_K: Task = "top-k"
"""Task of choosing the k most frequent items."""
HITTING_SET: Task = "hitting-set"
"""Task of choosing k items that hit as many users as possible."""


@dataclass(frozen=True)
class Method:
    """One curve of a comparison.

    Attributes:
        label: Name in tables and plots.
        name: Name of the mechanism, as for --mechanism.
        make: Makes the mechanism for `wgm_jax.selection.trials.run_selections`.
        private: Whether (eps, delta)-DP is claimed.
        public_domain: Whether the union of all sets is taken as public.
    """

    label: str
    name: str
    make: Callable[[], Any]
    private: bool = True
    public_domain: bool = False


def methods(
    task: Task,
    names: Sequence[str] = (),
    *,
    k_bar: Sequence[str] = ("k", "5k", "10k", "inf"),
    conversion: str = "paper",
    accountant: str = "closed",
) -> tuple[Method, ...]:
    """The methods for a task, built-in ones and those of installed packages.

    Args:
        task: "top-k" or "hitting-set".
        names: Names of mechanisms to be compared; default all but specimens.
        k_bar: Domain sizes of limited-domain top-k: "5k" for five times k, "inf", or a number.
        conversion: How [K1] turns zCDP into (eps, delta): "paper", or "tight" for less noise.
        accountant: Noise of user peeling: "closed" for the smaller of [K1] and [K1h], "exact" for
            that of the game at each k, or "paper" for [K1].

    Returns:
        One `Method` each.

    Raises:
        InvalidInput: A name that no mechanism for the task has, a k_bar that is no size, or an
            unknown conversion or accountant.

    Example:
        >>> [method.label for method in methods("hitting-set")]
        ['user-peeling', 'user-peeling-public', 'greedy']
        >>> [method.label for method in methods("top-k", ["limited-domain"], k_bar=["k", "500"])]
        ['limited-domain k̄=k', 'limited-domain k̄=500']
    """
    if task not in (TOP_K, HITTING_SET):
        invalid("task", task, "must be top-k or hitting-set")
    if conversion not in ("paper", "tight"):
        invalid("conversion", conversion, "must be paper or tight")
    if accountant not in ("closed", "exact", "paper"):
        invalid("accountant", accountant, "must be closed, exact or paper")
    known = [m for info in mechanisms(task) for m in _variants(info, k_bar, conversion, accountant)]
    if not names:
        return tuple(method for method in known if method.name != _SPECIMEN)
    for name in names:
        if name not in {method.name for method in known}:
            all_names = dict.fromkeys(method.name for method in known)
            invalid("mechanism", name, f"must be one of {', '.join(all_names)}")
    return tuple(method for name in dict.fromkeys(names) for method in known if method.name == name)


_SPECIMEN = "user-peeling-early-stop"


def _variants(
    info: MechanismInfo, k_bar: Sequence[str], conversion: str, accountant: str
) -> list[Method]:
    """The curves of one mechanism."""
    if info.name == "limited-domain":
        return [_limited_domain(text) for text in dict.fromkeys(k_bar)]
    make = partial(_make, info.name, conversion, accountant)
    return [Method(info.name, info.name, make, info.private, info.public_domain)]


def _make(name: str, conversion: str, accountant: str) -> Any:
    """The mechanism of the registry, with its noise as asked for."""
    from wgm_jax.selection.selector import OnFoundDomain

    used = get(name)
    if isinstance(used, OnFoundDomain):
        return OnFoundDomain(_with_options(used.selector, conversion, accountant))
    return _with_options(used, conversion, accountant)


def _with_options(selector: Any, conversion: str, accountant: str) -> Any:
    """Peeling with another conversion, user peeling with another accountant, others as they are."""
    from wgm_jax.selection.hitting import UserPeeling
    from wgm_jax.selection.top_k import Peeling

    if isinstance(selector, Peeling):
        return dataclasses.replace(selector, conversion=cast(Conversion, conversion))
    if isinstance(selector, UserPeeling) and selector.scale is None:
        return dataclasses.replace(selector, accountant=accountant)
    return selector


def _limited_domain(text: str) -> Method:
    size = parse_k_bar(text)

    def make() -> Any:
        from wgm_jax.selection.limited_domain import LimitedDomain

        return LimitedDomain(**size)

    shown = "∞" if size.get("k_bar") == math.inf else text
    return Method(f"limited-domain k̄={shown}", "limited-domain", make)


def parse_k_bar(text: str) -> dict[str, Any]:
    """Arguments of `LimitedDomain` for a size written as "k", "5k", "inf" or a number.

    Example:
        >>> parse_k_bar("5k"), parse_k_bar("inf"), parse_k_bar("500")
        ({'multiple': 5.0}, {'k_bar': inf}, {'k_bar': 500})
    """
    accepted = 'must be "k", a multiple of at least 1 such as "5k", "inf" or a whole number'
    try:
        if text == "inf":
            return {"k_bar": math.inf}
        if not text.endswith("k"):
            return {"k_bar": check_count("k_bar", float(text))}
        multiple = float(text[:-1] or 1)
    except (ValueError, InvalidInput):
        invalid("k_bar", text, accepted)
    if not 1 <= multiple < math.inf:
        invalid("k_bar", text, f"{accepted}: k_bar must not be below k")
    return {"multiple": multiple}
