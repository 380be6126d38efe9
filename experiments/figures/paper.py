"""Settings of the paper's experiments (Section 5, Appendices E and F)."""

EPSILONS = (1.0, 0.1)
DELTA = 1e-5
# Failure probability of bounds; the paper names none.
BETA = 0.05
# Contribution bounds of the set union.
BOUNDS = (1, 50, 100, 150, 200, 300)
