"""Erratum 6: user peeling that stops when users run out tells that nobody is left."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from experiments.claims._claim import Cell, Claim, Settings
from experiments.claims._neighbours import data_of, delta_between
from experiments.verdict import ExactEvidence

_BOTH, _ONE = 120, 200  # users with items 0 and 1, users with item 0 only
_K = 2


def exact_delta(eps: float, delta: float, *, stops_early: bool) -> tuple[float, float]:
    """Limits of delta(eps) of both choices of two items, on the pair and with W' = W + {1}.

    W is hit by item 0 alone, which comes first almost surely; in W' one user is left then, and
    item 1 follows. The noise is that of the repaired mechanism at (eps, delta).
    """
    from wgm_jax.selection.hitting import UserPeeling, UserPeelingEarlyStop

    peeling = (UserPeelingEarlyStop if stops_early else UserPeeling)()
    users = [(0, 1)] * _BOTH + [(0,)] * _ONE
    laws = [
        peeling.law(peeling.prepare(data_of(sets), eps=eps, delta=delta, k=_K))
        for sets in (users, [*users, (1,)])
    ]
    return delta_between(laws[0], laws[1], eps)


def _family(stops_early: bool) -> Callable[[Settings], Iterable[Cell]]:
    def cells(settings: Settings) -> Iterator[Cell]:
        for eps in sorted({0.1, 1.0, *settings.eps} - {0.0}):
            low, high = exact_delta(eps, settings.delta, stops_early=stops_early)
            cell = {"users": f"{_BOTH} x ab, {_ONE} x a (+ b)", "k": _K, "eps": eps}
            note = "exact delta(eps) of the output sequences, the domain {a, b} known"
            evidence = ExactEvidence(
                (low + high) / 2,
                settings.delta,
                "upper",
                error=(high - low) / 2,
                has_slack=False,
                note=note,
            )
            yield {**cell, "delta": settings.delta}, evidence

    return cells


CLAIMS = (
    Claim(
        name="erratum-6",
        title="Erratum 6: stop when users run out",
        kind="upper, exact",
        statement="Section 4.2: user peeling goes on until k items are out, or the items or the "
        "users have run out; it is (eps, delta)-DP.",
        explicit="120 users {a, b} and 200 users {a} against one user {b} more, k = 2: a, then "
        "nothing, against a, then b. delta(eps) is close to 1.",
        family=_family(True),
        expected="refuted",
        twin="erratum-6-corrected",
    ),
    Claim(
        name="erratum-6-corrected",
        title="Erratum 6, corrected: k rounds",
        kind="upper, exact",
        statement="Algorithm 4, which runs k rounds whether users are left or not, is "
        "(eps, delta)-DP.",
        explicit="delta(eps) on the same pair is at most delta.",
        family=_family(False),
    ),
)
