"""Titles and captions of the figures that the commands draw."""

from __future__ import annotations

from collections.abc import Mapping

_BAND = (
    "Grey band: 5 to 95 % of the trials; circles: their median; black line: exact mean [E2]. "
    "Above it the upper bounds, below it [L2]; dotted where a bound says nothing (1 or more)."
)
_KNOWN: dict[str, tuple[str, str]] = {
    "overview": (
        "All verdicts at a glance",
        "One bar per claim, its cells by verdict. Hatched: vacuous, the bound says nothing there.",
    ),
    "slack": (
        "How loose each bound is",
        "Bound over what was observed, one row per data set and one mark per cell; 1 is tight.",
    ),
    "missing-mass-num_pairs": ("Missing mass against the number of pairs N", _BAND),
    "missing-mass-eps": ("Missing mass against ε", _BAND),
    "missing-mass-s": ("Missing mass against the Zipf exponent s", _BAND),
    "missing-mass-max_items_per_user": ("Missing mass against Δ0", _BAND),
    "decades-missing-mass": (
        "Missing mass over many decades of data",
        "Hard Zipfian data of Theorem 3.5 up to sizes that no memory holds, by exact methods. The "
        "slope of the triangle is −(s−1)/s, that of Corollary 3.4.",
    ),
    "decades-ratio": (
        "Bounds over the exact mean",
        "The same data: every bound divided by the exact mean [E2]. What stays level has the "
        "right rate.",
    ),
    "exceedance": (
        "How often the bounds are exceeded",
        "Share of trials above a bound against the share β that it allows, with exact 95 % "
        "intervals. A bound holds where its points lie below the diagonal.",
    ),
    "ladder": (
        "The ladder of bounds",
        "From the lower bound [L2] over the exact mean [E2] to the certificates [E5], [E6] and "
        "the bounds [U2], [U3].",
    ),
    "plan": ("Missing mass around the answer", "E[MM] with both calibrations, [P1] and [P3], "
             "above the lower bound [L2]; the answer is marked."),
    "rank_frequency": (
        "Rank and frequency",
        "Frequency of the r-th most frequent item, and the Zipf certificates that lie above it "
        "[Z2].",
    ),
    "set_sizes": ("Set sizes", "Share of users with at most so many items, and the share of "
                  "pairs that a contribution bound keeps."),
    "privacy_profile": (
        "Privacy profile",
        "Largest δ(ε) found, against the exact accountant [P2] and what the claim allows. Above "
        "the claim the mechanism is accused.",
    ),
    "missing_mass": (
        "Missing mass against Δ0",
        "One column per ε and one curve per mechanism, above what no private mechanism can be "
        "below [L2]; underneath, the distance to wgm at equal Δ0.",
    ),
    "released": ("Released items against Δ0", "Mean number of items, one curve per mechanism."),
    "histogram": (
        "Missing mass of the trials",
        "Share of the trials by their missing mass, one panel per ε, with the exact mean [E2], "
        "what the certificates allow, and what no private mechanism can be below [L2].",
    ),
    "comparison": (
        "Methods against k",
        "Mean over the trials with 95 % intervals, one panel per metric and ε; least is best for "
        "what is missed.",
    ),
    "seconds": ("Time of the trials", "Seconds per 1,000 trials of each way to draw them."),
}  # fmt: skip


def caption(name: str, given: Mapping[str, object] | None = None) -> tuple[str, str]:
    """Title and caption of a figure; those in the manifest come first.

    Args:
        name: File name without suffix.
        given: Captions of the manifest, by name: a text, or {"title": ..., "caption": ...}.

    Example:
        >>> caption("set_sizes")[0], caption("my-plot"), caption("a", {"a": "Seen."})
        ('Set sizes', ('My plot', ''), ('A', 'Seen.'))
    """
    words = name.replace("-", " ").replace("_", " ")
    title, text = _KNOWN.get(name, (words[:1].upper() + words[1:], ""))
    found = (given or {}).get(name)
    if isinstance(found, Mapping):
        return str(found.get("title") or title), str(found.get("caption") or text)
    return title, text if found is None else str(found)
