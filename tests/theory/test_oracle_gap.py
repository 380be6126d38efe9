"""The least missing mass is attained: the mechanism that knows the data, enumerated exactly."""

from collections import Counter
from fractions import Fraction
from itertools import combinations, combinations_with_replacement
from math import log

import mpmath
import numpy as np
import pytest

from theory import InvalidInput, Profile, UserItems, calibrate, instance_lower_bound
from theory.oracle_gap import oracle_gap

ITEMS = (0, 1, 2)
USERS = [frozenset(held) for size in (1, 2, 3) for held in combinations(ITEMS, size)]
# All data sets of at most five users over three items: 792.
DATA_SETS = [
    data for users in range(6) for data in combinations_with_replacement(range(len(USERS)), users)
]
# (e^eps, delta): exact fractions, with few and with many steps of pi, on both of its branches.
LEVELS = [
    (Fraction(1), Fraction(1, 10)),
    (Fraction(1), Fraction(2, 7)),
    (Fraction(3, 2), Fraction(1, 100)),
    (Fraction(2), Fraction(1, 20)),
    (Fraction(2), Fraction(1, 3)),
    (Fraction(3), Fraction(1, 2)),
    (Fraction(8), Fraction(1, 1000)),
]
KNOWN = [
    [{0}, {0}, {0}, {0, 1}, {0, 2}],
    [{0, 1, 2}, {0, 1}, {0}],
    [{0, 1, 2}],
    [{0}, {0}, {1}, {1}, {2}],
    [{0, 1}, {1, 2}, {0, 2}, {0, 1, 2}],
]


def cut_law(grow, delta):
    """P(R = k), k = 0.., with P(R <= k) = pi(k): exact, until pi is 1."""
    pi, law = Fraction(0), [Fraction(0)]
    while pi < 1:
        step = min(grow * pi + delta, 1 - (1 - pi - delta) / grow, Fraction(1))
        law.append(step - pi)
        pi = step
    return law


def distance(data, other):
    """Users by which two data sets differ, as multisets."""
    first, second = Counter(data), Counter(other)
    return sum(((first - second) + (second - first)).values())


def output_law(data, known, frequencies, law):
    """Released set -> probability: the items of the known data with at least R + d holders."""
    away = distance(data, known)
    outputs = Counter()
    for cut, chance in enumerate(law):
        if chance:
            released = frozenset(x for x in ITEMS if frequencies[x] >= cut + away)
            outputs[released] += chance
    return outputs


def hockey_stick(one, other, grow):
    """Largest P(one in A) - e^eps P(other in A) over all events A."""
    return sum(max(chance - grow * other[output], 0) for output, chance in one.items())


@pytest.mark.parametrize("known", KNOWN)
@pytest.mark.parametrize(("grow", "delta"), LEVELS)
def test_the_mechanism_that_knows_the_data(known, grow, delta):
    """Sound and private on every data set and neighbour, and as good as [L2] on its own."""
    law = cut_law(grow, delta)
    assert sum(law) == 1
    frequencies = Counter(item for held in known for item in held)
    own = tuple(sorted(USERS.index(frozenset(held)) for held in known))
    outputs = {data: output_law(data, own, frequencies, law) for data in DATA_SETS}
    worst = Fraction(0)
    for data, released in outputs.items():
        present = frozenset().union(*(USERS[user] for user in data))
        assert all(output <= present for output in released)
        for user in range(len(USERS)):
            if len(data) == 5:
                continue
            more = outputs[tuple(sorted((*data, user)))]
            worst = max(worst, hockey_stick(more, released, grow))
            worst = max(worst, hockey_stick(released, more, grow))
    assert worst == delta  # no more, and all of it is spent
    total = sum(frequencies.values())
    missed = sum(
        chance * sum(frequencies[x] for x in ITEMS if x not in released)
        for released, chance in outputs[own].items()
    )
    profile = Profile.from_user_items(UserItems.from_sets(known), max_items_per_user=3)
    least = instance_lower_bound(profile, eps=log(grow), delta=float(delta)).value
    assert least == pytest.approx(float(missed / total), rel=1e-13)


