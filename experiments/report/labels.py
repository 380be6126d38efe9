"""How the columns and settings of results are called on a page, and how their values read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from experiments.cli._output import number, percent

# Name of a column: its heading; with "%" its values are shares.
_HEADINGS: dict[str, tuple[str, str]] = {
    "dataset": ("data set", ""),
    "paths": ("data", ""),
    "eps": ("ε", ""),
    "delta": ("δ", ""),
    "beta": ("β", ""),
    "sigma": ("σ", ""),
    "threshold": ("T", ""),
    "max_items_per_user": ("Δ0", ""),
    "num_users": ("users", ""),
    "num_items": ("items", ""),
    "num_pairs": ("pairs N", ""),
    "max_set_size": ("largest set L", ""),
    "spent_delta": ("δ spent", ""),
    "mm_mean": ("mean MM", "%"),
    "mm_mean_low": ("mean MM, from", "%"),
    "mm_mean_high": ("mean MM, to", "%"),
    "mm_q05": ("MM, 5 %", "%"),
    "mm_q50": ("MM, median", "%"),
    "mm_q95": ("MM, 95 %", "%"),
    "mm_quantile": ("MM at 1 − β", "%"),
    "max_mm_q50": ("MM_∞, median", "%"),
    "max_mm_quantile": ("MM_∞ at 1 − β", "%"),
    "released_mean": ("items released", ""),
    "exact_mean": ("E[MM] [E2]", "%"),
    "exact_quantile": ("quantile [E3]", "%"),
    "oracle_gap": ("oracle gap", "×"),
    "lower_instance": ("[L2]", "%"),
    "lower_bound": ("[L2]", "%"),
    "upper_instance_star": ("[U2*]", "%"),
    "upper_instance": ("[U2]", "%"),
    "upper_zipf": ("[U3]", "%"),
    "upper_printed": ("[U3p]", "%"),
    "upper_max": ("[U∞]", "%"),
    "certificate": ("certificate", "%"),
    "certificate_hinge": ("[E6]", "%"),
    "certificate_chernoff": ("[E5]", "%"),
    "tau": ("τ [U1]", ""),
    "tau_star": ("τ* [U1*]", ""),
    "zipf_s": ("certificate s", ""),
    "zipf_log_constant": ("certificate ln C", ""),
    "claimed_delta": ("claimed δ", ""),
    "found_delta": ("found δ", ""),
    "found_delta_upper": ("found δ, at most", ""),
    "num_trials": ("trials", ""),
    "max_items_is_max": ("Δ0 is max", ""),
    "quantile": ("quantile at 1 − β", "%"),
    "quantile_low": ("quantile, from", "%"),
    "quantile_high": ("quantile, to", "%"),
    "max_quantile_low": ("MM_∞ quantile, from", "%"),
    "max_quantile_high": ("MM_∞ quantile, to", "%"),
    "tail": ("mass of the tail", "%"),
    "tail_bound": ("bound on it [Z2]", "%"),
    "q05": ("5 %", ""),
    "q50": ("median", ""),
    "q95": ("95 %", ""),
    "delta_times_users": ("δ × users", ""),
    "split": ("E[MM] split [P1]", "%"),
    "full": ("E[MM] full [P3]", "%"),
}


def heading(name: str) -> str:
    """The name of a column or setting in words, with dots for nested ones.

    Example:
        >>> heading("lower_instance"), heading("other_method.exact_mean"), heading("tail_bound")
        ('[L2]', 'other method: E[MM] [E2]', 'bound on it [Z2]')
    """
    outer, _, inner = name.rpartition(".")
    words = _HEADINGS.get(inner, (inner.replace("_", " "), ""))[0]
    return f"{outer.replace('_', ' ').replace('.', ': ')}: {words}" if outer else words


def shown(name: str, value: Any) -> str:
    """A value as it is read.

    Example:
        >>> shown("exact_mean", 0.0821), shown("oracle_gap", 1.5), shown("eps", [0.1, 1.0])
        ('8.21 %', '1.5×', '0.1, 1')
    """
    outer, _, inner = name.rpartition(".")
    unit = "%" if outer.endswith("missing_mass") else _HEADINGS.get(inner, ("", ""))[1]
    if value is None or isinstance(value, float) and math.isnan(value):
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float)):
        if unit == "%":
            return percent(float(value)) if abs(value) < 10 else number(100 * value, 3) + " %"
        tiny = 0 < abs(value) < 1e-12  # a delta of 1e-30 is not rounding noise
        return (f"{value:.3g}" if tiny else number(value)) + unit
    if isinstance(value, Mapping):
        return ", ".join(f"{heading(str(key))} = {shown(str(key), v)}" for key, v in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(shown(name, part) for part in value)
    return str(value)


def times(value: float | None) -> str:
    """A ratio, two significant digits, three next to 1.

    Example:
        >>> times(1.0234), times(1.234), times(23.4), times(123456.0)
        ('1.02×', '1.2×', '23×', '>9999×')
    """
    if value is None:
        return "–"
    if value >= 100:
        return f"{value:,.0f}×" if value < 1e4 else ">9999×"
    return f"{value:.{3 if 0.9 < value < 1.1 else 2}g}×"


def span(low: float, high: float) -> str:
    """A range of ratios; one number where both read alike."""
    ends = times(low), times(high)
    between = " to " if ">" in ends[1] else "–"
    return ends[0] if ends[0] == ends[1] else f"{ends[0].removesuffix('×')}{between}{ends[1]}"
