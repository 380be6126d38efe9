"""Plots, each a function from numbers to a figure and the plotted numbers.

Figures are matplotlib objects outside pyplot's state; `save` writes them as vector files with
their numbers beside them.
"""

from experiments.plots.bench import bench_plot
from experiments.plots.contribution import plan_curve
from experiments.plots.exceedance import exceedance
from experiments.plots.files import save
from experiments.plots.flow import holders_curve
from experiments.plots.ladder import ladder_plot
from experiments.plots.missing_mass import missing_mass_curves
from experiments.plots.overview import verify_overview
from experiments.plots.privacy_profile import privacy_profile
from experiments.plots.rank_frequency import rank_frequency
from experiments.plots.ratios import ratio_curves
from experiments.plots.regime import regime_map
from experiments.plots.selection import selection_curves
from experiments.plots.set_sizes import set_size_ecdf
from experiments.plots.slack import slack, slack_table

__all__ = [
    "bench_plot",
    "exceedance",
    "holders_curve",
    "ladder_plot",
    "missing_mass_curves",
    "plan_curve",
    "privacy_profile",
    "rank_frequency",
    "ratio_curves",
    "regime_map",
    "save",
    "selection_curves",
    "set_size_ecdf",
    "slack",
    "slack_table",
    "verify_overview",
]
