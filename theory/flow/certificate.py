"""What was proved about a Bernoulli flow selection."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64


@dataclass(frozen=True, eq=False)
class FlowCertificate:
    """What was proved about every class: upper bounds on delta, and how.

    Attributes:
        adding: Bound on delta at eps for adding a user who keeps t items, t = 1, 2, ...
        removing: The same for removing the user.
        orders: Order of the closed form for every class; 0 where another accountant was used.
        jump_shares: Share of delta for jumps in the closed form; 0 likewise.
        spacings: Spacing of the Bellman recursion's grid; 0 where the closed form or, at t = 1,
            the exact formula was used.
        rounding: Relative error of every p and 1 - p that the bounds allow for.
        floor: What is added to p and 1 - p before that error is taken.

    Example:
        >>> from theory.flow import FlowCertificate, calibrate_flow
        >>> proved = calibrate_flow(eps=1.0, delta=1e-5, max_items_per_user=1).certificate
        >>> isinstance(proved, FlowCertificate), proved.adding.shape, proved.delta <= 1e-5
        (True, (1,), True)
    """

    adding: Float64[np.ndarray, " classes"]
    removing: Float64[np.ndarray, " classes"]
    orders: Float64[np.ndarray, " classes"]
    jump_shares: Float64[np.ndarray, " classes"]
    spacings: Float64[np.ndarray, " classes"]
    rounding: float
    floor: float

    @property
    def delta(self) -> float:
        """Largest bound over classes and directions."""
        return float(max(self.adding.max(), self.removing.max()))
