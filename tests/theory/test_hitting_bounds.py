from itertools import combinations, product

import mpmath
import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import binom

import theory.hitting_bounds as module
from theory import (
    InvalidInput,
    Profile,
    UserItems,
    calibrate,
    greedy_hitting_set,
    hard_hits_bound,
    hard_selection_data,
    hits_bound,
    hits_upper_bound,
    lemma_c7,
    lemma_c8,
    opt_upper_bound,
    optimal_hits,
    optimal_selection_probability,
    tau_u1,
)
from theory.hitting_optimum import greedy_share


def random_data(rng, users, items, share):
    held = rng.random((users, items)) < share
    held[np.arange(users), rng.integers(0, items, users)] = True
    return UserItems.from_codes(*np.nonzero(held))


def sets_of(data):
    return [frozenset(row.tolist()) for row in np.split(data.items, data.offsets[1:-1])]


def hits_of(sets, chosen):
    return sum(bool(s & set(chosen)) for s in sets)


def best_by_hand(sets, domain, k):
    return max(hits_of(sets, c) for c in combinations(domain, min(k, len(domain))))


# ---- Opt and greedy


def test_greedy_is_the_slow_greedy():
    rng = np.random.default_rng(1)
    for _ in range(60):
        data = random_data(rng, int(rng.integers(1, 30)), int(rng.integers(1, 12)), 0.25)
        sets, k = sets_of(data), int(rng.integers(1, 15))
        items, hits = greedy_hitting_set(data, k)
        chosen = []
        for item, count in zip(items.tolist(), hits.tolist(), strict=True):
            left = [x for x in range(data.num_items) if x not in chosen]
            if not left:
                assert item == -1 and count == data.num_users
                continue
            gains = [hits_of(sets, [*chosen, x]) for x in left]
            assert item == left[int(np.argmax(gains))]
            chosen.append(item)
            assert count == max(gains)
        assert items.dtype == np.int32 and items.shape == hits.shape == (k,)


def test_optimum_and_its_bounds_by_brute_force():
    rng = np.random.default_rng(2)
    beyond_greedy = 0
    for _ in range(25):
        data = random_data(rng, int(rng.integers(1, 25)), int(rng.integers(1, 9)), 0.3)
        sets, ks = sets_of(data), np.arange(1, data.num_items + 3)
        bound = opt_upper_bound(data, ks)
        for k, upper in zip(ks.tolist(), bound.value, strict=True):
            best = best_by_hand(sets, range(data.num_items), k)
            found = optimal_hits(data, k)
            assert found.exact and found.hits == best == hits_of(sets, found.items.tolist())
            assert found.items.size == min(k, data.num_items)
            greedy = greedy_hitting_set(data, k)[1][-1]
            assert greedy >= float(greedy_share(k)) * best - 1e-9
            beyond_greedy += greedy < best
            for name in ("users", "frequencies", "greedy", "residual"):
                assert bound.details[name][k - 1] >= best
            assert upper == opt_upper_bound(data, k).value >= best
            assert bound.details["greedy_hits"][k - 1] == greedy
    assert beyond_greedy > 0


def test_greedy_at_its_worst():
    """Greedy takes the item across both halves, which leaves only the rest of one of them."""
    sets = [{"left", "big"}] * 4 + [{"right", "big"}] * 4 + [{"left"}] * 2 + [{"right"}] * 2
    data = UserItems.from_sets(sets)
    best = optimal_hits(data, 2)
    assert best.exact and best.hits == 12
    assert greedy_hitting_set(data, 2)[1].tolist() == [8, 10]


def test_a_time_limit_still_gives_a_bound():
    data = random_data(np.random.default_rng(5), 300, 120, 0.05)
    quick = optimal_hits(data, 10, time_limit=1e-3)
    assert greedy_hitting_set(data, 10)[1][-1] <= quick.hits <= quick.upper
    assert quick.upper <= opt_upper_bound(data, 10).value


def test_greedy_share():
    assert greedy_share(1) == 1
    np.testing.assert_allclose(greedy_share([2, 3]), [3 / 4, 19 / 27], rtol=1e-15)
    assert greedy_share(10**12) == pytest.approx(1 - np.exp(-1), rel=1e-11)


# ---- Lemma C.7, C.8


