"""Slow laws of the selections: all output sequences enumerated, straight from the algorithms."""

from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import linprog


def _sequences(scores, removed, domain, k, scale):
    """Law of k rounds of Gumbel argmax over the rest of the domain.

    `scores(removed, x)` is the count of x after the choices in `removed`.
    """
    left = [x for x in domain if x not in removed]
    if not left or len(removed) == k:
        return {removed: 1.0}
    weights = np.array([scores(removed, x) for x in left]) / scale
    chances = np.exp(weights - weights.max())
    chances /= chances.sum()
    law = {}
    for x, chance in zip(left, chances, strict=True):
        for sequence, rest in _sequences(scores, (*removed, x), domain, k, scale).items():
            law[sequence] = law.get(sequence, 0.0) + chance * rest
    return law


@pytest.fixture(scope="session")
def peeling_law():
    """Law of the k largest noisy counts in order: `law(counts, k, scale)`, items 0, 1, ..."""

    def law(counts, k, scale):
        return _sequences(lambda _, x: counts[x], (), range(len(counts)), k, scale)

    return law


@pytest.fixture(scope="session")
def user_peeling_law():
    """Law of user peeling without early stop: `law(sets, domain, k, scale)`."""

    def law(sets, domain, k, scale):
        def score(removed, x):
            return sum(x in s and not s & set(removed) for s in sets)

        return _sequences(score, (), domain, k, scale)

    return law


@pytest.fixture(scope="session")
def hockey_stick():
    """Exact delta at eps of one finite law against another."""

    def delta(first, second, eps):
        return sum(max(p - np.exp(eps) * second.get(x, 0.0), 0.0) for x, p in first.items())

    return delta


@pytest.fixture(scope="session")
def sound_optimum():
    """Best mean of any sound (eps, delta)-DP selection: `best(sets, value, k, eps, delta)`.

    A linear program over all subsets of the users. Variables: the chance of every output of at
    most k items at every subset, and for neighbours what one has beyond e^eps times the other.
    `value` is what an output is worth on all of the data.
    """

    def best(sets, value, k, eps, delta):
        n, items = len(sets), sorted(set().union(*sets))
        outputs = [
            frozenset(c)
            for size in range(min(k, len(items)) + 1)
            for c in combinations(items, size)
        ]
        count, size = len(outputs), len(outputs) * 2**n
        upper = []
        for group in range(2**n):
            held = set().union(*(s for i, s in enumerate(sets) if group >> i & 1))
            upper += [float(output <= held) for output in outputs]
        pairs = [(g, g & ~(1 << i)) for g in range(2**n) for i in range(n) if g >> i & 1]
        pairs += [(b, a) for a, b in pairs]
        beyond = np.zeros((len(pairs), count, size + len(pairs) * count))
        within = np.zeros((len(pairs), beyond.shape[2]))
        for j, (a, b) in enumerate(pairs):
            o = np.arange(count)
            beyond[j, o, a * count + o], beyond[j, o, b * count + o] = 1, -np.exp(eps)
            beyond[j, o, size + j * count + o] = -1
            within[j, size + j * count + o] = 1
        ones = np.zeros((2**n, beyond.shape[2]))
        for group in range(2**n):
            ones[group, group * count : (group + 1) * count] = 1
        objective = np.zeros(beyond.shape[2])
        objective[size - count : size] = [-value(output) for output in outputs]
        found = linprog(
            objective,
            A_ub=np.concatenate((beyond.reshape(-1, beyond.shape[2]), within)),
            b_ub=np.concatenate((np.zeros(len(pairs) * count), np.full(len(pairs), delta))),
            A_eq=ones, b_eq=np.ones(2**n), method="highs",
            bounds=[(0, u) for u in upper] + [(0, 1)] * (len(pairs) * count),
        )  # fmt: skip
        return -found.fun

    return best
