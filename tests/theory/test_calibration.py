"""sigma and T against 60-digit golden values, the slow accountant, and published regressions."""

import dataclasses
import json
import pickle
from pathlib import Path

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr, ndtri

from theory import InvalidInput
from theory.calibration import Calibration, calibrate, spent_delta, verify_calibration
from theory.gaussian import gaussian_delta

# 60-digit arithmetic, independent of this code.
GOLDEN = json.loads((Path(__file__).parent / "golden" / "calibration.json").read_text())

EPS = st.just(0.0) | st.floats(-5, 5).map(lambda e: 10.0**e)
DELTA = st.floats(-300, -0.302).map(lambda e: 10.0**e) | st.floats(-15, -0.302).map(
    lambda e: 10.0**e
)
COUNT = st.integers(1, 300) | st.sampled_from([10**6, 10**9])
METHOD = st.sampled_from(["split", "full"])
no_flakes = settings(max_examples=100, deadline=None, derandomize=True)


def spent(calibration, *, sigma=1.0, threshold=1.0):
    """delta of a calibration whose sigma and threshold are multiplied by the given factors."""
    return spent_delta(
        eps=calibration.eps,
        sigma=calibration.sigma * sigma,
        threshold=calibration.threshold * threshold,
        max_items_per_user=calibration.max_items_per_user,
    )


def test_golden_values():
    assert len(GOLDEN) == 160
    for row in GOLDEN:
        ours = calibrate(
            eps=float(row["eps"]),
            delta=float(row["delta"]),
            max_items_per_user=row["delta0"],
            method=row["delta_each"],
        )
        assert ours.sigma == pytest.approx(float(row["sigma"]), rel=1e-9)
        assert ours.threshold == pytest.approx(float(row["threshold"]), rel=1e-9)
        # The private side: never below the exact value (which is printed to 17 digits).
        assert ours.sigma >= float(row["sigma"]) * (1 - 1e-15)
        assert ours.threshold >= float(row["threshold"]) * (1 - 1e-15)


@pytest.mark.parametrize(
    ("eps", "delta", "count", "sigma", "threshold", "quantile"),
    [
        (1, 1e-6, 1, 4.3651549, 22.352760, 4.8916),
        (1, 1e-6, 10, 4.3651549, 23.568203, 5.3267),
        (1, 1e-6, 100, 4.3651549, 25.115519, 5.7307),
        (3, np.exp(-10), 100, 1.3327913, 6.823661, 5.0448),
        (0.1, 1e-10, 100, 55.362304, 394.86129, 7.1305),
        (0.5, 1e-3, 3, 5.0141586, 18.567505, 3.5879),
        # At large eps the maximum is at t = 1: looking at t = Delta0 only is not private.
        (10, 1e-5, 10, 0.51261222, 3.2642971, 4.8916),
        (20, 1e-12, 1000, 0.40822345, 3.9108401, 8.0269),
        (1e-5, 1e-10, 10, 377561.65, 2569874.6, 6.8065),
    ],
)
def test_published_table(eps, delta, count, sigma, threshold, quantile):
    ours = calibrate(eps=eps, delta=delta, max_items_per_user=count)
    assert ours.sigma == pytest.approx(sigma, rel=1e-7)
    assert ours.threshold == pytest.approx(threshold, rel=1e-7)
    last = count**-0.5 + ours.sigma * quantile
    if (eps, count) in ((10, 10), (20, 1000)):
        assert ours.threshold > last + 0.01
        with pytest.raises(InvalidInput):  # at half of delta, which is what T must keep to
            verify_calibration(Calibration(eps, delta / 2, count, "full", sigma, last))
    else:
        assert ours.threshold == pytest.approx(last, rel=1e-4)


def test_threshold_is_the_maximum_over_all_t():
    rng = np.random.default_rng(30)
    for i in range(150):
        count = int(rng.integers(1, 400))
        eps, delta = 10 ** rng.uniform(-3, 5), 10 ** -rng.uniform(0.302, 300 if i % 2 else 12)
        ours = calibrate(eps=eps, delta=delta, max_items_per_user=count, method="full")
        t = np.arange(1, count + 1)
        all_t = t**-0.5 - ours.sigma * ndtri(-np.expm1(np.log1p(-delta) / t))
        assert ours.threshold == pytest.approx(all_t.max(), rel=1e-12)