def test_lemma_c7_by_all_sequences(user_peeling_law):
    rng = np.random.default_rng(6)
    tightest = 0.0
    for _ in range(12):
        groups = random_data(rng, 6, 5, 0.35)
        sets = [s for s in sets_of(groups) for _ in range(int(rng.integers(1, 9)))]
        domain = list(range(int(rng.integers(1, groups.num_items + 1))))
        k, scale = int(rng.integers(1, 4)), 0.4
        best = best_by_hand(sets, domain, k)
        law = user_peeling_law(sets, domain, k, scale)
        for beta, form in product((0.05, 0.4), ("explicit", "sharp", "printed")):
            bound = lemma_c7(best, len(domain), k=k, scale=scale, beta=beta, form=form).value
            below = sum(p for s, p in law.items() if hits_of(sets, s) < bound - 1e-9)
            assert below <= beta
            tightest = max(tightest, bound / best)
    assert tightest > 0.8


def test_lemma_c7_forms_by_hand():
    for k, domain, best, scale, beta in ((1, 9, 50, 2.0, 0.1), (8, 300, 4000, 5.0, 0.01)):
        point = {"k": k, "scale": scale, "beta": beta}
        share = 1 - (1 - 1 / k) ** k
        explicit = lemma_c7(best, domain, **point).value
        assert explicit == pytest.approx(share * (best - k * scale * np.log(k * domain / beta)))
        printed = lemma_c7(best, domain, **point, form="printed").value
        loss = 2 * k * scale * np.log(2 * domain * k / beta)
        assert printed == pytest.approx((1 - np.exp(-1)) * best - loss)
        sharp = lemma_c7(best, domain, **point, form="sharp").value
        assert printed < explicit <= sharp * (1 + 1e-12)
        assert lemma_c7(best, k, **point, form="sharp").value == best
        assert lemma_c7(0, 0, **point).value == 0


@pytest.mark.parametrize("k", [1, 2, 5, 12])
@pytest.mark.parametrize("beta", [0.5, 0.05, 1e-6])
def test_quantile_of_weighted_exponentials(k, beta):
    """The tail of a sum of exponentials of different rates, by its partial fractions."""
    weights = np.power(1 - 1 / k, np.arange(k - 1, -1, -1.0))
    value = module._weighted_quantile(weights, beta)
    with mpmath.workdps(60):
        exact = [(1 - mpmath.mpf(1) / k) ** (k - i) if k > 1 else mpmath.mpf(1)
                 for i in range(1, k + 1)]  # fmt: skip

        def tail(x):
            return sum(
                mpmath.exp(-x / w) * mpmath.fprod(w / (w - v) for v in exact if v != w)
                for w in exact
            )

        assert tail(value) <= beta * (1 + 1e-12)
        assert tail(value / 1.6) > beta  # Chernoff costs less than that


def test_sharp_form_is_never_below_the_explicit_one():
    for k, domain, beta in product((1, 2, 10, 200, 5000), (10, 250, 10**6), (0.3, 0.01, 1e-9)):
        best = np.array([10.0, 1e3, 1e5, 1e7])
        point = {"k": k, "scale": 7.0, "beta": beta}
        sharp = lemma_c7(best, domain, **point, form="sharp").value
        assert np.all(sharp >= lemma_c7(best, domain, **point).value * (1 - 1e-12))


def test_lemma_c8_on_every_domain():
    rng = np.random.default_rng(11)
    for _ in range(6):
        data = random_data(rng, 20, 6, 0.25)
        sets, counts = sets_of(data), data.frequencies
        for bits in product((False, True), repeat=data.num_items):
            domain = np.flatnonzero(bits)
            outside = counts[~np.array(bits)]
            tau = int(outside.max()) if outside.size else 0
            for k in (1, 3):
                best = best_by_hand(sets, range(data.num_items), k)
                inside = best_by_hand(sets, domain.tolist(), k) if domain.size else 0
                assert inside >= lemma_c8(best, k=k, tau=tau).value


# ---- [H1]


