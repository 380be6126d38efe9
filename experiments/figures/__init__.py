"""Figures of the paper and more, from the data sets that are present; `wgm figure` in Python."""

from experiments.figures.data import sources
from experiments.figures.making import make_figures
from experiments.figures.record import FigureSpec, Statement
from experiments.figures.registry import chosen, figures
from experiments.figures.task import Task

__all__ = [
    "FigureSpec",
    "Statement",
    "Task",
    "chosen",
    "figures",
    "make_figures",
    "sources",
]
