"""Quantiles and certificates of the missing mass from exact miss probabilities, no simulation.

Where nothing is clipped, items are missed independently and the law of MM is exact ([E3]). Where
users are clipped, misses are negatively associated: Chernoff ([E5]) and hinge ([E6]) bounds of the
independent sum with the same marginals still hold, from above and from below.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np
from jaxtyping import Num

from theory._check import InvalidInput, Reals, check_beta, invalid
from theory.bernoulli_sums import LatticeLaw, bernoulli_sum_law, chernoff_quantile
from theory.bound import Bound
from theory.lemmas import CLIPPED, NOTHING_CLIPPED
from theory.miss_probability import MissProbabilities
from theory.zipf import plain

Side = Literal["upper", "lower"]
# A share k/N times N may round to just below k: twice half a unit in the last place, and room.
_WHOLE_GUARD = 4 * float(np.finfo(np.float64).eps)
_SOURCE = "negative association"


def missing_mass_law(at_one_point: MissProbabilities) -> LatticeLaw:
    """Exact law of N MM, the number of missed pairs, where no user is clipped.

    Args:
        at_one_point: Miss probabilities of one calibration, Delta0 >= L.

    Returns:
        The law, in pairs; divide values by N for shares.

    Raises:
        InvalidInput: Users are clipped, a grid was given, or the window of the law is too long.

    Source:
        [E3].

    Example:
        >>> misses = MissProbabilities(
        ...     miss=np.array([0.5, 1.0]), hit=np.array([0.5, 0.0]), frequencies=np.array([3, 1]),
        ...     multiplicity=np.array([2, 1]), num_pairs=7, independent=True,
        ... )
        >>> law = missing_mass_law(misses)
        >>> law.first, law.pmf.round(3).tolist()
        (1, [0.25, 0.0, 0.0, 0.5, 0.0, 0.0, 0.25])
    """
    _require_independent(at_one_point)
    if at_one_point.miss.ndim != 1:
        shape = at_one_point.miss.shape[:-1]
        invalid("at_one_point", f"grid {shape}", "must be one grid point, see .at(index)")
    return at_one_point.independent_law()


def exact_quantile(misses: MissProbabilities, q: float) -> Any:
    """Exact quantile of the missing mass where no user is clipped: least v with P(MM <= v) >= q.

    Args:
        misses: Miss probabilities, any grid, Delta0 >= L.
        q: Level, in (0, 1).

    Returns:
        Share, whole number over N: float, or float64 of the grid's shape. Where the cdf comes
        within the law's error (about 1e-13) of q, the next value may be returned.

    Raises:
        InvalidInput: Users are clipped, q outside (0, 1), or the window of the law is too long.

    Source:
        [E3].

    Example:
        >>> misses = MissProbabilities(
        ...     miss=np.array([0.5]), hit=np.array([0.5]), frequencies=np.array([2]),
        ...     multiplicity=np.array([50]), num_pairs=100, independent=True,
        ... )
        >>> exact_quantile(misses, 0.95), exact_exceedance(misses, 0.62) < 0.05
        (0.62, True)
    """
    q = float(check_beta(q, "q"))
    _require_independent(misses)

    laws = (misses.independent_law(index) for index in _indices(misses))
    return _shaped(misses, [law.quantile(q) / misses.num_pairs for law in laws])


def exact_exceedance(misses: MissProbabilities, bound: Reals) -> Any:
    """Exact P(MM > bound) where no user is clipped.

    N MM is a whole number, compared with floor(bound N (1 + 9e-16)): a bound that was meant as k/N
    stays at k however it was rounded.

    Args:
        misses: Miss probabilities, any grid, Delta0 >= L.
        bound: Share, a number or an array of the grid's shape.

    Returns:
        Probability: float, or float64 of the grid's shape, within the law's error, about 1e-13.

    Raises:
        InvalidInput: Users are clipped, a bound that is nan, or the window of the law is too long.

    Source:
        [E3].

    Example:
        >>> misses = MissProbabilities(
        ...     miss=np.array([0.5]), hit=np.array([0.5]), frequencies=np.array([2]),
        ...     multiplicity=np.array([2]), num_pairs=4, independent=True,
        ... )
        >>> round(exact_exceedance(misses, 0.5), 12), round(exact_exceedance(misses, 0.49), 12)
        (0.25, 0.75)
    """
    _require_independent(misses)
    limits = np.broadcast_to(np.asarray(bound, np.float64), misses.miss.shape[:-1])
    if np.any(np.isnan(limits)):
        invalid("bound", bound, "must be a number")
    # Beyond these nothing changes, and whole numbers stay in range.
    pairs = np.floor(np.clip(limits, -1.0, 2.0) * misses.num_pairs * (1 + _WHOLE_GUARD))
    laws = (misses.independent_law(index) for index in _indices(misses))
    return _shaped(misses, [law.sf(int(v)) for law, v in zip(laws, pairs.flat, strict=True)])


def chernoff_bound(
    misses: MissProbabilities,
    beta: float,
    *,
    side: Side = "upper",
    weights: Num[np.ndarray, " classes"] | None = None,
) -> Bound:
    """Missing mass above (below) which at most beta of the probability lies, for every Delta0.

        upper: inf over t > 0 of (sum ln(1 - m + m e^(t a)) + ln(1/beta)) / t,
        lower: sup over t > 0 of (-sum ln(1 - m + m e^(-t a)) - ln(1/beta)) / t.

    At most the mass that can be missed, at least the mass that always is.

    Args:
        misses: Miss probabilities, any grid.
        beta: Failure probability in (0, 1).
        side: "upper" or "lower".
        weights: (classes,) what a missed item of each class costs, at least 0, instead of its
            mass: ones for the number of missed items, a(x)^p for MM_p^p.

    Returns:
        Bound of the grid's shape; on the missing mass, or with `weights` on the weight of all
        missed items.

    Raises:
        InvalidInput: beta outside (0, 1), an unknown side, or a probability outside [0, 1].

    Source:
        [E5], by [E4].

    Example:
        >>> misses = MissProbabilities(
        ...     miss=np.array([0.5]), hit=np.array([0.5]), frequencies=np.array([2]),
        ...     multiplicity=np.array([50]), num_pairs=100, independent=True,
        ... )
        >>> round(chernoff_bound(misses, 0.05).value, 4)
        0.6713
        >>> round(chernoff_bound(misses, 0.05, side="lower").value, 4)
        0.3287
    """
    beta = float(check_beta(beta))
    _check_side(side)
    costs, scale = _costs(misses, weights)

    times = misses.multiplicity
    values = [
        chernoff_quantile(costs, miss, hit, times, beta=beta, side=side) / scale
        for miss, hit in _points(misses)
    ]
    return _bound(misses, values, "[E5]", side, beta, weights)


def hinge_bound(
    misses: MissProbabilities,
    beta: float,
    *,
    side: Side = "upper",
    weights: Num[np.ndarray, " classes"] | None = None,
) -> Bound:
    """Missing mass above (below) which at most beta of the probability lies, for every Delta0.

        upper: inf over u of u + E(X* - u)_+ / beta,   lower: sup over u of u - E(u - X*)_+ / beta,

    X* the independent sum: the mean of its largest (smallest) share beta. X is below X* in convex
    order, and P(X > v) <= E(X - u)_+ / (v - u). The error of the computed law is added to it.
    Never above [E5], except where the error of the law shows: beta near 1e-13.

    Args:
        misses: Miss probabilities, any grid.
        beta: Failure probability in (0, 1).
        side: "upper" or "lower".
        weights: (classes,) whole numbers, what a missed item of each class costs instead of its
            frequency: ones for the number of missed items.

    Returns:
        Bound of the grid's shape; on the missing mass, or with `weights` on the weight of all
        missed items. Where the law's window is too long it is [E5], and `conditions` say so.

    Raises:
        InvalidInput: beta outside (0, 1), an unknown side, or a probability outside [0, 1].

    Source:
        [E6], by [E4] and Shao 2000.

    Example:
        >>> misses = MissProbabilities(
        ...     miss=np.array([0.5]), hit=np.array([0.5]), frequencies=np.array([2]),
        ...     multiplicity=np.array([50]), num_pairs=100, independent=True,
        ... )
        >>> round(hinge_bound(misses, 0.05).value, 4)
        0.6447
    """
    beta = float(check_beta(beta))
    _check_side(side)
    costs, scale = _costs(misses, weights)
    values, notes = [], []
    for index, (miss, hit) in zip(_indices(misses), _points(misses), strict=True):
        try:
            law = (
                misses.independent_law(index)
                if weights is None
                else bernoulli_sum_law(costs, miss, hit, misses.multiplicity)
            )
        except InvalidInput as error:
            if error.name != "window":
                raise
            notes = ["[E5] where the window of the law is too long"]
            times = misses.multiplicity
            pairs = chernoff_quantile(costs, miss, hit, times, beta=beta, side=side)
        else:
            cost = costs * misses.multiplicity
            if side == "upper":
                pairs = min(law.upper_tail_mean(beta), float(cost[miss > 0].sum()))
            else:
                pairs = max(law.lower_tail_mean(beta), float(cost[hit == 0].sum()))
        values.append(pairs / scale)
    return _bound(misses, values, "[E6]", side, beta, weights, notes)


def certificate(misses: MissProbabilities, beta: float) -> Bound:
    """The smaller of [E5] and [E6]: with probability at least 1 - beta, MM is at most this.

    Args:
        misses: Miss probabilities, any grid.
        beta: Failure probability in (0, 1).

    Returns:
        Bound on the missing mass, of the grid's shape. details: `chernoff` and `hinge`.

    Raises:
        InvalidInput: beta outside (0, 1), or a probability outside [0, 1].

    Source:
        [E5], [E6].

    Example:
        >>> misses = MissProbabilities(
        ...     miss=np.array([0.5]), hit=np.array([0.5]), frequencies=np.array([2]),
        ...     multiplicity=np.array([50]), num_pairs=100, independent=True,
        ... )
        >>> best = certificate(misses, 0.05)
        >>> round(best.value, 4), round(best.details["chernoff"], 4)
        (0.6447, 0.6713)
    """
    hinge, chernoff = hinge_bound(misses, beta), chernoff_bound(misses, beta)
    value = np.minimum(hinge.value, chernoff.value)
    return Bound(
        plain(value), "[E5, E6]", _SOURCE, "missing_mass", "upper",
        "quantile", hinge.failure_probability, hinge.conditions,
        {"hinge": hinge.value, "chernoff": chernoff.value},
    )  # fmt: skip


def variance_bound(
    misses: MissProbabilities, *, weights: Num[np.ndarray, " classes"] | None = None
) -> Any:
    """Var MM <= sum a(x)^2 m(x) (1 - m(x)), with equality where no user is clipped.

    Args:
        misses: Miss probabilities, any grid.
        weights: (classes,) what a missed item of each class costs instead of its mass.

    Returns:
        float, or float64 of the grid's shape.

    Source:
        [E5].

    Example:
        >>> misses = MissProbabilities(
        ...     miss=np.array([0.5]), hit=np.array([0.5]), frequencies=np.array([2]),
        ...     multiplicity=np.array([50]), num_pairs=100, independent=True,
        ... )
        >>> variance_bound(misses)
        0.005
    """
    costs, scale = _costs(misses, weights)
    squares = misses.multiplicity * (costs / scale) ** 2
    return _shaped(misses, [squares @ (miss * hit) for miss, hit in _points(misses)])


def max_missing_mass_bracket(misses: MissProbabilities, beta: float) -> tuple[Bound, Bound]:
    """Bounds, from below and above, on the (1 - beta)-quantile of the largest missed mass.

    1 - prod_{a > v} (1 - m) <= P(MM_inf > v) <= sum_{a > v} m. Where no user is clipped the first
    is an equality, and both bounds are the exact quantile.

    Args:
        misses: Miss probabilities, any grid.
        beta: Failure probability in (0, 1).

    Returns:
        (lower, upper), each of the grid's shape. MM_inf <= upper with probability at least
        1 - beta; for every v < lower, P(MM_inf > v) > beta.

    Raises:
        InvalidInput: beta outside (0, 1).

    Source:
        [E7].

    Example:
        >>> misses = MissProbabilities(
        ...     miss=np.array([0.01, 0.03, 0.2]), hit=np.array([0.99, 0.97, 0.8]),
        ...     frequencies=np.array([30, 20, 1]), multiplicity=np.array([1, 2, 10]),
        ...     num_pairs=80, independent=False,
        ... )
        >>> [bound.value for bound in max_missing_mass_bracket(misses, 0.0695)]
        [0.0125, 0.25]
    """
    beta = float(check_beta(beta))

    limit = -float(np.log1p(-beta))
    least = [_largest_missed(misses, -_log_hit(*point), limit) for point in _points(misses)]
    most = least
    if not misses.independent:
        most = [_largest_missed(misses, miss, beta) for miss, _ in _points(misses)]
    condition = NOTHING_CLIPPED if misses.independent else CLIPPED
    lower = Bound(
        _shaped(misses, least), "[E7]", _SOURCE, "max_missing_mass", "lower", "quantile", beta,
        (condition, "a lower bound on the (1 - beta)-quantile"),
    )  # fmt: skip
    upper = Bound(
        _shaped(misses, most), "[E7]", _SOURCE, "max_missing_mass", "upper", "quantile", beta,
        (condition,),
    )  # fmt: skip
    return lower, upper


def exact_max_quantile(misses: MissProbabilities, q: float) -> Any:
    """Exact quantile of the largest missed mass where no user is clipped.

    Args:
        misses: Miss probabilities, any grid, Delta0 >= L.
        q: Level, in (0, 1).

    Returns:
        Least v with P(MM_inf <= v) = prod_{a > v} (1 - m) >= q: float, or float64 of the grid's
        shape.

    Raises:
        InvalidInput: Users are clipped, or q outside (0, 1).

    Source:
        [E3].

    Example:
        >>> misses = MissProbabilities(
        ...     miss=np.array([0.01, 0.5]), hit=np.array([0.99, 0.5]),
        ...     frequencies=np.array([30, 1]), multiplicity=np.array([1, 10]),
        ...     num_pairs=40, independent=True,
        ... )
        >>> exact_max_quantile(misses, 0.95), exact_max_quantile(misses, 0.995)
        (0.025, 0.75)
    """
    q = float(check_beta(q, "q"))
    _require_independent(misses)

    limit = -float(np.log(q))
    values = [_largest_missed(misses, -_log_hit(*point), limit) for point in _points(misses)]
    return _shaped(misses, values)


def _largest_missed(misses: MissProbabilities, terms: np.ndarray, limit: float) -> float:
    """Least v such that the terms of items above v sum to at most `limit`."""
    order = np.argsort(-misses.frequencies, kind="stable")
    sums = np.cumsum((misses.multiplicity * terms)[order])
    crossing = int(np.searchsorted(sums, limit, side="right"))
    if crossing == sums.size:
        return 0.0
    return int(misses.frequencies[order[crossing]]) / misses.num_pairs


def _log_hit(miss: np.ndarray, hit: np.ndarray) -> np.ndarray:
    """ln(1 - m) to full relative precision."""
    with np.errstate(divide="ignore"):  # always missed: -inf is right
        return np.where(miss < 0.5, np.log1p(-np.minimum(miss, 0.5)), np.log(hit))


def _indices(misses: MissProbabilities) -> Iterator[tuple[int, ...]]:
    """Every grid point."""
    return np.ndindex(misses.miss.shape[:-1])


def _points(misses: MissProbabilities) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """(miss, hit) of every grid point."""
    return ((misses.miss[index], misses.hit[index]) for index in _indices(misses))


def _shaped(misses: MissProbabilities, values: list[Any]) -> Any:
    """One value for every grid point: a float, or float64 of the grid's shape."""
    shape = misses.miss.shape[:-1]
    return np.array(values, np.float64).reshape(shape) if shape else float(values[0])


def _costs(misses: MissProbabilities, weights: np.ndarray | None) -> tuple[np.ndarray, int]:
    """Weight of a missed item by class, and the unit in which the sum is reported."""
    return (misses.frequencies, misses.num_pairs) if weights is None else (weights, 1)


def _bound(
    misses: MissProbabilities,
    values: list[Any],
    tag: str,
    side: Side,
    beta: float,
    weights: np.ndarray | None,
    notes: Sequence[str] = (),
) -> Bound:
    return Bound(
        _shaped(misses, values), tag, _SOURCE,
        "missing_mass" if weights is None else "weight", side, "quantile", beta,
        (NOTHING_CLIPPED if misses.independent else CLIPPED, *notes),
    )  # fmt: skip


def _check_side(side: str) -> None:
    if side not in ("upper", "lower"):
        invalid("side", side, "must be 'upper' or 'lower'")


def _require_independent(misses: MissProbabilities) -> None:
    if not misses.independent:
        accepted = (
            "must be at least the largest set: the law is exact only where nothing is clipped"
        )
        invalid("max_items_per_user", "below the largest set", accepted)
