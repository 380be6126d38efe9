"""The paper's statements as claims with evidence, one file each."""

from experiments.claims._claim import Cell, Claim, Settings, exact_below
from experiments.claims.registry import claims, select

__all__ = ["Cell", "Claim", "Settings", "claims", "exact_below", "select"]
