"""Top-k and k-hitting set: comparisons on data, and what claims look at."""

from experiments.selection.compare import Comparison, compare
from experiments.selection.methods import HITTING_SET, TOP_K, Method, methods

__all__ = ["HITTING_SET", "TOP_K", "Comparison", "Method", "compare", "methods"]
