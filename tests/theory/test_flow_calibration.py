import dataclasses
import json

import numpy as np
import pytest

from tests.theory.test_flow_accountant import exact_adaptive_delta
from theory import InvalidInput, optimal_selection_probability
from theory.flow import FlowCalibration, FlowGroup, calibrate_flow


@pytest.fixture(scope="module")
def flow():
    return calibrate_flow(eps=1.0, delta=1e-5, max_items_per_user=12)


def probability(flow, table):
    """Release probabilities for a dense table (items, classes) of holders."""
    table = np.asarray(table)
    sizes = np.tile(np.arange(1, table.shape[1] + 1), len(table))
    offsets = np.arange(len(table) + 1) * table.shape[1]
    return flow.probabilities(offsets, sizes, table.ravel())


def random_states(rng, num, bound):
    """States of few and of many holders, in few and in many classes."""
    scale = rng.choice([0.3, 1.0, 3.0, 10.0, 40.0], size=(num, 1))
    present = rng.random((num, bound)) < rng.choice([0.1, 0.3, 1.0], size=(num, 1))
    return rng.poisson(scale / np.sqrt(np.maximum(present.sum(1, keepdims=True), 1)) * 2,
                       size=(num, bound)) * present  # fmt: skip


def alone(flow):
    """The flow of all classes without the other structures."""
    return dataclasses.replace(flow, groups=flow.groups[:1], structures=((0,),))


def allowed(flow, t, before):
    """Largest probability after adding one user of class t to an item of the first group."""
    graph = flow.groups[0].step_map(t)
    b, a = graph.before[:-1], graph.after[:-1]  # the last pair is the jump from 0
    order = np.argsort(b)
    return np.maximum(np.interp(before, b[order], a[order], left=0.0), graph.after[-1])


def hull(step, before):
    """The least concave function above all pairs, at `before`."""
    points = sorted(zip(step.before.tolist(), step.after.tolist(), strict=True))
    chain = []
    for x, y in points:
        while len(chain) > 1:
            (x1, y1), (x2, y2) = chain[-2:]
            if (y2 - y1) * (x - x1) > (y - y1) * (x2 - x1):
                break
            chain.pop()
        if chain and chain[-1][0] == x:
            chain[-1] = (x, max(y, chain[-1][1]))
        else:
            chain.append((x, y))
    return np.interp(before, *np.array(chain).T)


@pytest.mark.parametrize("t", [1, 2, 3, 4, 7, 12])
def test_adding_a_user_moves_no_item_beyond_the_certified_map(flow, t):
    rng = np.random.default_rng(t)
    states = random_states(rng, 4000, flow.max_items_per_user)
    more = states.copy()
    more[:, t - 1] += 1
    one = alone(flow)
    before, after = probability(one, states)[0], probability(one, more)[0]
    assert np.all(after <= allowed(one, t, before) * (1 + 1e-11))
    before, before_miss = probability(flow, states)
    after, after_miss = probability(flow, more)
    assert np.all(after >= before * (1 - 1e-12))
    assert np.all(after_miss <= before_miss * (1 + 1e-12))
    # Unions mix a group's pair with (1, 1).
    assert np.all(after <= hull(flow.step_map(t), before) * (1 + 1e-11))
    assert np.all(before[states.sum(1) == 0] == 0)
    assert np.allclose(before + before_miss, 1, rtol=0, atol=1e-12)


def worst_states(flow, t, probabilities, rng, num=4):
    """The states whose pairs cost most on their own, and their pairs."""
    states = random_states(rng, 6000, flow.max_items_per_user)
    states[: flow.max_items_per_user * 40] = 0
    for c in range(flow.max_items_per_user):
        states[c * 40 : c * 40 + 40, c] = np.arange(40)
    more = states.copy()
    more[:, t - 1] += 1
    before, after = probabilities(flow, states)[0], probabilities(flow, more)[0]
    cost = (after - np.exp(flow.eps / t) * before) + 1e-3 * (after - before)
    back = ((1 - before) - np.exp(flow.eps / t) * (1 - after)) + 1e-3 * (after - before)
    chosen = np.unique(np.concatenate((np.argsort(-cost)[:num], np.argsort(-back)[:num])))
    return list(zip(after[chosen], before[chosen], strict=True))


