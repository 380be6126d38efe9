"""The benchmark suite: seconds of trials and exact numbers, beside NumPy and the machine's limits.

Everything that is compared is timed in turns, within the same rounds, so that a machine that slows
down slows all down; what is reported first are ratios within a round. Before a time counts, the
means of all ways are held against the exact mean: they must compute the same thing.
"""

from experiments.bench.cases import DEFAULT, LARGE, QUICK, Case, Settings
from experiments.bench.selection import SelectionFindings, run_selection_suite
from experiments.bench.selection_cases import (
    SELECTION,
    SELECTION_LARGE,
    SELECTION_QUICK,
    SelectionCase,
    SelectionSettings,
)
from experiments.bench.suite import Findings, run_suite

__all__ = [
    "DEFAULT",
    "LARGE",
    "QUICK",
    "SELECTION",
    "SELECTION_LARGE",
    "SELECTION_QUICK",
    "Case",
    "Findings",
    "SelectionCase",
    "SelectionFindings",
    "SelectionSettings",
    "Settings",
    "run_selection_suite",
    "run_suite",
]
