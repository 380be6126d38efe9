"""Names of mechanisms, known without importing JAX or any of their code.

A mechanism from outside is an entry point of the group "wgm_jax.mechanisms" that names a
`MechanismInfo`:

    [project.entry-points."wgm_jax.mechanisms"]
    mine = "my_package.info:MINE"
"""

from __future__ import annotations

import importlib
import warnings
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Any

from theory._check import invalid

__all__ = ["GROUP", "MechanismInfo", "get", "mechanisms"]

GROUP = "wgm_jax.mechanisms"
"""Group of the entry points by which other packages add mechanisms."""


@dataclass(frozen=True)
class MechanismInfo:
    """One line about a mechanism, and where its code is.

    Attributes:
        name: Name in `simulate` and on the command line.
        task: "set-union", "top-k" or "hitting-set".
        private: Whether a proof of (eps, delta)-DP is claimed.
        privacy: The claim, or why there is none.
        summary: What it does, one sentence.
        reference: Where it is described.
        target: "module:attribute" of a mechanism, imported on first use.
        noise: "gaussian", "laplace", "gumbel", "exponential", "selection" (a table of
            probabilities), or "" for none.
        sequential: Whether users act one after the other, so that their order matters.
        public_domain: Whether the set of all items is taken as public.
    """

    name: str
    task: str
    private: bool
    privacy: str
    summary: str
    reference: str
    target: str
    noise: str = ""
    sequential: bool = False
    public_domain: bool = False


_SPLIT = "(eps, delta)-DP for one added or removed user; delta/2 for noise, delta/2 for new items"
_FULL = "(eps, delta)-DP for one added or removed user, full delta included (docs/audit.md)"
_ALL_ON_NEW = "(eps, delta)-DP for one added or removed user; all of delta for new items"
_HALVES = "(eps, delta)-DP for one added or removed user; half for the domain, half for the choice"
_PUBLIC = "(eps, delta)-DP for one added or removed user, if the set of all items is public"
_PAPER = "Dick, Joseph, Raman (ICLR 2026)"
_MITROVIC = "Mitrovic, Bun, Krause, Karbasi (ICML 2017)"
_GOPI = "Gopi, Gulhane, Kulkarni, Shen, Shokouhi, Yekhanin (ICML 2020)"
_CARVALHO = "Carvalho, Wang, Gondara (AAAI 2022)"
_SIPS = "Swanberg, Desfontaines, Haney (2023)"
_MAD = "after an idea of Chen, Cohen-Addad, Epasto, Zadimoghaddam (2025); constants are ours"


