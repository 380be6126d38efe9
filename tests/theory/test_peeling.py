import json
from itertools import combinations, product
from pathlib import Path

import mpmath
import numpy as np
import pytest

from theory import (
    InvalidInput,
    hitting_scale,
    limited_domain_offset,
    local_eps,
    peeling_delta,
    peeling_scale,
    user_peeling_scale,
)

GOLDEN = json.loads((Path(__file__).parent / "golden" / "selection.json").read_text())
POINTS = list(product([0.01, 0.1, 1.0, 10.0], [1e-30, 1e-12, 1e-5, 0.01], [1, 3, 200, 10**6]))


def tight_delta(eps, rho):
    """inf over a > 1 of e^((a-1)(a rho - eps)) (1-1/a)^a / (a-1), in 60 digits by bisection."""
    with mpmath.workdps(60):
        eps, rho = mpmath.mpf(eps), mpmath.mpf(rho)

        def log_value(a):
            return (a - 1) * (a * rho - eps) + a * mpmath.log1p(-1 / a) - mpmath.log(a - 1)

        # ln is convex in a; the golden section in ln(a - 1) keeps a bracket of the minimum.
        low, high = mpmath.mpf(-200), mpmath.mpf(200)
        ratio = (mpmath.sqrt(5) - 1) / 2
        for _ in range(120):
            left, right = high - ratio * (high - low), low + ratio * (high - low)
            if log_value(1 + mpmath.exp(left)) < log_value(1 + mpmath.exp(right)):
                high = right
            else:
                low = left
        return mpmath.exp(log_value(1 + mpmath.exp((low + high) / 2)))


def test_golden_scales():
    for row in GOLDEN["peeling_scale"]:
        scale = peeling_scale(eps=float(row["eps"]), delta=float(row["delta"]), k=row["k"])
        assert scale == pytest.approx(float(row["scale"]), rel=1e-13)
        assert scale >= float(row["scale"]) * (1 - 2e-16)


@pytest.mark.parametrize(("eps", "delta", "k"), POINTS)
def test_tight_scale_is_private_and_the_least(eps, delta, k):
    scale = peeling_scale(eps=eps, delta=delta, k=k, conversion="tight")
    if scale == k / eps:  # pure composition is the better one
        assert tight_delta(eps, k / (8 * (scale * (1 - 1e-9)) ** 2)) > delta
        return
    assert tight_delta(eps, k / (8 * scale**2)) <= delta
    assert tight_delta(eps, k / (8 * (scale * (1 - 1e-11)) ** 2)) > delta
    assert scale * eps < k


@pytest.mark.parametrize(("eps", "delta", "k"), POINTS)
def test_paper_scale_is_private_and_the_least(eps, delta, k):
    scale = mpmath.mpf(peeling_scale(eps=eps, delta=delta, k=k))
    with mpmath.workdps(60):
        need = -mpmath.log(mpmath.mpf(delta))
        by_zcdp = mpmath.sqrt((8 * need + 8 * eps) / k) - mpmath.sqrt(8 * need / k)
        exact = 1 / max(by_zcdp, mpmath.mpf(eps) / k)
        assert -2e-16 < scale / exact - 1 < 1e-13


def test_delta_is_the_inverse_of_the_scale():
    eps, delta = np.array([0.01, 0.3, 1.0, 10.0])[:, None], np.array([1e-30, 1e-5, 0.1])
    for conversion in ("paper", "tight"):
        scale = peeling_scale(eps=eps, delta=delta, k=200, conversion=conversion)
        spent = peeling_delta(eps=eps, k=200, scale=scale, conversion=conversion)
        assert scale.shape == spent.shape == (4, 3)
        assert np.all(spent <= delta)
        np.testing.assert_allclose(spent, np.broadcast_to(delta, (4, 3)), rtol=1e-9)
    # The least order lies near 1 for large rho and far out for small ones.
    for eps, rho in ((0.5, 0.01), (1.0, 0.3), (3.0, 2.9), (1.0, 4.0), (0.01, 1e-6)):
        scale = float(np.sqrt(50 / (8 * rho)))
        got = peeling_delta(eps=eps, k=50, scale=scale, conversion="tight")
        assert got == pytest.approx(float(tight_delta(eps, 50 / (8 * scale**2))), rel=1e-11)
        assert got <= peeling_delta(eps=eps, k=50, scale=scale)