@pytest.mark.parametrize("t", [1, 2, 3])
def test_exact_delta_of_adversarial_states_is_within_delta(flow, t):
    pairs = worst_states(flow, t, probability, np.random.default_rng(7))
    mirrored = [(b, a) for a, b in pairs]
    adding = exact_adaptive_delta(pairs, flow.eps, t)
    removing = exact_adaptive_delta(mirrored, flow.eps, t)
    assert 0.1 * flow.delta < adding <= flow.delta
    assert removing <= flow.delta


def test_certificate_covers_every_class_and_direction(flow):
    certificate = flow.certificate
    assert certificate.adding.shape == certificate.removing.shape == (12,)
    assert certificate.delta <= flow.delta
    assert certificate.delta > 0.99 * flow.delta
    assert 0 < certificate.rounding < 1e-9
    flow.verify()


@pytest.mark.parametrize("eps", [0.1, 1.0, 4.0])
def test_no_class_beats_what_any_sound_algorithm_can_do(eps):
    flow = calibrate_flow(eps=eps, delta=1e-5, max_items_per_user=3)
    counts = np.arange(1, 300)
    best = optimal_selection_probability(counts, eps=eps, delta=1e-5)
    for t in (1, 2, 3):
        table = np.zeros((counts.size, 3), np.int64)
        table[:, t - 1] = counts
        assert np.all(probability(flow, table)[0] <= best * (1 + 1e-9))


def test_extra_holders_are_holders_of_the_largest_class(flow):
    rng = np.random.default_rng(3)
    states = random_states(rng, 500, 12)
    extra = rng.integers(0, 30, (3, 500))
    sizes, offsets = np.tile(np.arange(1, 13), 500), np.arange(501) * 12
    release, miss = flow.prepare(offsets, sizes, states.ravel()).probabilities(extra)
    for trial in range(3):
        full = states.copy()
        full[:, -1] += extra[trial]
        known = probability(flow, full)
        np.testing.assert_allclose(release[trial], known[0], rtol=1e-11, atol=0)
        np.testing.assert_allclose(miss[trial], known[1], rtol=1e-11, atol=1e-300)


def with_group(flow, **changes):
    """The same flow with its first group changed."""
    first = flow.groups[0]
    fields = {
        name: getattr(first, name)
        for name in (
            "grid", "first_class", "last_of_block", "durations", "time_constants", "starts",
        )
    }  # fmt: skip
    group = FlowGroup(**(fields | changes))
    return dataclasses.replace(flow, groups=(group, *flow.groups[1:]))


@pytest.mark.parametrize("t", [1, 2, 5, 12])
def test_a_time_constant_ten_percent_too_large_is_caught(flow, t):
    constants = flow.groups[0].time_constants.copy()
    constants[t - 1] *= 1.1
    with pytest.raises(InvalidInput, match=f"spent with {t} items"):
        with_group(flow, time_constants=constants).verify()


def test_a_ratio_that_is_not_monotone_is_caught(flow):
    durations = flow.groups[0].durations.copy()
    durations[5, flow.groups[0].grid.middle] *= 1.01
    with pytest.raises(InvalidInput, match="falling ratio of speeds"):
        with_group(flow, durations=durations)


def test_a_start_too_high_is_caught(flow):
    starts = flow.groups[0].starts.copy()
    starts[5] = starts[4]
    with pytest.raises(InvalidInput, match="spent with 6 items"):
        with_group(flow, starts=starts).verify()
    with pytest.raises(InvalidInput, match="must not increase"):
        with_group(flow, starts=starts[::-1].copy())


def test_a_map_beyond_the_bound_is_caught(flow):
    with pytest.raises(InvalidInput, match="partition the classes"):
        dataclasses.replace(flow, structures=((0,), (1,)))
    with pytest.raises(InvalidInput, match="at most Delta0 = 12"):
        flow.probabilities([0, 1], [13], [1])


def composed(flow, states, *, descending=False, jump_of_first_class=False):
    """The group of all classes by a straightforward loop, with planted mistakes."""
    group = flow.groups[0]
    out = np.zeros(len(states))
    for row, state in enumerate(states):
        present = np.flatnonzero(state).tolist()
        if not present:
            continue
        starts = present[:1] if jump_of_first_class else present
        for start in starts:
            position = group.starts[start : start + 1]
            users = present if jump_of_first_class else [c for c in present if c <= start]
            for c in users[::-1] if descending else users:
                clock = group.clocks[c]
                time = group.grid.time(clock, position) + group.time_constants[c] * state[c]
                position = group.grid.place(clock, time)
            out[row] = max(out[row], group.grid.at(position)[0][0])
    return out


