"""Seconds of policies, whose users act one after the other, beside a plain Python loop.

    python -m experiments.bench.policies [PRESET] [DELTA0]

without arguments on Zipfian data of N = 1e5. All ways run in turns, in the same rounds.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float64

from experiments.bench.cases import DELTA, Case
from experiments.bench.rounds import Spread, in_turns
from theory import Calibration, UserItems, calibrate

POLICIES = ("policy-gaussian", "policy-gaussian-l1", "policy-laplace", "policy-greedy")
TRIALS = 20
_LOOP = "python loop"


class PolicyLoopTrials:
    """Policy Gaussian, l2 descent, as it is written down: a loop over users, a dict of weights.

    Args:
        data: The data set.
        calibration: One point, as the mechanism uses it (split).
        seed: Seed of the generator.
        alpha: The cap is the threshold plus alpha sigma.

    Example:
        >>> data = UserItems.from_sets([{0, 1}, {0}] * 100)
        >>> noise = calibrate(eps=1.0, delta=1e-5, max_items_per_user=1)
        >>> PolicyLoopTrials(data, noise).missing_masses(3).shape
        (3,)
    """

    def __init__(
        self, data: UserItems, calibration: Calibration, *, seed: int = 0, alpha: float = 3.0
    ) -> None:
        self._rng = np.random.default_rng(seed)
        self._keep = int(calibration.max_items_per_user)
        self._sigma, self._threshold = float(calibration.sigma), float(calibration.threshold)
        self._cap = self._threshold + alpha * self._sigma
        self._sets = np.split(data.items, data.offsets[1:-1])
        self._frequencies, self._num_pairs = data.frequencies.tolist(), data.num_pairs

    def missing_masses(self, count: int) -> Float64[np.ndarray, " count"]:
        """Missing masses of the next `count` trials."""
        return np.array([self.missing_mass() for _ in range(count)])

    def missing_mass(self) -> float:
        """Missing mass of the next trial."""
        found = 0
        for item, weight in self.weights().items():
            if weight + self._rng.normal(0.0, self._sigma) > self._threshold:
                found += self._frequencies[item]
        return 1.0 - found / self._num_pairs

    def weights(self) -> dict[int, float]:
        """Weights after all users, of the items that anybody keeps."""
        weights: dict[int, float] = {}
        for items in self._sets:
            kept = items
            if items.size > self._keep:
                kept = self._rng.choice(items, self._keep, replace=False)
            own = kept.tolist()
            gaps = [max(0.0, self._cap - weights.get(item, 0.0)) for item in own]
            length = max(1.0, math.sqrt(sum(gap * gap for gap in gaps)))
            for item, gap in zip(own, gaps, strict=True):
                weights[item] = weights.get(item, 0.0) + gap / length
        return weights


def time_policies(
    data: UserItems,
    *,
    max_items_per_user: int,
    eps: float = 1.0,
    repeats: int = 3,
    loop_trials: int = 1,
    report: Callable[[], object] = lambda: None,
) -> dict[str, Any]:
    """Seconds of `TRIALS` trials of every policy, by `simulate` and with integrated noise.

    Args:
        data: The data set.
        max_items_per_user: Delta0.
        eps: Privacy parameter.
        repeats: Rounds.
        loop_trials: Trials of the Python loop per round; its time is scaled to `TRIALS`.
        report: Called after every timing.

    Returns:
        Sizes, and per way its median, least and largest seconds, compilation apart. Ways are
        "python loop", and every policy's name followed by " simulate" or " integrated".
    """
    from experiments.comparison.trials import SubsetBatches, conditional_means
    from wgm_jax import registry, simulate

    calibration = calibrate(eps=np.array([eps]), delta=DELTA, max_items_per_user=max_items_per_user)
    loop = PolicyLoopTrials(data, calibration[0])
    first: dict[str, float] = {}

    def looped() -> float:
        start = time.perf_counter()
        loop.missing_masses(loop_trials)
        return (time.perf_counter() - start) * TRIALS / loop_trials

    def simulated(name: str) -> float:
        found = simulate(data, calibration, name, num_trials=TRIALS)
        first.setdefault(f"{name} simulate", found.compile_seconds)
        return found.run_seconds

    def integrated(name: str) -> float:
        start = time.perf_counter()
        batches = SubsetBatches(data, max_items_per_user, num_trials=TRIALS, seed=0)
        for trials, rows in batches:
            conditional_means(registry.get(name), calibration, batches, trials, rows)
        return time.perf_counter() - start

    timed: dict[str, Callable[[], float]] = {_LOOP: looped}
    for name in POLICIES:
        first[f"{name} integrated"] = integrated(name)  # compiles
        timed[f"{name} integrated"] = lambda name=name: integrated(name)
        timed[f"{name} simulate"] = lambda name=name: simulated(name)
    found = in_turns(timed, repeats, report)
    return {
        "num_users": data.num_users,
        "num_pairs": data.num_pairs,
        "max_set_size": data.max_set_size,
        "max_items_per_user": max_items_per_user,
        "eps": eps,
        "trials": TRIALS,
        "rounds": repeats,
        "seconds": {name: vars(Spread.of(seconds)) for name, seconds in found.items()},
        "times_loop": {
            name: float(np.median(found[_LOOP] / seconds)) for name, seconds in found.items()
        },
        "first_seconds": first,
    }


def main(arguments: list[str]) -> None:
    """Print the times as JSON."""
    if arguments:
        from experiments.loading import load

        data, bound = load(preset=arguments[0]), int(arguments[1])
        found = time_policies(data, max_items_per_user=bound, repeats=1)
    else:
        data = Case().data()
        found = time_policies(data, max_items_per_user=100)
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main(sys.argv[1:])
