"""A results folder as one HTML file, and its tables for papers."""

from experiments.report.page import Content, headline_of, render
from experiments.report.results import Results, read_results
from experiments.report.tables import Table, latex, markdown

__all__ = [
    "Content",
    "Results",
    "Table",
    "headline_of",
    "latex",
    "markdown",
    "read_results",
    "render",
]
