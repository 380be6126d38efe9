"""Two bounds of our own on the missing mass, one proved and one wishful."""

import numpy as np

from experiments.claims import Claim, exact_below


def concentrated(run):
    """The exact mean, and a deviation from how uncertain every single item is."""
    for i, cell in enumerate(run.cells):
        found = run.miss.at(i)
        share = found.frequencies / found.num_pairs
        z = np.log(np.clip(found.hit, 1e-300, 1) / np.clip(found.miss, 1e-300, 1))
        z[np.abs(z) < 1e-6] = 1e-6
        spread = np.tanh(z / 2) / z  # (1 - 2m)/ln((1 - m)/m), at most 1/2
        deviation = np.sqrt(np.log(1 / run.beta) * np.sum(found.multiplicity * share**2 * spread))
        bound = float(found.mean_missing_mass + deviation)
        yield cell, exact_below(run.intervals["missing_mass"][i], bound, tag="[mine]")


def below_threshold(run):
    """The pairs of all items that no more than T users hold."""
    for i, cell in enumerate(run.cells):
        bound = float(run.profile.tail(float(run.calibration.threshold[i])))
        yield cell, exact_below(run.intervals["missing_mass"][i], bound, tag="[wish]")


def claim(name, title, says, observe):
    """A claim about the (1 - beta)-quantile of the missing mass."""
    return Claim(name, title, "upper, quantile", says, says, observe=observe)


CLAIMS = [
    claim("concentrated", "Mean plus deviation", "MM <= E[MM] + sqrt(ln(1/beta) "
          "sum_x (N(x)/N)^2 (1 - 2m)/ln((1 - m)/m)), m = m(x).", concentrated),
    claim("below-threshold", "Items held by at most T", "MM <= share of pairs of items with "
          "N(x) <= T.", below_threshold),
]  # fmt: skip
