"""The comparison of mechanisms: means against plain loops and enumerations, intervals, table."""

import functools
import itertools
import json
import math

import numpy as np
import polars as pl
import pytest
from scipy.stats import binom, norm

from experiments.bench.policies import PolicyLoopTrials
from experiments.cli import _compare, app
from experiments.comparison import (
    Estimate,
    above_by,
    compare,
    competitors,
    distances,
    is_private,
    is_private_policy,
    least,
)
from experiments.comparison import run as run_module
from experiments.comparison.medians import median_interval
from experiments.comparison.names import by_name
from experiments.comparison.subsets import Subsets
from experiments.comparison.trials import SubsetBatches, conditional_means
from experiments.plots.comparison import comparison_plot, released_plot
from experiments.statistics.means import mean_interval
from theory import (
    InvalidInput,
    Profile,
    UserItems,
    calibrate,
    instance_lower_bound,
    miss_probabilities,
)
from wgm_jax import registry
from wgm_jax.set_union.flows import known_two_rounds
from wgm_jax.set_union.policy_gaussian import PolicyGaussian
from wgm_jax.set_union.two_round_trials import TwoRoundTrials

DELTA = 0.01
# 36 users with up to three of six items; at these settings many items are neither sure nor lost.
SETS = [{0, 1, 2}] * 6 + [{0, 1}] * 7 + [{0}] * 5 + [{3, 4}] * 8 + [{2, 3}] * 5 + [{4}] * 3
SETS += [{0, 5}] * 2
DATA = UserItems.from_sets(SETS)
# Two users of three items are clipped at Delta0 = 2: nine pairs of kept sets.
CLIPPED = UserItems.from_sets([{0, 1}] * 4 + [{0, 1, 2}, {2}, {1, 2, 3}, {3}, {0}, {2}])


def noise(bound, eps=1.0, method="split"):
    return calibrate(eps=eps, delta=DELTA, max_items_per_user=bound, method=method)


def plain_policy(sets, calibration, num_items):
    """Policy Gaussian, l2 descent, user by user; weights and whether anybody keeps the item."""
    cap = calibration.threshold + 3 * calibration.sigma
    weights, seen = [0.0] * num_items, [False] * num_items
    for items in sets:
        gaps = {x: max(0.0, cap - weights[x]) for x in items}
        length = math.sqrt(sum(gap * gap for gap in gaps.values()))
        for x, gap in gaps.items():
            weights[x] += gap / max(1.0, length)
            seen[x] = True
    return weights, seen


def mean_of(weights, seen, calibration, data):
    """Mean missing mass and released items, Gaussian noise."""
    hit = [
        norm.sf((calibration.threshold - w) / calibration.sigma) if there else 0.0
        for w, there in zip(weights, seen, strict=True)
    ]
    return 1 - float(np.dot(data.frequencies, hit)) / data.num_pairs, sum(hit)


def only(data, label, bound, **options):
    [entry] = compare(
        data, eps=[1.0], delta=DELTA, max_items_per_user=[bound], mechanisms=[label], **options
    ).entries
    return entry


def test_the_wgm_has_its_exact_mean():
    for method, label in (("split", "wgm"), ("full", "wgm (full)")):
        entry = only(DATA, label, 2)
        profile = Profile.from_user_items(DATA, max_items_per_user=2)
        found = miss_probabilities(profile, noise(2, method=method))
        assert (entry.kind, entry.trials) == ("exact", 0)
        assert entry.missing_mass.mean == pytest.approx(found.mean_missing_mass, rel=1e-14)
        assert entry.released.mean == pytest.approx(6 - found.mean_missed, rel=1e-12)
    floor = instance_lower_bound(profile, eps=1.0, delta=DELTA).value
    assert entry.lower_bound == floor < entry.missing_mass.mean


