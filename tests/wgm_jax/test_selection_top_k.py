import itertools
from collections import Counter
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.stats import binomtest

from theory import InvalidInput, UserItems
from wgm_jax.selection.deck import Deck
from wgm_jax.selection.joint import Joint, LossLaw
from wgm_jax.selection.laws import gumbel_order, laplace_order
from wgm_jax.selection.limited_domain import LimitedDomain
from wgm_jax.selection.noise import EXPONENTIAL, GUMBEL, LAPLACE, trial_keys, uniform
from wgm_jax.selection.one_shot import Ranking, one_shot
from wgm_jax.selection.permute_and_flip import PermuteAndFlip, chances
from wgm_jax.selection.selector import Selector
from wgm_jax.selection.top_k import OneshotLaplace, Peeling, PeelingState, approximate_scale

NUMBER = 12_000
KEYS = trial_keys(11, 0, NUMBER)


def data_of(*counts):
    """One item per user."""
    return UserItems.from_sets([{x} for x, count in enumerate(counts) for _ in range(count)])


def prepare(selector: Any, data, *, k, eps=1.0, delta=1e-2, bound=1):
    return selector.prepare(data, eps=eps, delta=delta, k=k, max_items_per_user=bound)


def sequences(chosen):
    """Rows as tuples; what follows the first -1 is -1."""
    filled = chosen >= 0
    assert (filled[:, 1:] <= filled[:, :-1]).all()
    return [tuple(x for x in row if x >= 0) for row in chosen.tolist()]


def assert_follows(chosen, law):
    """Every sequence as often as its probability says: exact binomial tests at 1e-9 each."""
    assert sum(law.values()) == pytest.approx(1, abs=1e-12)
    seen = Counter(sequences(chosen))
    assert set(seen) <= set(law)
    for sequence, probability in law.items():
        found = binomtest(seen[sequence], len(chosen), min(probability, 1.0))
        assert found.pvalue > 1e-9, (sequence, probability, seen[sequence])


# ---- golden values of the note on baselines


def test_golden_values_of_peeling():
    state = PeelingState(Ranking.of(np.array([5, 3, 1]), 2.0), 2)
    law = Peeling().law(state, None)
    for sequence, value in (((0, 1), 0.48633), ((1, 0), 0.21556), ((0, 2), 0.17891)):
        assert law[sequence] == pytest.approx(value, abs=5e-6)
    for k, scale in ((1, 1.0), (10, 7.7485), (200, 34.6522)):
        ranking = prepare(Peeling(), data_of(5, 3, 1), k=k, delta=1e-5).ranking
        assert 5 / ranking.scores[0] == pytest.approx(scale, abs=5e-5)
    tight = prepare(Peeling("tight"), data_of(5, 3, 1), k=200, delta=1e-5).ranking
    assert 5 / tight.scores[0] == pytest.approx(28.6034, abs=5e-5)


def test_golden_values_of_permute_and_flip():
    assert chances(np.array([5.0, 3.0]))[0] == pytest.approx(0.93233, abs=5e-6)
    state = prepare(PermuteAndFlip(), data_of(5, 3), k=1)
    assert PermuteAndFlip().law(state, None)[(0,)] == pytest.approx(0.93233, abs=5e-6)


def test_golden_values_of_joint():
    law = Joint().law(prepare(Joint(), data_of(5, 3, 1), k=2), None)
    golden: dict[Any, float] = {(0, 1): 0.42118, (2, 0): 0.05700, (2, 1): 0.05700}
    for sequence, probability in law.items():
        assert probability == pytest.approx(golden.get(sequence, 0.15494), abs=5e-6)


def test_golden_values_of_limited_domain():
    data = data_of(5, 3, 1)
    for k, local, offset in ((1, 1, 13.2061), (10, 0.118949, 122.973), (200, 0.0265979, 659.112)):
        state = prepare(LimitedDomain(), data, k=k, delta=1e-5)
        assert state.eps_round == pytest.approx(local, abs=1e-6)
        assert state.offset == pytest.approx(offset, rel=1e-5)
    infinite = prepare(LimitedDomain(k_bar=np.inf), data, k=10, delta=1e-5, bound=100)
    assert infinite.offset == pytest.approx(142.331, rel=1e-5)
    # The item just outside, and none beyond the data.
    _, stop = prepare(LimitedDomain(), data, k=1, delta=1e-5).domain(data.frequencies)
    assert stop == pytest.approx(3 + 13.2061, abs=1e-4)
    state = prepare(LimitedDomain(multiple=3), data, k=1, delta=1e-5)
    assert state.domain(data.frequencies)[1] == pytest.approx(state.offset)