def mixture_delta(eps, sigma, threshold, count):
    """[P2] as a maximum over t kept items, m of them new, and both directions."""

    def gaussian(eps, sensitivity):
        at = min(abs(eps), 1e5)  # beyond, it is below 1e-300 at the sigma used here
        value = gaussian_delta(eps=at, sigma=sigma, sensitivity=sensitivity)
        # delta_G(-eps) by the symmetry of the two hypotheses.
        return value if eps >= 0 else -np.expm1(eps) + np.exp(eps) * value

    worst = 0.0
    for t in range(1, count + 1):
        released = ndtr((t**-0.5 - threshold) / sigma)
        for m in range(t + 1):
            with np.errstate(divide="ignore"):
                loss = -m * np.log1p(-released) if m else 0.0
            present = (t - m) / t
            adding, removing = -np.expm1(-loss), max(0.0, -np.expm1(eps - loss))
            if present:
                adding += np.exp(-loss) * gaussian(eps + loss, present**0.5)
                removing = gaussian(eps - loss, present**0.5)
            worst = max(worst, adding, removing)
    return worst


def test_accountant_is_the_double_maximum():
    rng = np.random.default_rng(31)
    leading = set()
    for i in range(200):
        eps = 0.0 if i % 7 == 0 else 10 ** rng.uniform(-4, 1.5)
        sigma, count = 10 ** rng.uniform(-1.5, 2), int(rng.integers(1, 13))
        threshold = 1 + sigma * rng.uniform(-3, 9)
        ours = spent_delta(eps=eps, sigma=sigma, threshold=threshold, max_items_per_user=count)
        assert ours == pytest.approx(mixture_delta(eps, sigma, threshold, count), rel=1e-12)
        terms = (
            gaussian_delta(eps=eps, sigma=sigma),
            ndtr((1 - threshold) / sigma),
            -np.expm1(count * np.log1p(-ndtr((count**-0.5 - threshold) / sigma))),
        )
        assert ours == pytest.approx(max(terms), rel=1e-13)
        leading.add(int(np.argmax(terms)))
    assert leading == {0, 1, 2}  # the draws reach every term


@no_flakes
@given(EPS, DELTA, COUNT, METHOD)
def test_private_and_tight_as_evaluated(eps, delta, count, method):
    ours = calibrate(eps=eps, delta=delta, max_items_per_user=count, method=method)
    share = delta / 2 if method == "split" else delta
    assert ours.spent_delta <= share
    assert ours.spent_delta == pytest.approx(share, rel=1e-9)
    assert spent(ours, sigma=1 - 1e-9) > share
    assert spent(ours, threshold=1 - 1e-9) > share
    verify_calibration(ours)


@no_flakes
@given(EPS, DELTA, COUNT, METHOD, st.floats(1.0, 10.0))
def test_monotone(eps, delta, count, method, factor):
    base = calibrate(eps=eps, delta=delta, max_items_per_user=count, method=method)
    others = [
        calibrate(eps=min(eps * factor, 1e5), delta=delta, max_items_per_user=count, method=method),
        calibrate(eps=eps, delta=min(delta * factor, 0.5), max_items_per_user=count, method=method),
    ]
    for other in others:
        assert other.sigma <= base.sigma * (1 + 1e-12)
        assert other.threshold <= base.threshold * (1 + 1e-12)
    more = calibrate(eps=eps, delta=delta, max_items_per_user=min(count * 3, 10**9), method=method)
    assert more.sigma == base.sigma
    assert more.threshold >= base.threshold * (1 - 1e-12)