def test_without_clipping_a_policy_is_exact():
    calibration = noise(7)
    sets = [sorted(items) for items in SETS]
    mass, count = mean_of(*plain_policy(sets, calibration, 6), calibration, DATA)
    assert 0.2 < mass < 0.8
    entry = only(DATA, "policy-gaussian", 7)
    assert entry.kind == "exact"
    assert entry.missing_mass.low == entry.missing_mass.high == entry.missing_mass.mean
    assert entry.missing_mass.mean == pytest.approx(mass, rel=1e-12)
    assert entry.released.mean == pytest.approx(count, rel=1e-12)


def test_trials_of_a_clipped_policy_have_the_conditional_means_of_all_kept_sets():
    calibration = noise(2)
    choices = [list(itertools.combinations(sorted(s), min(2, len(s)))) for s in rows_of(CLIPPED)]
    kinds = [
        mean_of(*plain_policy(kept, calibration, 4), calibration, CLIPPED)
        for kept in itertools.product(*choices)
    ]
    masses = np.array([mass for mass, _ in kinds])
    assert len(kinds) == 9 and np.ptp(masses) > 1e-3
    batches = SubsetBatches(CLIPPED, 2, num_trials=400, seed=5)
    [(trials, rows)] = list(batches)
    found = conditional_means(
        registry.get("policy-gaussian"), grid(calibration), batches, trials, rows
    )
    each = found.missing_mass[:, 0]
    nearest = np.abs(each[:, None] - masses).argmin(1)
    np.testing.assert_allclose(each, masses[nearest], rtol=1e-12)
    counts = np.array([count for _, count in kinds])
    np.testing.assert_allclose(found.num_released[:, 0], counts[nearest], rtol=1e-10)
    # All nine, equally often: each of 400 within the central 1 - 1e-8 of Bin(400, 1/9).
    seen = np.bincount(nearest, minlength=9)
    low, high = binom.ppf([5e-9, 1 - 5e-9], 400, 1 / 9)
    assert (seen >= low).all() and (seen <= high).all()


def test_two_rounds_against_all_outcomes_of_the_first():
    calibration = noise(3)
    mechanism = registry.get("dp-sips-two-rounds")
    parameters = mechanism.parameters(calibration)
    first, second = (parameters.round(index) for index in range(2))
    sets = rows_of(DATA)

    def hits(sets, now):
        weights = np.zeros(6)
        for items in filter(None, sets):
            weights[list(items)] += len(items) ** -0.5
        return np.where(weights > 0, norm.sf((now.threshold - weights) / now.scale), 0.0)

    now = hits(sets, first)
    mass, outcomes = 0.0, []
    for gone in itertools.product([False, True], repeat=6):
        gone = np.array(gone)
        later = hits([[x for x in items if not gone[x]] for items in sets], second)
        given = float(DATA.frequencies @ np.where(gone, 0, 1 - later)) / DATA.num_pairs
        outcomes.append(given)
        mass += float(np.prod(np.where(gone, now, 1 - now))) * given
    batches = SubsetBatches(DATA, 3, num_trials=500, seed=1)
    [(trials, rows)] = list(batches)
    found = conditional_means(mechanism, grid(calibration), batches, trials, rows)
    each = found.missing_mass[:, 0]
    assert np.abs(each[:, None] - np.array(outcomes)).min(1).max() < 1e-12
    low, high = mean_interval(each, alpha=1e-7)
    assert low <= mass <= high and high - low < 0.2


def rows_of(data):
    return [sorted(row) for row in np.split(data.items.tolist(), data.offsets[1:-1])]


def grid(calibration):
    return calibrate(
        eps=np.array([calibration.eps]),
        delta=calibration.delta,
        max_items_per_user=calibration.max_items_per_user,
    )


def test_two_rounds_of_the_flow_by_conditional_means():
    [entry] = compare(
        DATA, eps=[1.0], delta=DELTA, max_items_per_user=[4], mechanisms=["bernoulli-flow-2"],
        num_trials=7, seed=3,
    ).entries  # fmt: skip
    trials = TwoRoundTrials(by_name(DATA), known_two_rounds(1.0, DELTA, 4), seed=3)
    mass, released = np.transpose([trials.conditional_means(trial) for trial in range(7)])
    assert (entry.kind, entry.trials) == ("integrated", 7)
    assert entry.missing_mass == Estimate.of(mass, exact=False)
    assert entry.released == Estimate.of(released, exact=False)


