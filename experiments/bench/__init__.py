"""The benchmark suite: seconds of trials and exact numbers, beside NumPy and the machine's limits.

Everything that is compared is timed in turns, within the same rounds, so that a machine that slows
down slows all down; what is reported first are ratios within a round. Before a time counts, the
means of all ways are held against the exact mean: they must compute the same thing.
"""

from experiments.bench.cases import DEFAULT, LARGE, QUICK, Case, Settings
from experiments.bench.suite import Findings, run_suite

__all__ = ["DEFAULT", "LARGE", "QUICK", "Case", "Findings", "Settings", "run_suite"]
