"""The parts of the fast sampler: the walk over slots, noise, fates, and rare items."""

import itertools
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtr

from theory import InvalidInput, UserItems
from theory.calibration import calibrate
from wgm_jax import fates, lane_sampler, registry, samplers, synthetic
from wgm_jax.bits import threefry
from wgm_jax.coins import probability_words
from wgm_jax.devices import Devices
from wgm_jax.lane_outcomes import GROUP, ReleaseRows, normal
from wgm_jax.lanes import STEP, _select, _subsample, lane_metrics
from wgm_jax.wgm import WeightedGaussian

SIZES = synthetic.SetSizes("lognormal", mean=8, spread=1.1, cap=120)
DATA = synthetic.zipf_draws(s=1.2, num_pairs=6000, set_sizes=SIZES, seed=3)


def calibration(bound=4, eps=(1.0,), delta=1e-3):
    return calibrate(eps=list(eps), delta=delta, max_items_per_user=bound)


def sampler(data, found, **options):
    settings = {"seed": 7, "num_trials": 512, "callers": 1, "memory_budget": 2**30}
    law = options.pop("law", None) or law_of(data, found)
    return lane_sampler.LaneSampler(data, law, devices=Devices.of(), **settings | options)


def law_of(data, found):
    return WeightedGaussian().count_law(data, found)


def walk(data, opened, keep, lanes, seed=7):
    """Counts (items, lanes) of the kernel, and the slots it walked through."""
    law = law_of(data, calibration(keep))
    slots = lane_sampler.open_slots(data, opened, keep)
    state = lane_sampler.lane_state(data, law, fates.fates(data, law), opened, slots)
    key = jnp.asarray(lane_sampler._keys(seed)[0])

    @jax.jit
    def run(state):
        trials = jnp.arange(lanes, dtype=jnp.uint32)

        def words(position):
            return threefry(key, trials, jnp.broadcast_to(position, trials.shape))

        return _subsample(state, words, lanes)

    return np.asarray(run(state)), slots, np.asarray(key)


# ---- the walk over slots


@pytest.mark.parametrize(("size", "keep"), [(2, 1), (5, 2), (6, 3), (7, 1), (8, 7), (9, 4)])
def test_every_subset_is_equally_likely(size, keep):
    counts, _, _ = walk(synthetic.one_user(size), np.arange(size), keep, 50_000)
    codes = (1 << np.arange(size)) @ counts[:size]
    subsets = [sum(1 << i for i in chosen) for chosen in itertools.combinations(range(size), keep)]
    seen = np.array([np.sum(codes == code) for code in subsets])
    assert seen.sum() == 50_000  # nothing but subsets of that size
    assert stats.chisquare(seen).pvalue > 1e-9


def test_every_clipped_user_keeps_exactly_that_many():
    everything = np.arange(DATA.num_items)
    counts, slots, _ = walk(DATA, everything, 4, 64)
    assert (counts[: DATA.num_items].sum(axis=0) == 4 * slots.sizes.size).all()
    assert (counts[: DATA.num_items] <= np.bincount(slots.items)[:, None]).all()


def test_the_host_repeats_the_draws_of_the_kernel():
    """What users still need after their open slots, for all users and trials at once."""
    opened = np.flatnonzero(DATA.frequencies >= 8)
    lanes = 400
    counts, slots, key = walk(DATA, opened, 4, lanes)
    users = np.arange(slots.sizes.size)
    rows, trials = np.tile(users, lanes), np.repeat(np.arange(lanes), users.size)
    need = slots.still_needed(key, trials, rows).reshape(lanes, users.size)
    assert need.min() >= 0 and need.max() == 4
    # Enough draws that some were refined to 32 bits.
    assert slots.items.size * lanes > 5 * 2**16
    kept = counts[: opened.size].sum(axis=0)
    np.testing.assert_array_equal(kept, (4 - need).sum(axis=1))
    # Item by item where every open item is held by one clipped user only.
    alone = UserItems.from_sets([{3 * i, 3 * i + 1, 3 * i + 2} for i in range(50)])
    counts, slots, key = walk(alone, np.arange(0, 150, 3), 1, 256)
    rows, trials = np.tile(np.arange(50), 256), np.repeat(np.arange(256), 50)
    need = slots.still_needed(key, trials, rows).reshape(256, 50)
    np.testing.assert_array_equal(counts[:50].T, 1 - need)