def test_the_loop_without_mistakes_agrees(flow):
    states = random_states(np.random.default_rng(11), 100, 12)
    np.testing.assert_allclose(
        composed(flow, states), probability(alone(flow), states)[0], rtol=1e-11, atol=0
    )


def test_descending_order_is_caught(flow):
    states = random_states(np.random.default_rng(12), 300, 12)
    more = states.copy()
    more[:, 1] += 1
    after, before = composed(flow, more, descending=True), composed(flow, states, descending=True)
    assert np.any(after > allowed(flow, 2, before) * (1 + 1e-3))


def test_starting_with_the_first_class_alone_is_caught(flow):
    """One start, at the jump of the smallest class, with all users after it: not private.

    The smallest counterexample: items held by a few users of the largest class, and a new user
    of a small class, whose large jump comes before all their steps.
    """
    states = np.zeros((12, 12), np.int64)
    states[:, 11] = np.arange(1, 13)
    more = states.copy()
    more[:, 1] += 1
    before = composed(flow, states, jump_of_first_class=True)
    after = composed(flow, more, jump_of_first_class=True)
    pairs = list(zip(after, before, strict=True))
    assert exact_adaptive_delta(pairs, flow.eps, 2) > 2 * flow.delta
    fixed = list(zip(composed(flow, more), composed(flow, states), strict=True))
    assert exact_adaptive_delta(fixed, flow.eps, 2) <= flow.delta


@pytest.mark.parametrize(
    ("name", "value"),
    [("eps", 0.009), ("eps", 10.1), ("eps", float("nan")), ("delta", 0.0), ("delta", 0.011),
     ("delta", 1e-13), ("max_items_per_user", 0), ("max_items_per_user", 1001),
     ("delta", float("inf"))],
)  # fmt: skip
def test_outside_of_the_range_nothing_is_calibrated(name, value):
    arguments = {"eps": 1.0, "delta": 1e-5, "max_items_per_user": 3, name: value}
    with pytest.raises(InvalidInput, match=name):
        calibrate_flow(**arguments)


@pytest.mark.parametrize("eps", [0.01, 10.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-2])
def test_corners_of_the_range(eps, delta):
    flow = calibrate_flow(eps=eps, delta=delta, max_items_per_user=2)
    assert flow.certificate.delta <= delta
    assert isinstance(flow, FlowCalibration)


def test_stored_and_read_back_bit_by_bit(flow):
    stored = json.loads(json.dumps(flow.to_dict()))
    again = FlowCalibration.from_dict(stored)
    assert again.to_dict() == flow.to_dict()
    states = random_states(np.random.default_rng(1), 200, 12)
    for mine, theirs in zip(probability(flow, states), probability(again, states), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    with pytest.raises(InvalidInput, match="digest"):
        FlowCalibration.from_dict(stored | {"delta": 2e-5})
    with pytest.raises(InvalidInput, match="format"):
        FlowCalibration.from_dict({"format": "something else"})


def test_a_stored_flow_that_proves_less_than_it_claims_is_refused():
    flow = calibrate_flow(eps=1.0, delta=1e-5, max_items_per_user=3, accountant="closed-form")
    claimed = dataclasses.replace(flow, delta=5e-6)
    with pytest.raises(InvalidInput, match="must be at least"):
        FlowCalibration.from_dict(claimed.to_dict())


@pytest.mark.parametrize("accountant", ["closed-form", "bellman"])
def test_both_accountants_certify(accountant):
    flow = calibrate_flow(eps=1.0, delta=1e-5, max_items_per_user=6, accountant=accountant)
    assert flow.certificate.delta <= 1e-5
    assert np.any(flow.certificate.spacings > 0) == (accountant == "bellman")
    flow.verify()


def test_the_recursion_needs_fewer_holders():
    exact, closed = (
        calibrate_flow(eps=1.0, delta=1e-5, max_items_per_user=5, accountant=accountant)
        for accountant in ("bellman", "closed-form")
    )
    for t in (2, 5):
        assert exact.holders(t) < closed.holders(t)


def test_probabilities_stay_within_zero_and_one():
    """In the first state the union of two groups came to 1 + 2e-16."""
    flow = calibrate_flow(eps=4.0, delta=1e-5, max_items_per_user=4)
    states = np.random.default_rng(0).integers(0, 60, (20_000, 4))
    release, miss = probability(flow, np.concatenate(([[5, 1, 9, 52]], states)))
    assert release[0] == 1.0
    assert np.all((release >= 0) & (release <= 1) & (miss >= 0) & (miss <= 1))
