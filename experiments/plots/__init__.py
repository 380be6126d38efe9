"""Plots, each a function from numbers to a figure and the plotted numbers.

Figures are matplotlib objects outside pyplot's state; `save` writes them as vector files with
their numbers beside them.
"""

from experiments.plots.files import save
from experiments.plots.missing_mass import missing_mass_curves

__all__ = ["missing_mass_curves", "save"]
