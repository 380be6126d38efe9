"""The audit: look for two neighbours whose exact laws are further apart than claimed.

First the structured families, then hill climbing from the best of them and from random pairs,
until the budget is spent. Every pair is judged by its exact laws; a mechanism is accused only if
the proved lower limit of delta(eps) exceeds the claimed delta.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float64

from experiments.audit.climb import neighbour, rename
from experiments.audit.divergence import Comparison, Event, Limits, compare
from experiments.audit.families import FAMILIES, few_users, random_pair
from experiments.audit.pairs import Pair
from experiments.audit.selection_families import SELECTION_FAMILIES, random_selection_pair
from experiments.audit.selection_subjects import SelectionSubject
from experiments.audit.set_union_subjects import NoExactLaw, SetUnionSubject, Subject
from theory._notebook import notebook_table

if TYPE_CHECKING:
    import polars as pl

# Multiples of the claimed eps at which the profile is kept.
_LEVELS = np.array([0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 3.0])
_CLAIMED = 4
_SMALL_ATOMS = 2**12
_BATCH = 16
_PATIENCE = 10
_ELITES = 8
DIRECTIONS = ("add", "remove")


class _Spent(Exception):
    """The budget is spent."""


@dataclass(frozen=True, eq=False)
class Finding:
    """The worst pair of neighbours that was found.

    Attributes:
        pair: The neighbours.
        direction: "add" if delta(eps) is that of the larger data set against the smaller one,
            else "remove".
        limits: Proved limits of delta(eps).
        event: The set of outputs that attains it.
    """

    pair: Pair
    direction: str
    limits: Limits
    event: Event


@dataclass(frozen=True, eq=False)
class Audit:
    """Result of a search.

    Attributes:
        mechanism: Name of the mechanism.
        private: Whether the mechanism claims to be private.
        eps: Where delta was looked at.
        claimed_delta: The claim.
        max_items_per_user: Delta0.
        finding: The worst pair, None if no pair could be evaluated.
        evaluations: Pairs evaluated, each in both directions.
        skipped: Pairs whose laws were too large to enumerate.
        accused_after: Evaluations until delta(eps) first exceeded the claim, or None.
        accused_after_seconds: The same in seconds.
        seconds: Time taken.
        seed: Seed of the search.
        profile_eps: (levels,) eps of the profile.
        profile_delta: (levels,) largest delta found at each of them.
    """

    mechanism: str
    private: bool
    eps: float
    claimed_delta: float
    max_items_per_user: int
    finding: Finding | None
    evaluations: int
    skipped: int
    accused_after: int | None
    accused_after_seconds: float | None
    seconds: float
    seed: int
    profile_eps: Float64[np.ndarray, " levels"]
    profile_delta: Float64[np.ndarray, " levels"]

    @property
    def found_delta(self) -> float:
        """Lower limit of delta(eps) of the worst pair."""
        return 0.0 if self.finding is None else self.finding.limits.low

    @property
    def accused(self) -> bool:
        """Whether the mechanism is proved not to keep its claim."""
        return self.found_delta > self.claimed_delta

    @property
    def as_expected(self) -> bool:
        """Not accused, or accused where no privacy is claimed."""
        return not (self.accused and self.private)

    def entries(self) -> dict[str, Any]:
        """The result for JSON."""
        found = self.finding
        return {
            "mechanism": self.mechanism,
            "private": self.private,
            "eps": self.eps,
            "claimed_delta": self.claimed_delta,
            "max_items_per_user": self.max_items_per_user,
            "found_delta": self.found_delta,
            "found_delta_upper": None if found is None else found.limits.high,
            "accused": self.accused,
            "as_expected": self.as_expected,
            "direction": None if found is None else found.direction,
            "pair": None if found is None else found.pair.entries(),
            "event": None if found is None else _event_entries(found.event),
            "evaluations": self.evaluations,
            "skipped": self.skipped,
            "accused_after": self.accused_after,
            "seed": self.seed,
            "seconds": self.seconds,
            "profile": {"eps": self.profile_eps, "delta": self.profile_delta},
        }

    def to_frame(self) -> pl.DataFrame:
        """The profile: mechanism, eps, and the largest delta found there, one row per eps."""
        import polars as pl

        profile = {"eps": self.profile_eps, "delta": self.profile_delta}
        return pl.DataFrame(profile).select(pl.lit(self.mechanism).alias("mechanism"), pl.all())

    def _repr_html_(self) -> str:
        verdict = "accused" if self.accused else "not accused"
        return notebook_table(
            f"Audit of {self.mechanism}: {verdict} at ε = {self.eps:g}, Δ0 = "
            f"{self.max_items_per_user:,}",
            ("claimed δ", "found δ", "pairs", "seed", "seconds"),
            [(self.claimed_delta, self.found_delta, self.evaluations, self.seed, self.seconds)],
            "" if self.accused else "Not to be accused proves nothing.",
        )


def audit(
    subject: Subject,
    *,
    seconds: float | None = 30.0,
    max_evaluations: int | None = None,
    seed: int = 0,
    stop_when_accused: bool = False,
    pairs: Iterable[Pair] = (),
    progress: Callable[[int, int, str], Any] | None = None,
) -> Audit:
    """Search for the neighbours that tell most, and compare with the claim.

    The pairs tried are a function of subject, seed and `pairs`; the budget only says how many.
    So the result is reproducible at a given `max_evaluations`, and by seconds up to the number of
    evaluations, which is reported.

    Args:
        subject: From `experiments.audit.subject`.
        seconds: Time budget, None for none.
        max_evaluations: Most pairs to evaluate, None for no limit; one of the two must be given.
        seed: Seed of the random part.
        stop_when_accused: Stop at the first pair that refutes the claim.
        pairs: Pairs to try first, such as a suspicion.
        progress: Called as progress(evaluations, max_evaluations or 0, family).

    Returns:
        An `Audit`.

    Raises:
        ValueError: Neither seconds nor max_evaluations is given.

    Example:
        >>> from experiments.audit.subjects import subject
        >>> wgm = subject("wgm", eps=1.0, delta=1e-5, max_items_per_user=2, method="full")
        >>> result = audit(wgm, seconds=None, max_evaluations=40)
        >>> result.accused, f"{result.found_delta:.3g}"
        (False, '1e-05')
    """
    if seconds is None and max_evaluations is None:
        raise ValueError("a budget is needed: seconds or max_evaluations")
    search = _Search(subject, seconds, max_evaluations, stop_when_accused, progress)
    generator = np.random.default_rng(seed)
    try:
        search.try_all(pairs, "given")
        for name, family in _families(subject):
            search.try_all(family, name)
        while True:
            _climb(search, generator)
    except _Spent:
        pass
    return search.result(seed)


def _families(subject: Subject) -> Iterator[tuple[str, Iterator[Pair]]]:
    """Structured pairs that suit the subject."""
    if isinstance(subject, SelectionSubject):
        for family in SELECTION_FAMILIES:
            yield family.__name__.replace("_", " "), family(subject)
    elif isinstance(subject, SetUnionSubject) and subject.shuffles:
        yield "few users", few_users(subject)
    else:
        for family in FAMILIES:
            yield family.__name__.replace("_", " "), family(subject)


def _random_pair(generator: np.random.Generator, subject: Subject) -> Pair:
    if isinstance(subject, SelectionSubject):
        return random_selection_pair(generator, subject)
    return random_pair(generator, subject)


def _climb(search: _Search, generator: np.random.Generator) -> None:
    """One climb, from one of the best pairs or from a random one."""
    elites = search.elites
    if elites and generator.random() < 0.5:
        # Low ranks more often.
        rank = int(len(elites) * generator.random() ** 2)
        current = elites[rank]
    else:
        starts = [_random_pair(generator, search.subject) for _ in range(_BATCH)]
        scored = search.evaluate(starts)
        best = max(range(len(starts)), key=lambda i: scored[i])
        current = (scored[best], starts[best])
    idle = 0
    while idle < _PATIENCE:
        score, pair = current
        tried = [neighbour(generator, pair, search.subject) for _ in range(_BATCH - 1)]
        tried.append(rename(generator, pair))
        scored = search.evaluate(tried)
        best = max(range(len(tried)), key=lambda i: scored[i])
        if scored[best] > score:
            current, idle = (scored[best], tried[best]), 0
        else:
            if scored[best] == score:
                current = (score, tried[best])
            idle += 1
    search.keep(current)


# Larger is worse for privacy: delta at the claimed eps, then at smaller eps.
_Score = tuple[float, ...]
_NOTHING: _Score = (-1.0, -1.0, -1.0)


class _Search:
    """Evaluates pairs within a budget and remembers the worst."""

    def __init__(
        self,
        subject: Subject,
        seconds: float | None,
        max_evaluations: int | None,
        stop_when_accused: bool,
        progress: Callable[[int, int, str], Any] | None,
    ) -> None:
        self.subject = subject
        self.elites: list[tuple[_Score, Pair]] = []
        self._start = time.monotonic()
        self._deadline = None if seconds is None else self._start + seconds
        self._most, self._stop = max_evaluations, stop_when_accused
        self._progress = progress
        self._known: dict[tuple, _Score] = {}
        self._levels = _LEVELS * subject.eps
        self._profile = np.zeros(_LEVELS.size)
        self._best: tuple[float, Pair] | None = None
        self._evaluations, self._skipped = 0, 0
        self._accused_after: tuple[int, float] | None = None

    def try_all(self, pairs: Iterable[Pair], family: str) -> None:
        """Evaluate a family, keeping its best pairs for the climbs."""
        stream: Iterator[Pair] = iter(pairs)
        best: list[tuple[_Score, Pair]] = []
        while batch := list(islice(stream, _BATCH)):
            best += zip(self.evaluate(batch), batch, strict=True)
            if self._progress is not None:
                self._progress(self._evaluations, self._most or 0, family)
        best.sort(key=lambda entry: entry[0], reverse=True)
        for entry in best[:2]:
            self.keep(entry)

    def keep(self, entry: tuple[_Score, Pair]) -> None:
        """Remember a pair to climb from."""
        if all(entry[1] != pair for _, pair in self.elites):
            self.elites.append(entry)
        self.elites.sort(key=lambda one: one[0], reverse=True)
        del self.elites[_ELITES:]

    def evaluate(self, pairs: list[Pair]) -> list[_Score]:
        """Scores of some pairs, from their exact laws."""
        fresh = {_key(pair): pair for pair in pairs if _key(pair) not in self._known}
        if self._most is not None and self._evaluations + len(fresh) > self._most:
            fresh = dict(islice(fresh.items(), self._most - self._evaluations))
        for key, pair, comparison in self._compared(fresh):
            self._evaluations += 1
            self._known[key] = self._judge(pair, comparison)
            if self._stop and self._accused_after is not None:
                raise _Spent
        spent = self._most is not None and self._evaluations >= self._most
        if spent or (self._deadline is not None and time.monotonic() > self._deadline):
            raise _Spent
        return [self._known.get(_key(pair), _NOTHING) for pair in pairs]

    def _compared(self, fresh: dict[tuple, Pair]) -> Iterator[tuple[tuple, Pair, Comparison]]:
        """The pairs that have exact laws, in order; the others are noted."""
        laws = self.subject.pair_laws([*fresh.values()])
        for (key, pair), both in zip(fresh.items(), laws, strict=True):
            if isinstance(both, NoExactLaw):
                self._skipped += 1
                self._known[key] = _NOTHING
            else:
                yield key, pair, compare(*both, max_atoms=_SMALL_ATOMS)

    def _judge(self, pair: Pair, comparison: Comparison) -> _Score:
        lows = comparison.lows(self._levels).max(axis=1)
        self._profile = np.maximum(self._profile, lows)
        found = float(lows[_CLAIMED])
        # Of pairs that are equal but for rounding, the first is the simplest.
        if self._best is None or found > self._best[0] * (1 + 1e-9):
            self._best = (found, pair)
        if self._accused_after is None and found > self.subject.delta:
            self._accused_after = (self._evaluations, time.monotonic() - self._start)
        return (found, float(lows[2]), float(lows[0]))

    def result(self, seed: int) -> Audit:
        """What was found."""
        finding = None if self._best is None else examine(self.subject, self._best[1])
        after = self._accused_after
        profile = self._profile.copy()
        if finding is not None:
            profile[_CLAIMED] = max(profile[_CLAIMED], finding.limits.low)
        return Audit(
            mechanism=self.subject.name,
            private=self.subject.private,
            eps=self.subject.eps,
            claimed_delta=self.subject.delta,
            max_items_per_user=self.subject.max_items_per_user,
            finding=finding,
            evaluations=self._evaluations,
            skipped=self._skipped,
            accused_after=None if after is None else after[0],
            accused_after_seconds=None if after is None else after[1],
            seconds=time.monotonic() - self._start,
            seed=seed,
            profile_eps=self._levels,
            profile_delta=profile,
        )


def examine(subject: Subject, pair: Pair, *, eps: float | None = None) -> Finding:
    """Exact delta of one pair of neighbours, in the worse direction.

    Args:
        subject: From `experiments.audit.subject`.
        pair: The neighbours.
        eps: Where; default the claimed eps.

    Returns:
        A `Finding`: the delta proved, and the event behind it.

    Raises:
        NoExactLaw: The laws are too large to enumerate.

    Example:
        >>> from experiments.audit.pairs import Run
        >>> from experiments.audit.subjects import subject
        >>> wgm = subject("wgm", eps=1.0, delta=1e-5, max_items_per_user=1)
        >>> found = examine(wgm, Pair((Run((0,)),), (1,)))
        >>> found.direction, f"{found.limits.low:.6g}", found.event.outcome
        ('add', '5e-06', {'released': [1], 'missed': []})
    """
    level = subject.eps if eps is None else eps
    (laws,) = subject.pair_laws([pair])
    if isinstance(laws, NoExactLaw):
        raise laws
    comparison = compare(*laws)
    both = [comparison.limits(level, reverse=reverse) for reverse in (False, True)]
    reverse = both[1].low > both[0].low
    return Finding(
        pair=pair,
        direction=DIRECTIONS[reverse],
        limits=both[reverse],
        event=comparison.worst_event(level, reverse=reverse),
    )


def _key(pair: Pair) -> tuple:
    return (pair.before, pair.extra, pair.after)


def _event_entries(event: Event) -> dict[str, Any]:
    return {
        "probability": event.first,
        "probability_neighbour": event.second,
        "outcomes": event.num_outcomes,
        "worst_outcome": _listed(event.outcome),
        "worst_outcome_share": event.share,
    }


def _listed(outcome: Any) -> Any:
    """Sets as sorted lists, one or several in a row."""
    if isinstance(outcome, tuple):
        return [_listed(each) for each in outcome]
    return sorted(outcome) if isinstance(outcome, frozenset) else outcome
