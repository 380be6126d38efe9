from itertools import combinations

import mpmath
import numpy as np
import pytest

from theory import (
    InvalidInput,
    hitting_game_delta,
    hitting_game_scale,
    hitting_scale,
    peeling_delta,
    peeling_scale,
    user_peeling_scale,
)


def game_by_recursion(eps, x, rounds, *, up, cells=1500, choices=250):
    """The recursion itself on a grid of losses: below the value, or (all rounded up) above it.

    Every chance p of a grid is a move of the adversary, so rounding the loss down stays below the
    value. From above, p between two grid points pays at most what their better ends do.
    """
    c, top = np.expm1(x), eps + x * (rounds + 1)
    p = np.linspace(0, 1, choices + 1)
    loss = np.linspace(0, top, cells + 1)
    value = np.maximum(0, -np.expm1(eps - loss))
    step = np.log1p(c * p)
    low, high = (p[:-1], p[1:]) if up else (p, p)
    moved = loss[:, None] + (step[1:] if up else step)
    covered = np.maximum(0, -np.expm1(eps + x - moved))
    place = moved / (top / cells)
    place = (np.ceil if up else np.floor)(place).astype(int)
    for _ in range(rounds):
        beyond = np.append(value, 1.0 if up else value[-1])
        stayed = beyond[np.minimum(place, cells + 1)]
        value = (high * covered + (1 - low) * stayed).max(axis=1)
    return value[0]


@pytest.mark.parametrize(
    ("eps", "x", "rounds"),
    [(1.0, 0.5, 3), (1.0, 0.5, 6), (0.5, 0.3, 4), (2.0, 2.0, 2), (2.0, 2.0, 3), (0.3, 0.1, 8)],
)
def test_closed_form_is_the_value_of_the_recursion(eps, x, rounds):
    value = hitting_game_delta(eps=eps, eps_round=x, rounds=rounds)
    below = game_by_recursion(eps, x, rounds, up=False)
    above = game_by_recursion(eps, x, rounds, up=True)
    assert below <= value <= above
    assert below > 0.98 * value and above < 1.2 * value


def test_value_by_equal_steps():
    """The largest product of chances of staying times what is lost then, over equal steps."""
    for eps, x, k in ((1.0, 0.4, 4), (0.2, 0.15, 9), (3.0, 2.5, 2), (1.0, 0.11, 200)):
        steps = np.linspace(eps / k, x, 200_001)[1:-1]
        paid = ((np.exp(x) - np.exp(steps)) / np.expm1(x)) ** k * -np.expm1(eps - k * steps)
        value = hitting_game_delta(eps=eps, eps_round=x, rounds=k)
        assert value == pytest.approx(paid.max(), rel=1e-7) and value >= paid.max() * (1 - 1e-12)


def test_supersolution_of_theory():
    """V of [K1h] is at least what the recursion makes of it, for every loss and chance."""
    p = np.linspace(0, 1, 401)
    for eps, x in ((0.1, 0.1), (1.0, 0.3), (1.0, 1.0), (5.0, 0.01), (4.0, 3.0)):
        c, turn = np.expm1(x), eps + x

        def v(loss, eps=eps, x=x, c=c, turn=turn):
            early = -np.expm1(-x) * np.exp(-(turn - np.minimum(loss, turn)) / c)
            return np.where(loss <= turn, early, -np.expm1(eps - np.maximum(loss, turn)))

        loss = np.linspace(0, turn + 2 * x, 801)[:, None]
        moved = loss + np.log1p(c * p)
        covered = np.maximum(0, -np.expm1(turn - moved))
        assert np.all(p * covered + (1 - p) * v(moved) <= v(loss) * (1 + 1e-12) + 1e-15)
        assert np.all(v(loss) >= np.maximum(0, -np.expm1(eps - loss)))


def test_precision_and_limit():
    eps, delta = 1.0, 1e-5
    x = 1 / hitting_scale(eps=eps, delta=delta)
    rounds = np.array([1, 9, 10, 12, 200, 10**4, 10**6, 10**9], np.float64)
    values = hitting_game_delta(eps=eps, eps_round=x, rounds=np.append(rounds, np.inf))
    with mpmath.workdps(60):
        for k, value in zip(rounds, values, strict=False):
            big, k = mpmath.mpf(x), int(k)
            t = (k * big - 1) / (k + 1)
            exact = (1 - mpmath.exp(-t)) ** (k + 1) / (1 - mpmath.exp(-big)) ** k if t > 0 else 0
            assert value == pytest.approx(float(exact), rel=1e-12, abs=0)
    assert values[0] == 0 and values[-1] == pytest.approx(delta, rel=1e-11)
    assert np.all(np.diff(values) >= 0) and values[-1] <= delta


