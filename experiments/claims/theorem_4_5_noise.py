"""The noise of user peeling need not grow with k: [K1h] as a game, and on enumerated neighbours."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from experiments.claims._claim import Cell, Claim, Settings
from experiments.claims._neighbours import data_of, delta_between, subsets
from experiments.verdict import ExactEvidence
from theory import hitting_game_delta, hitting_scale, user_peeling_scale

_EPS = (0.1, 1.0, 4.0)
_DELTA = (1e-2, 1e-5, 1e-10)
_ROUNDS = (5, 20, 200, 10**6, math.inf)

# Dynamic programming: rounds, and parts that the largest step of a round is cut into.
_GAMES = ((0.5, 0.1, 10), (1.0, 1e-2, 10), (1.0, 1e-5, 20), (2.0, 1e-3, 10))
_PARTS = 200

# Users of each kind in the base data, items 0 to 3: near ties, where one user decides most.
_BASES = (
    (((0,), 3), ((1,), 3), ((2,), 3), ((3,), 3)),
    (((0,), 9), ((1,), 6), ((2,), 3), ((3,), 1)),
    (((0, 1), 4), ((2, 3), 4), ((0, 2), 1)),
)
# Small data tell of large deltas only.
_LEVELS = ((0.1, 0.2), (0.5, 0.1), (1.0, 0.05))


def game_upper(eps: float, eps_round: float, rounds: int) -> float:
    """Upper limit of the game's value by dynamic programming over losses, rounded up.

    The adversary picks the loss l = ln(1 + c p) of a round, c = e^eps' - 1, where p is the chance
    that the round hits the user. Between two grid points everything is taken at its better end.
    From a loss of eps + eps' on, what is left of the game is worth 1 - e^(eps - loss).
    """
    step = eps_round / _PARTS
    levels = np.arange(math.ceil((eps + eps_round) / step) + 1 + _PARTS) * step
    ended = np.maximum(-np.expm1(eps - levels), 0.0)
    open_ = levels < eps + eps_round
    losses = np.arange(_PARTS + 1) * step
    chances = np.expm1(losses) / np.expm1(eps_round)
    # Grid point of the loss after the round, its upper end.
    after = np.minimum(np.arange(levels.size)[:, None] + np.arange(1, _PARTS + 1), levels.size - 1)
    hit = np.maximum(-np.expm1(eps + eps_round - levels[after]), 0.0)
    value = ended
    for _ in range(rounds):
        missed = value[after]
        both = [p * hit + (1 - p) * missed for p in (chances[:-1], chances[1:])]
        best = np.maximum(both[0], both[1]).max(axis=1)
        value = np.where(open_, np.maximum(best, value), ended)
    return float(value[0])


def _game(settings: Settings) -> Iterator[Cell]:
    for eps in sorted({*_EPS, *settings.eps} - {0.0}):
        for delta in sorted({*_DELTA, settings.delta}):
            eps_round = 1 / float(hitting_scale(eps=eps, delta=delta))
            for k in _ROUNDS:
                value = float(hitting_game_delta(eps=eps, eps_round=eps_round, rounds=k))
                cell = {"eps": eps, "delta": delta, "k": "any" if math.isinf(k) else int(k)}
                note = f"lambda {1 / eps_round:.5g}, the game's value in closed form"
                yield cell, ExactEvidence(value, delta, "upper", tag="[K1h]", note=note)
    for eps, delta, k in _GAMES:
        eps_round = 1 / float(hitting_scale(eps=eps, delta=delta))
        value = game_upper(eps, eps_round, k)
        cell = {"eps": eps, "delta": delta, "k": k}
        note = "the game by dynamic programming, rounded up"
        yield cell, ExactEvidence(value, delta, "upper", tag="[K1h]", note=note)


def _neighbours(settings: Settings) -> Iterator[Cell]:
    from wgm_jax.selection.hitting import UserPeeling

    peeling = UserPeeling()
    for eps, delta in _LEVELS:
        level = {"eps": eps, "delta": delta, "k": 3}
        worst = 0.0
        for base in _BASES:
            users = [held for held, count in base for _ in range(count)]
            law = peeling.law(peeling.prepare(data_of(users), **level))
            for more in subsets(4):
                other = peeling.law(peeling.prepare(data_of([*users, more]), **level))
                worst = max(worst, delta_between(law, other, eps)[1])
        scale = float(user_peeling_scale(**level))
        note = f"lambda {scale:.4g}; {len(_BASES)} data sets of 4 items and any user more"
        yield level, ExactEvidence(worst, delta, "upper", tag="[K1h]", note=note)


CLAIMS = (
    Claim(
        name="theorem-4.5-noise",
        title="Theorem 4.5 [K1h] noise without k",
        kind="upper, exact",
        statement="Not in the paper: lambda of user peeling need not grow with k, and k takes the "
        "place of k^(3/2) in Theorem 4.5.",
        explicit="lambda = 1/eps' with (1 - e^(-eps')) exp(-(eps + eps')/(e^eps' - 1)) <= delta is "
        "(eps, delta)-DP for every k: the worst case over adaptive rounds is at most delta.",
        family=_game,
    ),
    Claim(
        name="theorem-4.5-privacy",
        title="Theorem 4.5 user peeling is private",
        kind="upper, exact",
        statement="Algorithm 4 is (eps, delta)-DP on a known domain.",
        explicit="With the smaller lambda of [K1] and [K1h]: exact delta(eps) of all output "
        "sequences, small data sets against themselves with any one user more.",
        family=_neighbours,
    ),
)
