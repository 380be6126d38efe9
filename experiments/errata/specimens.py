"""Claims that are judged on the instance of one erratum only, and not by `wgm verify`.

Corrections on the very instances of errata 1, the threshold of erratum 4, and the two published
codes of erratum 7, each on one pair of neighbours with its exact laws.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from experiments.claims import Cell, Claim, Settings, select
from experiments.statistics.slopes import log_log_slope
from experiments.verdict import ExactEvidence
from theory import (
    Profile,
    ZipfCertificate,
    calibrate,
    lemma_c2_mass,
    sigma_limit_small_eps,
    threshold_upper,
    zipf_bound,
)

_SMALL_EPS = np.array([1e-12, 1e-11, 1e-10, 1e-9])


# ---- errata 1: the corrected bounds on the instances of the printed ones


def _observed(claim: str, settings: Settings) -> Iterator[tuple[dict, ZipfCertificate, float]]:
    """Cells of an erratum's claim, with the certificate (C, s) and what is true there."""
    family = select([claim])[0].family
    assert family is not None
    for cell, evidence in family(settings):
        assert evidence.observed is not None
        certificate = ZipfCertificate(math.log(cell["C"]), cell["s"])
        yield dict(cell), certificate, evidence.observed


def _lemma(settings: Settings) -> Iterator[Cell]:
    profile = Profile.from_frequencies([1, 1], max_set_size=2, max_items_per_user=1)
    for cell, certificate, mass in _observed("erratum-1-lemma-c.2", settings):
        value = float(lemma_c2_mass(profile, cell["beta"], certificate=certificate).value)
        yield cell, ExactEvidence(mass, value, "upper", tag="[C.2]")


def _theorem(settings: Settings) -> Iterator[Cell]:
    profile = Profile.from_frequencies([1], max_set_size=1, max_items_per_user=1)
    for cell, certificate, mass in _observed("erratum-1-theorem-3.3", settings):
        noise = calibrate(eps=cell["eps"], delta=cell["delta"], max_items_per_user=1)
        value = float(zipf_bound(profile, noise, 0.05, certificate=certificate).value)
        yield cell, ExactEvidence(mass, value, "upper", tag="[U3]")


LEMMA_C2_CORRECTED = Claim(
    name="erratum-1-lemma-c.2-corrected",
    title="Lemma C.2, corrected, on the same instances",
    kind="upper, 50 %",
    statement="MM(W, union of subsamples) <= s/(s-1) C^(1/s) "
    "(ln((CN)^(1/s)/beta)/(p* N))^((s-1)/s).",
    explicit="One user with two items, Delta0 = 1, beta = 1/2.",
    family=_lemma,
)
THEOREM_33_CORRECTED = Claim(
    name="erratum-1-theorem-3.3-corrected",
    title="Theorem 3.3 [U3] on the same instance",
    kind="upper, 95 %",
    statement="MM <= s/(s-1) C^(1/s) (tau/N)^((s-1)/s).",
    explicit="One user with one item, C = N = 1, s = 500.",
    family=_theorem,
)


# ---- erratum 4: the threshold, which follows sigma


def _threshold(settings: Settings) -> Iterator[Cell]:
    made = calibrate(eps=_SMALL_EPS, delta=settings.delta, max_items_per_user=1)
    slope = float(log_log_slope(_SMALL_EPS, np.asarray(made.threshold)))
    note = "slope of ln T in ln eps; Theta(1/eps) needs -1, judged at -0.9"
    cell = {"eps": "1e-12..1e-9", "delta": settings.delta}
    yield cell, ExactEvidence(slope, -0.9, "upper", unit_range=False, note=note)


def _threshold_limit(settings: Settings) -> Iterator[Cell]:
    eps, delta = float(_SMALL_EPS[0]), settings.delta
    made = calibrate(eps=eps, delta=delta, max_items_per_user=1)
    sigma = float(sigma_limit_small_eps(delta=delta))
    limit = float(threshold_upper(sigma=sigma, delta=delta, max_items_per_user=1))
    note = "T against 1 + sigma sqrt(2 ln(Delta0/delta')), sigma at its limit"
    evidence = ExactEvidence(float(made.threshold), limit, "upper", unit_range=False, note=note)
    yield {"eps": eps, "delta": delta}, evidence


