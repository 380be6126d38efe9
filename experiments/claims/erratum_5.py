"""Erratum 5: Corollary 4.6 with its sign turned, and a sum of the l1 loss that starts too early."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from experiments.claims._claim import Cell, Claim, Settings
from experiments.claims._hard_data import shares
from experiments.verdict import ExactEvidence

_FREQUENCIES = (9, 7, 4, 2)
_ROUNDING = 1e-12


def _sign(printed: bool) -> Callable[[Settings], Iterable[Cell]]:
    def cells(settings: Settings) -> Iterator[Cell]:
        for cell, hit, _ in shares(settings):
            # Opt - k floor(k*)/2 in shares of Opt = k floor(k*), which is every user.
            note = "E[Hits]/Opt, exact, against 1/2"
            side = "lower" if printed else "upper"
            yield cell, ExactEvidence(hit, 0.5, side, error=_ROUNDING, tag="[L5]", note=note)

    return cells


def printed_l1_loss(chosen: Sequence[int], top: Sequence[int], k: int) -> float:
    """The l1 loss as Appendix F.2 prints it: its second sum starts at min(|S|, k), not after."""
    released = min(len(chosen), k)
    wrong = sum(abs(best - got) for best, got in zip(top[:released], chosen, strict=False))
    return float(wrong + sum(top[released - 1 : k]))


def l1_loss(chosen: Sequence[int], top: Sequence[int], k: int) -> float:
    """What is meant, and measured: positions that stay empty count with their whole frequency."""
    released = min(len(chosen), k)
    wrong = sum(abs(best - got) for best, got in zip(top[:released], chosen, strict=False))
    return float(wrong + sum(top[released:k]))


def _l1(printed: bool) -> Callable[[Settings], Iterable[Cell]]:
    def cells(settings: Settings) -> Iterator[Cell]:
        for k in (1, 2, 4):
            best = _FREQUENCIES[:k]
            loss = (printed_l1_loss if printed else l1_loss)(best, _FREQUENCIES, k)
            note = "loss of the k most frequent items themselves, in order"
            cell = {"frequencies": " ".join(map(str, _FREQUENCIES)), "k": k}
            yield cell, ExactEvidence(loss, 0.0, "upper", unit_range=False, note=note)

    return cells


_CORRECT = "E[Hits] <= Opt - Omega(k/eps) for every sound private algorithm on some data."
CLAIMS = (
    Claim(
        name="erratum-5",
        title="Erratum 5: Corollary 4.6 with >=",
        kind="lower, mean",
        statement="Corollary 4.6: for every sound private algorithm E[Hits(W, S)] >= Opt(W, k) - "
        "Omega(k/eps).",
        explicit="On k items of frequency floor(k*), one per user, Opt - k floor(k*)/2 is half of "
        "Opt; WGM hits less, and so does the optimal mechanism.",
        family=_sign(True),
        expected="refuted",
        twin="corollary-4.6",
    ),
    Claim(
        name="corollary-4.6",
        title="Corollary 4.6 [L5] with <=",
        kind="upper, mean",
        statement=_CORRECT,
        explicit="E[Hits] <= Opt - k floor(k*)/2 on k items of frequency floor(k*), one per user, "
        "exact for WGM with user peeling and for the optimal mechanism.",
        family=_sign(False),
    ),
    Claim(
        name="erratum-5-l1",
        title="Erratum 5: l1 loss as printed",
        kind="upper, exact",
        statement="Appendix F.2: the second sum of the l1 loss runs from min(|S|, k) to k.",
        explicit="Then the k most frequent items themselves, in order, have loss N_(k), not 0.",
        family=_l1(True),
        expected="refuted",
        twin="erratum-5-l1-corrected",
    ),
    Claim(
        name="erratum-5-l1-corrected",
        title="Erratum 5, corrected: l1 loss",
        kind="upper, exact",
        statement="The second sum runs from min(|S|, k) + 1 to k.",
        explicit="The k most frequent items themselves, in order, have loss 0.",
        family=_l1(False),
    ),
)
