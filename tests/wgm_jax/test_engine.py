import subprocess
import sys
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from theory import InvalidInput, UserItems
from theory.calibration import Calibration, calibrate
from wgm_jax import engine, lane_sampler, metrics, padded, synthetic
from wgm_jax.engine import simulate
from wgm_jax.mechanism import Release
from wgm_jax.wgm import WeightedGaussian

SIZES = synthetic.SetSizes("lognormal", mean=6, spread=1.0, cap=60)
DATA = synthetic.zipf_draws(s=1.2, num_pairs=4000, set_sizes=SIZES, support=3000, seed=3)
FOUND = calibrate(eps=1.0, delta=1e-2, max_items_per_user=4)
METRICS = ("missing_mass", "missing_mass_l2", "max_missing_mass", "num_missed", "num_released")


def assert_same(ours, theirs):
    for name in METRICS:
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))


# Noise and a threshold; a table of probabilities; the mechanism as it defines itself.
WAYS = pytest.mark.parametrize(
    ("sampler", "mechanism"),
    [("lanes", "wgm"), ("lanes", "laplace-count"), ("lanes", "bernoulli-flow"), ("padded", "wgm")],
)


@WAYS
def test_numbers_do_not_depend_on_the_chunk_size(sampler, mechanism):
    reference = simulate(DATA, FOUND, mechanism, num_trials=150, seed=9, sampler=sampler)
    assert reference.sampler.startswith(sampler)
    assert np.unique(reference.missing_mass).size > 50
    for chunk_size in (1, 7, 64, 1000):
        other = simulate(
            DATA, FOUND, mechanism, num_trials=150, seed=9, sampler=sampler, chunk_size=chunk_size
        )
        assert_same(other, reference)


@WAYS
def test_numbers_do_not_depend_on_the_number_of_trials_nor_memory_nor_threads(sampler, mechanism):
    given = {"mechanism": mechanism, "seed": 9, "sampler": sampler}
    long = simulate(DATA, FOUND, num_trials=1000, **given)
    short = simulate(DATA, FOUND, num_trials=100, **given)
    for name in METRICS:
        np.testing.assert_array_equal(getattr(long, name)[:100], getattr(short, name))
    for options in ({"memory_budget": 400_000}, {"num_threads": 1}, {"num_threads": 5}):
        assert_same(simulate(DATA, FOUND, num_trials=100, **given, **options), short)


@pytest.mark.parametrize("sampler", ["lanes", "padded"])
def test_a_budget_too_small_for_one_trial_is_an_error(sampler):
    with pytest.raises(InvalidInput, match="at least") as error:
        simulate(DATA, FOUND, num_trials=10, sampler=sampler, memory_budget=100)
    assert error.value.name == "memory_budget"


def test_a_grid_needs_no_more_memory_than_so_many_points():
    """The flow's table is on the grid: its size must not be multiplied by the points again."""

    def needed(*eps):
        grid = calibrate(eps=list(eps), delta=1e-2, max_items_per_user=4)
        with pytest.raises(InvalidInput) as error:
            simulate(DATA, grid, "bernoulli-flow", num_trials=1, sampler="padded", memory_budget=9)
        return int(error.value.accepted.split("at least ")[1].split(":")[0])

    assert needed(1.0) < needed(1.0, 1.0, 1.0, 1.0) <= 4 * needed(1.0)


def test_trials_can_be_added_later():
    whole = simulate(DATA, FOUND, num_trials=40, seed=2)
    parts = [
        simulate(DATA, FOUND, num_trials=n, first_trial=first, seed=2)
        for n, first in ((15, 0), (25, 15))
    ]
    joined = np.concatenate([part.missing_mass for part in parts])
    np.testing.assert_array_equal(joined, whole.missing_mass)
    assert parts[1].first_trial == 15


def test_seeds_differ_in_all_64_bits():
    runs = [simulate(DATA, FOUND, num_trials=20, seed=s) for s in (0, 1, 2**32, 2**63 - 1)]
    assert len({run.missing_mass.tobytes() for run in runs}) == 4


def test_a_grid_gives_the_numbers_of_single_runs_and_keeps_its_shape():
    grid = calibrate(eps=[[0.5], [1.0], [3.0]], delta=[1e-2, 1e-6], max_items_per_user=4)
    together = simulate(DATA, grid, num_trials=60, seed=1, sampler="padded")
    assert together.missing_mass.shape == (60, 3, 2)
    for i in range(3):
        for j in range(2):
            alone = simulate(DATA, grid[i, j], num_trials=60, seed=1, sampler="padded")
            for name in METRICS:
                np.testing.assert_array_equal(
                    getattr(together, name)[:, i, j], getattr(alone, name)
                )
    frame = together.to_frame()
    assert frame.height == 60 * 6
    first = frame.row(0, named=True)
    assert first["eps"] == 0.5 and first["missing_mass"] == together.missing_mass[0, 0, 0]