def test_golden_value_of_laplace():
    state = prepare(OneshotLaplace("approximate"), data_of(1, 1), k=10, eps=0.2, delta=1e-5)
    assert approximate_scale(state, 1000) == pytest.approx(542.89, abs=5e-3)
    assert prepare(OneshotLaplace(), data_of(1, 1), k=10, eps=0.5).scale == 20


# ---- laws against slow oracles


def test_laplace_order_against_quadrature():
    scores = {0: 1.3, 1: 0.4, 2: 0.4, 3: -2.0}
    laws: Any = {item: stats.laplace(score) for item, score in scores.items()}
    law = laplace_order(scores, 2)
    assert len(law) == 12 and sum(law.values()) == pytest.approx(1, abs=1e-13)
    for first, second in ((0, 1), (1, 0), (3, 0), (1, 2)):
        rest = [laws[x] for x in scores if x not in (first, second)]

        def integrand(x, first=first, second=second, rest=rest):
            return (
                laws[second].pdf(x) * laws[first].sf(x) * np.prod([other.cdf(x) for other in rest])
            )

        expected = integrate.quad(
            integrand, -50, 50, points=[-2, 0.4, 1.3], epsabs=1e-13, limit=500
        )[0]
        assert law[first, second] == pytest.approx(expected, abs=1e-11)


def test_laplace_order_of_distant_scores():
    law = laplace_order({0: 900.0, 1: 0.0, 2: -30.0}, 3)
    assert law[0, 1, 2] == pytest.approx(1 - laplace_order({0: 30.0, 1: 0.0}, 1)[(1,)], rel=1e-12)
    assert laplace_order({}, 2) == {(): 1.0}


def test_permute_and_flip_against_all_orders():
    scores = np.array([2.0, 1.5, 1.5, 0.2])
    expected = np.zeros(4)
    for order in itertools.permutations(range(4)):
        alive = 1 / 24
        for item in order:
            expected[item] += alive * np.exp(scores[item] - 2)
            alive *= 1 - np.exp(scores[item] - 2)
    np.testing.assert_allclose(chances(scores), expected, rtol=1e-13)


@pytest.mark.parametrize("seed", range(8))
def test_the_law_of_joint_losses_against_all_sequences(seed):
    rng = np.random.default_rng(seed)
    counts = np.sort(rng.integers(1, 7, rng.integers(2, 7)))[::-1].astype(np.int64)
    k = int(rng.integers(1, counts.size + 1))
    weights = Counter()
    for places in itertools.permutations(range(counts.size), k):
        losses = counts[:k] - counts[list(places)]
        weights[int(losses.max()), int(np.argmax(losses))] += np.exp(-0.35 * losses.max())
    law = LossLaw.of(counts, k, 0.7)
    probabilities = np.diff(law.cumulative, prepend=0)
    ours = dict(
        zip(zip(law.values.tolist(), law.rows.tolist(), strict=True), probabilities, strict=True)
    )
    total = sum(weights.values())
    assert set(ours) == set(weights)
    for outcome, weight in weights.items():
        assert ours[outcome] == pytest.approx(weight / total, abs=1e-13)


# ---- what is drawn against the law

CASES = [
    (Peeling(), {}),
    (Peeling("tight"), {}),
    (OneshotLaplace(), {}),
    (OneshotLaplace("approximate"), {"eps": 0.2}),
    (PermuteAndFlip(), {}),
    (Joint(), {}),
    (LimitedDomain(), {"eps": 3.0, "delta": 0.5}),
    (LimitedDomain(multiple=2), {"eps": 3.0, "delta": 0.5}),
    (LimitedDomain(k_bar=np.inf), {"eps": 3.0, "delta": 0.5}),
]
TIES = data_of(4, 2, 4, 1)


@pytest.mark.parametrize(("selector", "options"), CASES)
@pytest.mark.parametrize("k", [1, 3])
def test_draws_follow_the_law(selector, options, k):
    assert isinstance(selector, Selector)
    state = prepare(selector, TIES, k=k, **options)
    chosen = selector.select(state, KEYS, None)
    assert chosen.shape == (NUMBER, k) and chosen.dtype == np.int32
    law = selector.law(state, None)
    least = 2 if isinstance(selector, LimitedDomain) else 4
    assert len([p for p in law.values() if p > 0.01]) >= least
    assert_follows(chosen, law)


KNOWN_DOMAIN = [case for case in CASES if not isinstance(case[0], LimitedDomain)]