def test_trials_are_a_function_of_seed_and_number(monkeypatch):
    mechanism = registry.get("dp-sips-two-rounds")
    both = calibrate(eps=np.array([1.0, 0.5]), delta=DELTA, max_items_per_user=2)

    def masses(seed=0, trials=6):
        batches = SubsetBatches(CLIPPED, 2, num_trials=trials, seed=seed)
        parts = [conditional_means(mechanism, both, batches, *part) for part in batches]
        return np.concatenate([part.missing_mass for part in parts])

    whole = masses()
    assert not np.array_equal(masses(seed=1), whole)
    # The same in batches, each in small steps.
    monkeypatch.setattr("experiments.comparison.trials._MOST_SLOTS", 60)
    monkeypatch.setattr("experiments.comparison.trials._MEMORY", 1)
    np.testing.assert_allclose(masses(), whole, rtol=1e-14)
    np.testing.assert_allclose(masses(trials=3), whole[:3], rtol=1e-14)


def test_subsets_after_deletion_are_uniform_over_what_is_left():
    subsets = Subsets(UserItems.from_sets([{0, 1, 2, 3, 4}, {1}, {0, 1, 2, 3}]), 2)
    alive = subsets.items != 1
    drawn = [subsets.draw(np.random.default_rng([3, i]), alive) for i in range(600)]
    empty = subsets.template.num_items
    assert all(row[2] == empty for row in drawn)  # the second user has nothing left
    pairs = {row[0:2].tobytes() for row in drawn}
    assert len(pairs) == 6 and all(row[0] < row[1] for row in drawn)
    each = np.unique([row[3:5] for row in drawn], axis=0, return_counts=True)[1]
    assert len(each) == 3  # {0, 2}, {0, 3}, {2, 3}
    low, high = binom.ppf([5e-9, 1 - 5e-9], 600, 1 / 3)
    assert (each >= low).all() and (each <= high).all()


def test_greedy_goes_by_names_whatever_the_order_of_the_file():
    sets = [["c", "b"]] + [["b", "a"]] * 30 + [["c", "a"]] * 5
    other = [sorted(items) for items in sets]
    first = [UserItems.from_sets(s).item_labels for s in (sets, other)]
    assert first == [["c", "b", "a"], ["b", "c", "a"]]
    assert by_name(UserItems.from_sets(sets)).item_labels == ["a", "b", "c"]
    masses = [
        only(UserItems.from_sets(s), "policy-greedy", 2).missing_mass.mean for s in (sets, other)
    ]
    assert masses[0] == masses[1]
    numbers = UserItems.from_csr([0, 2, 1], [0, 2, 3])
    assert by_name(numbers) is numbers


def test_median_interval_is_the_narrowest_of_its_kind():
    for trials in range(1, 60):
        low, high = median_interval(np.arange(float(trials)), alpha=0.05)
        if trials < 6:
            assert (low, high) == (-math.inf, math.inf)
            continue
        below = int(low)  # order statistics left out at either end
        assert high == trials - 1 - below
        assert 2 * binom.cdf(below, trials, 0.5) <= 0.05 < 2 * binom.cdf(below + 1, trials, 0.5)


def test_competitors():
    default = [c.label for c in competitors()]
    assert default[:2] == ["wgm", "wgm (full)"]
    assert "policy-gaussian-l1 (full)" in default
    # Where all of delta goes to new items anyhow, or a proof is missing, there is no other one.
    assert not {"policy-laplace (full)", "dp-sips (full)"} & set(default)
    assert not any("published" in label or "positive" in label for label in default)
    assert not any(label.startswith("bernoulli") for label in default)  # by name only
    [specimen] = competitors(["policy-greedy-published"])
    assert not specimen.private and specimen.sequential
    with pytest.raises(
        InvalidInput, match=r"mechanism = policy-laplace \(full\): must be one of wgm, "
    ):
        competitors(["policy-laplace (full)"])
    with pytest.raises(InvalidInput, match="must name at least one mechanism"):
        competitors([])


