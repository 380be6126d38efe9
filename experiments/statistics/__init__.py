"""Exact statistics behind the verdicts: binomial tests, e-processes, Holm, means, slopes.

Every function is float64 NumPy/SciPy and valid at every sample size; only the bootstrap interval
of a slope is approximate, and it says so.
"""