@pytest.mark.parametrize(("selector", "options"), KNOWN_DOMAIN)
def test_draws_on_domains_that_differ_between_trials(selector, options):
    """Domains of 0, 1, 2 and 3 items, at k = 2."""
    number = 4000
    state = prepare(selector, TIES, k=2, **options)
    domains = [(), (3,), (0, 1), (0, 2, 3)]
    mask = np.zeros((number, 4), bool)
    for i, domain in enumerate(domains):
        mask[i::4, list(domain)] = True
    chosen = selector.select(state, KEYS[:number], mask)
    for i, domain in enumerate(domains):
        law = selector.law(state, domain)
        assert all(len(sequence) == min(2, len(domain)) for sequence in law)
        assert_follows(chosen[i::4], law)


SETS = UserItems.from_sets([{0, 1, 2}, {0, 1}, {0}, {0, 1, 3}, {3}])


@pytest.mark.parametrize(
    "selector",
    [LimitedDomain(k_bar=np.inf), LimitedDomain(clip=True), OneshotLaplace(clip=True)],
)
def test_draws_with_clipped_users(selector):
    state = prepare(selector, SETS, k=2, eps=3.0, delta=0.5, bound=1)
    assert state.clipped is not None
    assert_follows(selector.select(state, KEYS[:4000], None), selector.law(state, None))
    whole = prepare(selector, SETS, k=2, eps=3.0, delta=0.5, bound=3)
    assert whole.clipped is None


def test_clipping_needs_less_noise():
    assert prepare(OneshotLaplace(clip=True), SETS, k=5, eps=0.5, bound=2).scale == 4
    assert prepare(OneshotLaplace(clip=True), SETS, k=1, eps=0.5, bound=2).scale == 2


@pytest.mark.parametrize(("selector", "options"), CASES)
def test_more_wanted_than_there_is(selector, options):
    state = prepare(selector, TIES, k=7, **options)
    chosen = selector.select(state, KEYS[:50], None)
    assert chosen.shape == (50, 7)
    for sequence in sequences(chosen):
        assert len(set(sequence)) == len(sequence)
        assert len(sequence) == 4 or isinstance(selector, LimitedDomain)


# ---- privacy of the laws


def spent(first, second, eps):
    """The hockey-stick divergence of two laws."""
    return sum(max(0.0, p - np.exp(eps) * second.get(s, 0.0)) for s, p in first.items())


@pytest.mark.parametrize(("selector", "options"), [*CASES, (OneshotLaplace(clip=True), {})])
def test_neighbours_are_hidden(selector: Any, options):
    """All pairs of data sets with one more user, among many small ones; exact laws."""
    eps, delta, k = options.get("eps", 1.0), options.get("delta", 1e-2), 2
    promised = delta if isinstance(selector, (Peeling, LimitedDomain)) else 0.0
    if selector == OneshotLaplace("approximate"):
        promised = delta
    rng = np.random.default_rng(0)
    largest, at_half = 0.0, 0.0
    for _ in range(10):
        number = int(rng.integers(2, 5))
        sets = [set(np.flatnonzero(row).tolist()) or {0} for row in rng.random((number, 4)) < 0.6]
        # All four items are public, whoever holds them.
        public = [] if isinstance(selector, LimitedDomain) else [{0}, {1}, {2}, {3}]
        laws: list[Any] = []
        for rows in (sets, sets[:-1]):
            data = UserItems.from_sets([*public, *rows])
            state = prepare(selector, data, k=k, eps=eps, delta=delta, bound=2)
            law = selector.law(state, None)
            names = np.asarray(data.item_labels)
            laws.append({tuple(names[list(s)].tolist()): p for s, p in law.items()})
        for one, other in (laws, laws[::-1]):
            largest = max(largest, spent(one, other, eps))
            at_half = max(at_half, spent(one, other, eps / 2))
    assert largest <= promised + 1e-12
    if promised == 0 and not isinstance(selector, Joint):
        assert at_half > 0.01  # the test would see twice the noise missing


# ---- one noise per item


@pytest.mark.parametrize("law", [GUMBEL, LAPLACE, EXPONENTIAL])
@pytest.mark.parametrize("scale", [0.01, 30.0, 1e6])
def test_the_bar_changes_nothing(law, scale):
    """Scoring every item is the slow way."""
    rng = np.random.default_rng(1)
    counts = np.floor(3000 / np.arange(1, 4001) ** 0.8).astype(np.int64)
    rng.shuffle(counts)
    mask = rng.random((20, 4000)) < rng.random((20, 1))
    mask[0], mask[1, 5:] = False, False
    for k, domain in ((1, None), (7, None), (300, None), (7, mask), (300, mask), (5000, mask)):
        ranking = Ranking.of(counts, scale)
        found = one_shot(ranking, law, k, KEYS[:20], domain)
        noise = law.quantile(uniform(KEYS[:20, None], 0, np.arange(4000)))
        noisy = counts / scale + noise
        if domain is not None:
            noisy[~domain] = -np.inf
        order = np.argsort(-noisy, axis=1, kind="stable")[:, :k]
        scores = np.take_along_axis(noisy, order, axis=1)
        expected = np.full((20, k), -1)
        expected[:, : order.shape[1]] = np.where(scores > -np.inf, order, -1)
        np.testing.assert_array_equal(found.items, expected)
        finite = found.scores[:, : order.shape[1]]
        np.testing.assert_array_equal(finite, scores)


