import dataclasses
import itertools
import json
import math

import numpy as np
import pytest
from scipy.stats import binom

from theory import InvalidInput
from theory.flow import OneStepMap, adaptive_delta, calibrate_flow
from theory.flow.calibration import recursion_map
from theory.flow.two_rounds import TwoRoundFlow
from theory.flow.two_rounds_calibration import calibrate_two_rounds
from theory.flow.value_bound import steps_before, steps_from_the_end


@pytest.fixture(scope="module")
def alone():
    return calibrate_flow(eps=1.0, delta=1e-5, max_items_per_user=6)


@pytest.fixture(scope="module")
def flow(alone):
    def calibrate(*, eps, **others):
        return alone if eps == 1.0 else calibrate_flow(eps=eps, **others)

    return calibrate_two_rounds(
        eps=1.0, delta=1e-5, max_items_per_user=6, cut=3, calibrate=calibrate
    )


def swapped(pairs):
    return [(1 - b, 1 - a) for a, b in pairs]


def tree(first, seconds, eps, steps, p=1.0, q=1.0):
    """Hockey-stick of the worst adversary, by the whole tree.

    After `steps` first steps it chooses one of `seconds`, pairs and a number of second steps, with
    all outcomes in view. No grid.
    """
    if steps:
        return max(
            tree(first, seconds, eps, steps - 1, p * a, q * b)
            + tree(first, seconds, eps, steps - 1, p * (1 - a), q * (1 - b))
            for a, b in first
        )
    return max(
        [max(p - math.exp(eps) * q, 0.0)]
        + [tree(pairs, [], eps, more, p, q) for pairs, more in seconds]
    )


def some_step(rng, vertices=3, size=0.3):
    before = np.append(np.sort(rng.uniform(0, 1, vertices - 1)), 0.0)
    after = before + (1 - before) * rng.uniform(0, size, vertices) * np.append(
        np.ones(vertices - 1), 0.01
    )
    return OneStepMap.from_probabilities(before=before, after=after)


def pairs_of(step):
    return list(zip(step.after.tolist(), step.before.tolist(), strict=True))


@pytest.mark.parametrize(("steps", "seconds"), [(1, (1,)), (1, (1, 2)), (2, (1,)), (0, (1, 2))])
@pytest.mark.parametrize("seed", range(3))
def test_two_stages_against_the_whole_tree(steps, seconds, seed):
    rng = np.random.default_rng(seed)
    eps = float(rng.uniform(0, 0.4))
    first, others = some_step(rng), [some_step(rng) for _ in seconds]
    ends = [
        steps_from_the_end(other, eps=eps, items=t, spacing=2e-4)
        for other, t in zip(others, seconds, strict=True)
    ]
    later = [end[0] for end in ends], [end[1] for end in ends]
    bounds = steps_before(later, first, eps=eps, items=steps, spacing=2.3e-4)
    for bound, turn in zip(bounds, (lambda pairs: pairs, swapped), strict=True):
        choices = [(turn(pairs_of(o)), t) for o, t in zip(others, seconds, strict=True)]
        exact = tree(turn(pairs_of(first)), choices, eps, steps)
        assert exact <= bound.at_one <= exact + 1e-7


def test_no_first_step_is_one_round(flow):
    for t in (4, 6):
        step, spacing = recursion_map(flow.second, t)
        adding, removing = steps_from_the_end(step, eps=1.0, items=t, spacing=spacing)
        known = adaptive_delta(step, eps=1.0, items=t, spacing=spacing)
        assert (adding.at_one, removing.at_one) == known
        # First steps of length zero, on the same grid.
        still = OneStepMap(step.before, step.before_miss, step.before, step.before_miss)
        none = steps_before(([adding], [removing]), step, eps=1.0, items=0, spacing=spacing)
        assert [part.at_one for part in none] == pytest.approx(known, rel=1e-8)
        three = steps_before(([adding], [removing]), still, eps=1.0, items=3, spacing=spacing)
        assert np.all(np.array([part.at_one for part in three]) >= known)
        assert [part.at_one for part in three] == pytest.approx(known, rel=1e-8)


def test_a_bound_is_above_the_function_between_its_points():
    step = OneStepMap.from_probabilities(before=[0.0, 0.2, 0.5], after=[0.01, 0.25, 0.56])
    coarse, fine = (
        steps_from_the_end(step, eps=0.1, items=2, spacing=spacing)[0] for spacing in (0.02, 1e-4)
    )
    logs = np.linspace(-4.0, 3.0, 5001)
    exact = np.array([
        tree(pairs_of(step), [], 0.1, 2, 1.0, float(np.exp(log))) for log in logs[::50]
    ])  # fmt: skip
    assert np.all(fine.at(logs[::50]) >= exact)
    assert np.all(coarse.at(logs[::50]) >= exact)
    assert np.all(coarse.at(logs) >= fine.at(logs) - 1e-7)
    assert np.all(np.diff(coarse.at(logs)) <= 1e-12)
    far = np.array([-40.0, 40.0])
    assert coarse.at(far) == pytest.approx([1.0, 1 - 0.99**2], abs=1e-9)


def test_every_class_and_direction_is_certified(flow):
    assert flow.adding.shape == flow.removing.shape == (6,)
    assert 0.97e-5 < flow.certified_delta <= 1e-5
    assert np.all(flow.adding[:3] <= 1e-5)
    flow.verify()


def nearest_pair(flow, t, before):
    step = flow.step_map(t)
    index = int(np.argmin(np.abs(step.before[:-1] - before)))
    return float(step.after[index]), float(step.before[index])