def test_pure_composition_has_no_delta():
    for k in (1, 3, 7):
        for eps in (0.1, 0.7, 3.0):
            assert peeling_delta(eps=eps, k=k, scale=k / eps) == 0
            assert peeling_delta(eps=eps, k=k, scale=0.999 * k / eps) > 0
    assert peeling_delta(eps=1.0, k=5, scale=0.5) == 1.0


def test_scales_are_monotone():
    eps, delta = np.geomspace(1e-3, 1e5, 40), np.geomspace(1e-300, 0.5, 30)
    k = np.array([1, 2, 5, 10, 100, 10**4, 10**6, 10**9])
    grid = {"eps": eps[:, None, None], "delta": delta[:, None], "k": k}
    paper, tight = (peeling_scale(**grid, conversion=name) for name in ("paper", "tight"))
    users = user_peeling_scale(**grid)
    hitting = hitting_scale(eps=eps[:, None], delta=delta)
    for scale in (paper, tight, users):
        slack = 1 + 1e-12
        assert scale.shape == (40, 30, 8)
        assert np.all(np.isfinite(scale) & (scale > 0))
        assert np.all(scale[1:] <= scale[:-1] * slack)
        assert np.all(scale[:, 1:] <= scale[:, :-1] * slack)
        assert np.all(scale[:, :, :-1] <= scale[:, :, 1:] * slack)
    assert np.all(tight <= paper * (1 + 1e-12))
    assert np.all(hitting[1:] < hitting[:-1]) and np.all(hitting[:, 1:] <= hitting[:, :-1])
    np.testing.assert_array_equal(users, np.minimum(paper, hitting[:, :, None]))


def test_stated_scales():
    assert peeling_scale(eps=1.0, delta=1e-5, k=200) == pytest.approx(34.7, abs=0.05)
    tight = peeling_scale(eps=1.0, delta=1e-5, k=200, conversion="tight")
    assert tight == pytest.approx(28.6, abs=0.05)
    # The number of rounds stops to matter at about 12.
    by_rounds = [peeling_scale(eps=1.0, delta=1e-5, k=k) for k in (12, 13)]
    assert by_rounds[0] < hitting_scale(eps=1.0, delta=1e-5) < by_rounds[1]


@pytest.mark.parametrize("eps", [1e-3, 0.1, 1.0, 10.0, 1e4])
@pytest.mark.parametrize("delta", [1e-300, 1e-12, 1e-5, 0.1, 0.5])
def test_hitting_scale_satisfies_its_condition_and_is_the_least(eps, delta):
    scale = hitting_scale(eps=eps, delta=delta)

    def left_side(scale):
        with mpmath.workdps(50):
            x = 1 / mpmath.mpf(scale)
            return -mpmath.expm1(-x) * mpmath.exp(-(eps + x) / mpmath.expm1(x))

    assert left_side(scale) <= delta
    if scale == 1 / eps:
        return
    assert scale > 1 / eps
    assert left_side(scale * (1 - 1e-12)) > delta