def test_trials_do_not_depend_on_their_neighbours():
    counts = np.arange(6000, 0, -1)
    ranking = Ranking.of(counts, 500.0)
    whole = one_shot(ranking, GUMBEL, 50, KEYS[:400], None).items
    parts = [
        one_shot(ranking, GUMBEL, 50, KEYS[i : i + 130], None).items for i in (0, 130, 260, 390)
    ]
    np.testing.assert_array_equal(np.concatenate(parts)[:400], whole)


def test_counts_of_millions_keep_their_noise():
    """In float32 a million has steps of 1/16: one count more would not be seen in proportion."""
    counts = np.array([10**6, 10**6 + 1, 10**6 + 1])
    scores = Ranking.of(counts, 1.0).scores
    assert scores.dtype == np.float64 and scores.tolist() == [10**6 + 1, 10**6 + 1, 10**6]
    state = PeelingState(Ranking.of(counts, 1.0), 1)
    law = Peeling().law(state, None)
    assert law[(0,)] == pytest.approx(1 / (1 + 2 * np.e), rel=1e-12)
    assert_follows(Peeling().select(state, KEYS, None), law)
    noisy = one_shot(state.ranking, GUMBEL, 1, KEYS[:100], None).scores - 1e6
    assert np.unique(noisy * 2**20 % 1).size > 90


def test_common_noise_over_k_and_eps():
    """The item with the largest noise gets it at every scale, and in every domain."""
    data = data_of(*[3] * 50)
    firsts = [
        Peeling().select(prepare(Peeling(), data, k=k, eps=eps), KEYS[:100], None)[:, 0]
        for k in (1, 20)
        for eps in (0.1, 1.0)
    ]
    for other in firsts[1:]:
        np.testing.assert_array_equal(other, firsts[0])


# ---- decks


def test_decks_are_uniform_permutations():
    deck = Deck(NUMBER, 4)
    ones = np.ones(NUMBER, np.int64)
    drawn = np.stack(
        [deck.draw(i, i * ones, 4 * ones, uniform(KEYS, i, np.array([-1]))) for i in range(4)],
        axis=1,
    )
    assert_follows(drawn, dict.fromkeys(itertools.permutations(range(4)), 1 / 24))


# ---- bad input


@pytest.mark.parametrize("selector", [case[0] for case in CASES[:-2]])
@pytest.mark.parametrize("k", [0, -1, 2.5, "3", None])
def test_k_is_a_whole_number(selector, k):
    with pytest.raises(InvalidInput) as error:
        prepare(selector, TIES, k=k, eps=0.2)
    assert error.value.name == "k"


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: LimitedDomain(multiple=0.5), "multiple"),
        (lambda: LimitedDomain(multiple=2, k_bar=7), "multiple"),
        (lambda: LimitedDomain(k_bar=np.inf, clip=False), "clip"),
        (lambda: OneshotLaplace("approximate", clip=True), "clip"),
        (lambda: prepare(LimitedDomain(k_bar=2), TIES, k=3), "k_bar"),
        (lambda: prepare(LimitedDomain(k_bar=3.5), TIES, k=3), "k_bar"),
        (lambda: prepare(LimitedDomain(multiple=1.5), TIES, k=3), "k_bar"),
        (lambda: prepare(OneshotLaplace("approximate"), TIES, k=3, eps=0.21), "eps"),
        (lambda: prepare(OneshotLaplace("approximate"), TIES, k=3, eps=0.2, delta=0.06), "delta"),
        (lambda: prepare(Peeling(), TIES, k=3, eps=0.0), "eps"),
        (lambda: prepare(PermuteAndFlip(), TIES, k=3, eps=0.0), "eps"),
        (lambda: prepare(OneshotLaplace(), TIES, k=3, eps=0.0), "eps"),
        (lambda: gumbel_order(dict.fromkeys(range(20), 0.0), 5), "domain"),
    ],
)
def test_bad_arguments_are_named(make, name):
    with pytest.raises(InvalidInput) as error:
        make()
    assert error.value.name == name


def test_limited_domain_finds_its_own_domain():
    state = prepare(LimitedDomain(), TIES, k=2)
    with pytest.raises(InvalidInput, match="finds its own"):
        LimitedDomain().select(state, KEYS[:2], np.ones((2, 4), bool))
    with pytest.raises(InvalidInput, match="finds its own"):
        LimitedDomain().law(state, (0, 1))
