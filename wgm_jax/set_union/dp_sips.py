"""DP-SIPS: the weighted Gaussian mechanism in rounds, on the items that are not yet released."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp
import numpy as np

from theory._check import check_count, check_positive, invalid
from theory.calibration import Calibration, delta_share
from wgm_jax.set_union.frame import FramedMechanism, Parameters, Weights
from wgm_jax.set_union.kept_sets import KeptSets
from wgm_jax.set_union.noise import Noise
from wgm_jax.set_union.policy_gaussian import split_half
from wgm_jax.set_union.thresholds import gaussian_threshold


def geometric_split(num_rounds: int = 3, ratio: float | int = 0.3) -> tuple[float, ...]:
    """Shares of the budget that grow by 1/ratio from round to round.

    Raises:
        InvalidInput: No round, or a ratio not above 0.

    Example:
        >>> [round(share, 5) for share in geometric_split()]
        [0.06475, 0.21583, 0.71942]
    """
    num_rounds = check_count("num_rounds", num_rounds)
    ratio = float(check_positive("ratio", ratio))
    shares = ratio ** np.arange(num_rounds - 1, -1, -1)
    return tuple((shares / shares.sum()).tolist())


@dataclass(frozen=True)
class InRounds(FramedMechanism):
    """Gaussian rounds on what is left: released items are deleted from all sets, then once more.

    Every round draws fresh subsets of the remaining items and weighs by their number. Round r has
    the share f_r of the budget: sigma_r = sigma f_r^(-1/2), so that Gaussian privacy composes to
    that of sigma, and f_r delta/2 for new items in its threshold. One round takes the calibration
    as it is, full delta included; for more rounds it is not proved that all of delta may be spent
    twice ([P3]), and half of it goes to either, whatever the method (docs/audit.md).

    Attributes:
        split: Shares f_r of the rounds, above 0, of sum 1.

    Raises:
        InvalidInput: No round, or shares that are not above 0 or do not sum up to 1.
    """

    noise: ClassVar[Noise] = Noise.GAUSSIAN
    split: tuple[float, ...] = geometric_split()

    def __post_init__(self) -> None:
        if len(self.split) == 0:
            invalid("split", self.split, "must have at least one round")
        shares = check_positive("split", self.split)
        if abs(shares.sum() - 1) > 1e-9:
            invalid("split", self.split, "must sum up to 1: shares of one budget")

    @property
    def num_rounds(self) -> int:
        """Number of rounds."""
        return len(self.split)

    @property
    def scales_to_cap(self) -> float | int:
        """How far above the threshold the cap is, in sigmas; infinite for weights without one."""
        return np.inf

    def parameters(self, calibration: Calibration) -> Parameters:
        """Noise and threshold of every round from one sigma; leaves (*grid, rounds)."""
        full = calibration.method == "full" and self.num_rounds == 1
        whole = calibration if full else split_half(calibration)
        share = np.asarray(self.split)
        sigma = np.asarray(whole.sigma)[..., None] / np.sqrt(share)
        delta = np.asarray(whole.delta)[..., None]
        delta = delta_share(delta, "full" if full else "split") * share
        bound = np.broadcast_to(np.asarray(whole.max_items_per_user)[..., None], sigma.shape)
        threshold = np.asarray(
            gaussian_threshold(sigma=sigma, delta=delta, max_items_per_user=bound)
        )
        return Parameters(sigma, threshold, threshold + self.scales_to_cap * sigma)


@dataclass(frozen=True)
class DpSips(InRounds):
    """Rounds of the weighted Gaussian mechanism; one round is that mechanism itself.

    Source:
        Swanberg, Desfontaines, Haney 2023; three rounds of ratio 0.3 as in its code, which leaves
        the split of delta to us.
    """

    def weigh(self, sets: KeptSets, parameters: Parameters) -> Weights:
        """Sum of q^(-1/2), q the user's kept items."""
        count = jnp.maximum(sets.counts, 1).astype(parameters.scale.dtype)
        return Weights(sets.add_up(sets.to_pairs(1 / jnp.sqrt(count))), sets.support)


# A cheap first round takes the heavy items out of everyone's way.
TWO_ROUNDS = DpSips(split=(0.1, 0.9))