THRESHOLD = Claim(
    name="erratum-4-threshold",
    title="Erratum 4: T ~ 1/eps everywhere",
    kind="shape",
    statement="The smallest T that satisfies Theorem 3.2 is "
    "Theta(max(sigma sqrt(log(Delta0/delta)), 1)) with sigma = Theta(sqrt(log(1/delta))/eps).",
    explicit="With delta fixed T stays finite as eps -> 0.",
    family=_threshold,
    expected="refuted",
    twin="erratum-4-threshold-corrected",
)
THRESHOLD_CORRECTED = Claim(
    name="erratum-4-threshold-corrected",
    title="Erratum 4, corrected: T of the smallest sigma",
    kind="upper, exact",
    statement="T <= 1 + sigma sqrt(2 ln(Delta0/delta')), with sigma -> 1/(2 Phi^-1((1 + "
    "delta')/2)) as eps -> 0.",
    explicit="At eps = 1e-12.",
    family=_threshold_limit,
)


# ---- erratum 7: published code


def _between(mechanism: str, max_items: int, build: Callable[[], Any]) -> Callable:
    """Exact delta(1) of a mechanism on one pair of neighbours, against the delta it claims."""

    def cells(settings: Settings) -> Iterable[Cell]:
        from experiments.audit import examine, subject

        pair = build()
        claim = {"eps": 1.0, "delta": settings.delta, "max_items_per_user": max_items}
        low, high = examine(subject(mechanism, **claim), pair).limits
        sizes = {"num_users": pair.num_users, "num_items": pair.num_items}
        cell = {"mechanism": mechanism, **sizes, **claim}
        evidence = ExactEvidence(
            (low + high) / 2,
            settings.delta,
            "upper",
            error=(high - low) / 2,
            has_slack=False,
            note="exact delta(eps) between the laws of the released set",
        )
        yield cell, evidence

    return cells


_GATHERED = "67 users {0..4}, 22 users {5}; one user {0..4} more; then {0 5}, {1 5}, ..., {4 5}"
_NEW = "One user with 1,000 items that nobody else has, against none of them"


def _gathered() -> Any:
    # The extra user narrows five gaps a little; five later users each give that to item 5.
    from experiments.audit import Pair, Run

    items = tuple(range(5))
    later = tuple(Run((x, 5)) for x in items)
    return Pair((Run(items, 67), Run((5,), 22)), items, later)


def _new_items() -> Any:
    from experiments.audit import Pair, Run

    return Pair((Run((0,)),), tuple(range(1, 1001)))


_IS_PRIVATE = "The published code is (eps, delta)-DP at the eps and delta that it is given."


def _specimen(name: str, title: str, pair: str, cells: Callable, sound: str = "") -> Claim:
    """The published code's claim, or that of a sound variant."""
    corrected = f"erratum-7-{name}-corrected"
    return Claim(
        name=corrected if sound else f"erratum-7-{name}",
        title=title,
        kind="upper, exact",
        statement=sound or _IS_PRIVATE,
        explicit=f"{pair}: exact delta(1) of the released set.",
        family=cells,
        expected="holds" if sound else "refuted",
        twin=None if sound else corrected,
    )


POLICY_GAUSSIAN = _specimen(
    "policy-gaussian",
    "Erratum 7: Policy Gaussian, l1 descent",
    _GATHERED,
    _between("policy-gaussian-l1-published", 6, _gathered),
)
POLICY_GAUSSIAN_SOUND = _specimen(
    "policy-gaussian",
    "Erratum 7, corrected: Policy Gaussian, l1 descent",
    _GATHERED,
    _between("policy-gaussian-l1", 6, _gathered),
    sound="Steps min(gap, q^(-1/2)), q the number of kept items: (eps, delta)-DP.",
)
POLICY_GREEDY = _specimen(
    "policy-greedy",
    "Erratum 7: Policy Greedy",
    _NEW,
    _between("policy-greedy-published", 1, _new_items),
)
POLICY_GREEDY_SOUND = _specimen(
    "policy-greedy",
    "Erratum 7, corrected: Policy Greedy",
    _NEW,
    _between("policy-greedy", 1000, _new_items),
    sound="With at most Delta0 items, and a threshold that pays for them: (eps, delta)-DP.",
)