def test_sixteen_bits_decide_or_say_that_they_do_not():
    rng = np.random.default_rng(0)
    lanes = 200_000
    need = rng.integers(0, 9, lanes).astype(np.uint32)
    left = np.array([50_000, 49_999, 49_998, 49_997], np.uint32)
    # Draws close to where they are decided.
    edge = (need.astype(np.int64) << 16) // left[0] + rng.integers(-2, 3, lanes)
    first = edge.clip(0, 65535).astype(np.uint32) | (rng.integers(0, 2**16, lanes) << 16).astype(
        np.uint32
    )
    drawn = (jnp.asarray(first), jnp.asarray(rng.integers(0, 2**32, lanes).astype(np.uint32)))
    start, keep = jnp.zeros(STEP, bool), np.uint32(3)

    def select(more):
        return np.asarray(_select(jnp.asarray(need), drawn, more, left, start, keep))

    def rest(value):
        return (jnp.full(lanes, value, jnp.uint32),) * 2

    plain, lowest, highest = select(None), select(rest(0)), select(rest(2**32 - 1))
    undecided = (plain >> STEP) & 1 > 0
    assert 0 < undecided.sum() < lanes
    sure = ~undecided
    np.testing.assert_array_equal(plain[sure], lowest[sure])
    np.testing.assert_array_equal(plain[sure], highest[sure])
    # With all 32 bits it is exactly u * left < need * 2^32, in 64-bit integers.
    more = (rng.integers(0, 2**32, lanes).astype(np.uint32), rng.integers(0, 2**32, lanes))
    more = (jnp.asarray(more[0]), jnp.asarray(more[1].astype(np.uint32)))
    status = select(more)
    wanted = need.astype(np.uint64)
    for slot in range(STEP):
        word, extra = np.asarray(drawn[slot // 2]), np.asarray(more[slot // 2])
        shift = 16 * (slot % 2)
        u = ((word >> shift) & 0xFFFF).astype(np.uint64) << 16 | (extra >> shift) & 0xFFFF
        take = u * np.uint64(left[slot]) < wanted << np.uint64(32)
        np.testing.assert_array_equal((status >> slot) & 1 > 0, take)
        wanted = wanted - take
    np.testing.assert_array_equal(status >> 16, wanted)


def test_normal_quantiles_are_accurate_in_both_tails():
    low = np.unique(np.geomspace(1, 2**31, 200_000).astype(np.int64)) - 1
    bits = np.concatenate([low, 2**32 - 1 - low]).astype(np.uint32)
    z = np.asarray(normal(jnp.asarray(bits))).astype(float)
    tail = (np.minimum(bits, ~bits) + 0.5) / 2.0**32
    np.testing.assert_allclose(ndtr(-np.abs(z)), tail, rtol=2e-5)
    assert (z[bits < 2**31] <= 0).all() and (z[bits >= 2**31] >= 0).all()


# ---- fates


def test_ranges_of_kept_copies_hold_with_the_stated_error():
    for size, p, error in itertools.product(
        (1, 2, 5, 30, 1000, 10**5), (0.001, 0.1, 0.5, 0.9, 0.999), (1e-3, 1e-9, 1e-15)
    ):
        holders, mean = np.array([size]), np.array([size * p])
        low, high = (int(end[0]) for end in fates.kept_range(holders, mean, error))
        assert 0 <= low <= high <= size
        assert stats.binom.cdf(low - 1, size, p) <= error
        assert stats.binom.sf(high, size, p) <= error
        # Not wider than need be: at a tenth of the mass per item the range is left more often.
        if high < size:
            assert stats.binom.sf(high - 0.3 * (high - size * p) - 1, size, p) > error


@pytest.mark.parametrize("bound", [1, 3, 8, 1000])
def test_skipped_probability_is_within_the_stated_bound(oracle, bound):
    """Exact laws of all items: total error of a trial, and every rate is an upper bound."""
    found = calibration(bound, eps=(0.3, 1.0, 3.0), delta=1e-5)
    law = law_of(DATA, found)
    fate = fates.fates(DATA, law)
    sets = np.split(DATA.items, DATA.offsets[1:-1])
    base, laws = oracle.weight_laws(sets, DATA.num_items, bound)
    np.testing.assert_allclose(law.base, base, rtol=1e-12)
    sizes = np.repeat(DATA.set_sizes, DATA.set_sizes)
    clipped = sizes > bound
    holders = np.bincount(DATA.items[clipped], minlength=DATA.num_items)
    weights = (bound / sizes[clipped]).astype(float)
    mean = np.bincount(DATA.items[clipped], weights, minlength=DATA.num_items).astype(float)
    low, high = fates.kept_range(holders, mean, fates.ERROR / 2 / DATA.num_items)
    np.testing.assert_array_equal((low, high), (fate.low, fate.high))
    skipped = 0.0
    for item, law in enumerate(laws):
        if fate.open[item]:
            continue
        copies = np.arange(law.size)
        weight = (base[item] + copies * bound**-0.5)[:, None]
        release = np.where(weight > 0, ndtr((weight - found.threshold) / found.sigma), 0.0)
        chance = release if fate.missed[item] else 1 - release
        inside = (copies >= low[item]) & (copies <= high[item])
        outside = float(law[~inside].sum())
        if fate.rate[item] > 0:
            assert chance[inside].max() <= fate.rate[item] * (1 + 1e-9) + 1e-15
            skipped += outside
        else:
            skipped += outside + float(np.max(law[inside] @ chance[inside]))
    assert skipped <= fates.ERROR
    assert fate.open.any() and (~fate.open).any()


def test_skipped_probability_of_a_table():
    """The same for a law with probabilities made for the set, and one with heavy tails."""
    for name in ("bernoulli-flow", "laplace-count"):
        law = registry.get(name).count_law(DATA, calibration(4, eps=(0.5, 2.0)))
        fate, skipped = fates.fates(DATA, law), 0.0
        sizes = np.repeat(DATA.set_sizes, DATA.set_sizes)
        for item in np.flatnonzero(~fate.open):
            copies = np.ones(1)
            for size in sizes[DATA.items == item]:
                if size > 4:
                    copies = np.convolve(copies, [1 - 4 / size, 4 / size])
            numbers = np.arange(copies.size)
            release, miss = law.chances(np.full(copies.size, item), numbers)
            chance = np.max(release if fate.missed[item] else miss, axis=1)
            inside = (numbers >= fate.low[item]) & (numbers <= fate.high[item])
            skipped += float(copies[~inside].sum())
            if fate.rate[item] > 0:
                assert chance[inside].max() <= fate.rate[item] * (1 + 1e-9) + 1e-15
            else:
                skipped += float(copies[inside] @ chance[inside])
        assert skipped <= fates.ERROR
        assert fate.open.any() and (~fate.open).any()


def test_counts_are_as_narrow_as_the_data_allow():
    def dtype(holders):
        data = synthetic.equal_frequencies(num_items=2, frequency=holders, set_size=2)
        slots = lane_sampler.open_slots(data, np.arange(2), 1)
        law = law_of(data, calibration(1))
        fate = fates.fates(data, law)
        return lane_sampler.lane_state(data, law, fate, np.arange(2), slots).dtype

    assert dtype(2**15 - 1) == "int16"
    assert dtype(2**15) == "int32"


# ---- outcomes


def test_coins_of_the_kernel_are_exact_in_128_bits():
    """Against whole numbers in Python, with words that tie as often as not."""
    rng = np.random.default_rng(4)
    lanes, entries = 400, 4
    release = np.array([[0.3, 1e-9, 1 - 1e-12, 0.0], [0.5, 1.0, 0.999, 2.0**-100]])
    miss = np.array([[0.7, 1 - 1e-9, 1e-12, 1.0], [0.5, 0.0, 0.001, 1.0]])
    table = probability_words(release, miss)
    rows = ReleaseRows(
        low=np.full(GROUP, 3, np.int32),
        last=np.full(GROUP, entries - 1, np.int32),
        first=np.zeros(GROUP, np.int32),
        words=tuple(table),
        by_copies=True,
    )
    # Fewer copies than tabulated count like the first entry, more like the last.
    kept = rng.integers(0, 10, (GROUP, lanes))
    entry = np.clip(kept - 3, 0, entries - 1)
    drawn = rng.integers(0, 2**32, (4, GROUP, lanes)).astype(np.uint32)
    for word in range(4):  # half of all draws are those of the first point's table
        likely = table[0, 0] >= 2**31
        count = table[word, 0] & (2**31 - 1 if word == 0 else 2**32 - 1)
        equal = np.where(likely, ~count.astype(np.uint32), count.astype(np.uint32))[entry]
        drawn[word] = np.where(rng.random((GROUP, lanes)) < 0.8, equal, drawn[word])

    def words(position):
        """Half as many positions as first words, or as further ones, which follow each other."""
        first = position.shape[0] == GROUP // 2
        chosen = drawn[0] if first else drawn[1:].reshape(-1, lanes)
        assert 2 * position.shape[0] == chosen.shape[0]
        return tuple(map(jnp.asarray, np.split(chosen, 2)))

    group = jnp.int32(0)
    found = np.array(rows.hits(group, rows.draw(group, jnp.asarray(kept), words), words))
    u = sum(drawn[word].astype(object) << 32 * (3 - word) for word in range(4))
    seen = set()
    for point, item, lane in np.ndindex(2, GROUP, lanes):
        at = entry[item, lane]
        p = int(Fraction(float(release[point, at])) * 2**128)
        rest = min(int(Fraction(float(miss[point, at])) * 2**128), 2**127 - 1)
        likely = release[point, at] > 0.5
        wanted = u[item, lane] < (2**128 - rest if likely else min(p, 2**127 - 1))
        assert found[item, point, lane] == wanted
        seen.add((point, int(at), bool(wanted)))
    assert len(seen) >= 12


def test_a_table_that_does_not_fit_is_an_error():
    with pytest.raises(InvalidInput, match="table of probabilities") as error:
        law = registry.get("laplace-count").count_law(DATA, calibration(4))
        sampler(DATA, None, law=law, memory_budget=2000)
    assert error.value.name == "memory_budget"


# ---- rare items


def test_candidates_of_every_item_come_at_its_rate():
    rare = sampler(DATA, calibration())._rare
    keys = lane_sampler._keys(3)
    trials, items = rare._candidates(keys[1], 0, 100_000)
    assert np.unique(trials * rare.rate.size + items).size == trials.size
    for item in np.argsort(-rare.rate)[:30]:
        count = int(np.sum(items == item))
        assert stats.binomtest(count, 100_000, float(rare.rate[item])).pvalue > 1e-9
    total = trials.size / 100_000
    expected = rare.rate.sum()
    assert abs(total - expected) < 7 * np.sqrt(expected / 100_000)
    # The same whatever the window of trials.
    part = rare._candidates(keys[1], 500, 250)
    inside = (trials >= 500) & (trials < 750)
    np.testing.assert_array_equal(part[0] + 500, trials[inside])
    np.testing.assert_array_equal(part[1], items[inside])


def test_the_largest_missed_item_when_the_largest_are_released(monkeypatch):
    """Two items of 9 users, one of 5: which is the largest missed follows from the rare events."""
    data = UserItems.from_sets([{"a", "b", "c"}] * 5 + [{"a", "b"}] * 4)
    run = sampler(data, calibration(3, delta=1e-6))
    codes = {label: code for code, label in enumerate(data.item_labels)}
    order = np.argsort(-data.frequencies, kind="stable")
    place = {label: int(np.flatnonzero(order == code)[0]) for label, code in codes.items()}
    assert run._rare.frequencies.tolist() == [9, 9, 5]
    events = [(0, "a"), (2, "a"), (2, "b"), (3, "a"), (3, "b"), (3, "c"), (4, "c")]
    trial = np.array([trial for trial, _ in events])
    item = np.array([place[label] for _, label in events])
    found = run._largest_expected(trial, item, np.ones((len(events), 1), bool), (5, 1))
    assert found.ravel().tolist() == [9, 9, 5, 0, 9]


# ---- the whole


def test_lanes_run_what_says_its_law_itself():
    @dataclass(frozen=True)
    class Changed(WeightedGaussian):
        pass

    def choose(name, mechanism=None, data=DATA, bound=4):
        mechanism = mechanism or WeightedGaussian()
        return samplers.choose(name, mechanism, data, calibration(bound), Devices.of())

    assert choose("auto") == "lanes" and choose("padded") == "padded"
    assert choose("auto", Changed()) == "padded"
    for name in ("bernoulli-flow", "laplace-count", "weighted-laplace", "optimal-selection"):
        assert choose("auto", registry.get(name)) == "lanes"
    for name in ("dp-sips", "policy-laplace"):
        assert choose("auto", registry.get(name)) == "padded"
    for options in ({"name": "lanes", "mechanism": Changed()}, {"name": "fast"}):
        with pytest.raises(InvalidInput) as error:
            choose(**options)
        assert error.value.name == "sampler"
    wide = synthetic.one_user(2**16)
    assert choose("auto", data=wide) == "padded"
    assert choose("auto", data=wide, bound=2**16) == "lanes"
    assert choose("auto", data=synthetic.one_user(2**16 - 1)) == "lanes"


@pytest.mark.parametrize(
    ("budget", "points", "name"),
    [
        (2**18, 4, "wgm"),
        (2**19, 4, "laplace-count"),
        *(pytest.param(2**n, 16, "wgm", marks=pytest.mark.slow) for n in (18, 22)),
        pytest.param(2**22, 16, "laplace-count", marks=pytest.mark.slow),
    ],
)
def test_memory_of_a_call_is_within_the_budget(budget, points, name):
    found = calibration(4, eps=np.geomspace(0.1, 3, points))
    law = registry.get(name).count_law(DATA, found)
    run = sampler(DATA, found, law=law, num_trials=10**6, memory_budget=budget, callers=2)
    leaves, structure = jax.tree.flatten(run._state)

    def call(*leaves):
        state = jax.tree.unflatten(structure, leaves)
        key, first = jnp.asarray(run._keys[0]), jnp.uint32(0)
        return lane_metrics(key, first, state, lanes=run._lanes, mesh=run._mesh)

    memory = jax.jit(call).lower(*leaves).compile().memory_analysis()
    used = memory.temp_size_in_bytes + memory.output_size_in_bytes
    assert 2 * used <= 1.3 * budget
    assert run._lanes >= 1


_DEVICES = """
import hashlib, json
import jax
import numpy as np
from theory.calibration import calibrate
from wgm_jax import simulate, synthetic

sizes = synthetic.SetSizes("lognormal", mean=8, spread=1.1, cap=120)
data = synthetic.zipf_draws(s=1.2, num_pairs=6000, set_sizes=sizes, seed=3)
found = calibrate(eps=[0.5, 2.0], delta=1e-3, max_items_per_user=4)
names = ("missing_mass", "missing_mass_l2", "max_missing_mass", "num_released")
digests = []
for sampler, mechanism in (("lanes", "wgm"), ("lanes", "laplace-count"), ("padded", "wgm")):
    for count in COUNTS:
        trials = simulate(data, found, mechanism, num_trials=700, seed=5, sampler=sampler,
                          first_trial=11, devices=jax.devices()[:count])
        values = b"".join(np.ascontiguousarray(getattr(trials, name)).tobytes() for name in names)
        digests.append((f"{sampler} {mechanism}", count, hashlib.sha256(values).hexdigest()))
print(json.dumps(digests))
"""


@pytest.mark.parametrize("counts", [[3], pytest.param([1, 2, 8], marks=pytest.mark.slow)])
def test_numbers_do_not_depend_on_the_number_of_devices(counts):
    """Virtual devices in another process, the real one here."""
    flags = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"
    done = subprocess.run(
        [sys.executable, "-c", f"COUNTS = {counts}\n{_DEVICES}"],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "XLA_FLAGS": flags},
    )
    results = json.loads(done.stdout)
    assert len(results) == 3 * len(counts)
    here = {"COUNTS": [1]}
    exec(_DEVICES.replace("print(", "RESULTS = ("), here)
    for name in ("lanes wgm", "lanes laplace-count", "padded wgm"):
        digests = {d for sampler, _, d in results + json.loads(here["RESULTS"]) if sampler == name}
        assert len(digests) == 1