def product_delta(first, second, t, eps):
    """Hockey-stick of t items with one pair and t with another: counts are sufficient."""
    (a1, b1), (a2, b2) = first, second
    count = np.arange(t + 1)
    p = np.outer(binom.pmf(count, t, a1), binom.pmf(count, t, a2))
    q = np.outer(binom.pmf(count, t, b1), binom.pmf(count, t, b2))
    return float(np.maximum(p - math.exp(eps) * q, 0.0).sum())


@pytest.mark.parametrize("t", [4, 6])
def test_exact_product_laws_of_both_rounds_are_within_the_certificate(flow, t):
    grid = itertools.product((0.2, 0.5, 0.8), (0.03, 0.06, 0.5, 0.97))
    pairs = [(nearest_pair(flow.first, t, x), nearest_pair(flow.second, t, y)) for x, y in grid]
    adding = max(product_delta(first, second, t, 1.0) for first, second in pairs)
    removing = max(product_delta(first[::-1], second[::-1], t, 1.0) for first, second in pairs)
    assert 0.15e-5 < adding <= flow.adding[t - 1]
    assert removing <= flow.removing[t - 1]


def lowered(flow, which, factor):
    """The same with time constants of one round multiplied."""
    round_ = getattr(flow, which)
    groups = tuple(
        dataclasses.replace(g, time_constants=g.time_constants * factor) for g in round_.groups
    )
    return dataclasses.replace(flow, **{which: dataclasses.replace(round_, groups=groups)})


def test_a_second_round_as_if_alone_is_refused(flow, alone):
    assert flow.second.holders(4) > alone.holders(4)
    assert [flow.second.holders(t) for t in (1, 2, 3)] == [alone.holders(t) for t in (1, 2, 3)]
    with pytest.raises(InvalidInput, match="spent with 4 items"):
        dataclasses.replace(flow, second=alone).verify()


def test_a_first_round_too_long_is_refused(flow):
    with pytest.raises(InvalidInput, match="must be at least"):
        dataclasses.replace(flow, first=lowered(flow, "first", 1.1).first).verify()


def test_a_certificate_that_promises_less_is_refused(flow):
    with pytest.raises(InvalidInput, match="certificate"):
        dataclasses.replace(flow, adding=flow.adding / 2, removing=flow.removing / 2).verify()


def test_classes_below_the_cut_would_not_compose(flow):
    """Why nobody who was in the first round is of class 1 in the second: V_1 is steep."""
    step = flow.second.step_map(1)
    end = steps_from_the_end(step, eps=1.0, items=1, spacing=1 / 64)
    first, spacing = recursion_map(flow.first, 4)
    spent = steps_before(([end[0]], [end[1]]), first, eps=1.0, items=4, spacing=spacing)
    assert end[0].at_one < 1.01e-5
    assert spent[0].at_one > 1e-3


def test_classes_of_users(flow):
    sizes = np.array([1, 3, 4, 6, 9, 9, 5])
    left = np.array([1, 2, 1, 5, 9, 2, 0])
    assert flow.first_classes(sizes).tolist() == [0, 0, 4, 6, 6, 6, 5]
    second = flow.second_classes(sizes, left)
    assert second.tolist() == [1, 2, 4, 5, 6, 4, 4]
    # Nobody keeps more than the class says, and nobody's class is above that of the first round.
    for size, rest in itertools.product(range(1, 15), range(15)):
        if rest <= size:
            (t1,), (t2,) = (
                flow.first_classes(np.array([size])),
                flow.second_classes(np.array([size]), np.array([rest])),
            )
            assert min(rest, 6) <= t2
            assert t2 <= t1 if t1 else t2 == rest <= 3


def test_stored_and_read_back(flow):
    stored = json.loads(json.dumps(flow.to_dict()))
    again = TwoRoundFlow.from_dict(stored)
    assert again.to_dict() == flow.to_dict()
    with pytest.raises(InvalidInput, match="digest"):
        TwoRoundFlow.from_dict(stored | {"cut": 2})
    with pytest.raises(InvalidInput, match="format"):
        TwoRoundFlow.from_dict({})
    bad = dataclasses.replace(flow, delta=5e-6).to_dict()
    with pytest.raises(InvalidInput, match="must be at least"):
        TwoRoundFlow.from_dict(bad)


@pytest.mark.parametrize(
    ("name", "value"),
    [("eps", 0.03), ("eps", 11.0), ("delta", 1e-12), ("max_items_per_user", 3), ("share", 1.0),
     ("cut", -1), ("delta_share", 0.0)],
)  # fmt: skip
def test_out_of_range(name, value):
    arguments = {"eps": 1.0, "delta": 1e-5, "max_items_per_user": 6, "cut": 3, name: value}
    with pytest.raises(InvalidInput):
        calibrate_two_rounds(**arguments)


def test_a_small_delta0_has_a_smaller_cut():
    flow = calibrate_two_rounds(eps=1.0, delta=1e-5, max_items_per_user=1)
    flow.verify()
    assert (flow.cut, flow.certified_delta <= 1e-5) == (0, True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("eps", "cut", "bound"), [(1.0, None, 3), (0.1, 1, 4), (1.0, 3, 24), (4.0, 9, 12)]
)
def test_other_budgets(eps, cut, bound):
    flow = calibrate_two_rounds(eps=eps, delta=1e-6, max_items_per_user=bound, cut=cut)
    assert flow.certified_delta <= 1e-6
    flow.verify()
