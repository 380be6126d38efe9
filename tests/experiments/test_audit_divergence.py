"""Hockey-stick divergence of exact laws, against plain enumeration."""

import itertools
import math

import mpmath
import numpy as np
import pytest

from experiments.audit import SetLaw, TableLaw, compare
from experiments.audit.divergence import as_table
from theory._check import InvalidInput


def table(law: SetLaw) -> dict:
    """Probability of every set, one product at a time."""
    found = {}
    for outcome in itertools.product((False, True), repeat=len(law.items)):
        total = 0.0
        for weight, hit, miss in zip(law.weights, law.released, law.missed, strict=True):
            total += weight * math.prod(
                h if o else m for h, m, o in zip(hit, miss, outcome, strict=True)
            )
        found[frozenset(x for x, o in zip(law.items, outcome, strict=True) if o)] = total
    return found


def enumerated(p: dict, q: dict, eps: float) -> float:
    return math.fsum(max(0.0, p.get(s, 0.0) - math.exp(eps) * q.get(s, 0.0)) for s in {*p, *q})


def random_law(generator, items, components):
    weights = generator.dirichlet(np.ones(components))
    released = generator.random((components, len(items)))
    return SetLaw(tuple(items), weights, released, 1 - released)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("components", [(1, 1), (3, 1), (2, 4)])
def test_equals_enumeration(seed, components):
    generator = np.random.default_rng(seed)
    p = random_law(generator, "abcde", components[0])
    q = random_law(generator, "bcdef", components[1])
    pair, tables = compare(p, q), (table(p), table(q))
    by_table = compare(TableLaw(tables[0]), q)
    for eps in (0.0, 0.3, 1.0, 2.5):
        for reverse in (False, True):
            expected = enumerated(*tables[:: -1 if reverse else 1], eps)
            assert pair.delta(eps, reverse=reverse) == pytest.approx(expected, rel=1e-12, abs=1e-15)
            assert by_table.delta(eps, reverse=reverse) == pytest.approx(
                expected, rel=1e-12, abs=1e-15
            )
            limits = pair.limits(eps, reverse=reverse)
            assert limits.low <= expected <= limits.high <= limits.low + 1e-9
    lows = pair.lows([0.0, 1.0])
    assert lows[1, 0] == pair.limits(1.0).low and lows[0, 1] == pair.limits(0.0, reverse=True).low


def test_equal_items_are_counted_together():
    p = SetLaw.product(range(14), [0.3] * 9 + [0.05] * 5)
    q = SetLaw.product(range(14), [0.2] * 9 + [0.0] * 5)
    pair = compare(p, q)
    assert pair.first.size == 10 * 6
    full = compare(as_table(p), as_table(q))
    assert full.first.size == 2**14
    for eps in (0.0, 1.0, 3.0):
        for reverse in (False, True):
            expected = full.delta(eps, reverse=reverse)
            assert pair.delta(eps, reverse=reverse) == pytest.approx(expected, rel=1e-11)


def test_equal_items_cancel_however_many():
    common = np.linspace(0.01, 0.99, 2000)
    p = SetLaw.product(range(2001), [*common, 0.5])
    q = SetLaw.product(range(2001), [*common, 0.25])
    pair = compare(p, q)
    assert pair.first.size == 2 and pair.delta(0.5) == 0.5 - math.exp(0.5) * 0.25
    # Rounding of weights in another order is left out, and counted.
    q = SetLaw.product(range(2001), [*(common * (1 + 1e-15)), 0.25])
    limits = compare(p, q).limits(0.5)
    assert limits.low <= 0.5 - math.exp(0.5) * 0.25 <= limits.high < limits.low + 1e-10


def test_a_thousand_new_items():
    p = SetLaw.product(range(1000), np.full(1000, 1e-8))
    with mpmath.workdps(40):
        expected = 1 - (1 - mpmath.mpf(1e-8)) ** 1000
    limits = compare(p, SetLaw.product("", [])).limits(20.0)
    assert limits.low <= expected <= limits.high
    assert float(abs(limits.low / expected - 1)) < 1e-10


@pytest.mark.parametrize("max_atoms", [64, 512, 4096])
def test_merged_atoms_bracket_the_truth(max_atoms):
    generator = np.random.default_rng(5)
    p_released = generator.random(13)
    q_released = np.clip(p_released + 0.1 * generator.normal(size=13), 0.0, 1.0)
    q_released[0] = 0.0  # an infinite loss among them
    p, q = SetLaw.product(range(13), p_released), SetLaw.product(range(13), q_released)
    exact, merged = compare(p, q), compare(p, q, max_atoms=max_atoms)
    assert exact.spread == 0 and merged.spread > 0
    for eps in (0.0, 0.5, 1.0, 2.0):
        for reverse in (False, True):
            truth = exact.delta(eps, reverse=reverse)
            low, high = merged.limits(eps, reverse=reverse)
            assert low <= truth + 1e-15 and truth <= high
            if max_atoms >= 512:
                assert low >= 0.98 * truth
    assert merged.worst_event(1.0).outcome is None


def test_many_distinct_items_stay_below_the_gaussian_limit():
    # 300 items moved by 1/sqrt(300) in all: a Gaussian mechanism, coarsened to bits.
    from scipy.special import ndtr

    from theory import gaussian_delta

    heights = np.linspace(-1, 1, 300)
    moved = heights + 1 / (2.0 * math.sqrt(300))
    pair = compare(
        SetLaw.product(range(300), ndtr(moved), ndtr(-moved)),
        SetLaw.product(range(300), ndtr(heights), ndtr(-heights)),
        max_atoms=2**12,
    )
    low, high = pair.limits(0.2)
    assert 0 < low <= gaussian_delta(eps=0.2, sigma=2.0) and low <= high


def test_mixtures_of_many_items_give_a_lower_limit():
    generator = np.random.default_rng(1)
    p, q = (random_law(generator, range(9), 2) for _ in range(2))
    truth, part = compare(p, q).delta(0.5), compare(p, q, max_atoms=8).limits(0.5)
    assert 0 < part.low <= truth and part.high == 1.0


def test_worst_event():
    p = SetLaw.product("xyz", [0.5, 0.1, 0.7])
    q = SetLaw.product("xyz", [0.1, 0.0, 0.7])
    eps = 1.0
    event = compare(p, q).worst_event(eps)
    assert event.first - math.exp(eps) * event.second == pytest.approx(compare(p, q).delta(eps))
    # x, or y, or both: all three outcomes are more than e times likelier; z does not matter.
    assert event.num_outcomes == 3
    assert event.outcome == {"released": ["x"], "missed": ["y"]}
    assert event.share == pytest.approx((0.45 - math.e * 0.1) / (0.55 - math.e * 0.1))


def test_laws_are_checked():
    with pytest.raises(InvalidInput, match="distinct"):
        SetLaw.product("aa", [0.1, 0.2])
    with pytest.raises(InvalidInput, match="missed"):
        SetLaw.product("ab", [0.1, 0.2], [0.9, 0.9])
    with pytest.raises(InvalidInput, match="probabilities"):
        TableLaw({"a": 0.5, "b": 0.6})
    with pytest.raises(ValueError, match="too large"):
        as_table(SetLaw.product(range(30), np.full(30, 0.5)))