def test_theorem_4_5_by_hand():
    profile = Profile.from_frequencies(
        [4000, 3000, 2000, 1000, 10, 3], max_set_size=5, max_items_per_user=2
    )
    noise = calibrate(eps=np.array([0.5, 2.0]), delta=5e-6, max_items_per_user=2)
    scale, beta, best = np.array([9.0, 2.0]), 0.1, np.array([8000, 7900])
    for k in (1, 3, 6):
        bound = hits_bound(profile, noise, optimum=best, k=k, scale=scale, beta=beta)
        tau = tau_u1(profile, noise, beta / 2).value
        left = best - k * tau - k * scale * np.log(2 * k * 6 / beta)
        share = 1 - (1 - 1 / k) ** k
        np.testing.assert_allclose(bound.value, share * np.maximum(left, 0), rtol=1e-12)
        sharp = hits_bound(
            profile, noise, optimum=best, k=k, scale=scale, beta=beta, form="sharp", tau="u1_star"
        )
        assert np.all(sharp.value >= bound.value)
        assert (sharp.tag, sharp.metric, sharp.side) == ("[H1]", "hits", "lower")
    assert np.any(bound.value > 0)


def test_theorem_4_5_by_simulation():
    """Users with two items at most, nothing clipped: every item's noise and rounds in NumPy."""
    rng = np.random.default_rng(13)
    items, k, trials, beta = 12, 3, 4000, 0.3
    chances = 1 / np.arange(1, items + 1) ** 0.7
    first = rng.choice(items, 4000, p=chances / chances.sum())
    second = rng.choice(items, 4000, p=chances / chances.sum())
    data = UserItems.from_codes(np.tile(np.arange(4000), 2), np.concatenate((first, second)))
    profile = Profile.from_user_items(data, max_items_per_user=2)
    noise = calibrate(eps=0.5, delta=5e-6, max_items_per_user=2)
    scale = 12.0
    held = np.zeros((data.num_users, items))
    held[np.repeat(np.arange(data.num_users), data.set_sizes), data.items] = 1
    heights = held.T @ (1 / np.sqrt(data.set_sizes))
    inside = heights + noise.sigma * rng.standard_normal((trials, items)) > noise.threshold
    # Users by set: one class per pair of items.
    kinds, times = np.unique(held, axis=0, return_counts=True)
    left = np.tile(times.astype(float), (trials, 1))
    for _ in range(k):
        noisy = left @ kinds + rng.gumbel(scale=scale, size=(trials, items))
        chosen = np.where(inside, noisy, -np.inf).argmax(axis=1)
        inside[np.arange(trials), chosen] = False
        left[kinds[:, chosen].T > 0] = 0
    hits = data.num_users - left.sum(axis=1)
    best = optimal_hits(data, k)
    assert best.exact
    for form, tau in product(("explicit", "sharp"), ("u1", "u1_star")):
        bound = hits_bound(
            profile, noise, optimum=best.hits, k=k, scale=scale, beta=beta, form=form, tau=tau
        ).value
        assert (hits < bound).sum() <= binom.isf(1e-7, trials, beta)
        assert 0 < bound < best.hits


# ---- [L5]


def degrees_by_hand(data):
    sets = sets_of(data)
    return np.array([sum(bool(s & other) for other in sets) for s in sets])


def test_degrees(monkeypatch):
    rng = np.random.default_rng(14)
    for chunk in (module._CHUNK, 40):
        monkeypatch.setattr(module, "_CHUNK", chunk)
        for _ in range(10):
            data = random_data(rng, int(rng.integers(1, 40)), int(rng.integers(1, 30)), 0.07)
            users = np.flatnonzero(rng.random(data.num_users) < 0.8)
            exact = degrees_by_hand(data)[users]
            got = module._degrees(data, users)
            assert np.all(got >= exact)
            work = np.add.reduceat(data.frequencies[data.items], data.offsets[:-1])[users]
            assert np.all((got == exact)[work <= chunk])
    monkeypatch.setattr(module, "_MOST_NEIGHBOURS", 0)
    bound = module._degrees(data, users)
    assert np.all(bound >= exact) and np.all(bound <= data.num_users)
    assert np.any(bound > exact)


def test_instance_form_by_hand():
    rng = np.random.default_rng(15)
    for _ in range(10):
        data = random_data(rng, 40, 25, 0.04)
        sets, degrees, k = sets_of(data), degrees_by_hand(data), 6
        eps, delta = np.array([0.0, 0.4, 1.5]), 0.02
        bound = hits_upper_bound(data, k=k, eps=eps, delta=delta)
        for index, e in enumerate(eps):
            pi = optimal_selection_probability(np.arange(41), eps=float(e), delta=delta)
            by_items = [sum(pi[data.frequencies[x]] for x in s) for s in sets]
            users = sum(min(1, pi[d], b) for d, b in zip(degrees, by_items, strict=True))
            assert bound.details["users"][index] == pytest.approx(users, rel=1e-12)
            room, released = float(k), 0.0
            for count in np.sort(data.frequencies)[::-1]:
                share = min(pi[count], room)
                room, released = room - share, released + count * share
            assert bound.details["released"][index] == pytest.approx(released, rel=1e-12)
            least = min(users, released, opt_upper_bound(data, k).value)
            assert bound.value[index] == pytest.approx(least, rel=1e-12)


