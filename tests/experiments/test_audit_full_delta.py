"""All of delta for noise and all of it for new items: the inequality, its lemmas, and the audit."""

import itertools
import math

import mpmath
import numpy as np
import pytest

from experiments.audit import Pair, Run, audit, examine, subject
from experiments.audit.families import few_users
from theory import calibrate
from theory.gaussian import raw_gaussian_delta
from wgm_jax.set_union.dp_sips import DpSips
from wgm_jax.set_union.policy_gaussian import PolicyGaussian, PolicyGaussianL1


def composed(x, eps, h, rate):
    """Adding and removing: an event of rate x L beside a Gaussian of sensitivity sqrt(1 - x)."""
    left = h * np.sqrt(1 - x)
    new = x * rate
    adding = -np.expm1(-new) + np.exp(-new) * raw_gaussian_delta(eps + new, left)
    level = eps - new
    removing = np.where(
        level >= 0,
        raw_gaussian_delta(np.abs(level), left),
        -np.expm1(level) + np.exp(level) * raw_gaussian_delta(np.abs(level), left),
    )
    return adding, removing


def test_inequality_for_real_shares():
    """Removing <= adding <= delta for every share x of new items, a real number in (0, 1)."""
    ends = np.geomspace(1e-9, 0.05, 40)
    x = np.concatenate((ends, np.linspace(0.05, 0.95, 91)[1:-1], 1 - ends))
    checked = 0
    for log_eps, log_h in itertools.product(np.linspace(-8, 2.5, 22), np.linspace(-4, 1.3, 32)):
        for eps in (10.0**log_eps, 0.0):
            h = 10.0**log_h
            delta = float(raw_gaussian_delta(np.float64(eps), np.float64(h)))
            if not 1e-300 < delta <= 0.5:
                continue
            adding, removing = composed(x, eps, h, -math.log1p(-delta))
            assert np.all(adding <= delta * (1 + 1e-12))
            assert np.all(removing <= adding + delta * 1e-9)
            checked += 1
    assert checked > 500


def test_lemmas():
    """Of the proof, in 40 digits: the Mills ratio's moments, and the slope at the right end."""
    with mpmath.workdps(40):
        tail = lambda z: mpmath.erfc(z / mpmath.sqrt(2)) / 2  # noqa: E731
        density = lambda z: mpmath.exp(-z * z / 2) / mpmath.sqrt(2 * mpmath.pi)  # noqa: E731
        last = None
        for b in (mpmath.mpf(i) / 8 for i in range(-64, 65)):
            m = density(b) / tail(b) - b
            spread = 1 - b * m - m**2
            assert b <= 0 or spread > b * m**3
            assert 2 * m**2 + b * m >= 1  # Sampford
            value = 1 / m**2 - b**2
            assert (last is None or value > last) and value < 4
            last = value
        for h, eps in itertools.product((0.01, 0.1, 0.5, 1, 3, 8), (0, 1e-3, 0.1, 1, 5, 20)):
            a, b = mpmath.mpf(h) / 2 - mpmath.mpf(eps) / h, mpmath.mpf(h) / 2 + mpmath.mpf(eps) / h
            missed = tail(a) + mpmath.exp(eps) * tail(b)
            assert -mpmath.log(missed) <= h / 2 * density(a) / tail(a)


def test_shares_between_whole_numbers():
    """The l2 policy gives a new item t^(-1/2), t real; delta stays below, by the same formula."""
    eps, delta, bound = 0.5, 0.3, 4
    claim = subject(
        "policy-gaussian", eps=eps, delta=delta, max_items_per_user=bound, method="full"
    )
    noise = calibrate(eps=eps, delta=delta, max_items_per_user=bound, method="full")
    cap = noise.threshold + 3 * noise.sigma
    gap = cap - 3.0  # of an item that three others hold
    t = 1 + (gap / cap) ** 2
    pair = Pair((Run((0,), 3),), (0, 1))
    found = examine(claim, pair)
    weight = t**-0.5
    released = 0.5 * math.erfc((noise.threshold - weight) / noise.sigma / math.sqrt(2))
    assert 1 < t < 2 and released <= found.limits.high <= delta and found.direction == "add"
    share = composed(np.array([1 / t]), eps, 1 / noise.sigma, -math.log1p(-delta))[0][0]
    assert found.limits.low <= share <= delta


