"""The privacy audit: exact laws of neighbours, a search for the worst, and statistical tests.

subject(name, eps=, delta=, max_items_per_user=, k=)   a mechanism or a selection at its claim
audit(subject, seconds=, seed=)                        search for a pair that refutes the claim
examine(subject, pair)                                 one pair, exactly
audit_by_samples, compare_with_lower_bound         where laws are too large to enumerate
"""

from experiments.audit.divergence import Comparison, Event, Limits, compare
from experiments.audit.laws import Law, SetLaw, TableLaw
from experiments.audit.pairs import Pair, Run
from experiments.audit.search import Audit, Finding, audit, examine
from experiments.audit.set_union_subjects import NoExactLaw
from experiments.audit.statistical import (
    LowerBoundTest,
    SampledDelta,
    audit_by_samples,
    compare_with_lower_bound,
    sampled_delta,
)
from experiments.audit.subjects import Subject, subject

__all__ = [
    "Audit",
    "Comparison",
    "Event",
    "Finding",
    "Law",
    "Limits",
    "LowerBoundTest",
    "NoExactLaw",
    "Pair",
    "Run",
    "SampledDelta",
    "SetLaw",
    "Subject",
    "TableLaw",
    "audit",
    "audit_by_samples",
    "compare",
    "compare_with_lower_bound",
    "examine",
    "sampled_delta",
    "subject",
]