def test_peeling_is_within_its_delta_and_its_zcdp(peeling_law, hockey_stick):
    """All sequences, all ways in which one user changes the counts, both directions."""
    rng = np.random.default_rng(5)
    most = 0.0
    for _ in range(5):
        counts = rng.integers(0, 5, 4)
        k, scale = int(rng.integers(1, 5)), float(rng.uniform(0.4, 3.0))
        rho = k / (8 * scale**2)
        before = peeling_law(counts, k, scale)
        for size in range(1, 5):
            for held in combinations(range(4), size):
                changed = counts.copy()
                changed[list(held)] += 1
                after = peeling_law(changed, k, scale)
                for p, q in ((before, after), (after, before)):
                    ratio = max(p[s] / q[s] for s in p)
                    assert np.log(ratio) <= k / scale + 1e-12
                    for a in (1.5, 4.0):
                        moment = sum(p[s] ** a * q[s] ** (1 - a) for s in p)
                        assert np.log(moment) / (a - 1) <= a * rho + 1e-12
                    for eps in (0.05, 0.3, 1.0):
                        bound = {"eps": eps, "k": k, "scale": scale}
                        tight = peeling_delta(**bound, conversion="tight")
                        delta = hockey_stick(p, q, eps)
                        assert delta <= tight + 1e-12 and tight <= peeling_delta(**bound)
                        most = max(most, delta / tight if tight else 0.0)
    assert most > 0.15  # the bound is of the right size


def test_limited_domain_golden():
    k = np.array([1, 10, 200])
    eps_round = local_eps(eps=1.0, delta=1e-5, k=k)
    np.testing.assert_allclose(eps_round, [1.0, 0.118949, 0.0265979], rtol=3e-6)
    offset = limited_domain_offset(
        delta=1e-5, eps_round=eps_round, k_bar=k, max_items_per_user=np.inf
    )
    np.testing.assert_allclose(offset, [13.2061, 122.973, 659.112], rtol=4e-6)
    unbounded = limited_domain_offset(
        delta=1e-5, eps_round=eps_round[1], k_bar=np.inf, max_items_per_user=100
    )
    assert unbounded == pytest.approx(142.331, rel=3e-6)


@pytest.mark.parametrize("eps", [1e-3, 0.3, 1.0, 10.0, 300.0, 1e4])
@pytest.mark.parametrize("k", [30, 2000, 10**6])
def test_local_eps_is_the_largest(eps, k):
    def spent(e, delta=1e-9):
        need = np.log(2 / delta)
        return min(
            k * e,
            k * e * np.expm1(e) / (np.exp(e) + 1) + e * np.sqrt(2 * k * need),
            k * e * e / 2 + e * np.sqrt(k * need / 2),
        )

    e = local_eps(eps=eps, delta=1e-9, k=k)
    assert spent(e) <= eps * (1 + 1e-14)
    assert spent(e * (1 + 1e-12)) > eps


BAD = [("eps", 0.0), ("eps", -1.0), ("delta", 0.0), ("delta", 0.7), ("k", 0), ("k", 2.5)]


@pytest.mark.parametrize(("name", "value"), [*BAD, ("k", -3), ("k", np.nan), ("k", np.inf)])
def test_bad_input_is_named(name, value):
    point = {"eps": 1.0, "delta": 1e-5, "k": 10, name: value}
    for scale in (peeling_scale, user_peeling_scale, local_eps):
        with pytest.raises(InvalidInput, match=f"{name} = "):
            scale(**point)


def test_other_bad_input():
    with pytest.raises(InvalidInput, match="conversion = exact: must be 'paper' or 'tight'"):
        peeling_scale.__wrapped__(eps=1.0, delta=1e-5, k=1, conversion="exact")
    with pytest.raises(InvalidInput, match="scale = 0.0"):
        peeling_delta(eps=1.0, k=1, scale=0.0)
    with pytest.raises(InvalidInput, match="k_bar = inf: must be finite"):
        limited_domain_offset(delta=1e-5, eps_round=1.0, k_bar=np.inf, max_items_per_user=np.inf)
    with pytest.raises(InvalidInput, match="k_bar = 0.5: must be at least 1"):
        limited_domain_offset(delta=1e-5, eps_round=1.0, k_bar=0.5, max_items_per_user=1)
