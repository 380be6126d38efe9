import itertools
import math

import numpy as np
import pytest
from scipy.special import ndtr

from theory import (
    InvalidInput,
    calibrate,
    optimal_miss_probability,
    optimal_selection_probability,
    spent_delta,
)
from theory.flow import OneStepMap, RenyiRegion, adaptive_delta, majorant, one_item_delta


def exact_adaptive_delta(pairs, eps, items, p=1.0, q=1.0):
    """Hockey-stick of the worst adaptive choice of pairs, by the whole tree; no grid."""
    if items == 0:
        return max(p - math.exp(eps) * q, 0.0)
    return max(
        exact_adaptive_delta(pairs, eps, items - 1, p * a, q * b)
        + exact_adaptive_delta(pairs, eps, items - 1, p * (1 - a), q * (1 - b))
        for a, b in pairs
    )


def both_exact(before, after, eps, items):
    adding = exact_adaptive_delta(list(zip(after, before, strict=True)), eps, items)
    removing = exact_adaptive_delta(list(zip(before, after, strict=True)), eps, items)
    return adding, removing


def product_delta(pairs, eps):
    """Hockey-stick divergence of two products of Bernoullis, by enumeration of all outcomes."""
    total = 0.0
    for outcome in itertools.product((True, False), repeat=len(pairs)):
        p = math.prod(a if hit else 1 - a for (a, _), hit in zip(pairs, outcome, strict=True))
        q = math.prod(b if hit else 1 - b for (_, b), hit in zip(pairs, outcome, strict=True))
        total += max(p - math.exp(eps) * q, 0.0)
    return total


@pytest.mark.parametrize("eps", [0.05, 1.0, 4.0])
@pytest.mark.parametrize("delta", [1e-10, 1e-5, 1e-2])
def test_the_optimal_selection_spends_exactly_delta(eps, delta):
    pi = optimal_selection_probability(np.arange(2000), eps=eps, delta=delta)
    miss = optimal_miss_probability(np.arange(2000), eps=eps, delta=delta)
    step = OneStepMap(pi[:-1], miss[:-1], pi[1:], miss[1:])
    adding, removing = one_item_delta(step, eps=eps)
    assert adding == pytest.approx(delta, rel=1e-9, abs=4e-15)
    assert removing == pytest.approx(delta, rel=1e-9, abs=4e-15)
    bounds = adaptive_delta(step, eps=eps, items=1, spacing=1e-3)
    assert adding <= bounds[0] <= adding + 1e-6
    # One step of the recursion from V_0, whose kink lies on no grid point: sharp as it is refined.
    assert adaptive_delta(step, eps=eps, items=1, spacing=eps / 64)[0] <= adding + 1e-12


@pytest.mark.parametrize("eps", [0.1, 1.0])
def test_one_gaussian_threshold_spends_what_the_gaussian_mechanism_does(eps):
    noise = calibrate(eps=eps, delta=1e-5, max_items_per_user=1, method="full")
    heights = np.linspace(0, 2 * noise.threshold, 200_001)
    margin = (heights - noise.threshold) / noise.sigma
    more = (heights + 1 - noise.threshold) / noise.sigma
    step = OneStepMap(ndtr(margin), ndtr(-margin), ndtr(more), ndtr(-more))
    first = (1 - noise.threshold) / noise.sigma
    alone = OneStepMap(np.zeros(1), np.ones(1), ndtr(np.array([first])), ndtr(np.array([-first])))
    exact = spent_delta(eps=eps, sigma=noise.sigma, threshold=noise.threshold, max_items_per_user=1)
    assert max(one_item_delta(step.joined(alone), eps=eps)) == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize("items", [1, 2, 3])
@pytest.mark.parametrize("seed", range(6))
def test_recursion_against_the_whole_tree(items, seed):
    rng = np.random.default_rng(seed)
    before = np.append(np.sort(rng.uniform(0, 1, 3)), 0.0)
    after = before + (1 - before) * rng.uniform(0, 0.3, 4) * np.array([1, 1, 1, 0.01])
    eps = float(rng.uniform(0, 0.6))
    step = OneStepMap.from_probabilities(before=before, after=after)
    bounds = adaptive_delta(step, eps=eps, items=items, spacing=2e-4)
    for bound, exact in zip(bounds, both_exact(before, after, eps, items), strict=True):
        assert exact <= bound <= exact + 3e-8 * items


@pytest.mark.parametrize("seed", range(4))
def test_the_tree_is_above_every_product(seed):
    rng = np.random.default_rng(100 + seed)
    before = np.sort(rng.uniform(0, 1, 3))
    after = before + (1 - before) * rng.uniform(0, 0.2, 3)
    pairs = list(zip(after, before, strict=True))
    worst = max(
        product_delta(chosen, 0.2) for chosen in itertools.combinations_with_replacement(pairs, 3)
    )
    assert worst <= exact_adaptive_delta(pairs, 0.2, 3) + 1e-15


