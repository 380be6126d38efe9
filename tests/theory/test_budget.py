import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from theory import Budget, InvalidInput


def test_halves_by_default():
    budget = Budget(1.0, 1e-5)
    assert budget.num_parts == 2
    assert budget.part(0) == budget.part(1) == (0.5, 5e-6)
    assert budget == Budget(1, 1e-5)


def test_shares_of_three_stages():
    thirds = (Fraction(1, 3),) * 3
    budget = Budget(2.0, 1e-6, eps_shares=thirds, delta_shares=(0.1, 0.2, 0.7))
    assert budget.num_parts == 3
    assert budget.part(2)[0] == pytest.approx(2 / 3, rel=1e-15)
    assert budget.part(1)[1] == pytest.approx(2e-7, rel=1e-15)
    alone = Budget(2.0, 1e-6, eps_shares=(1,), delta_shares=(1.0,))
    assert alone.part(0) == (2.0, 1e-6)


@given(
    st.integers(1, 10**6), st.integers(1, 10**6),
    st.floats(1e-6, 1e5), st.floats(1e-300, 0.5),
)  # fmt: skip
def test_fractions_never_spend_more_than_the_whole(first, second, eps, delta):
    shares = (Fraction(first, first + second), Fraction(second, first + second))
    budget = Budget(eps, delta, eps_shares=shares, delta_shares=shares)
    for place, whole in enumerate((eps, delta)):
        parts = [Fraction(budget.part(stage)[place]) for stage in (0, 1)]
        assert sum(parts) <= Fraction(whole)
        exact = float(Fraction(whole) * shares[0])
        assert math.isclose(float(parts[0]), exact, rel_tol=3e-16)


@pytest.mark.parametrize(
    ("shares", "message"),
    [
        ((0.5, 0.4), "must add up to 1, not 0.9"),
        ((0.5, 0.5 + 1e-9), "must add up to 1"),
        # Equal to one as floats, not as fractions.
        ((Fraction(1, 3), Fraction(2, 3) + Fraction(1, 10**20)), "must add up to 1"),
        ((1.5, -0.5), "one share above 0 per stage"),
        ((1, 0), "one share above 0 per stage"),
        ((float("nan"), 0.5), "one share above 0 per stage"),
        ((True,), "one share above 0 per stage"),
        ((), "must add up to 1, not 0"),
    ],
)
def test_shares_that_are_no_budget(shares, message):
    with pytest.raises(InvalidInput, match=f"eps_shares = .*{message}"):
        Budget(1.0, 1e-5, eps_shares=shares)
    with pytest.raises(InvalidInput, match=f"delta_shares = .*{message}"):
        Budget(1.0, 1e-5, delta_shares=shares)


def test_other_bad_input():
    with pytest.raises(InvalidInput, match="as many shares as eps_shares .2."):
        Budget(1.0, 1e-5, delta_shares=(1.0,))
    with pytest.raises(InvalidInput, match="eps = -1.0"):
        Budget(-1.0, 1e-5)
    with pytest.raises(InvalidInput, match="delta = 0.0"):
        Budget(1.0, 0.0)
    for stage in (-1, 2):
        with pytest.raises(InvalidInput, match=f"stage = {stage}.*at least 0 and at most 1"):
            Budget(1.0, 1e-5).part(stage)