def test_no_sound_mechanism_hits_more(sound_optimum):
    """The best of all mechanisms on tiny data, by linear programming; users alone decide here."""
    rng = np.random.default_rng(17)
    ratios = []
    for _ in range(6):
        data = random_data(rng, 4, 3, 0.3)
        for k, eps, delta in ((1, 0.4, 0.1), (3, 0.7, 0.05), (2, 0.2, 0.2)):
            sets = sets_of(data)
            best = sound_optimum(sets, lambda s, sets=sets: hits_of(sets, s), k, eps, delta)
            bound = hits_upper_bound(data, k=k, eps=eps, delta=delta)
            assert best <= bound.value + 1e-8
            ratios.append(best / bound.value)
    assert max(ratios) > 0.999 and min(ratios) > 0.4


def test_user_peeling_on_a_private_domain_hits_no_more(peeling_law):
    """Exact mean. One item per user: independent items in the domain, and counts that stay."""
    counts, k = np.array([12, 30, 45, 60, 70]), 2
    data = UserItems.from_codes(np.arange(counts.sum()), np.repeat(np.arange(5), counts))
    noise = calibrate(eps=0.5, delta=5e-6, max_items_per_user=1)
    inside = ndtr((counts - noise.threshold) / noise.sigma)
    mean = 0.0
    for bits in product((0, 1), repeat=5):
        found = counts[np.flatnonzero(bits)]
        chance = np.prod(np.where(bits, inside, 1 - inside))
        law = peeling_law(found, k, 4.0)
        mean += chance * sum(p * found[list(chosen)].sum() for chosen, p in law.items())
    bound = hits_upper_bound(data, k=k, eps=1.0, delta=1e-5).value
    assert 0.9 * bound < mean <= bound


def test_hard_data():
    for eps, delta, k in ((0.1, 1e-5, 3), (1.0, 1e-5, 20), (3.0, 1e-3, 1)):
        bound = hard_hits_bound(k=k, eps=eps, delta=delta)
        data = hard_selection_data(k, eps=eps, delta=delta)
        assert bound.details["optimum"] == data.num_users
        assert bound.value == data.num_users / 2
        instance = hits_upper_bound(data, k=k, eps=eps, delta=delta).value
        assert instance <= bound.value
        assert bound.details["exact"] == pytest.approx(instance, rel=1e-12)


# ---- bad input


@pytest.mark.parametrize("k", [0, -1, 1.5])
def test_bad_k_is_named(k):
    data = UserItems.from_sets([{1, 2}, {1}])
    for call in (
        lambda: opt_upper_bound(data, k),
        lambda: lemma_c7(5, 3, k=k, scale=1.0, beta=0.1),
        lambda: lemma_c8(5, k=k, tau=1.0),
        lambda: hits_upper_bound(data, k=k, eps=1.0, delta=1e-5),
        lambda: hard_hits_bound(k=k, eps=1.0, delta=1e-5),
        lambda: greedy_hitting_set(data, k),
        lambda: optimal_hits(data, k),
    ):
        if k == 1.5:  # the annotation `int` refuses it first in this suite
            continue
        with pytest.raises(InvalidInput, match=f"k = {k}.*: must be a whole number of at least 1"):
            call()


def test_other_bad_input():
    profile = Profile.from_frequencies([9, 8], max_set_size=3, max_items_per_user=2)
    noise = calibrate(eps=0.5, delta=5e-6, max_items_per_user=2)
    with pytest.raises(InvalidInput, match="optimum = -1: must be a finite number"):
        hits_bound(profile, noise, optimum=-1, k=1, scale=1.0, beta=0.1)
    with pytest.raises(InvalidInput, match="tau = nan"):
        lemma_c8(5, k=1, tau=np.nan)
    with pytest.raises(InvalidInput, match="time_limit = 0.0"):
        optimal_hits(UserItems.from_sets([{1}]), 1, time_limit=0.0)