def test_real_counts_nearly_reach_the_value():
    """One user {a}; a has a lead over m equal items, each with holders of its own.

    By symmetry only the round matters in which a comes, so the law has k + 1 outcomes.
    """
    eps, x, k = 1.0, 0.4, 4
    c, step = np.expm1(x), (eps + x) / (k + 1)
    chance = np.expm1(step) / c
    lead = 20
    m = round(np.exp(x * lead) * (1 - chance) / chance) + (k - 1) // 2
    without, with_user, unhit, unhit_with = [], [], 1.0, 1.0
    for j in range(k):
        p = np.exp(x * lead) / (np.exp(x * lead) + m - j)
        q = np.exp(x) * p / (1 + c * p)
        without.append(unhit * p)
        with_user.append(unhit_with * q)
        unhit, unhit_with = unhit * (1 - p), unhit_with * (1 - q)
    p, q = np.array([*without, unhit]), np.array([*with_user, unhit_with])
    delta = np.maximum(p - np.exp(eps) * q, 0).sum()
    value = hitting_game_delta(eps=eps, eps_round=x, rounds=k)
    assert 0.998 * value < delta <= value
    assert np.all(q <= np.exp(x) * p)


def test_user_peeling_is_within_the_value(user_peeling_law, hockey_stick):
    """All sequences of small data sets, every user who may join, both directions."""
    rng = np.random.default_rng(3)
    domain, most = range(4), 0.0
    for _ in range(10):
        sets = [
            frozenset(np.flatnonzero(row).tolist())
            for row in rng.random((int(rng.integers(1, 7)), 4)) < 0.4
        ]
        k, x = int(rng.integers(2, 5)), float(rng.uniform(0.3, 1.5))
        before = user_peeling_law(sets, domain, k, 1 / x)
        for size in range(1, 4):
            for held in combinations(domain, size):
                after = user_peeling_law([*sets, frozenset(held)], domain, k, 1 / x)
                assert all(after[s] <= np.exp(x) * before[s] * (1 + 1e-12) for s in before)
                for eps in (x, 1.2 * x, 1.6 * x):
                    delta = hockey_stick(before, after, eps)
                    value = hitting_game_delta(eps=eps, eps_round=x, rounds=k)
                    assert delta <= value + 1e-14
                    most = max(most, delta / value)
    assert most > 0.5


def test_scale_is_the_inverse_and_never_above_the_others():
    eps = np.geomspace(1e-3, 1e5, 20)[:, None, None]
    delta = np.array([1e-300, 1e-30, 1e-12, 1e-5, 0.01, 0.13])[:, None]
    k = np.array([1, 2, 3, 10, 12, 200, 10**6])
    scale = hitting_game_scale(eps=eps, delta=delta, k=k)
    assert scale.shape == (20, 6, 7) and np.all(np.isfinite(scale))
    eps_round = 1 / scale
    assert np.all(hitting_game_delta(eps=eps, eps_round=eps_round, rounds=k) <= delta)
    # No less noise would do, unless eps' has reached eps or pure composition is all there is.
    less = np.minimum(eps_round * (1 + 1e-9), eps)
    spent = hitting_game_delta(eps=eps, eps_round=less, rounds=k)
    free = eps_round < eps * (1 - 1e-13)
    assert np.all((spent > delta)[free & (delta > 1e-300)])
    tight = peeling_scale(eps=eps, delta=delta, k=k, conversion="tight")
    assert np.all((scale <= tight * (1 + 1e-12))[free])
    assert np.all(scale <= user_peeling_scale(eps=eps, delta=delta, k=k) * (1 + 1e-12))
    assert np.all(np.diff(scale, axis=2) >= -1e-12 * scale[:, :, 1:])


def test_value_is_at_most_what_composition_proves():
    x = np.array([0.02, 0.1, 0.3])[:, None]
    k = np.array([2, 5, 20, 100])
    for eps in (0.3, 1.0):
        value = hitting_game_delta(eps=eps, eps_round=x, rounds=k)
        assert np.all(value <= peeling_delta(eps=eps, k=k, scale=1 / x, conversion="tight"))


def test_bad_input_is_named():
    with pytest.raises(InvalidInput, match="eps_round = 1.5: must be at most eps"):
        hitting_game_delta(eps=1.0, eps_round=1.5, rounds=3)
    for bad in (0, 1.5, -np.inf, np.nan):
        with pytest.raises(InvalidInput, match="k = "):
            hitting_game_delta(eps=1.0, eps_round=0.5, rounds=bad)
    with pytest.raises(InvalidInput, match="eps = 0.0"):
        hitting_game_scale(eps=0.0, delta=1e-5, k=3)
