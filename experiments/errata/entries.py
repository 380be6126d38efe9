"""Which errata there are: the claim that is refuted, its correction, and what went wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from experiments.claims import Claim, select
from theory._check import invalid


def _every(cell: Mapping[str, Any]) -> bool:
    return True


def _smallest(cell: Mapping[str, Any]) -> bool:
    """The smallest of the hard data, at eps = 1."""
    return cell["eps"] == 1.0 and cell["k"] == 1


def _eps_1(cell: Mapping[str, Any]) -> bool:
    return cell["eps"] == 1.0


@dataclass(frozen=True)
class Erratum:
    """One printed statement that is false, and its correction.

    Attributes:
        number: Such as "1a".
        where: Where it is printed.
        cause: What went wrong, in one sentence.
        claim: The statement as printed; its cells are the counterexamples.
        corrected: The corrected statement.
        shows: Which cells are shown; the smallest ones of a family. All of them are judged.
        same_instance: The corrected number on the very counterexample, where `corrected` is a
            claim about data sets.
        see: The command that shows more.

    Example:
        >>> select_errata(["6"])[0].where
        'Section 4.2, prose'
    """

    number: str
    where: str
    cause: str
    claim: Claim
    corrected: Claim
    shows: Callable[[Mapping[str, Any]], bool] = _every
    same_instance: Claim | None = None
    see: str = ""


def errata() -> tuple[Erratum, ...]:
    """All errata, in order.

    Returns:
        One `Erratum` each: those of the paper, then those of published code.

    Example:
        >>> [erratum.number for erratum in errata()]
        ['1a', '1b', '2', '3', '4a', '4b', '5a', '5b', '6', '7a', '7b']
    """
    from experiments.errata import specimens

    def known(number: str, where: str, name: str, cause: str, **more: Any) -> Erratum:
        """An erratum whose claim and correction `wgm verify` judges, too."""
        claim = _named(name)
        assert claim.twin is not None
        corrected = _named(claim.twin)
        return Erratum(number, where, cause, claim, corrected, see=f"wgm claims {name}", **more)

    return (
        known(
            "1a",
            "Lemma C.2",
            "erratum-1-lemma-c.2",
            "The proof bounds an integral from r0 - 1 on by r0^(1-s), but (r0 - 1)^(1-s) is "
            "larger; the tail needs s/(s-1) [Z2].",
            same_instance=specimens.LEMMA_C2_CORRECTED,
        ),
        known(
            "1b",
            "Theorem 3.3",
            "erratum-1-theorem-3.3",
            "It inherits the tail of Lemma C.2: its hidden constant must grow like s.",
            same_instance=specimens.THEOREM_33_CORRECTED,
        ),
        known(
            "2",
            "Corollary 3.4 and Theorem 3.6",
            "erratum-2",
            "sigma falls like 1/eps, T does not: it stays above 1. Right while eps is at most "
            "about 1.",
        ),
        known(
            "3",
            "Theorem 3.6",
            "erratum-3",
            "The largest of M noises grows like sqrt(log M), which the subscript of the Õ does "
            "not list.",
        ),
        known(
            "4a",
            "Section 3, Appendix C.2.1",
            "erratum-4",
            "As eps -> 0 a finite sigma does for fixed delta; as eps -> infinity 1/sqrt(2 eps) is "
            "needed. Right in between.",
        ),
        Erratum(
            "4b",
            "Section 3, Appendix C.2.1",
            "T follows sigma, which stays finite as eps -> 0.",
            specimens.THRESHOLD,
            specimens.THRESHOLD_CORRECTED,
        ),
        known(
            "5a",
            "Corollary 4.6",
            "erratum-5",
            "What no private algorithm surpasses is an upper bound on its hits: <= is proved.",
            shows=_smallest,
        ),
        known(
            "5b",
            "Appendix F.2, ℓ1 loss",
            "erratum-5-l1",
            "Positions up to min(|S|, k) are filled; the sum over empty ones starts after it.",
        ),
        known(
            "6",
            "Section 4.2, prose",
            "erratum-6",
            "The length of the output tells that nobody is left. Algorithm 4 itself runs k rounds.",
            shows=_eps_1,
        ),
        Erratum(
            "7a",
            "Published code, Policy Gaussian with ℓ1 descent",
            "Items come in the order of their names, not of their gaps; a user who fills a gap g "
            "spends g^2 and passes on 1 - g^2, so that many small changes add up on one item.",
            specimens.POLICY_GAUSSIAN,
            specimens.POLICY_GAUSSIAN_SOUND,
            see="wgm audit policy-gaussian-l1-published",
        ),
        Erratum(
            "7b",
            "Published code, Policy Greedy",
            "Items that a user only looks at enter with weight 0 and get noise: each may come "
            "out, and the threshold pays for one.",
            specimens.POLICY_GREEDY,
            specimens.POLICY_GREEDY_SOUND,
            see="wgm audit policy-greedy-published",
        ),
    )


def select_errata(names: Iterable[str]) -> tuple[Erratum, ...]:
    """Errata by number ("1", "1a") or by the beginning of a claim's name; all without names.

    Args:
        names: Numbers such as "1a", or "1" for all parts of one, each perhaps several with
            commas; none for all.

    Returns:
        The errata, in the order of the list, each once.

    Raises:
        InvalidInput: A name that no erratum has.

    Example:
        >>> [erratum.number for erratum in select_errata(["5", "erratum-7-policy-greedy"])]
        ['5a', '5b', '7b']
    """
    known = errata()
    asked = [name.strip() for part in names for name in part.split(",")]
    for name in asked:
        if not any(_fits(erratum, name) for erratum in known):
            numbers = ", ".join(erratum.number for erratum in known)
            invalid("NAME", name, f"must be one of {numbers}, or the name of a claim")
    return tuple(e for e in known if not asked or any(_fits(e, name) for name in asked))


def _fits(erratum: Erratum, name: str) -> bool:
    if not name:
        return False
    if name[0].isdigit():
        return name in (erratum.number, erratum.number.rstrip("ab"))
    return erratum.claim.name.startswith(name)


def _named(name: str) -> Claim:
    """The claim of exactly this name."""
    return next(claim for claim in select([name]) if claim.name == name)
