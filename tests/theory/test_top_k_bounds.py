from itertools import product

import mpmath
import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import binom

from theory import (
    InvalidInput,
    Profile,
    UserItems,
    calibrate,
    hard_frequency,
    hard_selection_data,
    hard_top_k_bound,
    instance_lower_bound,
    optimal_selection_probability,
    peeling_loss_bound,
    peeling_scale,
    selection_threshold,
    tau_u1,
    tau_u1_star,
    top_k_bound,
    top_k_lower_bound,
)

FORMS = ("sharp", "explicit", "printed")


def loss(counts, chosen, k):
    """What is missing of the k largest counts, a row of chosen items (-1: none) per trial."""
    got = np.where(chosen >= 0, counts[chosen], 0).sum(axis=-1)
    return np.sort(counts)[::-1][:k].sum() - got


# ---- [K2]


def test_forms_by_hand():
    for domain, k, scale, beta in ((7, 3, 2.0, 0.05), (1000, 1, 0.5, 1e-6), (10**9, 40, 9.0, 0.3)):
        with mpmath.workdps(40):
            falling = sum(mpmath.log(domain - j) for j in range(k))
            quantile = mpmath.findroot(
                lambda x, k=k, beta=beta: mpmath.gammainc(k, x, regularized=True) - beta,
                k + mpmath.log(1 / mpmath.mpf(beta)),
            )
            exact = [
                scale * (falling + quantile),
                scale * k * mpmath.log(k * mpmath.mpf(domain) / beta),
                2 * scale * k * mpmath.log(2 * mpmath.mpf(domain) / beta),
            ]
        for form, value in zip(FORMS, exact, strict=True):
            bound = peeling_loss_bound(domain, k=k, scale=scale, beta=beta, form=form)
            assert bound.value == pytest.approx(float(value), rel=1e-11)
            assert (bound.tag, bound.metric, bound.side) == ("[K2]", "top_k_loss", "upper")
            assert bound.failure_probability == beta


def test_order_of_the_forms_and_empty_domains():
    domain, k = np.array([0, 1, 2, 5, 6, 300, 10**7])[:, None], np.array([1, 2, 5, 200])
    sharp, explicit, printed = (
        peeling_loss_bound(domain, k=k, scale=3.0, beta=0.01, form=form).value for form in FORMS
    )
    assert np.all(sharp <= explicit)
    wide = np.broadcast_to(domain >= k, explicit.shape)  # k/2 <= D: the printed one is larger
    assert np.all((explicit < printed)[wide & (domain > 0)])
    for value in (sharp, explicit, printed):
        assert np.all(value[0] == 0)
        assert np.all(np.diff(value, axis=0) >= 0)
    assert np.all(sharp[np.broadcast_to(domain <= k, sharp.shape)] == 0)


def test_loss_by_all_sequences(peeling_law):
    rng = np.random.default_rng(8)
    for _ in range(8):
        counts, k = rng.integers(0, 12, 5), int(rng.integers(1, 5))
        law = peeling_law(counts, k, 1.3)
        for beta in (0.02, 0.2, 0.7):
            bounds = [
                peeling_loss_bound(5, k=k, scale=1.3, beta=beta, form=form).value for form in FORMS
            ]
            for bound in bounds:
                over = sum(p for s, p in law.items() if loss(counts, np.array(s), k) > bound)
                assert over <= beta


def test_sharp_form_is_nearly_reached():
    """k = 1: one item of count g against D - 1 of count 0, the loss is g or nothing."""
    domain, beta, scale = 500, 0.01, 2.0
    for form in ("sharp", "explicit"):
        gap = peeling_loss_bound(domain, k=1, scale=scale, beta=beta, form=form).value
        rest = (domain - 1) * np.exp(-gap / scale)
        assert 0.98 * beta < rest / (1 + rest) < beta


def test_loss_by_simulation():
    """k = 20 of 200: the frequency of exceedances against the exact binomial law.

    The k largest are ahead by about what the best of the noise of all the others makes up.
    """
    rng = np.random.default_rng(21)
    counts = np.repeat([36, 0], [20, 180])
    scale, k, trials = 6.0, 20, 10_000
    noisy = counts + rng.gumbel(scale=scale, size=(trials, 200))
    chosen = np.argpartition(-noisy, k, axis=1)[:, :k]
    losses = loss(counts, chosen, k)
    for beta in (0.5, 0.05):
        bound = peeling_loss_bound(200, k=k, scale=scale, beta=beta, form="sharp").value
        assert (losses > bound).sum() <= binom.isf(1e-7, trials, beta)
        assert 0 < losses.mean() < bound


# ---- [K3]


def small_data():
    rng = np.random.default_rng(2)
    frequencies = np.array([900, 500, 300, 200, 120, 90, 60, 40, 30, 20, 10, 5] + [2] * 30)
    return frequencies, rng


