"""Noise scales and thresholds against golden values, their meaning, and bad input."""

import math

import mpmath
import numpy as np
import pytest

from theory import InvalidInput, calibrate
from theory.lower_bounds import optimal_selection_probability
from wgm_jax.set_union.counts import GaussianCount, Korolova, LaplaceCount
from wgm_jax.set_union.dp_sips import TWO_ROUNDS, DpSips, geometric_split
from wgm_jax.set_union.mad_safe import MadSafe
from wgm_jax.set_union.optimal_selection import OptimalSelection
from wgm_jax.set_union.policy_gaussian import (
    PolicyGaussian,
    PolicyGaussianL1,
    PolicyGaussianL1Published,
)
from wgm_jax.set_union.policy_greedy import (
    PolicyGreedy,
    PolicyGreedyPositive,
    PolicyGreedyPublished,
)
from wgm_jax.set_union.policy_laplace import PolicyLaplace
from wgm_jax.set_union.thresholds import greedy_threshold, laplace_threshold
from wgm_jax.set_union.weighted_laplace import WeightedLaplace

BOUNDS = np.array([1, 10, 100])


def paper(bound=BOUNDS, method="split"):
    return calibrate(eps=1.0, delta=1e-5, max_items_per_user=bound, method=method)


def first_round(mechanism, calibration):
    return mechanism.parameters(calibration).round(0)


GOLDEN = [
    (PolicyGaussian(), 3.88414, [18.1569, 19.3160, 20.7897], 3),
    (PolicyGaussian(alpha=5), 3.88414, [18.1569, 19.3160, 20.7897], 5),
    (PolicyGaussianL1(), 3.88414, [18.1569, 19.3160, 20.7897], 3),
    (PolicyGaussianL1Published(), 3.88414, [18.1569, 19.3160, 20.7897], 3),
    (WeightedLaplace(), 1, [11.8198, 13.2224, 15.4349], math.inf),
    (PolicyLaplace(), 1, [11.8198, 13.2224, 15.4349], 3),
    (PolicyGreedy(), 1, [11.8198, 13.2809, 15.4420], 3),
    (PolicyGreedyPublished(), 1, [11.8198] * 3, 3),
    (PolicyGreedyPositive(), 1, [11.8198] * 3, 3),
    (MadSafe(), 3.88414, [18.1569, 19.3160, 20.7897], 2),
    (DpSips(split=(1.0,)), 3.88414, [18.1569, 19.3160, 20.7897], math.inf),
]


@pytest.mark.parametrize(("mechanism", "scale", "thresholds", "alpha"), GOLDEN, ids=repr)
def test_golden_parameters(mechanism, scale, thresholds, alpha):
    found = first_round(mechanism, paper())
    np.testing.assert_allclose(found.scale, np.full(np.shape(found.scale), scale), atol=5.1e-6)
    np.testing.assert_allclose(found.threshold, thresholds, atol=5.1e-5)
    np.testing.assert_allclose(found.cap, found.threshold + alpha * found.scale, rtol=1e-15)


def test_golden_parameters_of_counts():
    gaussian = first_round(GaussianCount(), paper())
    np.testing.assert_allclose(gaussian.scale[1:], [12.2827, 38.8414], atol=5.1e-5)
    np.testing.assert_allclose(gaussian.threshold[1:], [61.0827, 207.897], atol=5.1e-4)
    assert gaussian.threshold[0] == pytest.approx(paper(1).threshold, rel=1e-12)
    laplace, korolova = (first_round(m, paper(10)) for m in (LaplaceCount(), Korolova()))
    assert float(laplace.threshold) == pytest.approx(132.2236, abs=5e-5)
    assert float(korolova.threshold) == pytest.approx(141.224, abs=5e-4)
    assert float(laplace.scale) == float(korolova.scale) == 10


