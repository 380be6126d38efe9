"""The weights of the WGM, 1/sqrt(q) for each of q kept items, with Laplace noise."""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

from wgm_jax.registry import MechanismInfo
from wgm_jax.set_union.frame import FramedMechanism, Weights, one_round
from wgm_jax.set_union.noise import Noise


@dataclass(frozen=True)
class RootLaplace(FramedMechanism):
    noise = Noise.LAPLACE

    def sensitivity(self, most):
        return np.ones_like(most)

    def parameters(self, calibration):
        most = np.asarray(calibration.max_items_per_user, np.float64)
        scale = self.sensitivity(most) / calibration.eps
        return one_round(scale, 1 + scale * np.log(most / (2 * calibration.delta)))

    def weigh(self, sets, parameters):
        share = 1 / jnp.sqrt(jnp.maximum(sets.counts, 1).astype(parameters.scale.dtype))
        return Weights(sets.add_up(sets.to_pairs(share)), sets.support)


class RootLaplaceScaled(RootLaplace):
    def sensitivity(self, most):
        return np.sqrt(most)


_SHARED = ("(eps, delta)-DP for one added or removed user", "Root weights, Laplace noise.", "-")
WRONG = MechanismInfo("root-laplace", "set-union", True, *_SHARED, "my_mechanism:RootLaplace")
SCALED = MechanismInfo(
    "root-laplace-scaled", "set-union", True, *_SHARED, "my_mechanism:RootLaplaceScaled"
)