_BUILT_IN = (
    MechanismInfo(
        name="wgm",
        task="set-union",
        private=True,
        privacy="(eps, delta)-DP for one added or removed user (Theorem 3.2, [P2])",
        summary="Weighted Gaussian mechanism: subsample, weight, add Gaussian noise, threshold.",
        reference="Dick, Joseph, Raman (ICLR 2026), Algorithm 1; Gopi et al. (ICML 2020)",
        target="wgm_jax.wgm:WeightedGaussian",
        noise="gaussian",
    ),
    MechanismInfo(
        name="policy-gaussian",
        task="set-union",
        private=True,
        privacy=_FULL,
        summary="Policy Gaussian, l2 descent: users step straight towards a cap, alpha = 3.",
        reference=_GOPI,
        target="wgm_jax.set_union.policy_gaussian:PolicyGaussian",
        noise="gaussian",
        sequential=True,
    ),
    MechanismInfo(
        name="policy-gaussian-l1",
        task="set-union",
        private=True,
        privacy=_FULL,
        summary="Policy Gaussian, sound l1 descent: every item rises by q^(-1/2), up to a cap.",
        reference=f"{_GOPI}, repaired",
        target="wgm_jax.set_union.policy_gaussian:PolicyGaussianL1",
        noise="gaussian",
        sequential=True,
    ),
    MechanismInfo(
        name="policy-gaussian-l1-published",
        task="set-union",
        private=False,
        privacy="none: items sorted by name overshoot the cap; one user moves others by over 1",
        summary="Policy Gaussian with l1 descent as in published code; a specimen for audits.",
        reference=f"code of {_GOPI} and of Dick, Joseph, Raman (ICLR 2026)",
        target="wgm_jax.set_union.policy_gaussian:PolicyGaussianL1Published",
        noise="gaussian",
        sequential=True,
    ),
    MechanismInfo(
        name="policy-laplace",
        task="set-union",
        private=True,
        privacy=_ALL_ON_NEW,
        summary="Policy Laplace: users fill their items evenly by a total of 1, up to a cap.",
        reference=_GOPI,
        target="wgm_jax.set_union.policy_laplace:PolicyLaplace",
        noise="laplace",
        sequential=True,
    ),
    MechanismInfo(
        name="policy-greedy",
        task="set-union",
        private=True,
        privacy=_ALL_ON_NEW,
        summary="Policy Greedy, sound: users fill one item after the other, in their own order.",
        reference=f"{_CARVALHO}, repaired",
        target="wgm_jax.set_union.policy_greedy:PolicyGreedy",
        noise="laplace",
        sequential=True,
    ),
    MechanismInfo(
        name="policy-greedy-published",
        task="set-union",
        private=False,
        privacy="none: a user's untouched items get noise too, however many there are",
        summary="Policy Greedy as in published code; a specimen for audits.",
        reference=f"code of {_CARVALHO}",
        target="wgm_jax.set_union.policy_greedy:PolicyGreedyPublished",
        noise="laplace",
        sequential=True,
    ),
    MechanismInfo(
        name="policy-greedy-positive",
        task="set-union",
        private=False,
        privacy="none: one more user pushes others on to items that nobody had raised",
        summary="Published Policy Greedy, noise on positive weights only; a specimen for audits.",
        reference=f"code of {_CARVALHO}, a repair that fails",
        target="wgm_jax.set_union.policy_greedy:PolicyGreedyPositive",
        noise="laplace",
        sequential=True,
    ),
    MechanismInfo(
        name="weighted-laplace",
        task="set-union",
        private=True,
        privacy=_ALL_ON_NEW,
        summary="Weighted Laplace: every kept item gets 1/q, then Laplace noise.",
        reference=_GOPI,
        target="wgm_jax.set_union.weighted_laplace:WeightedLaplace",
        noise="laplace",
    ),
    MechanismInfo(
        name="gaussian-count",
        task="set-union",
        private=True,
        privacy=_SPLIT,
        summary="Counts of holders with Gaussian noise scaled by Delta0^(1/2).",
        reference=_GOPI,
        target="wgm_jax.set_union.counts:GaussianCount",
        noise="gaussian",
    ),
    MechanismInfo(
        name="laplace-count",
        task="set-union",
        private=True,
        privacy=_ALL_ON_NEW,
        summary="Counts of holders with Laplace noise scaled by Delta0.",
        reference=_GOPI,
        target="wgm_jax.set_union.counts:LaplaceCount",
        noise="laplace",
    ),
    MechanismInfo(
        name="korolova",
        task="set-union",
        private=True,
        privacy=_ALL_ON_NEW,
        summary="Counts with Laplace noise scaled by Delta0 and the threshold for query logs.",
        reference="Korolova, Kenthapadi, Mishra, Ntoulas (WWW 2009)",
        target="wgm_jax.set_union.counts:Korolova",
        noise="laplace",
    ),
    MechanismInfo(
        name="optimal-selection",
        task="set-union",
        private=True,
        privacy="(eps, delta)-DP for one added or removed user; (eps, delta)/Delta0 for every item",
        summary="Optimal release probability of every count; optimal for one item per user.",
        reference="Desfontaines, Voss, Gipson, Mandayam (PoPETs 2022)",
        target="wgm_jax.set_union.optimal_selection:OptimalSelection",
        noise="selection",
    ),
    MechanismInfo(
        name="dp-sips",
        task="set-union",
        private=True,
        privacy=_SPLIT,
        summary="DP-SIPS: three rounds of the weighted Gaussian mechanism on what is left.",
        reference=_SIPS,
        target="wgm_jax.set_union.dp_sips:DpSips",
        noise="gaussian",
    ),
    MechanismInfo(
        name="dp-sips-two-rounds",
        task="set-union",
        private=True,
        privacy=_SPLIT,
        summary="DP-SIPS in two rounds, a tenth and nine tenths of the budget.",
        reference=_SIPS,
        target="wgm_jax.set_union.dp_sips:TWO_ROUNDS",
        noise="gaussian",
    ),
    MechanismInfo(
        name="mad-safe",
        task="set-union",
        private=True,
        privacy=_FULL,
        summary="Weight beyond a cap is rerouted to the user's other items; not the published MAD.",
        reference=_MAD,
        target="wgm_jax.set_union.mad_safe:MadSafe",
        noise="gaussian",
    ),
    MechanismInfo(
        name="mad-safe-two-rounds",
        task="set-union",
        private=True,
        privacy=_SPLIT,
        summary="Two rounds of mad-safe on what is left, a tenth and nine tenths of the budget.",
        reference=_MAD,
        target="wgm_jax.set_union.mad_safe:TWO_ROUNDS",
        noise="gaussian",
    ),
    MechanismInfo(
        name="bernoulli-flow",
        task="set-union",
        private=True,
        privacy="(eps, delta)-DP for one added or removed user, certified for every kept set size",
        summary="Release probability by who keeps how many items, accounted for the set alone.",
        reference="docs/bernoulli-flow.md",
        target="wgm_jax.set_union.bernoulli_flow:BernoulliFlow",
        noise="selection",
    ),
    MechanismInfo(
        name="bernoulli-flow-2",
        task="set-union",
        private=True,
        privacy="(eps, delta)-DP for one added or removed user, certified for both rounds together",
        summary="A cheap Bernoulli flow for the heaviest items; a second one on what is left.",
        reference="docs/bernoulli-flow-2.md",
        target="wgm_jax.set_union.bernoulli_flow_2:BernoulliFlow2",
        noise="selection",
    ),
    MechanismInfo(
        name="peeling",
        task="top-k",
        private=True,
        privacy=_HALVES,
        summary="WGM finds a domain; then the k largest counts with Gumbel noise, in order.",
        reference=f"{_PAPER}, Algorithms 2 and 3; Durfee, Rogers (NeurIPS 2019)",
        target="wgm_jax.selection.mechanisms:PEELING",
        noise="gumbel",
    ),
    MechanismInfo(
        name="limited-domain",
        task="top-k",
        private=True,
        privacy="(eps, delta)-DP for one added or removed user",
        summary="Peeling among the k-bar most frequent items, against a noisy threshold.",
        reference="Durfee, Rogers (NeurIPS 2019)",
        target="wgm_jax.selection.limited_domain:LimitedDomain",
        noise="gumbel",
    ),
    MechanismInfo(
        name="peeling-public",
        task="top-k",
        private=True,
        privacy=_PUBLIC,
        summary="Peeling with all items as a public domain and the whole budget.",
        reference="Durfee, Rogers (NeurIPS 2019)",
        target="wgm_jax.selection.top_k:Peeling",
        noise="gumbel",
        public_domain=True,
    ),
    MechanismInfo(
        name="laplace-public",
        task="top-k",
        private=True,
        privacy=_PUBLIC,
        summary="The k largest counts with Laplace noise of scale k/eps.",
        reference="Qiao, Su, Zhang (ICML 2021)",
        target="wgm_jax.selection.top_k:OneshotLaplace",
        noise="laplace",
        public_domain=True,
    ),
    MechanismInfo(
        name="permute-and-flip-public",
        task="top-k",
        private=True,
        privacy=_PUBLIC,
        summary="k rounds of permute-and-flip, eps/k each.",
        reference="McKenna, Sheldon (NeurIPS 2020)",
        target="wgm_jax.selection.permute_and_flip:PermuteAndFlip",
        noise="exponential",
        public_domain=True,
    ),
    MechanismInfo(
        name="joint-public",
        task="top-k",
        private=True,
        privacy=_PUBLIC,
        summary="One exponential mechanism over all sequences of k items.",
        reference="Gillenwater, Joseph, Munoz Medina, Ribero Diaz (ICML 2022)",
        target="wgm_jax.selection.joint:Joint",
        noise="gumbel",
        public_domain=True,
    ),
    MechanismInfo(
        name="user-peeling",
        task="hitting-set",
        private=True,
        privacy=_HALVES,
        summary="WGM finds a domain; then k noisy greedy choices among users not hit yet.",
        reference=f"{_PAPER}, Algorithm 4; {_MITROVIC}",
        target="wgm_jax.selection.mechanisms:USER_PEELING",
        noise="gumbel",
    ),
    MechanismInfo(
        name="user-peeling-public",
        task="hitting-set",
        private=True,
        privacy=_PUBLIC,
        summary="The same with all items as a public domain and the whole budget.",
        reference=_MITROVIC,
        target="wgm_jax.selection.hitting:UserPeeling",
        noise="gumbel",
        public_domain=True,
    ),
    MechanismInfo(
        name="user-peeling-early-stop",
        task="hitting-set",
        private=False,
        privacy="none: a short output tells that every user is hit",
        summary="User peeling that stops when no user is left; a specimen for audits.",
        reference=f"{_PAPER}, prose of Section 4.2",
        target="wgm_jax.selection.hitting:UserPeelingEarlyStop",
        noise="gumbel",
        public_domain=True,
    ),
    MechanismInfo(
        name="greedy",
        task="hitting-set",
        private=False,
        privacy="none: no noise",
        summary="Greedy choice of the item that hits most users not hit yet; the reference.",
        reference="Nemhauser, Wolsey, Fisher (1978)",
        target="wgm_jax.selection.hitting:Greedy",
        public_domain=True,
    ),
)