def test_golden_parameters_of_rounds():
    np.testing.assert_allclose(geometric_split(), [0.06475, 0.21583, 0.71942], atol=5.1e-6)
    found = DpSips().parameters(paper(100))
    np.testing.assert_allclose(found.scale, [15.2644, 8.3607, 4.5793], atol=5.1e-5)
    np.testing.assert_allclose(found.threshold, [88.695, 46.910, 24.765], atol=5.1e-4)
    assert TWO_ROUNDS.parameters(paper()).scale.shape == (3, 2)
    # Gaussian privacy of the rounds composes to that of one.
    assert (found.scale**-2).sum() == pytest.approx(paper(100).sigma ** -2, rel=1e-14)


def test_one_round_is_the_weighted_gaussian_mechanism():
    single, calibration = DpSips(split=(1.0,)).parameters(paper()), paper()
    np.testing.assert_allclose(single.scale[:, 0], calibration.sigma, rtol=1e-15)
    np.testing.assert_allclose(single.threshold[:, 0], calibration.threshold, rtol=1e-13)


def test_full_delta_only_where_it_is_proved():
    full = paper(method="full")
    for mechanism in (PolicyGaussian(), PolicyGaussianL1()):
        assert (mechanism.parameters(full).threshold[:, 0] == full.threshold).all()
        assert (mechanism.parameters(full).scale[:, 0] == full.sigma).all()
    np.testing.assert_allclose(
        MadSafe().parameters(full).threshold[:, 0], full.threshold, rtol=1e-12
    )
    for mechanism in (GaussianCount(), DpSips(), MadSafe(split=(0.1, 0.9))):
        same = mechanism.parameters(full), mechanism.parameters(paper())
        assert (same[0].threshold == same[1].threshold).all()


def test_golden_selection_probabilities():
    found = OptimalSelection()
    counts = np.array([0.0, 1, 2, 3, 11, 12, 23])
    hit, miss = found.probabilities(counts, first_round(found, paper(1)))
    golden = [0, 1e-5, 3.71828e-5, 1.110734e-4, 0.348448, 0.760311, 1]
    np.testing.assert_allclose(hit, golden, rtol=2e-6)
    np.testing.assert_allclose(hit + miss, 1, rtol=1e-15)
    likely = []
    for bound in (1, 2, 3, 5, 10):
        hit, _ = found.probabilities(np.arange(200.0), first_round(found, paper(bound)))
        likely.append(int(np.argmax(hit >= 0.5)))
    assert likely == [12, 23, 33, 55, 109]


def laplace_tail(x):
    return mpmath.exp(-x) / 2 if x > 0 else 1 - mpmath.exp(x) / 2


@pytest.mark.parametrize("eps", [0.01, 1.0, 7.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-5, 0.3])
@pytest.mark.parametrize("bound", [1, 3, 40])
def test_new_items_come_out_with_probability_at_most_delta(eps, delta, bound):
    """60 digits, every number t of new items; tight within 1e-9 for the worst one."""
    arguments = {"eps": eps, "delta": delta, "max_items_per_user": bound}
    calibration = calibrate(**arguments)

    def some(weights, parameters, tail):
        threshold, scale = (mpmath.mpf(float(v)) for v in (parameters.threshold, parameters.scale))
        miss = mpmath.mpf(1)
        for weight in weights:
            miss *= 1 - tail((threshold - weight) / scale)
        return 1 - miss

    with mpmath.workdps(60):
        sizes = [mpmath.mpf(t) for t in range(1, bound + 1)]
        for mechanism, weights in (
            (WeightedLaplace(), [[1 / t] * int(t) for t in sizes]),
            (PolicyLaplace(), [[1 / t] * int(t) for t in sizes]),
            (LaplaceCount(), [[1] * int(t) for t in sizes]),
            (Korolova(), [[1] * int(t) for t in sizes]),
            (PolicyGreedy(), [[1] + [0] * (int(t) - 1) for t in sizes]),
        ):
            now = first_round(mechanism, calibration)
            worst = max(some(w, now, laplace_tail) for w in weights)
            assert worst <= delta
            if isinstance(mechanism, (WeightedLaplace, PolicyLaplace, LaplaceCount)):
                assert worst >= delta * (1 - 1e-9)
        for mechanism, share in ((GaussianCount(), 1), (DpSips(), None), (MadSafe(), 1)):
            found = mechanism.parameters(calibration)
            for index in range(mechanism.num_rounds):
                part = (share or mechanism.split[index]) * mpmath.mpf(delta) / 2
                counts = isinstance(mechanism, GaussianCount)
                weights = [[1 if counts else t**-0.5] * int(t) for t in sizes]
                now = found.round(index)
                worst = max(
                    some(w, now, lambda x: mpmath.erfc(x / mpmath.sqrt(2)) / 2) for w in weights
                )
                assert part * (1 - 1e-9) <= worst <= part