@functools.cache
def small():
    return compare(
        DATA, dataset="small", eps=[1.0, 0.5], delta=DELTA, max_items_per_user=["max", 1],
        mechanisms=["wgm", "wgm (full)", "policy-gaussian", "policy-greedy-published"],
        num_trials=20, seed=2,
    )  # fmt: skip


def test_rows_have_distances_to_the_best_private_mechanism():
    rows = small().rows()
    assert len(rows) == 2 * 4 * 2
    assert {row["max_items_per_user"] for row in rows} == {1, 3}
    assert all(row["max_items_is_max"] == (row["max_items_per_user"] == 3) for row in rows)
    for row in rows:
        alike = [r for r in rows if (r["eps"], r["max_items_per_user"]) ==
                 (row["eps"], row["max_items_per_user"]) and r["private"]]  # fmt: skip
        best = min(r["missing_mass"] for r in alike)
        assert row["above_best"] == pytest.approx(row["missing_mass"] / best - 1, abs=1e-14)
        assert row["above_best_low"] <= row["above_best"] <= row["above_best_high"]
        assert row["times_lower_bound"] == row["missing_mass"] / row["lower_bound"]
    # What does not clip is the same at every Delta0, and run once.
    for eps in (1.0, 0.5):
        one, other = small().of("policy-greedy-published", eps)
        assert one.missing_mass == other.missing_mass and one.kind == "exact"


def test_standings():
    found = small()
    best = least(found, 0.5, is_private)
    assert best is not None and best.competitor.private
    assert best.missing_mass.mean == min(
        e.missing_mass.mean for e in found.entries if e.eps == 0.5 and e.competitor.private
    )
    for at in distances(found, "wgm", 1.0, is_private_policy):
        assert at.other.competitor.label == "policy-gaussian"
        assert at.entry.setting == at.other.setting
        ratio = at.entry.missing_mass.mean / at.other.missing_mass.mean
        assert at.above.mean == pytest.approx(ratio - 1, abs=1e-14)
    assert distances(found, "nobody", 1.0, is_private) == []
    assert least(found, 7.0, is_private) is None
    assert math.isnan(above_by(Estimate(0.1, 0.1, 0.1), Estimate(0.0, 0.0, 0.0)).mean)


def test_other_mechanisms_are_simulated(monkeypatch):
    # A secret random order of users is not integrated out.
    monkeypatch.setattr(registry, "get", lambda name, **task: PolicyGaussian(order="random"))
    monkeypatch.setattr(run_module, "is_integrable", lambda mechanism: False)
    entry = only(DATA, "policy-gaussian", 3, num_trials=40)
    assert (entry.kind, entry.trials) == ("simulated", 40)
    assert 0 <= entry.missing_mass.low <= entry.missing_mass.mean <= entry.missing_mass.high <= 1


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"eps": []}, "eps = : must hold at least one number"),
        ({"max_items_per_user": []}, "max_items_per_user = : must hold at least one"),
        ({"max_items_per_user": [0]}, "max_items_per_user = 0.0: must be"),
        ({"num_trials": 0}, "num_trials = 0: must be a whole number of at least 1"),
        ({"delta": 0.7}, "delta = 0.7: must be in"),
        ({"seed": -1}, "seed = -1: must be"),
        ({"eps": [0.0], "mechanisms": ["policy-laplace"]}, "above 0 for Laplace"),
    ],
)
def test_bad_input(wrong, message):
    given = {"eps": [1.0], "delta": DELTA, "max_items_per_user": [1], "mechanisms": ["wgm"]}
    with pytest.raises(InvalidInput, match=message):
        compare(DATA, **(given | wrong))