def mechanisms(task: str | None = None) -> tuple[MechanismInfo, ...]:
    """All known mechanisms, or those of a task, built-in ones first.

    Args:
        task: "set-union", "top-k" or "hitting-set"; None for all.

    Returns:
        One `MechanismInfo` each.

    Example:
        >>> [info.name for info in mechanisms()][0]
        'wgm'
        >>> [info.name for info in mechanisms("hitting-set") if info.private]
        ['user-peeling', 'user-peeling-public']
    """
    known = _BUILT_IN + _installed()
    return tuple(info for info in known if task in (None, info.task))


def get(name: str, *, task: str | None = None) -> Any:
    """The mechanism of that name: a set-union `Mechanism`, or a selection.

    Args:
        name: Name of the mechanism.
        task: Only a mechanism of this task will do; None for any.

    Returns:
        An object with default settings, ready for `simulate` or `OnFoundDomain`.

    Raises:
        InvalidInput: No mechanism (of this task) has the name; the message lists those that exist.

    Example:
        >>> get("wgm")
        WeightedGaussian()
    """
    known = {info.name: info for info in reversed(mechanisms(task))}  # built-in names win
    if name not in known:
        invalid("mechanism", name, f"must be one of {', '.join(sorted(known))}")
    module, _, attribute = known[name].target.partition(":")
    target: Any = getattr(importlib.import_module(module), attribute)
    return target() if isinstance(target, type) else target


def _installed() -> tuple[MechanismInfo, ...]:
    found = []
    for point in entry_points(group=GROUP):
        try:
            info = point.load()
        except Exception as error:  # a broken plug-in must not take the others down
            warnings.warn(f"mechanism {point.name!r} cannot be loaded: {error}", stacklevel=3)
            continue
        if isinstance(info, MechanismInfo):
            found.append(info)
        else:
            warnings.warn(f"mechanism {point.name!r} is no MechanismInfo", stacklevel=3)
    return tuple(found)
