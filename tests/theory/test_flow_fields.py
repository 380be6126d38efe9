import numpy as np
import pytest

from theory import InvalidInput
from theory.flow import OneStepMap
from theory.flow.fields import check_monotone_ratios, monotone_durations, symmetric_step
from theory.flow.grid import ProbabilityGrid
from theory.flow.renyi import RenyiRegion, fastest_region, largest_step

GRID = ProbabilityGrid(half_cells=60, cell_width=0.1)


def random_durations(seed, blocks):
    rng = np.random.default_rng(seed)
    return np.exp(rng.normal(0, 0.5, (blocks, GRID.num_cells)))


@pytest.mark.parametrize("seed", range(4))
def test_smaller_sets_first_gives_the_least(seed):
    """Lemma A by itself: with monotone ratios no other order of two flows gives less."""
    durations = monotone_durations(random_durations(seed, 2), 60, [5, 3])
    check_monotone_ratios(durations, 0)
    clocks = [GRID.clock(row) for row in durations]
    rng = np.random.default_rng(seed)
    start = rng.uniform(1, 110, 3000)
    times = rng.exponential(5, (2, 3000))

    def move(block, position):
        return GRID.place(clocks[block], GRID.time(clocks[block], position) + times[block])

    smaller_first, larger_first = move(1, move(0, start)), move(0, move(1, start))
    assert np.all(smaller_first <= larger_first + 1e-9)
    assert np.any(smaller_first < larger_first - 1e-3)


@pytest.mark.parametrize("seed", range(4))
def test_only_slower_never_faster(seed):
    given = random_durations(seed, 6)
    changed = monotone_durations(given, 70, [20, 18, 15, 12, 8, 5])
    check_monotone_ratios(changed, 20)
    assert np.all(changed[:, 20:] >= given[:, 20:] * (1 - 1e-10))
    np.testing.assert_allclose(changed[:, 70], given[:, 70], rtol=1e-10)
    # Ratios of rows further apart are monotone too.
    for s in range(6):
        for t in range(s):
            assert np.all(np.diff(changed[t, 20:] / changed[s, 20:]) <= 0)


def test_a_rise_in_one_cell_is_noticed():
    durations = monotone_durations(random_durations(1, 3), 60, [5, 4, 3])
    durations[1, 90] *= 1 + 1e-12
    with pytest.raises(InvalidInput, match="rises at cell"):
        check_monotone_ratios(durations, 0)
    durations[1, 90] = np.nan
    with pytest.raises(InvalidInput, match="finite"):
        check_monotone_ratios(durations, 0)


def test_the_move_is_exactly_its_polygon():
    clock = GRID.clock(random_durations(2, 1)[0])
    step = GRID.step_map(clock, 3.7, 1)
    order = np.argsort(step.before)
    position = np.linspace(1, GRID.num_cells, 4001)
    before = GRID.at(position)[0]
    after = GRID.at(GRID.place(clock, GRID.time(clock, position) + 3.7))[0]
    polygon = np.interp(before, step.before[order], step.after[order])
    np.testing.assert_allclose(polygon, after, rtol=1e-10)


def test_positions_and_probabilities_are_inverse_at_both_ends():
    position = np.linspace(0, GRID.num_cells, 997)
    release, miss = GRID.at(position)
    np.testing.assert_allclose(GRID.position(release, miss), position, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(GRID.miss, GRID.release[::-1])


@pytest.mark.parametrize("items", [2, 40])
def test_the_largest_step_is_allowed_in_both_directions_and_nothing_beyond(items):
    region = fastest_region(eps=1.0, delta=1e-5, items=items)
    after = symmetric_step(GRID, largest_step(region, GRID.logits))
    inner = np.isfinite(after)
    b = GRID.logits[inner]

    def bounds(a):
        step = OneStepMap(
            1 / (1 + np.exp(-b)), 1 / (1 + np.exp(b)), 1 / (1 + np.exp(-a)), 1 / (1 + np.exp(a))
        )
        return [region.delta_bounds(step.part(slice(i, i + 1))) for i in range(0, b.size, 5)]

    within = np.array(bounds(b + (after[inner] - b) * (1 - 1e-3)))
    beyond = np.array(bounds(b + (after[inner] - b) * (1 + 1e-3)))
    assert within.max() <= 1e-5
    assert np.all(beyond.max(axis=1) > 1e-5)


def test_the_order_is_the_best_among_its_neighbours():
    best = fastest_region(eps=1.0, delta=1e-5, items=20)

    def holders(order, share):
        region = RenyiRegion(1.0, 1e-5, 20, order, share)
        u, count = np.log(region.jump), 1
        while u < 0 and count < 1000:
            u, count = float(largest_step(region, np.array([u]))[0]), count + 1
        return count

    least = holders(best.order, best.jump_share)
    assert least <= min(holders(best.order * f, best.jump_share) for f in (0.7, 1.4)) + 1
    assert least <= min(holders(best.order, best.jump_share * f) for f in (0.4, 2.0)) + 1