def test_the_python_loop_of_the_benchmark_is_the_same_policy():
    calibration = noise(3)
    expected, _ = plain_policy(rows_of(DATA), calibration, 6)
    loop = PolicyLoopTrials(DATA, calibration)
    found = loop.weights()
    assert [found[item] for item in range(6)] == pytest.approx(expected, rel=1e-14)
    exact, _ = mean_of(expected, [True] * 6, calibration, DATA)
    low, high = mean_interval(loop.missing_masses(2000), alpha=1e-7)
    assert low <= exact <= high
    weights = PolicyLoopTrials(CLIPPED, noise(1)).weights()
    assert sum(weights.values()) == pytest.approx(CLIPPED.num_users)  # one item, step 1


# ---- plots


def test_every_number_is_plotted_and_returned():
    frame = small().to_frame()
    figure, data = comparison_plot(frame, title="$x_%")
    for panel, column in (("missing mass", "missing_mass"), ("distance", None)):
        rows = data.filter((pl.col("panel") == panel) & (pl.col("series") != "[L2]"))
        assert rows.height == frame.height
        joined = rows.join(
            frame, left_on=["eps", "series", "x"],
            right_on=["eps", "mechanism", "max_items_per_user"],
        )  # fmt: skip
        if column is not None:
            assert joined["y"].to_list() == joined[column].to_list()
            continue
        own = frame.filter(pl.col("mechanism") == "wgm")
        base = {(r["eps"], r["max_items_per_user"]): r["missing_mass"] for r in own.to_dicts()}
        for row in joined.to_dicts():
            of = base[row["eps"], row["x"]]
            assert row["y"] == pytest.approx(100 * (row["missing_mass"] / of - 1), abs=1e-9)
    assert [axes.get_title() for axes in figure.axes[:2]] == [
        r"$\varepsilon$ = 1", r"$\varepsilon$ = 0.5",
    ]  # fmt: skip
    for axes, eps in zip(figure.axes[:2], (1.0, 0.5), strict=True):
        lines = {line.get_label(): line for line in axes.lines}
        for label in frame["mechanism"].unique():
            of = frame.filter((pl.col("mechanism") == label) & (pl.col("eps") == eps))
            expected = of.sort("max_items_per_user")["missing_mass"].to_list()
            assert list(lines[label].get_ydata()) == expected
        assert lines["[L2]"].get_ydata()[0] == frame.filter(pl.col("eps") == eps)["lower_bound"][0]
    texts = [text.get_text() for axes in figure.axes for text in axes.texts]
    assert "policy-greedy-published (not private)" in texts and "[L2]" in texts
    assert [t.get_text() for t in figure.axes[2].get_xticklabels()] == ["1", "max"]


def test_released_items_are_plotted_and_returned():
    frame = small().to_frame()
    figure, data = released_plot(frame.filter(pl.col("mechanism") != "wgm"))
    assert set(data["panel"]) == {"released"}  # no reference, no distances
    figure, data = released_plot(frame)
    rows = data.filter(pl.col("panel") == "released")
    assert rows["y"].to_list() == frame["released"].to_list()
    lines = {line.get_label(): line for line in figure.axes[0].lines}
    own = frame.filter((pl.col("mechanism") == "wgm") & (pl.col("eps") == 1.0))
    expected = own.sort("max_items_per_user")["released"].to_list()
    assert list(lines["wgm"].get_ydata()) == expected
    with pytest.raises(InvalidInput, match="must have rows"):
        comparison_plot(frame.head(0))


# ---- command line


@pytest.fixture(scope="module", autouse=True)
def _registered():
    """The command, also where the application does not have it yet."""
    if not any(command.name == "compare" for command in app.app.registered_commands):
        _compare.register(app.app)


@pytest.fixture(scope="module")
def csv(tmp_path_factory):
    path = tmp_path_factory.mktemp("compare") / "shop.csv"
    rows = [f"u{user},i{item}" for user, items in enumerate(SETS) for item in sorted(items)]
    path.write_text("user,item\n" + "\n".join(rows) + "\n")
    return path