def test_full_delta_is_spent_by_the_l2_policy_and_not_exceeded():
    claim = subject("policy-gaussian", eps=1.0, delta=1e-5, max_items_per_user=2, method="full")
    noise = calibrate(eps=1.0, delta=1e-5, max_items_per_user=2, method="full")
    assert (claim.rounds[0].scale, claim.rounds[0].threshold) == (noise.sigma, noise.threshold)
    result = audit(claim, seconds=None, max_evaluations=100)
    assert not result.accused and result.found_delta > 0.998e-5


@pytest.mark.slow
@pytest.mark.parametrize("name", ["policy-gaussian", "policy-gaussian-l1", "mad-safe"])
@pytest.mark.parametrize(
    ("eps", "delta", "bound"), [(1.0, 1e-5, 4), (0.3, 1e-5, 1), (3.0, 1e-5, 8), (0.05, 0.4, 3)]
)
def test_full_delta_is_not_exceeded(name, eps, delta, bound):
    claim = subject(name, eps=eps, delta=delta, max_items_per_user=bound, method="full")
    result = audit(claim, seconds=None, max_evaluations=500, seed=3)
    assert not result.accused and result.found_delta > 0.98 * delta


def test_rounds_keep_to_half():
    half, full = (
        calibrate(eps=1.0, delta=1e-5, max_items_per_user=3, method=method)
        for method in ("split", "full")
    )
    one, two = DpSips(split=(1.0,)), DpSips(split=(0.1, 0.9))
    assert one.parameters(full).threshold[0] == pytest.approx(full.threshold, rel=1e-13)
    for leaf in ("scale", "threshold"):
        same = (getattr(two.parameters(c), leaf) for c in (half, full))
        np.testing.assert_array_equal(*same)


# ---- a secret random order


def test_random_order_is_the_mean_over_orders():
    arguments = {"eps": 2.0, "delta": 0.2, "max_items_per_user": 2}
    users = [(0, 1), (0,), (1, 2), (0, 1)]
    shuffled = subject(PolicyGaussian(order="random"), **arguments)
    stored = subject(PolicyGaussian(), **arguments)
    law = shuffled.laws([tuple(Run(items) for items in users)])[0]
    assert law.weights.sum() == pytest.approx(1.0)
    orders = [tuple(Run(x) for x in order) for order in itertools.permutations(users)]
    laws = stored.laws(orders)
    mean = np.mean([one.released[0] for one in laws], axis=0)
    np.testing.assert_allclose(law.weights @ law.released, mean, rtol=1e-12)
    both = np.mean([one.released[0, 0] * one.released[0, 1] for one in laws])
    assert law.weights @ (law.released[:, 0] * law.released[:, 1]) == pytest.approx(both, rel=1e-12)


@pytest.mark.parametrize("mechanism", [PolicyGaussian, PolicyGaussianL1])
def test_random_order_is_not_accused(mechanism):
    claim = subject(
        mechanism(order="random", alpha=1.0), eps=2.0, delta=0.2, max_items_per_user=2,
        method="full",
    )  # fmt: skip
    assert claim.shuffles
    pairs = [pair for pair in few_users(claim) if pair.num_users == 5][::150]
    result = audit(claim, seconds=None, max_evaluations=60, pairs=pairs)
    assert not result.accused and result.found_delta > 0.999 * 0.2
    assert result.evaluations == 60


def test_random_order_of_cut_users():
    """Subsets that make two users equal, and subsets that do not: each has the same chance."""
    arguments = {"eps": 2.0, "delta": 0.2, "max_items_per_user": 1}
    users = [(0, 1), (0,), (1, 2)]
    shuffled = subject(PolicyGaussian(order="random"), **arguments)
    law = shuffled.laws([tuple(Run(items) for items in users)])[0]
    stored = subject(PolicyGaussian(), **arguments)
    kept = [*itertools.product((0, 1), (0,), (1, 2))]
    laws = [
        stored.laws([tuple(Run((x,)) for x in order)])[0]
        for items in kept
        for order in itertools.permutations(items)
    ]
    for x in range(3):
        mean = np.mean([one.columns((x,))[0][0, 0] for one in laws])
        assert law.weights @ law.columns((x,))[0][:, 0] == pytest.approx(mean, rel=1e-12)