@pytest.mark.parametrize(("grow", "delta"), LEVELS)
def test_far_from_its_data_the_mechanism_stays_private(grow, delta):
    """Distances 0-1, 1-2, ... up to more users than R reaches: the cut moves by one each time."""
    law = cut_law(grow, delta)
    known = (0,) * (len(law) + 3)  # one item, with more holders than any cut
    outputs = [
        output_law(known[away:], known, Counter({0: len(known)}), law)
        for away in range(len(known) + 1)
    ]
    assert set(outputs[0]) == {frozenset({0})}
    assert set(outputs[-1]) == {frozenset()}
    worst = max(
        max(hockey_stick(near, far, grow), hockey_stick(far, near, grow))
        for near, far in zip(outputs, outputs[1:], strict=False)
    )
    assert worst == delta


def test_the_enumeration_notices_a_cut_that_is_one_too_low():
    """The same mechanism with R - 1 releases items of data that nobody holds any more."""
    law = cut_law(Fraction(2), Fraction(1, 20))[1:]
    known = (0, 0)
    assert set(output_law((), known, Counter({0: 2}), law)) == {frozenset(), frozenset({0})}


SETS = {
    "singletons": [{i} for i in range(20)],
    "mixed": [{0, 1, 2, 3}, {0}, {0, 1}, {4, 5, 6}, {4}, {7}] + [{0, 8}] * 30,
    "popular": [{0, 1}] * 60 + [{0, i} for i in range(2, 40)],
}


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("bound", [1, 2, 4])
@pytest.mark.parametrize("method", ["split", "full"])
def test_no_gap_is_below_one(name, bound, method):
    data = UserItems.from_sets(SETS[name])
    profile = Profile.from_user_items(data, max_items_per_user=bound)
    made = calibrate(
        eps=[[0.1], [1.0], [5.0]], delta=[1e-5, 1e-2], max_items_per_user=bound, method=method
    )
    gap = oracle_gap(profile, made)
    assert gap.shape == (3, 2)
    assert np.all(gap >= 1)
    alone = [oracle_gap(profile, made[index]) for index in np.ndindex(3, 2)]
    np.testing.assert_allclose(gap.ravel(), alone, rtol=1e-12)


def test_the_gap_of_equal_items_in_high_precision():
    """Ten items of 22 holders with one item each: Phi over 1 - pi."""
    profile = Profile.from_frequencies([22] * 10, max_set_size=1, max_items_per_user=1)
    made = calibrate(eps=1.0, delta=1e-5, max_items_per_user=1)
    with mpmath.workdps(40):
        pi, grow = mpmath.mpf(0), mpmath.e
        for _ in range(22):
            pi = min(grow * pi + mpmath.mpf(1e-5), 1 - (1 - pi - mpmath.mpf(1e-5)) / grow)
        sigma, threshold = mpmath.mpf(made.sigma), mpmath.mpf(made.threshold)
        expected = mpmath.ncdf((threshold - 22) / sigma) / (1 - pi)
    assert oracle_gap(profile, made) == pytest.approx(float(expected), rel=1e-8)


def test_where_everything_can_be_released_the_gap_is_infinite():
    profile = Profile.from_frequencies([10**4], max_set_size=1, max_items_per_user=1)
    made = calibrate(eps=1.0, delta=1e-5, max_items_per_user=1)
    assert oracle_gap(profile, made) == np.inf


def test_bare_frequencies_are_refused():
    profile = Profile.from_frequencies([9, 3], max_set_size=4, max_items_per_user=1)
    made = calibrate(eps=1.0, delta=1e-5, max_items_per_user=1)
    with pytest.raises(InvalidInput, match="must know the set sizes"):
        oracle_gap(profile, made)
