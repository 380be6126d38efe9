"""CPU seconds of the fast sampler for laws by kept copies, beside the weighted Gaussian mechanism.

    python -m experiments.bench.count_laws [PRESET ...]

Without arguments on Zipfian data of N = 1e6. All ways run in turns, in the same rounds, on one
thread; processor time is counted, so that other programs on the machine disturb little.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from experiments import flow_store
from experiments.bench.cases import DELTA, Case
from experiments.bench.rounds import in_turns
from theory import UserItems, calibrate

MECHANISMS = ("wgm", flow_store.NAME, "weighted-laplace")


def time_count_laws(
    data: UserItems,
    *,
    max_items_per_user: int,
    eps: float = 1.0,
    repeats: int = 5,
    seconds: float = 0.2,
    report: Callable[[], object] = lambda: None,
) -> list[dict[str, Any]]:
    """CPU seconds per 1,000 trials of every mechanism, with the sampler "lanes".

    Args:
        data: The data set.
        max_items_per_user: Delta0.
        eps: Privacy parameter.
        repeats: Rounds.
        seconds: About how long a mechanism runs in a round.
        report: Called after every timing.

    Returns:
        A row for every mechanism, and one for the WGM with nobody clipped: open items, open slots,
        median seconds, and the median over rounds of the ratio to the first row.
    """
    from wgm_jax import registry, samplers
    from wgm_jax.devices import Devices

    ways = [(name, max_items_per_user) for name in MECHANISMS]
    if data.max_set_size > max_items_per_user:
        ways.append(("wgm", data.max_set_size))
    made: dict[Any, Any] = {}
    for name, bound in ways:
        noise = calibrate(eps=np.array([eps]), delta=DELTA, max_items_per_user=bound)
        if name == flow_store.NAME:
            flow_store.ready_flows(noise)
        made[name, bound] = samplers.make(
            "lanes", registry.get(name), data, noise, seed=0, devices=Devices.of(),
            num_trials=10**6, callers=1, memory_budget=2**30,
        )  # fmt: skip

    def timed(sampler: Any) -> Callable[[], float]:
        def run(calls: int) -> float:
            start = time.process_time()
            for call in range(calls):
                sampler(call * sampler.trials_per_call, sampler.trials_per_call)
            return time.process_time() - start

        run(1)
        calls = max(1, round(seconds / run(1)))
        return lambda: 1000 * run(calls) / calls / sampler.trials_per_call

    found = in_turns({key: timed(sampler) for key, sampler in made.items()}, repeats, report)
    first = found[ways[0]]
    return [
        {
            "mechanism": name,
            "max_items_per_user": bound,
            "open_items": made[name, bound].num_open_items,
            "open_slots": made[name, bound].num_open_slots,
            "cpu_seconds_per_1000": float(np.median(found[name, bound])),
            "times_wgm": float(np.median(found[name, bound] / first)),
        }
        for name, bound in ways
    ]


def main(presets: list[str]) -> None:
    """Print the times as JSON."""
    from experiments.loading import load

    cases = {name: load(preset=name) for name in presets}
    cases = cases or {"zipf": Case(num_pairs=10**6).data()}
    told = {name: time_count_laws(data, max_items_per_user=300) for name, data in cases.items()}
    print(json.dumps(told, indent=1))


if __name__ == "__main__":
    main(sys.argv[1:])
