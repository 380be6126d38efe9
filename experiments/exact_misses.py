"""Exact miss probabilities, for the mechanisms of which they are known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from experiments import flow_store
from theory import Calibration, MissProbabilities, Profile, miss_probabilities

if TYPE_CHECKING:
    from experiments.flow_store import Progress

WGM = "wgm"
EXACT = (WGM, flow_store.NAME)


def exact_misses(
    mechanism: str,
    profile: Profile,
    calibration: Calibration,
    progress: Progress | None = None,
) -> MissProbabilities | None:
    """Exact miss probabilities of every item, [E1]; None where they are not known.

    Args:
        mechanism: Name of the mechanism.
        profile: Data at the Delta0 of the calibration.
        calibration: Any shape; a Bernoulli flow is read from its file, or made in up to minutes.
        progress: Called as progress(stage, share) while a flow is made.

    Returns:
        Of the calibration's shape; None for other mechanisms, and where only frequencies are known.

    Raises:
        InvalidInput: The flow has no certificate at these parameters.

    Example:
        >>> from theory import calibrate
        >>> data = Profile.from_frequencies([60, 5], max_set_size=1, max_items_per_user=1)
        >>> noise = calibrate(eps=1.0, delta=1e-5, max_items_per_user=1)
        >>> round(exact_misses("wgm", data, noise).mean_missing_mass, 4)
        0.0769
        >>> exact_misses("policy-laplace", data, noise) is None
        True
    """
    if mechanism not in EXACT or profile.classes is None:
        return None
    if mechanism == WGM:
        return miss_probabilities(profile, calibration)
    from theory.flow.exact import flow_miss_probabilities

    flows = flow_store.ready_flows(calibration, progress)
    return flow_miss_probabilities(profile, flows[0] if calibration.shape == () else flows)
