"""Exact miss probabilities of Bernoulli flow selection, for any data and any Delta0."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from theory._check import invalid
from theory.flow.calibration import FlowCalibration
from theory.flow.release_table import ReleaseTable, base_state, most_telling, select_items
from theory.flow.state import FlowState
from theory.holder_laws import NEVER, HolderLaws
from theory.miss_probability import MissProbabilities
from theory.profile import Profile
from theory.recursion import count_laws, most_states


def flow_miss_probabilities(
    profile: Profile, flows: FlowCalibration | Sequence[FlowCalibration]
) -> MissProbabilities:
    """Exact miss probabilities of Bernoulli flow selection, for any Delta0.

    A user with more than Delta0 items keeps any one of them with probability Delta0/|W|, and keeps
    Delta0 of them. So all holders of an item who may drop it are of the largest class, and what is
    random is their number K, a sum of independent Bernoullis: m(x) = E[1 - p_x(K)].

    **Certificates.** All of `theory.certificates` apply. Where no user is clipped, misses are
    independent. Otherwise: the indicators "user i keeps x" of one user are those of a uniform
    subset of fixed size, which are negatively associated, and users are independent; the release
    of x is the event U_x < p_x with independent uniforms U_x; and p_x depends only on who keeps x
    and grows with every further holder (Lemma A: p(n) <= p(n + e_t)). So releases are monotone
    functions, all in the same direction, of disjoint groups of negatively associated variables,
    hence negatively associated, and so are misses. This is the argument of [E4] for the WGM; it
    needs nothing of p but that it is monotone.

    Args:
        profile: Data at one Delta0, with the set sizes of the items' holders known.
        flows: One calibration at the same Delta0, or one for each point of a grid.

    Returns:
        `MissProbabilities`, of one point or of the grid. Each probability is that of the flow as
        evaluated in float64 (relative error at most `certificate.rounding`), averaged to 1e-10
        relative where it is above 1e-30, and to 1e-40 absolute below.

    Raises:
        InvalidInput: The set sizes are not known, or a flow for another Delta0.

    Source:
        Bernoulli flow note; [E1] and [E4] with p in place of the normal tail.

    Example:
        >>> from theory.flow import calibrate_flow
        >>> from theory.user_items import UserItems
        >>> data = UserItems.from_sets([{0, i} for i in range(1, 41)])
        >>> flow = calibrate_flow(eps=1.0, delta=1e-5, max_items_per_user=1)
        >>> misses = flow_miss_probabilities(
        ...     Profile.from_user_items(data, max_items_per_user=1), flow
        ... )
        >>> misses.frequencies, misses.miss.round(2), misses.independent
        (array([40,  1]), array([0.01, 1.  ]), False)
    """
    classes, bound = profile.item_classes, profile.max_items_per_user
    points = [flows] if isinstance(flows, FlowCalibration) else list(flows)
    for flow in points:
        if flow.max_items_per_user != bound:
            accepted = f"must be {bound}, as in the profile"
            invalid("max_items_per_user", flow.max_items_per_user, accepted)
    laws = HolderLaws.of(np.zeros(classes.frequencies.size), *classes.clipped(bound), bound)
    found = np.array([_tails(base_state(classes, flow), laws) for flow in points])
    misses = MissProbabilities.of(profile, found[:, 0], found[:, 1])
    return misses.at(0) if isinstance(flows, FlowCalibration) else misses


def _tails(state: FlowState, laws: HolderLaws) -> tuple[np.ndarray, np.ndarray]:
    """Miss and release probability of every class, with its clipped holders at random."""
    hit, miss = (values.copy() for values in state.probabilities(0))
    random = np.flatnonzero(laws.holders)
    needed, mean = most_telling(state)[random], laws.mean[random]
    # Sums of independent Bernoullis have Gaussian lower tails of variance at most their mean.
    always = (mean > needed) & ((mean - needed) ** 2 > 2 * NEVER * mean)
    miss[random[always]], hit[random[always]] = 0.0, 1.0
    rows = random[~always]
    last = np.minimum(needed[~always], most_states(laws.mean[rows]))
    last = np.minimum(last, laws.holders[rows]).astype(np.int64)
    table = ReleaseTable.of(select_items(state, rows), last)
    place = np.full(laws.mean.size, -1)
    place[rows] = np.arange(rows.size)
    for chosen, law in count_laws(laws, rows, last + 1):
        at = place[chosen]
        entry = table.offsets[at] + np.minimum(np.arange(law.shape[0])[:, None], last[at])
        miss[chosen] = np.sum(law * table.miss[entry], axis=0)
        hit[chosen] = np.sum(law * table.release[entry], axis=0)
    # Sums of positive terms may round to just above 1.
    return np.minimum(miss, 1.0), np.minimum(hit, 1.0)
