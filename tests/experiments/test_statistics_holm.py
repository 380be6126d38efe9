"""Holm's procedure against the textbook loop, and its level by exact enumeration."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from experiments.statistics.binomial import log_p_refute
from experiments.statistics.holm import holm
from theory._check import InvalidInput


def textbook(p_values, alpha):
    """Step down: compare the i-th smallest with alpha / (m - i) and stop at the first miss."""
    rejected = [False] * len(p_values)
    for step, i in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        if p_values[i] * (len(p_values) - step) > alpha:
            break
        rejected[i] = True
    return rejected


# A coarse grid makes ties and exact equalities with alpha / k common.
P_VALUES = st.lists(st.integers(0, 240).map(lambda i: i / 960), max_size=9)


@given(P_VALUES, st.sampled_from([0.01, 0.05, 0.25]))
def test_agrees_with_the_textbook_loop(p_values, alpha):
    assert holm(p_values, alpha=alpha).rejected.tolist() == textbook(p_values, alpha)


@given(P_VALUES)
def test_adjusted_values_are_the_least_levels(p_values):
    adjusted = holm(p_values, alpha=0.5).adjusted
    for i, level in enumerate(adjusted):
        if 0 < level < 1:
            assert holm(p_values, alpha=float(level)).rejected[i]
            assert not holm(p_values, alpha=float(level) * (1 - 1e-9)).rejected[i]


def test_family_wise_error_by_enumeration():
    """Three cells of 12 trials, the first two true at the boundary: P(refuting either) <= alpha."""
    trials, beta, alpha = 12, 0.2, 0.1
    k = np.arange(trials + 1)
    p = np.exp(log_p_refute(k, trials, beta=beta))
    pmf = [stats.binom.pmf(k, trials, rate) for rate in (beta, beta, 0.7)]
    errors = planted = 0.0
    for a, b, c in product(k, k, k):
        rejected = holm([p[a], p[b], p[c]], alpha=alpha).rejected
        weight = pmf[0][a] * pmf[1][b] * pmf[2][c]
        errors += weight * (rejected[0] or rejected[1])
        planted += weight * rejected[2]
    assert 0 < errors <= alpha
    assert planted > 0.9


def test_more_powerful_than_bonferroni_and_empty_family():
    assert holm([0.01, 0.02], alpha=0.02).rejected.tolist() == [True, True]
    assert holm([], alpha=0.05).rejected.shape == (0,)


@pytest.mark.parametrize("bad", [[0.1, np.nan], [-0.1], [1.1], [[0.1]]])
def test_bad_p_values_are_refused(bad):
    with pytest.raises(InvalidInput, match="p_values"):
        holm(bad, alpha=0.05)
