"""Calibration of two rounds: time constants for both, lowered until one certificate holds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from theory._check import check_beta, check_count, invalid
from theory.flow.calibration import (
    DELTA_RANGE,
    EPS_RANGE,
    FlowCalibration,
    calibrate_flow,
    check_flow_range,
    class_bounds,
)
from theory.flow.plan import Progress, interpolated
from theory.flow.two_rounds import (
    Later,
    TwoRoundFlow,
    blocks,
    both_rounds,
    lower,
    own_copy,
    second_steps,
    with_one_more,
)

# Chosen on synthetic data, see docs/bernoulli-flow-2.md.
CUT = 3
SHARE = 0.07
DELTA_SHARE = 0.1
# delta falls about so many times as fast as the time constants.
_EXPONENT = 13.0
# Proposals are made at these set sizes and aim a little below delta, for the others between.
_ANCHORS = (1, 5, 7, 10, 16, 17, 30, 60, 130, 1000)
_AIM = 0.98
_MOST_ATTEMPTS = 40


def check_two_round_range(
    eps: float,
    delta: float,
    max_items_per_user: int,
    *,
    cut: int | None = None,
    share: float = SHARE,
    delta_share: float = DELTA_SHARE,
) -> None:
    """Raise unless two rounds can be calibrated; arguments as `calibrate_two_rounds`."""
    check_flow_range(eps, delta, max_items_per_user)
    if cut is not None:
        cut = check_count("cut", cut, minimum=0)
        check_count("max_items_per_user", max_items_per_user, minimum=cut + 1)
    shares = float(check_beta(share, "share")), float(check_beta(delta_share, "delta_share"))
    least_eps, least_delta = EPS_RANGE[0] / np.sqrt(shares[0]), DELTA_RANGE[0] / shares[1]
    for name, value, least in (("eps", eps, least_eps), ("delta", delta, least_delta)):
        if value < least:
            invalid(name, value, f"must be at least {least:.3g} for two rounds")


def calibrate_two_rounds(
    *,
    eps: float,
    delta: float,
    max_items_per_user: int,
    cut: int | None = None,
    share: float = SHARE,
    delta_share: float = DELTA_SHARE,
    calibrate: Callable[..., FlowCalibration] = calibrate_flow,
    progress: Progress | None = None,
) -> TwoRoundFlow:
    """Two rounds of Bernoulli flow selection that are (eps, delta)-DP together, certified.

    The first round is the flow at (eps sqrt(share), delta * delta_share). The second is the flow
    at (eps, delta), whose time constants above `cut` are lowered, block by block, until first and
    second round together pass. Whatever is proposed, only what passes is returned.

    Args:
        eps: Privacy parameter, at most 10, with eps sqrt(share) of at least 0.01.
        delta: Privacy parameter; both it and delta * delta_share in [1e-12, 1e-2].
        max_items_per_user: Delta0, from 1 to 1000.
        cut: Users with at most so many items are not in the first round; below Delta0. Default 3,
            or less at a Delta0 of at most 3.
        share: Share of the squared eps that the first round is proposed with, in (0, 1).
        delta_share: Share of delta that it is proposed with, in (0, 1).
        calibrate: Where one-round flows come from; `calibrate_flow`, or a store.
        progress: Called with a stage and the share of it that is done.

    Returns:
        A `TwoRoundFlow` whose certificate is at most delta for every class and direction.

    Raises:
        InvalidInput: An argument is outside its range.

    Source:
        Bernoulli flow note, two rounds (docs/bernoulli-flow-2.md).

    Example:
        >>> flow = calibrate_two_rounds(eps=1.0, delta=1e-2, max_items_per_user=2)
        >>> flow
        TwoRoundFlow(eps=1.0, delta=0.01, max_items_per_user=2, cut=1)
        >>> bool(flow.certified_delta <= 1e-2)
        True
    """
    check_two_round_range(
        eps, delta, max_items_per_user, cut=cut, share=share, delta_share=delta_share
    )
    low = eps * np.sqrt(share)
    bound = int(max_items_per_user)
    cut = min(CUT, bound - 1) if cut is None else int(cut)
    first, second = (
        calibrate(eps=float(e), delta=float(d), max_items_per_user=bound, progress=progress)
        for e, d in ((low, delta * delta_share), (eps, delta))
    )
    unknown = np.full(bound, np.inf)
    flow = TwoRoundFlow(
        float(eps),
        float(delta),
        bound,
        cut,
        own_copy(first),
        own_copy(second),
        unknown,
        unknown.copy(),
    )
    tell = progress or (lambda stage, share: None)
    _propose(flow, tell)
    _certify(flow, tell)
    return flow


def _propose(flow: TwoRoundFlow, tell: Progress) -> None:
    """Lower the second round's time constants to what passes for one class at a time."""
    ends = np.array([last for _, last in blocks(flow) if last > flow.cut], np.int64)
    at = np.unique(ends[np.minimum(np.searchsorted(ends, _ANCHORS), ends.size - 1)]).tolist()
    logs = [0.0] * len(at)
    for i, t in enumerate(at):
        for _ in range(3):
            own = second_steps(flow, t, float(np.exp(logs[i])))
            spent = max(both_rounds(flow, t, ([own[0]], [own[1]])))
            logs[i] = min(logs[i] - float(np.log(spent / (_AIM * flow.delta))) / _EXPONENT, 0.0)
        tell("second round", (i + 1) / len(at))
    factors = np.exp(interpolated(at, logs, np.arange(1, flow.max_items_per_user + 1)))
    factors[: flow.cut] = 1.0
    first = flow.cut + 1
    for end in ends.tolist():
        lower(flow.second, first, end, float(factors[end - 1]))
        first = end + 1


def _certify(flow: TwoRoundFlow, tell: Progress) -> None:
    """Fill in the certificate block by block, lowering time constants until it passes."""
    later: Later = ([], [])
    parts = blocks(flow)
    carried = 1.0  # what the block before had to take off its first round: about the same here
    for i, (first, last) in enumerate(parts):
        block = slice(first - 1, last)
        if last <= flow.cut:
            flow.adding[block], flow.removing[block] = class_bounds(flow.second, last)
            continue
        lower(flow.first, first, last, carried)
        for attempt in range(_MOST_ATTEMPTS):
            own = second_steps(flow, last)
            spent = both_rounds(flow, last, with_one_more(later, own))
            if max(spent) <= flow.delta:
                break
            # Mostly what smaller classes may follow with is too much: less of a first round, then.
            excess = float(np.log(max(spent) / flow.delta))
            shorter = min(max(1.8 * excess, 1e-3 * 1.5**attempt), 0.3)
            carried *= 1 - shorter
            lower(flow.first, first, last, 1 - shorter)
            if attempt >= 2:
                lower(flow.second, first, last, 1 - min(max(excess / _EXPONENT, 2e-4), 0.3))
        else:
            raise RuntimeError(f"no time constant of class {last} passes the certificate")
        later = with_one_more(later, own)
        flow.adding[block], flow.removing[block] = spent
        tell("both rounds", (i + 1) / len(parts))