def test_theorem_4_3_by_hand():
    frequencies, _ = small_data()
    profile = Profile.from_frequencies(frequencies, max_set_size=7, max_items_per_user=3)
    noise = calibrate(eps=np.array([0.5, 1.5]), delta=5e-6, max_items_per_user=3)
    scale, beta, pairs, items = np.array([5.0, 2.0]), 0.1, frequencies.sum(), frequencies.size
    for k in (1, 3, 12, 13, 42, 60):
        explicit = top_k_bound(profile, noise, k=k, scale=scale, beta=beta)
        tau = tau_u1(profile, noise, beta / 2).value
        by_hand = k / pairs * (tau + scale * np.log(2 * k * items / beta))
        np.testing.assert_allclose(explicit.value, by_hand, rtol=1e-13)
        np.testing.assert_array_equal(explicit.details["tau"], tau)
        for name, level in (("u1", tau_u1), ("u1_star", tau_u1_star)):
            sharp = top_k_bound(profile, noise, k=k, scale=scale, beta=beta, form="sharp", tau=name)
            tau = np.asarray(level(profile, noise, beta / 2).value)
            domain = [np.minimum(frequencies[:k], np.floor(t)).sum() / pairs for t in tau]
            np.testing.assert_allclose(sharp.details["domain"], domain, rtol=1e-13)
            peeled = peeling_loss_bound(items, k=k, scale=scale, beta=beta / 2, form="sharp")
            np.testing.assert_allclose(
                sharp.value, sharp.details["domain"] + peeled.value / pairs, rtol=1e-13
            )
            assert np.all(sharp.value <= explicit.value)
            assert sharp.metric == "top_k_missing_mass" and sharp.failure_probability == beta


@pytest.mark.parametrize("tau", ["u1", "u1_star"])
def test_theorem_4_3_by_simulation(tau):
    """One item per user: the domain is the items with N(x) + sigma Z > T, then peeling on it."""
    frequencies, rng = small_data()
    k, trials, beta = 5, 20_000, 0.2
    profile = Profile.from_frequencies(frequencies, max_set_size=1, max_items_per_user=1)
    noise = calibrate(eps=0.5, delta=5e-6, max_items_per_user=1)
    scale = peeling_scale(eps=0.5, delta=5e-6, k=k)
    size = (trials, frequencies.size)
    inside = frequencies + noise.sigma * rng.standard_normal(size) > noise.threshold
    noisy = np.where(inside, frequencies + rng.gumbel(scale=scale, size=size), -np.inf)
    chosen = np.argpartition(-noisy, k, axis=1)[:, :k]
    chosen = np.where(np.take_along_axis(inside, chosen, axis=1), chosen, -1)
    missing = loss(frequencies, chosen, k) / profile.num_pairs
    for form in ("explicit", "sharp"):
        bound = top_k_bound(profile, noise, k=k, scale=scale, beta=beta, form=form, tau=tau)
        assert (missing > bound.value).sum() <= binom.isf(1e-7, trials, beta)
    mean = top_k_lower_bound(profile, k=k, eps=1.0, delta=1e-5).value
    # The mean of [0, 1] variables is within 0.02 of theirs but for 2 exp(-2 * 0.02^2 * trials).
    assert missing.mean() >= mean - 0.02


def test_calibration_of_another_bound_is_refused():
    profile = Profile.from_frequencies([9, 8], max_set_size=3, max_items_per_user=2)
    noise = calibrate(eps=0.5, delta=5e-6, max_items_per_user=3)
    with pytest.raises(InvalidInput, match="max_items_per_user = 3: must be 2"):
        top_k_bound(profile, noise, k=1, scale=1.0, beta=0.1)


# ---- [L4]


def lp_loss(frequencies, k, eps, delta):
    """The knapsack by linear programming, item by item."""
    pi = optimal_selection_probability(frequencies, eps=eps, delta=delta)
    best = linprog(
        -frequencies.astype(float), A_ub=np.ones((1, frequencies.size)), b_ub=[k],
        bounds=list(zip(np.zeros(frequencies.size), pi, strict=True)), method="highs",
    )  # fmt: skip
    return (np.sort(frequencies)[::-1][:k].sum() + best.fun) / frequencies.sum()


def test_knapsack_is_the_linear_program():
    rng = np.random.default_rng(4)
    for _ in range(12):
        frequencies = rng.integers(1, 25, int(rng.integers(1, 20)))
        profile = Profile.from_frequencies(frequencies, max_set_size=1, max_items_per_user=1)
        eps, delta = np.array([0.0, 0.2, 1.0]), 1e-2
        for k in (1, 2, 5, 19, 30):
            bound = top_k_lower_bound(profile, k=k, eps=eps, delta=delta)
            for value, e in zip(bound.value, eps, strict=True):
                exact = lp_loss(frequencies, k, float(e), delta)
                assert value == pytest.approx(exact, rel=1e-9, abs=1e-12)
    assert (bound.tag, bound.side, bound.statistic) == ("[L4]", "lower", "mean")