def test_pairs_under_the_graph_never_cost_more_than_the_vertices():
    rng = np.random.default_rng(5)
    before = np.array([0.0, 0.1, 0.4, 0.7, 1.0])
    after = np.array([0.02, 0.16, 0.5, 0.78, 1.0])
    inside = rng.uniform(0, 1, 40)
    under = inside + rng.uniform(0, 1, 40) * (np.interp(inside, before, after) - inside)
    step = OneStepMap.from_probabilities(before=before, after=after)
    dense = step.joined(OneStepMap.from_probabilities(before=inside, after=under))
    for items in (1, 4):
        few = adaptive_delta(step, eps=0.3, items=items, spacing=1e-3)
        many = adaptive_delta(dense, eps=0.3, items=items, spacing=1e-3)
        # The same but for the interpolation in y, which only adds.
        assert np.all(np.array(many) >= few)
        assert many == pytest.approx(few, abs=2e-6 * items)
    region = RenyiRegion(eps=0.3, delta=0.1, items=3, order=4.0, jump_share=0.7)
    assert region.delta_bounds(dense) == region.delta_bounds(step)


@pytest.mark.parametrize("items", [2, 3])
@pytest.mark.parametrize("seed", range(5))
def test_closed_form_is_above_the_whole_tree(items, seed):
    rng = np.random.default_rng(seed)
    before = np.append(np.sort(rng.uniform(0, 1, 3)), 0.0)
    after = before + (1 - before) * rng.uniform(0, 0.1, 4) * np.array([1, 1, 1, 0.01])
    step = OneStepMap.from_probabilities(before=before, after=after)
    exact = both_exact(before, after, 0.5, items)
    for order in (0.5, 2.0, 12.0):
        region = RenyiRegion(eps=0.5, delta=0.05, items=items, order=order, jump_share=0.3)
        for bound, value in zip(region.delta_bounds(step), exact, strict=True):
            assert bound >= value


def test_release_where_nobody_else_would_is_paid_by_the_jump():
    region = RenyiRegion(eps=1.0, delta=1e-5, items=5, order=14.0, jump_share=0.33)
    allowed = OneStepMap.from_probabilities(before=[0.0], after=[region.jump * (1 - 1e-9)])
    too_much = OneStepMap.from_probabilities(before=[0.0], after=[region.jump * (1 + 1e-9)])
    assert region.delta_bounds(allowed)[0] <= 1e-5
    assert region.delta_bounds(too_much)[0] == math.inf


def test_more_items_and_larger_steps_cost_more():
    step = OneStepMap.from_probabilities(before=[0.0, 0.3, 0.8], after=[1e-3, 0.34, 0.83])
    larger = OneStepMap.from_probabilities(before=[0.0, 0.3, 0.8], after=[1e-3, 0.36, 0.83])
    values = [adaptive_delta(step, eps=0.2, items=t, spacing=1e-3)[0] for t in (1, 2, 4, 8)]
    assert np.all(np.diff(values) > 0)
    assert adaptive_delta(larger, eps=0.2, items=4, spacing=1e-3)[0] > values[2]


@pytest.mark.parametrize("seed", range(5))
def test_majorant_lies_above_every_graph(seed):
    rng = np.random.default_rng(seed)
    maps = []
    for _ in range(2):
        before = np.concatenate(([0.0], np.sort(rng.uniform(0, 1, 60)), [1.0]))
        after = np.maximum.accumulate(before + (1 - before) * before * rng.uniform(0, 0.5, 62))
        maps.append(OneStepMap.from_probabilities(before=before, after=np.minimum(after, 1.0)))
    knots = np.concatenate(([-np.inf], np.linspace(-6, 6, 17), [np.inf]))
    above = majorant(maps, knots)
    assert above.num_vertices == knots.size
    for step in maps:
        assert np.all(np.interp(step.before, above.before, above.after) >= step.after - 1e-15)
        dense = np.linspace(0, 1, 5001)
        inside = np.interp(dense, step.before, step.after)
        assert np.all(np.interp(dense, above.before, above.after) >= inside - 1e-15)


def test_pairs_out_of_order_are_refused():
    with pytest.raises(InvalidInput, match="before <= after"):
        OneStepMap.from_probabilities(before=[0.5], after=[0.4])
    with pytest.raises(InvalidInput, match="spacing"):
        step = OneStepMap.from_probabilities(before=[0.5], after=[0.6])
        adaptive_delta(step, eps=1.0, items=2, spacing=0.0)