COMMON = ("--eps", "1,0.5", "--delta", DELTA, "--max-items-per-user", "max,1")
NAMES = ("--mechanism", "wgm,wgm (full)", "--mechanism", "policy-gaussian,policy-greedy-published")


def test_command(wgm, csv, tmp_path):
    status, out, err = wgm(
        "compare", csv, *COMMON, *NAMES, "--seed", 2, "--json", "--out", tmp_path / "out"
    )
    assert status == 0, err
    told = json.loads(out)
    assert (told["dataset"], told["users"], told["items"], told["pairs"]) == ("shop", 36, 6, 70)
    assert (told["trials"], told["seed"]) == (20, 2)
    assert told["max_items_per_user"] == [1, 3] and told["eps"] == [1.0, 0.5]
    expected = small().rows()
    assert len(told["entries"]) == len(expected)
    for seen, known in zip(told["entries"], expected, strict=True):
        assert seen["mechanism"] == known["mechanism"]
        for name in ("eps", "max_items_per_user", "missing_mass", "released"):
            assert seen[name] == pytest.approx(known[name], rel=1e-12)
    [one, half] = told["standings"]
    assert one["best"]["missing_mass"] <= one["wgm"][0]["best"]["missing_mass"]
    assert [own["mechanism"] for own in half["wgm"]] == ["wgm", "wgm (full)"]
    above = one["wgm"][0]["above_policies"]
    assert above["than"]["mechanism"] == "policy-gaussian" and above["low"] <= above["share"]
    names = {path.name for path in (tmp_path / "out").iterdir()}
    plots = {f"{s}.{t}" for s in ("missing_mass", "released") for t in ("svg", "pdf", "csv")}
    assert names == plots | {"compare.parquet", "compare.csv", "manifest.json"}
    table = pl.read_parquet(tmp_path / "out" / "compare.parquet")
    assert table["missing_mass"].to_list() == [row["missing_mass"] for row in told["entries"]]


def test_command_in_words(wgm, csv, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    status, out, err = wgm("compare", csv, *COMMON, *NAMES)
    assert status == 0, err
    assert "policy-greedy-published *" in out and "* claims no privacy" in out
    assert "[L2]" in out and "Least: " in out and "wgm at equal Δ0" in out
    tables = [line for line in out.splitlines() if line.startswith(("wgm ", "[L2]", "mechanism"))]
    assert tables and all(len(line) <= 80 for line in tables if "equal" not in line)
    shown = f"{100 * small().of('policy-gaussian', 1.0)[1].missing_mass.mean:.2f}"
    assert any(line.startswith("policy-gaussian ") and shown in line for line in out.splitlines())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--mechanism", "nope"), "wgm: --mechanism nope: mechanism must be one of wgm,"),
        (("--mechanism", ","), "wgm: --mechanism : mechanism must name at least one"),
        (("--trials", "0"), "wgm: --trials 0: trials must be a whole number of at least 1"),
        (("--trials", "2.5"), "wgm: --trials 2.5: trials must be a whole number"),
        (("--max-items-per-user", "0"), "wgm: --max-items-per-user 0: max_items_per_user must"),
        (("--eps", ","), "wgm: --eps : eps must be a number"),
        (("--eps", "0"), "wgm: --eps 0: eps must be above 0 for Laplace"),
        (("--delta", "2"), "wgm: --delta 2: delta must be in (0, 0.5]"),
    ],
)
def test_bad_options_are_one_line(wgm, options, message):
    given = {"--eps": "1", "--delta": "1e-5", "--max-items-per-user": "1"} | {
        options[0]: options[1]
    }
    arguments = [part for pair in given.items() for part in pair]
    status, out, err = wgm("compare", "no-such-file.csv", *arguments)
    assert (status, out) == (2, "")
    assert err.startswith(message) and err.count("\n") == 1