def test_room_for_all_is_the_instance_optimum():
    profile = Profile.from_frequencies([40, 9, 9, 2, 1], max_set_size=1, max_items_per_user=1)
    eps = np.array([0.0, 0.1, 1.0, 5.0])
    whole = top_k_lower_bound(profile, k=5, eps=eps, delta=1e-3).value
    expected = instance_lower_bound(profile, eps=eps, delta=1e-3).value
    np.testing.assert_allclose(whole, expected, rtol=1e-13)
    single = top_k_lower_bound(profile, k=10**6, eps=1.0, delta=1e-3)
    assert single.value == pytest.approx(expected[2], rel=1e-13)


def test_no_sound_mechanism_is_better(sound_optimum):
    """The best of all mechanisms on tiny data, by linear programming, for top-k and its bound."""
    rng = np.random.default_rng(9)
    tightest = 0.0
    for _ in range(4):
        sets = [set(rng.choice(3, int(rng.integers(1, 3)), replace=False)) for _ in range(4)]
        data = UserItems.from_sets(sets)
        profile = Profile.from_user_items(data, max_items_per_user=3)
        named = [{int(i) for i in row} for row in np.split(data.items, data.offsets[1:-1])]
        for k, eps, delta in ((1, 0.5, 0.15), (2, 0.3, 0.1)):
            counts = data.frequencies
            best = sound_optimum(named, lambda s, c=counts: sum(c[x] for x in s), k, eps, delta)
            least = (np.sort(counts)[::-1][:k].sum() - best) / data.num_pairs
            bound = top_k_lower_bound(profile, k=k, eps=eps, delta=delta).value
            assert least >= bound - 1e-8
            tightest = max(tightest, bound / least)
    assert tightest > 0.7


# ---- hard data


def test_hard_frequency_is_the_largest_with_half():
    for eps, delta in product((0.0, 0.01, 0.3, 1.0, 1e5), (0.5, 0.25, 0.125, 1e-2, 1e-5, 1e-12)):
        level = hard_frequency(eps=eps, delta=delta)
        reached = optimal_selection_probability([level, level + 1], eps=eps, delta=delta)
        assert reached[0] <= 0.5 < reached[1] * (1 + 1e-12)
        k_star = float(selection_threshold(eps=eps, delta=delta))
        assert level == np.floor(k_star * (1 + 1e-12)) or abs(k_star - round(k_star)) < 1e-9


def test_hard_data_lose_half():
    for eps, delta in ((0.1, 1e-5), (1.0, 1e-5), (1.0, 1e-12), (3.0, 1e-3)):
        for k in (1, 7):
            bound = hard_top_k_bound(k=k, eps=eps, delta=delta)
            data = hard_selection_data(k, eps=eps, delta=delta)
            level = bound.details["frequency"]
            assert data.frequencies.tolist() == [level] * k
            assert data.num_users == k * level
            profile = Profile.from_user_items(data, max_items_per_user=1)
            exact = top_k_lower_bound(profile, k=k, eps=eps, delta=delta).value
            assert bound.value == 0.5 <= exact
            assert bound.details["exact"] == pytest.approx(exact, rel=1e-13)


# ---- bad input


@pytest.mark.parametrize(("name", "value"), [("k", 0), ("k", 1.5), ("beta", 1.0), ("scale", 0.0)])
def test_bad_input_is_named(name, value):
    point = {"k": 3, "scale": 1.0, "beta": 0.1, name: value}
    with pytest.raises(InvalidInput, match=f"{name} = "):
        peeling_loss_bound(10, **point)
    with pytest.raises(InvalidInput, match="num_items = .*whole number of at least 0"):
        peeling_loss_bound(-1, k=3, scale=1.0, beta=0.1)
    profile = Profile.from_frequencies([9, 8], max_set_size=3, max_items_per_user=2)
    noise = calibrate(eps=0.5, delta=5e-6, max_items_per_user=2)
    if name == "k" and value == 0:
        for call in (
            lambda: top_k_bound(profile, noise, **point),
            lambda: top_k_lower_bound(profile, k=0, eps=1.0, delta=1e-5),
            lambda: hard_top_k_bound(k=0, eps=1.0, delta=1e-5),
            lambda: hard_selection_data(0, eps=1.0, delta=1e-5),
        ):
            with pytest.raises(InvalidInput, match="k = 0: must be a whole number of at least 1"):
                call()