def test_threshold_against_high_precision():
    """Private in exact arithmetic too, also where delta/Delta0 is denormal."""
    with mp.workdps(350):
        for eps in (0.0, 1.0, 1e5):
            for delta in (1e-300, 1e-17, 1e-5, 0.5):
                for count in (1, 10, 10**9):
                    ours = calibrate(eps=eps, delta=delta, max_items_per_user=count)
                    sigma, exact = mp.mpf(ours.sigma), []
                    for threshold in (ours.threshold, ours.threshold * (1 - 1e-9)):
                        one, each = (
                            mp.ncdf((1 / mp.sqrt(t) - mp.mpf(threshold)) / sigma)
                            for t in (1, count)
                        )
                        exact.append(max(one, 1 - (1 - each) ** count))
                    assert exact[0] <= mp.mpf(delta) / 2 < exact[1]


def test_full_is_smaller_than_split():
    for eps, count, split, full in [(1.0, 100, 20.79, 19.50), (0.1, 1, 144.50, 132.14)]:
        for method, threshold in (("split", split), ("full", full)):
            ours = calibrate(eps=eps, delta=1e-5, max_items_per_user=count, method=method)
            assert ours.threshold == pytest.approx(threshold, abs=0.005)


def test_batched_equals_scalar():
    eps = np.array([0.0, 1e-5, 1.0, 1e5])[:, None, None]
    delta = np.array([1e-300, 1e-17, 0.5])[:, None]
    count = np.array([1, 10, 10**9])
    for method in ("split", "full"):
        grid = calibrate(eps=eps, delta=delta, max_items_per_user=count, method=method)
        assert grid.shape == (4, 3, 3) and len(grid) == 4
        verify_calibration(grid)
        for index in np.ndindex(grid.shape):
            one = calibrate(
                eps=eps[index[0], 0, 0],
                delta=delta[index[1], 0],
                max_items_per_user=count[index[2]],
                method=method,
            )
            assert grid[index].sigma == pytest.approx(one.sigma, rel=1e-13)
            assert grid[index].threshold == pytest.approx(one.threshold, rel=1e-13)
            verify_calibration(grid[index])
        assert grid[1].shape == (3, 3)


def test_no_floating_point_trouble_at_the_corners():
    with np.errstate(all="raise"):
        for eps in (0.0, 1e-300, 1e-5, 1e5):
            for delta in (1e-300, 1e-17, 0.5):
                for count in (1, 10**9):
                    for method in ("split", "full"):
                        calibrate(eps=eps, delta=delta, max_items_per_user=count, method=method)


def test_quantiles_come_from_the_small_tail():
    """1 - delta is 1.0 in float64 at delta <= 1e-17, and the quantile then infinite."""
    assert np.isinf(ndtri(1 - 5e-17))
    ours = calibrate(eps=1.0, delta=1e-16, max_items_per_user=1)
    assert (ours.threshold - 1) / ours.sigma == pytest.approx(8.3048, abs=1e-4)
    assert np.isinf(ndtri((1 - 1e-12) ** (1 / 1e6)))
    ours = calibrate(eps=1.0, delta=1e-12, max_items_per_user=10**6, method="full")
    assert (ours.threshold - 1e-3) / ours.sigma == pytest.approx(8.75729, abs=1e-5)


def test_weighted_noise_needs_no_square_root_of_the_bound():
    """PipelineDP rebuilt the noise for unweighted counts: sqrt(10) too much noise and threshold."""
    ours = calibrate(eps=1.0, delta=1e-6, max_items_per_user=10)
    assert (ours.sigma, ours.threshold) == pytest.approx((4.365, 23.57), abs=0.01)
    weights = np.array([100.0, 100 / np.sqrt(10), 32.0])
    keep = ndtr((weights - ours.threshold) / ours.sigma)
    assert keep == pytest.approx([1.0, 0.9675, 0.9733], abs=5e-5)
    inflated_sigma, inflated_threshold = np.sqrt(10) * 4.367188, 74.563438
    theirs = ndtr((weights - inflated_threshold) / inflated_sigma)
    assert theirs[1:] == pytest.approx([0.0009, 0.0010], abs=1e-4)