def test_published_greedy_spends_more_than_it_claims():
    """One user with 1000 new items: 3.68e-3 at a claimed 1e-5."""
    now = first_round(PolicyGreedyPublished(), paper(1))
    _, miss = PolicyGreedyPublished().probabilities(np.array([1.0] + [0.0] * 999), now)
    assert 1 - np.prod(miss) == pytest.approx(3.68e-3, abs=5e-6)
    now = first_round(PolicyGreedy(), paper(1000))
    _, miss = PolicyGreedy().probabilities(np.array([1.0] + [0.0] * 999), now)
    assert 0.99e-5 < 1 - np.prod(miss) <= 1e-5


def test_optimal_selection_composes():
    """Released with at most delta by a user's new items, and never above one item's optimum."""
    found = OptimalSelection()
    hit, _ = found.probabilities(np.array([1.0]), first_round(found, paper(10)))
    assert hit[0] == pytest.approx(1e-6, rel=1e-12)
    counts = np.arange(60.0)
    hit, _ = found.probabilities(counts, first_round(found, paper(2)))
    assert (hit <= optimal_selection_probability(counts, eps=1.0, delta=1e-5)).all()


@pytest.mark.parametrize("alpha", [0, -1.0, math.nan, math.inf])
@pytest.mark.parametrize("policy", [PolicyGaussian, PolicyLaplace, PolicyGreedy])
def test_alpha_must_be_above_zero(policy, alpha):
    with pytest.raises(InvalidInput, match="alpha"):
        policy(alpha=alpha)


def test_bad_input():
    with pytest.raises(InvalidInput, match="order = shuffled: must be one of stored, random"):
        PolicyGaussian(order="shuffled")
    for split in ((), (0.5, 0.6), (1.5, -0.5), (0.0, 1.0), (math.nan, 1.0)):
        with pytest.raises(InvalidInput, match="split"):
            DpSips(split=split)
    with pytest.raises(InvalidInput, match="num_rounds = 0"):
        geometric_split(0)
    with pytest.raises(InvalidInput, match="ratio"):
        geometric_split(3, 0.0)
    for wrong in ({"d_max": 1}, {"beta": 0.0}, {"split": ()}):
        with pytest.raises(InvalidInput, match=next(iter(wrong))):
            MadSafe(**wrong)


@pytest.mark.parametrize("delta", [0.0, -1e-5, 0.6, 1.0, math.nan])
def test_policy_greedy_refuses_delta_outside_its_range(delta):
    with pytest.raises(InvalidInput, match="delta"):
        greedy_threshold(eps=1.0, delta=delta, max_items_per_user=1)


def test_laplace_noise_needs_eps_above_zero():
    zero = calibrate(eps=0.0, delta=1e-5, max_items_per_user=3)
    for mechanism in (WeightedLaplace(), PolicyLaplace(), PolicyGreedy(), LaplaceCount()):
        with pytest.raises(InvalidInput, match=r"eps = 0.0: must be above 0 for Laplace"):
            mechanism.parameters(zero)
    with pytest.raises(InvalidInput, match="max_items_per_user"):
        laplace_threshold(eps=1.0, delta=1e-5, max_items_per_user=0)
