"""Statistical audits: exact limits, no false alarm, and what they can see."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from experiments.audit import (
    Pair,
    Run,
    SetLaw,
    audit_by_samples,
    compare,
    compare_with_lower_bound,
    sampled_delta,
)
from experiments.audit.statistical import sample_releases, user_items
from theory import UserItems, calibrate
from theory._check import InvalidInput
from wgm_jax import registry, simulate


def draws(generator, released, trials):
    return generator.random((trials, len(released))) < released


@pytest.mark.parametrize("reverse", [False, True])
def test_limit_holds_at_its_level(reverse):
    p, q = np.array([0.5, 0.2, 0.7, 0.1]), np.array([0.4, 0.1, 0.75, 0.1])
    if reverse:
        p, q = q, p
    pair, eps, alpha, runs = compare(*(SetLaw.product(range(4), x) for x in (p, q))), 0.1, 0.1, 400
    truth = {"first": pair.delta(eps), "second": pair.delta(eps, reverse=True)}
    generator, wrong, low = np.random.default_rng(1), 0, []
    for _ in range(runs):
        found = sampled_delta(
            draws(generator, p, 400), draws(generator, q, 300), eps=eps, alpha=alpha
        )
        wrong += found.low > truth[found.direction]
        low.append(found.low)
    # A level of alpha means at most so many errors, but for one in a million test runs.
    assert wrong <= binom.isf(1e-6, runs, alpha)
    assert np.mean(low) > 0


def test_limit_comes_close_with_many_trials():
    p, q = np.array([0.6, 0.3]), np.array([0.3, 0.2])
    generator = np.random.default_rng(2)
    found = sampled_delta(
        draws(generator, p, 400_000), draws(generator, q, 400_000), eps=0.2, alpha=1e-6
    )
    truth = compare(SetLaw.product("ab", p), SetLaw.product("ab", q)).delta(0.2)
    assert found.direction == "first" and found.trials == (200_000, 200_000)
    assert 0.93 * truth < found.low <= truth


def test_equal_laws_show_nothing():
    generator = np.random.default_rng(3)
    rows = [draws(generator, np.full(5, 0.5), 1000) for _ in range(2)]
    assert sampled_delta(*rows, eps=0.0, alpha=1e-6).low == 0.0
    with pytest.raises(InvalidInput, match="at least 4"):
        sampled_delta(rows[0][:3], rows[1], eps=0.0, alpha=0.1)
    with pytest.raises(InvalidInput, match="alpha"):
        sampled_delta(*rows, eps=0.0, alpha=0.0)


def test_samples_follow_the_exact_law():
    from experiments.audit import subject

    claim = {"eps": 1.0, "delta": 1e-5, "max_items_per_user": 2}
    data = (Run((0, 1), 24), Run((3,), 19), Run((1, 3), 2))
    released, _ = subject("policy-laplace", **claim).laws([data])[0].columns((0, 1, 2, 3))
    rows = sample_releases(
        registry.get("policy-laplace"), data, calibrate(**claim), num_items=4, num_trials=8000,
        seed=4,
    )  # fmt: skip
    assert rows.shape == (8000, 4) and not rows[:, 2].any()
    for x in range(4):
        count, p = int(rows[:, x].sum()), float(released[0, x])
        assert binom.cdf(count, 8000, p) > 1e-7 and binom.sf(count - 1, 8000, p) > 1e-7


def test_specimen_is_caught_by_samples_and_its_repair_is_not():
    noise = calibrate(eps=1.0, delta=1e-5, max_items_per_user=10)
    items = tuple(range(10))
    pair = Pair((Run(items, 96), Run((10,), 17)), items, tuple(Run((x, 10)) for x in items))
    for name, caught in (("policy-gaussian-l1-published", True), ("policy-gaussian-l1", False)):
        found = audit_by_samples(
            registry.get(name), pair, noise, num_trials=20_000, alpha=1e-6, seed=1
        )
        assert (found.low > 1e-3) is caught


def test_items_keep_their_numbers():
    data = user_items((Run((2, 5), 3), Run((5,))))
    assert data.num_users == 4 and data.frequencies.tolist() == [0, 0, 3, 0, 0, 4]


def test_lower_bound_detector():
    sets = [{0} for _ in range(15)] + [{1, 2} for _ in range(4)] + [{k} for k in range(3, 30)]
    data = UserItems.from_sets(sets)
    privacy = {"eps": 1.0, "delta": 1e-5}
    trials = simulate(data, calibrate(**privacy, max_items_per_user=2), num_trials=300)
    fair = compare_with_lower_bound(trials.missing_mass, data, **privacy)
    assert not fair.violated and fair.lower_bound <= fair.mean <= fair.upper_limit
    # Whoever releases all that two users hold leaves too little.
    counts = data.frequencies
    unfair = np.full(300, counts[counts < 2].sum() / data.num_pairs)
    found = compare_with_lower_bound(unfair, data, **privacy)
    assert found.violated and math.isclose(found.mean, unfair[0])
