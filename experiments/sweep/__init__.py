"""Sweeps: a TOML grid in, one file per cell and one merged table out; resumable."""

from experiments.sweep.cell_files import Measured
from experiments.sweep.grid import Cell, Grid, Group, load_grid, parse_grid
from experiments.sweep.runner import Failure, SweepResult, sweep

__all__ = [
    "Cell",
    "Failure",
    "Grid",
    "Group",
    "Measured",
    "SweepResult",
    "load_grid",
    "parse_grid",
    "sweep",
]