@pytest.mark.parametrize("sampler", ["lanes", "padded"])
def test_common_draws_are_monotone_in_the_threshold(sampler):
    steps = np.array([0.0, 1.0, 5.0, 25.0])
    same = np.ones(4)
    grid = Calibration(
        same, 0.5 * same, np.full(4, 4), "split", FOUND.sigma * same, FOUND.threshold + steps
    )
    missed = simulate(DATA, grid, num_trials=300, sampler=sampler).missing_mass
    assert (np.diff(missed, axis=1) >= 0).all()
    assert (missed[:, 0] < missed[:, 2]).any()


@dataclass(frozen=True)
class Traced(WeightedGaussian):
    """Notes the shapes it is traced with; the rest of the program is short, to compile quickly."""

    seen: ClassVar[list] = []

    def run(self, key, state):
        self.seen.append((state.slots.items.shape, state.base.shape))
        return Release(state.base > state.sigma)


def sweep(**options):
    for eps in (0.1, 1.0, 10.0):
        for delta in (1e-2, 1e-6, 1e-12):
            for bound in (1, 2, 4, 8, 1000):
                found = calibrate(eps=eps, delta=delta, max_items_per_user=bound)
                simulate(DATA, found, num_trials=1, **options)


def test_a_sweep_compiles_once_per_shape():
    Traced.seen.clear()
    before = padded._trials._cache_size()
    sweep(mechanism=Traced())
    shapes = len(set(Traced.seen))
    assert shapes <= 5
    assert padded._trials._cache_size() - before == shapes
    # Another data set of about that size shares them.
    other = synthetic.zipf_draws(s=1.2, num_pairs=3990, set_sizes=SIZES, support=3000, seed=4)
    simulate(other, FOUND, mechanism=Traced(), num_trials=3)
    assert padded._trials._cache_size() - before <= shapes + 1


def test_a_sweep_of_the_fast_sampler_traces_once_per_shape(monkeypatch):
    seen, traces = set(), []

    def noted(key, first, state, **static):
        shapes = [leaf.shape for leaf in jax.tree.leaves(state)]
        seen.add((str(shapes), state.dtype, str(static)))
        return kernel(key, first, state, **static)

    def traced(*arguments, **static):
        """Zeros of the right shapes: nothing long is compiled."""
        traces.append(1)
        shapes = jax.eval_shape(partial(original, **static), *arguments)
        return jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)

    original = lane_sampler.lane_metrics.__wrapped__
    kernel = jax.jit(traced, static_argnames=("lanes", "mesh"))
    monkeypatch.setattr(lane_sampler, "lane_metrics", noted)
    sweep(sampler="lanes")
    assert len(traces) == len(seen) <= 2


def test_x64_changes_nothing():
    grid = calibrate(eps=[0.5, 2.0], delta=1e-2, max_items_per_user=4)
    plain = simulate(DATA, grid, num_trials=50)
    with jax.enable_x64(True):
        wide = simulate(DATA, grid, num_trials=50)
    for name in METRICS:
        np.testing.assert_allclose(getattr(wide, name), getattr(plain, name), rtol=1e-6)


