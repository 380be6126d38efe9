"""All set-union mechanisms side by side on one data set, and how far they are from the best."""

from experiments.comparison.competitors import Competitor, competitors
from experiments.comparison.run import Comparison, Entry, Estimate, above_by, compare
from experiments.comparison.standing import (
    Distance,
    distances,
    is_private,
    is_private_policy,
    least,
)

__all__ = [
    "Comparison",
    "Competitor",
    "Distance",
    "Entry",
    "Estimate",
    "above_by",
    "compare",
    "competitors",
    "distances",
    "is_private",
    "is_private_policy",
    "least",
]
