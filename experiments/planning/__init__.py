"""What to choose: the best contribution bound, the least eps, or how much data a target needs.

Nothing is simulated: every candidate is judged by its exact E[MM] [E2], or by a certified quantile.
An eps, an N or a number of times as many users is found to five significant digits: the next
smaller such number was tried and misses the target.
"""

from experiments.planning.questions import (
    best_contribution_bound,
    contribution_curve,
    least_eps,
    least_pairs,
    least_scale,
)
from experiments.planning.records import Curve, Outcome, Plan, Unreachable
from experiments.planning.zipf import zipf_classes

__all__ = [
    "Curve",
    "Outcome",
    "Plan",
    "Unreachable",
    "best_contribution_bound",
    "contribution_curve",
    "least_eps",
    "least_pairs",
    "least_scale",
    "zipf_classes",
]