def test_imports_are_light_and_leave_x64_alone():
    code = (
        "import sys, theory, wgm_jax, wgm_jax.registry, wgm_jax.synthetic, wgm_jax.censored\n"
        "wgm_jax.mechanisms()\n"
        "assert 'jax' not in sys.modules, 'jax imported'\n"
        "import jax; before = jax.config.jax_enable_x64\n"
        "wgm_jax.simulate\n"
        "assert jax.config.jax_enable_x64 == before\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@dataclass(frozen=True)
class Everything:
    """Releases all items: a mechanism from outside."""

    def prepare(self, data, calibration):
        state = WeightedGaussian().prepare(data, calibration)
        return state

    def run(self, key, state):
        return Release(state.base + 1 > state.sigma * 0)


def test_any_object_with_prepare_and_run_is_a_mechanism():
    trials = simulate(synthetic.singletons(16), FOUND, mechanism=Everything(), num_trials=3)
    assert trials.missing_mass.tolist() == [0, 0, 0]
    assert trials.mechanism == "Everything()"


def test_metrics_against_plain_numpy():
    rng = np.random.default_rng(0)
    frequencies = rng.integers(1, 30_000, 70_001).astype(np.int32)
    mask = rng.random(frequencies.size) < 0.3
    missed = frequencies[~mask].astype(np.int64)
    release = Release(jnp.asarray(mask))
    values = jnp.asarray(frequencies)
    assert int(metrics.missed_pairs(release, values)) == missed.sum()
    assert int(metrics.largest_missed(release, values)) == missed.max()
    assert int(metrics.num_released(release, values)) == mask.sum()
    everything = Release(jnp.ones(frequencies.size, bool))
    assert int(metrics.largest_missed(everything, values)) == 0


def test_squares_keep_their_accuracy_over_a_million_items():
    frequencies = np.full(1_000_003, 3, np.int32)
    frequencies[0] = 2**30
    for values in (frequencies, frequencies[1:]):
        nothing = Release(jnp.zeros(values.size, bool))
        ours = float(jax.jit(metrics.missed_squares)(nothing, jnp.asarray(values)))
        assert ours == pytest.approx(np.sum(values.astype(np.float64) ** 2), rel=1e-5)


def test_progress_ends_at_the_total_and_times_are_apart():
    calls = []
    trials = simulate(
        DATA, FOUND, num_trials=90, chunk_size=40, progress=lambda *a: calls.append(a)
    )
    assert calls == [(40, 90), (80, 90), (90, 90)]
    assert trials.compile_seconds > 0 and trials.run_seconds > 0
    assert set(trials.versions) == {"jax", "jaxlib", "numpy"}


def test_summary_and_quantiles_are_observed_values():
    trials = simulate(DATA, FOUND, num_trials=99)
    ordered = np.sort(trials.missing_mass)
    assert trials.quantile(0.5) == ordered[49]
    summary = trials.summary()
    assert summary["q05"] == ordered[4] and summary["q95"] == ordered[94]
    assert summary["mean"] == pytest.approx(ordered.mean())
    np.testing.assert_array_equal(trials.num_missed + trials.num_released, DATA.num_items)


def test_bad_arguments_are_named():
    for bad, name in (
        ({"num_trials": 0}, "num_trials"),
        ({"num_trials": 2.5}, "num_trials"),
        ({"num_trials": 1, "seed": -1}, "seed"),
        ({"num_trials": 1, "first_trial": 2**32}, "first_trial"),
        ({"num_trials": 1, "chunk_size": 0}, "chunk_size"),
        ({"num_trials": 1, "memory_budget": 0}, "memory_budget"),
    ):
        with pytest.raises(InvalidInput) as error:
            simulate(DATA, FOUND, **bad)
        assert error.value.name == name
    with pytest.raises(InvalidInput, match="wgm"):
        simulate(DATA, FOUND, mechanism="gumbel", num_trials=1)


def test_calibrations_that_do_not_hold_are_refused():
    stolen = Calibration(1.0, 1e-5, 100, "split", FOUND.sigma, FOUND.threshold)
    with pytest.raises(InvalidInput, match="spend"):
        simulate(DATA, stolen, num_trials=1)
    mixed = calibrate(eps=1.0, delta=1e-2, max_items_per_user=[1, 4])
    with pytest.raises(InvalidInput, match="one value per call"):
        simulate(DATA, mixed, num_trials=1)


def test_sums_beyond_32_bits_are_refused(monkeypatch):
    monkeypatch.setattr(metrics, "MOST_PAIRS", DATA.num_pairs - 1)
    with pytest.raises(InvalidInput, match="2\\^31"):
        simulate(DATA, FOUND, num_trials=1)


def test_a_bare_sigma_is_no_calibration():
    engine_call = getattr(engine.check_inputs, "__wrapped__", engine.check_inputs)
    with pytest.raises((InvalidInput, TypeError)) as error:
        engine_call(DATA, (3.9, 20.0))
    assert "alibration" in str(error.value)


def test_popular_items_keep_float64_accuracy():
    """A million additions of 1/sqrt(3) in float32 are 1.3 % low; the base histogram is not."""
    from wgm_jax.wgm import base_histogram

    data = synthetic.equal_frequencies(num_items=3, frequency=10**6, set_size=3)
    weights = base_histogram(data, 3)
    np.testing.assert_allclose(weights, 10**6 / np.sqrt(3), rtol=1e-9)


def test_one_item_one_user_is_missed_almost_always():
    data = UserItems.from_sets([{"x"}])
    found = calibrate(eps=1.0, delta=1e-5, max_items_per_user=1)
    assert simulate(data, found, num_trials=500).missing_mass.min() == 1.0
