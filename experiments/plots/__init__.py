"""Publication plots: figures from tables, and the plotted numbers with them."""

from experiments.plots.files import save
from experiments.plots.missing_mass import missing_mass_curves

__all__ = ["missing_mass_curves", "save"]
