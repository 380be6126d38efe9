"""Plans against brute force: slow weight laws, every candidate tried, users really copied."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

from experiments.planning import (
    Unreachable,
    best_contribution_bound,
    contribution_curve,
    least_eps,
    least_pairs,
    least_scale,
    zipf_classes,
)
from experiments.planning.search import Search, around, index_of, number_of
from theory import (
    InvalidInput,
    Profile,
    UserItems,
    calibrate,
    hard_zipf_frequencies,
    instance_lower_bound,
)
from theory.certificates import certificate
from theory.miss_probability import miss_probabilities

# tests/ is no package that every way of starting pytest can import from.
_PATH = Path(__file__).resolve().parents[1] / "oracle_wgm.py"
_SPEC = importlib.util.spec_from_file_location("oracle_wgm", _PATH)
oracle = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(oracle)

PRIVACY = {"eps": 1.0, "delta": 1e-3}


def sets_of(seed, num_users=120, num_items=40, largest=12):
    """Skewed sets, so that clipping matters and E[MM] has its valley inside."""
    rng = np.random.default_rng(seed)
    chances = np.arange(1, num_items + 1) ** -1.2
    sizes = rng.integers(1, largest + 1, num_users)
    return [
        rng.choice(num_items, size=size, replace=False, p=chances / chances.sum()).tolist()
        for size in sizes
    ]


def slow_mean(sets, *, eps, delta, max_items_per_user, method="split"):
    """E[MM] item by item from the law of its weight."""
    noise = calibrate(eps=eps, delta=delta, max_items_per_user=max_items_per_user, method=method)
    num_items = max(max(items) for items in sets) + 1
    base, laws = oracle.weight_laws(sets, num_items, max_items_per_user)
    missed = pairs = 0
    for item in range(num_items):
        holders = sum(item in items for items in sets)
        weights = base[item] + np.arange(laws[item].size) / np.sqrt(max_items_per_user)
        miss = norm.cdf((noise.threshold - weights) / noise.sigma)
        miss[weights == 0] = 1
        missed += holders * float(laws[item] @ miss)
        pairs += holders
    return missed / pairs


def below(value):
    """A lower bound at reading precision must stay one."""
    shown = float(f"{value:.3g}")
    return f"{shown if shown <= value else shown - 10 ** (np.floor(np.log10(value)) - 2):.3g}"


def classes_of(sets):
    return UserItems.from_sets(sets).item_classes


# ---- the best contribution bound


@pytest.mark.parametrize("method", ["split", "full"])
@pytest.mark.parametrize(("seed", "eps"), [(0, 0.5), (3, 0.1)])
def test_every_bound_is_evaluated_and_the_best_is_found(seed, eps, method):
    sets, setting = sets_of(seed), {"eps": eps, "delta": 1e-3}
    slow = {
        name: [slow_mean(sets, **setting, max_items_per_user=k, method=name) for k in range(1, 13)]
        for name in ("split", "full")
    }
    plan = best_contribution_bound(classes_of(sets), **setting, method=method)
    curve = plan.curve
    assert curve.at.tolist() == list(range(1, 13)) and curve.complete
    np.testing.assert_allclose(curve.split, slow["split"], rtol=1e-10)
    np.testing.assert_allclose(curve.full, slow["full"], rtol=1e-10)
    best = {name: 1 + int(np.argmin(values)) for name, values in slow.items()}
    assert 1 < best[method] < 12  # the valley is inside, or nothing was tested
    other = "full" if method == "split" else "split"
    assert (plan.answer, plan.other_answer) == (best[method], best[other])
    assert plan.value == pytest.approx(slow[method][plan.answer - 1], rel=1e-10)
    assert plan.other.mean == pytest.approx(slow[other][plan.answer - 1], rel=1e-10)
    assert plan.outcome.calibration == calibrate(
        **setting, max_items_per_user=plan.answer, method=method
    )
    floor = instance_lower_bound(
        Profile.from_user_items(UserItems.from_sets(sets), max_items_per_user=1), **setting
    ).value
    assert curve.lower_bound.tolist() == [floor] * 12
    assert plan.outcome.oracle_gap == plan.value / floor


def test_refinement_tries_both_neighbours_of_the_best():
    sets = sets_of(3, num_users=80, num_items=150, largest=110)
    classes = classes_of(sets)
    whole = contribution_curve(classes, **PRIVACY, complete=True)
    part = best_contribution_bound(classes, **PRIVACY, complete=False)
    tried = set(part.curve.at.tolist())
    assert not part.curve.complete and len(tried) < 80
    for answer in (part.answer, part.other_answer):
        assert {answer - 1, answer + 1} <= tried
    # Here the curves have one valley, so that the answers are the best of all.
    assert part.answer == whole.at[np.argmin(whole.split)]
    assert part.other_answer == whole.at[np.argmin(whole.full)]
    assert 1 < part.answer < classes.max_set_size
    np.testing.assert_array_equal(part.curve.split, whole.split[part.curve.at - 1])


def test_a_best_bound_at_an_end_needs_one_neighbour():
    # All sets but one are singletons, and its items are missed anyway.
    sets = [[0]] * 12 + [[1]] * 9 + [list(range(2, 300))]
    plan = best_contribution_bound(classes_of(sets), **PRIVACY, complete=False)
    assert plan.answer == 1 and 2 in plan.curve.at


def test_certified_quantiles():
    sets = sets_of(5)
    classes = classes_of(sets)
    plan = best_contribution_bound(classes, **PRIVACY, statistic="quantile", beta=0.1)
    expected = []
    for bound in range(1, 13):
        noise = calibrate(**PRIVACY, max_items_per_user=bound)
        profile = Profile.from_classes(classes, max_items_per_user=bound)
        expected.append(certificate(miss_probabilities(profile, noise), 0.1).value)
    np.testing.assert_allclose(plan.curve.certificate, expected, rtol=1e-12)
    assert plan.answer == 1 + int(np.argmin(expected))
    assert plan.value == plan.outcome.certificate == pytest.approx(min(expected), rel=1e-12)
    assert plan.outcome.mean < plan.value and plan.other_answer is None
    # The mean is what it is without certificates.
    mean = best_contribution_bound(classes, **PRIVACY)
    np.testing.assert_array_equal(plan.curve.split, mean.curve.split)
    assert mean.curve.certificate is None
    assert mean.curve.to_frame().columns == ["max_items_per_user", "split", "full", "lower_bound"]
    assert plan.curve.to_frame()["certificate"].to_list() == plan.curve.certificate.tolist()


def test_a_target_for_the_best_bound_is_only_compared():
    classes = classes_of(sets_of(0))
    free = best_contribution_bound(classes, **PRIVACY)
    asked = best_contribution_bound(classes, **PRIVACY, target=free.value * 0.99)
    assert asked.answer == free.answer and asked.target < asked.value
    with pytest.raises(Unreachable, match="no private algorithm can reach this"):
        best_contribution_bound(classes, **PRIVACY, target=free.outcome.lower_bound * 0.99)


# ---- the least eps


@pytest.mark.parametrize(("method", "bound"), [("split", 3), ("full", 3), ("split", 12)])
def test_least_eps_by_scanning(method, bound):
    sets = sets_of(0)

    def mean(eps):
        return slow_mean(sets, eps=eps, delta=1e-3, max_items_per_user=bound, method=method)

    plan = least_eps(
        classes_of(sets), target=0.3, delta=1e-3, max_items_per_user=bound, method=method
    )
    found = plan.answer
    assert found == float(f"{found:.5g}")
    before = found - 10 ** (np.floor(np.log10(found)) - 4)
    assert mean(found) <= 0.3 < mean(before)
    assert found - before < 1.1e-4 * found
    assert all(mean(eps) > 0.3 for eps in np.geomspace(1e-4, before, 40))
    assert plan.value == pytest.approx(mean(found), rel=1e-10)
    # The curve goes through the answer, over four decades.
    curve = plan.curve
    assert found in curve.at and curve.axis == "eps" and not curve.complete
    assert curve.at[-1] / curve.at[0] == pytest.approx(1e4, rel=1e-3)
    np.testing.assert_allclose(getattr(curve, method), [mean(eps) for eps in curve.at], rtol=1e-9)
    other = least_eps(
        classes_of(sets),
        target=0.3,
        delta=1e-3,
        max_items_per_user=bound,
        method="full" if method == "split" else "split",
    )
    assert (plan.other_answer, other.other_answer) == (other.answer, found)


def test_least_eps_for_a_certificate():
    classes = classes_of(sets_of(0))
    plan = least_eps(
        classes, target=0.4, delta=1e-3, max_items_per_user=4, statistic="quantile", beta=0.2
    )
    profile = Profile.from_classes(classes, max_items_per_user=4)

    def sure(eps):
        noise = calibrate(eps=eps, delta=1e-3, max_items_per_user=4)
        return certificate(miss_probabilities(profile, noise), 0.2).value

    assert sure(plan.answer) <= 0.4 < sure(plan.answer * (1 - 1.1e-4))
    assert plan.value == sure(plan.answer)


def test_an_eps_that_is_never_enough():
    classes = classes_of([*sets_of(0), [40], [41]])
    with pytest.raises(Unreachable) as error:
        least_eps(classes, target=1e-6, delta=1e-3, max_items_per_user=1)
    floor = instance_lower_bound(
        Profile.from_classes(classes, max_items_per_user=1), eps=1e3, delta=1e-3
    ).value
    assert floor > 1e-6
    assert str(error.value) == (
        "target = 1e-06: no private algorithm can reach this: the least possible is "
        f"{below(floor)} (at eps = 1000, delta = 0.001, N = {classes.num_pairs})"
    )
    # Reachable for a mechanism that knows the data, but not for this one.
    with pytest.raises(Unreachable, match=r"is not reached up to eps = 1000 .*: E\[MM\] there is"):
        least_eps(classes, target=floor * 1.01, delta=1e-3, max_items_per_user=1)


def test_the_floor_of_a_quantile_is_lower_than_that_of_the_mean():
    """MM may be 1 with probability beta: E[MM] <= q (1 - beta) + beta."""
    classes = classes_of([[0]] * 3 + [[item] for item in range(1, 20)])
    setting = {"eps": 0.5, "delta": 1e-3, "beta": 0.3, "statistic": "quantile"}
    floor = instance_lower_bound(
        Profile.from_classes(classes, max_items_per_user=1), eps=0.5, delta=1e-3
    ).value
    least = (floor - 0.3) / 0.7
    with pytest.raises(Unreachable, match="no private algorithm can reach this with probability"):
        best_contribution_bound(classes, target=least - 1e-6, **setting)
    best_contribution_bound(classes, target=least + 1e-6, **setting)


def test_an_eps_that_is_more_than_enough():
    sets = [[0]] * 10**5
    plan = least_eps(classes_of(sets), target=0.9, delta=0.4, max_items_per_user=1)
    assert plan.answer == 1e-4 and plan.value < 0.9


# ---- how much data


def test_least_scale_by_copying_users():
    sets = sets_of(2, num_users=40)
    for method, bound in (("split", 3), ("full", 12)):
        plan = least_scale(
            classes_of(sets), target=0.15, **PRIVACY, max_items_per_user=bound, method=method
        )
        means = [
            slow_mean(sets * times, **PRIVACY, max_items_per_user=bound, method=method)
            for times in range(1, plan.answer + 1)
        ]
        assert plan.answer > 2
        assert means[-1] <= 0.15 < min(means[:-1])
        assert plan.value == pytest.approx(means[-1], rel=1e-10)
        assert plan.outcome.num_pairs == plan.answer * sum(map(len, sets))
        shown = plan.curve.at <= plan.answer
        np.testing.assert_allclose(
            getattr(plan.curve, method)[shown],
            [means[times - 1] for times in plan.curve.at[shown]],
            rtol=1e-9,
        )
    enough = least_scale(classes_of(sets), target=0.999, **PRIVACY, max_items_per_user=3)
    assert enough.answer == enough.other_answer == 1


def zipf_mean(num_pairs, s, constant, *, eps, delta, method="split"):
    noise = calibrate(eps=eps, delta=delta, max_items_per_user=1, method=method)
    counts = hard_zipf_frequencies(constant, s, num_pairs)
    return float(norm.cdf((noise.threshold - counts) / noise.sigma) @ counts) / num_pairs


@pytest.mark.parametrize(
    ("s", "constant", "target", "method"),
    [(1.5, 1.0, 0.05, "split"), (2.0, 3.0, 0.03, "full")],
)
def test_least_pairs(s, constant, target, method):
    setting = {"eps": 1.0, "delta": 1e-6, "method": method}
    plan = least_pairs(s=s, constant=constant, target=target, **setting)
    found = plan.answer
    assert zipf_mean(found, s, constant, **setting) <= target
    step = 10 ** max(len(str(found)) - 5, 0)
    assert zipf_mean(found - step, s, constant, **setting) > target
    assert plan.outcome.num_pairs == found and found in plan.curve.at
    assert plan.value == pytest.approx(zipf_mean(found, s, constant, **setting), rel=1e-10)
    other = least_pairs(s=s, constant=constant, target=target, eps=1.0, delta=1e-6)
    assert other.answer == (plan.other_answer if method == "full" else found)


def test_least_pairs_with_sets():
    setting = {"s": 1.5, "constant": 30.0, "set_size": 7, "eps": 1.0, "delta": 1e-6}
    plan = least_pairs(**setting, target=0.3, max_items_per_user=3)
    assert plan.answer % 7 == 0 and plan.curve.at[0] % 7 == 0
    judged = [
        miss_probabilities(
            Profile.from_classes(zipf_classes(1.5, 30.0, pairs, 7), max_items_per_user=3),
            calibrate(eps=1.0, delta=1e-6, max_items_per_user=3),
        ).mean_missing_mass
        for pairs in (plan.answer, plan.answer - 7 * 10 ** max(len(str(plan.answer // 7)) - 5, 0))
    ]
    assert judged[0] <= 0.3 < judged[1]
    assert plan.value == judged[0]
    # By default all items of a set are kept.
    assert least_pairs(**setting, target=0.3).outcome.calibration.max_items_per_user == 7


def test_pairs_that_are_never_enough():
    with pytest.raises(Unreachable, match=r"no private algorithm can reach .* N = 1e\+15\)"):
        least_pairs(s=5.0, target=1e-10, eps=0.01, delta=1e-12)
    with pytest.raises(Unreachable, match=r"is not reached up to N = 1e\+15"):
        least_pairs(s=5.0, target=1.5e-10, eps=0.01, delta=1e-12)


def test_zipf_classes_are_the_hard_profile():
    classes = zipf_classes(1.5, 2.0, 1000)
    expected = hard_zipf_frequencies(2.0, 1.5, 1000)
    assert np.repeat(classes.frequencies, classes.multiplicity).tolist() == expected.tolist()
    assert classes.sizes.max() == 1
    sets = zipf_classes(1.5, 30.0, 1000, 4)
    assert set(sets.sizes.tolist()) == {4} and sets.num_pairs == 1000
    assert sets.frequencies.max() <= 250


# ---- searching


def test_numbers_of_five_digits():
    indices = [*range(1, 500), *range(99_900, 100_100), *range(189_900, 190_100, 7), 10**6]
    found = [number_of(index) for index in indices]
    expected = [*range(1, 500), *range(99_900, 100_000), *range(100_000, 101_000, 10)]
    assert found[: len(expected)] == expected
    assert all(float(f"{number:.4e}") == number for number in found)
    assert [index_of(number) for number in found] == indices
    for number in (123_456, 99_999_999, 10**15 + 1):
        below = number_of(index_of(number))
        assert below <= number < number_of(index_of(number) + 1)


@pytest.mark.parametrize("seed", range(20))
def test_search_finds_the_first_of_a_falling_value(seed):
    rng = np.random.default_rng(seed)
    root, power = 10 ** rng.uniform(0, 15), rng.uniform(0.2, 3)
    tried = []

    def value(number):
        tried.append(number)
        return (root / number) ** power

    search = Search(value, 1.0, 1, 10**15, str, None)
    found = search.least(int(10 ** rng.uniform(0, 15)), [10.0, 1.05][seed % 2])
    assert value(found) <= 1
    assert found == 1 or value(number_of(index_of(found) - 1)) > 1
    assert len(tried) < 45 and len(set(tried[:-2])) == len(tried) - 2  # nothing twice


@pytest.mark.parametrize("value", [lambda n: 2.0, lambda n: 0.5, lambda n: float(n < 77)])
def test_search_at_the_ends_and_over_a_jump(value):
    search = Search(value, 0.7, 10, 1000, str, None)
    expected = {2.0: None, 0.5: 10, 1.0: 77}[value(50)]
    for guess in (1, 10, 50, 500, 1000, 10**6):
        assert search.least(guess, 10.0) == expected


def test_search_of_a_value_that_is_not_falling_ends_at_a_crossing():
    rng = np.random.default_rng(0)
    noise = rng.uniform(0.9, 1.1, 2001)
    search = Search(lambda n: 300 / n * noise[n], 1.0, 1, 2000, str, None)
    found = search.least(1500, 10.0)
    assert 300 / found * noise[found] <= 1 < 300 / (found - 1) * noise[found - 1]


def test_search_says_how_far_it_is():
    said = []
    Search(lambda n: 100 / n, 1.0, 1, 10**6, "n = {}".format, lambda *a: said.append(a)).least(
        1, 9.0
    )
    assert [done for done, _, _ in said] == list(range(len(said)))
    assert all(done < total for done, total, _ in said) and said[0][2] == "n = 1"


def test_numbers_around_an_answer():
    near = around(12_345_000, 1, 10**8, (1e-2, 1e2), 2)
    assert 12_345_000 in near and near == sorted(set(near)) and near[-1] == 10**8
    assert near[0] == 123_450
    assert around(1, 1, 10, (0.1, 10.0), 1) == [1, 10]


# ---- bad input


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("target", 0.0),
        ("target", 1.0),
        ("target", float("nan")),
        ("beta", 0.0),
        ("beta", 1.0),
        ("delta", 0.0),
        ("method", "half"),
        ("statistic", "median"),
    ],
)
def test_bad_input_is_refused_by_every_question(name, value):
    classes = zipf_classes(1.5, 1.0, 100)
    setting = {"target": 0.9, "eps": 1.0, "delta": 1e-3, name: value}
    bound = {"max_items_per_user": 1}
    without_eps = {key: part for key, part in setting.items() if key != "eps"}
    for ask in (
        lambda: best_contribution_bound(classes, **setting),
        lambda: least_eps(classes, **without_eps, **bound),
        lambda: least_scale(classes, **setting, **bound),
        lambda: least_pairs(s=1.5, **setting),
    ):
        with pytest.raises(InvalidInput) as error:
            ask()
        assert error.value.name == name and not isinstance(error.value, Unreachable)


def test_bad_zipf_data_are_refused():
    with pytest.raises(InvalidInput, match=r"set_size = 6: must be at most 5: .* larger constant"):
        zipf_classes(1.5, 1.0, 10**6 + 2, 6)
    with pytest.raises(InvalidInput, match="multiple of the set size, 3"):
        zipf_classes(1.5, 1.0, 1000, 3)
    with pytest.raises(InvalidInput, match="set_size = 9: must be at most 6"):
        least_pairs(s=1.5, set_size=9, target=0.5, eps=1.0, delta=1e-3)
    with pytest.raises(InvalidInput, match="max_items_per_user"):
        least_eps(zipf_classes(1.5, 1.0, 9), target=0.9, delta=1e-3, max_items_per_user=0)
