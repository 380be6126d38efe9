import math

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from theory import spent_delta
from theory.flow import adaptive_delta, gaussian_step_map, set_only_weights


@pytest.mark.parametrize("shift", [0.02, 0.3, 1.5])
def test_the_polygon_lies_above_the_curve(shift):
    step = gaussian_step_map(shift=shift, lowest=-5.0, jump=1e-9)
    order = np.argsort(step.before)[1:]  # without the jump
    b = np.linspace(ndtr(-5.0), 1 - 1e-9, 20001)
    curve = ndtr(ndtri(b) + shift)
    polygon = np.interp(b, step.before[order], step.after[order])
    assert np.all(polygon >= curve - 1e-15)
    assert np.max((polygon - curve) / (curve - b)) < 0.02


def test_one_item_spends_what_the_accountant_of_the_weights_says():
    found = set_only_weights(eps=1.0, delta=1e-5, max_items_per_user=1)
    assert found.weights.tolist() == [1.0]
    jump = float(ndtr((1 - found.threshold) / found.sigma))
    step = gaussian_step_map(
        shift=1 / found.sigma, lowest=(1 - found.threshold) / found.sigma, jump=jump
    )
    exact = spent_delta(eps=1.0, sigma=found.sigma, threshold=found.threshold, max_items_per_user=1)
    spent = max(adaptive_delta(step, eps=1.0, items=1, spacing=2e-3))
    assert exact <= spent * (1 + 1e-9) and spent == pytest.approx(exact, rel=0.03)


def test_weights_are_larger_than_the_usual_ones_and_not_private_much_beyond():
    found = set_only_weights(eps=1.0, delta=1e-5, max_items_per_user=4)
    gain = found.weights * np.sqrt(np.arange(1, 5))
    assert gain[0] == 1.0 and np.all(np.diff(gain) > 0.01)
    # Two equal heights, the best among many: a lower bound on what two items spend.
    weight = found.weights[1] * 1.05 / found.sigma
    worst = 0.0
    for z in np.linspace(-3, 3, 601):
        a, b = ndtr(z + weight), ndtr(z)
        total = max(a * a - math.e * b * b, 0) + 2 * max(a * (1 - a) - math.e * b * (1 - b), 0)
        worst = max(worst, total + max((1 - a) ** 2 - math.e * (1 - b) ** 2, 0))
    assert worst > 1e-5
    assert found.release(np.array([0.0, 100.0])).tolist() == [0.0, 1.0]