def test_users_needed():
    counts = [1, 10, 100, 1000]
    grid = calibrate(eps=1.0, delta=1e-6, max_items_per_user=counts)
    assert grid.users_needed.tolist() == [23, 75, 252, 845]
    assert grid[1].users_needed == 75
    assert Calibration(1.0, 0.1, 1, "split", 1.0, -2.0).users_needed == 1


def test_somebody_elses_threshold_is_noticed():
    ours = calibrate(eps=1.0, delta=1e-5, max_items_per_user=100)
    laplace = 1 + np.log(1 / 2e-5)
    for changed in (
        dataclasses.replace(ours, threshold=laplace),
        dataclasses.replace(ours, sigma=ours.sigma / 2),
        dataclasses.replace(ours, max_items_per_user=10**6),
        dataclasses.replace(ours, eps=0.5),
    ):
        with pytest.raises(InvalidInput, match="delta = 1e-05: must be at least .* spend at eps"):
            verify_calibration(changed)
    grid = calibrate(eps=[1.0, 2.0], delta=1e-5, max_items_per_user=10)
    with pytest.raises(InvalidInput, match=r"sigma = 0\.5, .* spend at eps = 2\.0"):
        verify_calibration(dataclasses.replace(grid, sigma=np.array([9.0, 0.5]), threshold=99.0))


def test_record_is_immutable():
    sigma = np.array([4.0, 5.0])
    record = Calibration(1.0, 1e-5, 10, "split", sigma, 30.0)
    sigma[0] = 0.0
    assert record.sigma.tolist() == [4.0, 5.0] and record.threshold.tolist() == [30.0, 30.0]
    with pytest.raises(ValueError, match="read-only"):
        record.sigma[0] = 1.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        record.threshold = 1.0  # pyright: ignore
    assert pickle.loads(pickle.dumps(record)) == record
    assert hash(record) == hash(dataclasses.replace(record))
    assert record != dataclasses.replace(record, threshold=31.0)
    assert record != "record"


def test_scalars_are_python_numbers():
    ours = calibrate(eps=np.float64(1), delta=1e-5, max_items_per_user=np.int64(3))
    values = (ours.eps, ours.delta, ours.sigma, ours.threshold, ours.spent_delta)
    assert [type(v) for v in values] == [float] * 5
    assert type(ours.max_items_per_user) is int and ours.shape == ()
    with pytest.raises(TypeError):
        len(ours)
    with pytest.raises(IndexError):
        ours[0]
    assert sum(1 for _ in calibrate(eps=[1.0, 2.0], delta=0.1, max_items_per_user=1)) == 2


def test_arguments_are_keywords():
    with pytest.raises(TypeError):
        calibrate(1.0, 1e-5, 10)  # pyright: ignore


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"eps": -0.1}, r"eps = -0.1: must be a number in \[0, 1e5\]"),
        ({"eps": np.nan}, "eps = nan: must be"),
        ({"eps": np.inf}, "eps = inf: must be"),
        ({"eps": [1.0, 2e5]}, "eps = 200000.0: must be"),
        ({"delta": 0.0}, r"delta = 0.0: must be in \(0, 0.5\]"),
        ({"delta": 1.0}, "delta = 1.0: must be in"),
        ({"delta": 1e-301}, "delta = 1e-301: must be in .* at least 1e-300"),
        ({"max_items_per_user": 0}, "max_items_per_user = 0.0: must be a whole number from 1"),
        ({"max_items_per_user": 2.5}, "max_items_per_user = 2.5: must be"),
        ({"max_items_per_user": 2e9}, "max_items_per_user = 2000000000.0: must be"),
        ({"method": "half"}, "method = half: must be one of split, full"),
    ],
)
def test_bad_input_is_named(change, message):
    with pytest.raises(InvalidInput, match=message) as caught:
        calibrate(**({"eps": 1.0, "delta": 1e-5, "max_items_per_user": 10} | change))
    assert caught.value.name == next(iter(change))


def test_bad_threshold_is_named():
    for threshold in (np.nan, np.inf):
        with pytest.raises(InvalidInput, match="threshold = (nan|inf): must be a finite number"):
            spent_delta(eps=1.0, sigma=1.0, threshold=threshold, max_items_per_user=1)
