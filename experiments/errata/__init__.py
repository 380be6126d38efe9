"""Errata of the paper and of published code, each with a counterexample, computed on the spot."""

from experiments.errata.document import errata_table, findings_frame, markdown_page
from experiments.errata.entries import Erratum, errata, select_errata
from experiments.errata.findings import Finding, Row, examine_erratum

__all__ = [
    "Erratum",
    "Finding",
    "Row",
    "errata",
    "errata_table",
    "examine_erratum",
    "findings_frame",
    "markdown_page",
    "select_errata",
]
