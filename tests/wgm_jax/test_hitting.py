"""Hitting sets: exact laws, two paths of one definition, and what stopping early gives away.

Every p-value below is of an exact binomial test against LEVEL; there are fewer than 200 of them.
"""

import math
from itertools import permutations

import numpy as np
import pytest
from scipy import stats

from theory import UserItems
from theory._check import InvalidInput
from theory.hitting_optimum import greedy_hitting_set
from theory.residual import Incidence, Residual
from wgm_jax import synthetic
from wgm_jax.selection.hitting import (
    Greedy,
    HittingState,
    UserPeeling,
    UserPeelingEarlyStop,
    hits_by_prefix,
    users_hit,
)
from wgm_jax.selection.noise import gumbel, trial_keys

LEVEL = 1e-9
EXAMPLE = ["ab", "a", "ac", "bc", "c"]
KINDS = (UserPeeling, UserPeelingEarlyStop)


def letters(*words):
    """One user per word, one item per letter, named by its place in the alphabet."""
    users = np.repeat(np.arange(len(words)), [len(word) for word in words])
    items = np.array([ord(letter) - ord("a") for word in words for letter in word])
    return UserItems.from_codes(users, items)


def sets_of(data):
    return [set(part.tolist()) for part in np.split(data.items, data.offsets[1:-1])]


def random_data(seed, num_users=64, support=12, mean=2.5):
    sizes = synthetic.SetSizes("geometric", mean=mean, cap=6)
    return synthetic.zipf_draws(
        s=0.8, num_users=num_users, support=support, set_sizes=sizes, seed=seed
    )


def random_domains(data, trials, seed, share=0.5):
    return np.random.default_rng(seed).random((trials, data.num_items)) < share


def chosen_by_sets(data, key, domain, k, scale, stops_early):
    """The definition with Python's sets."""
    left, rest, chosen = sets_of(data), sorted(domain), []
    while rest and len(chosen) < k and not (stops_early and not left):
        scores = {
            item: sum(item in user for user in left)
            + scale * float(gumbel(key, len(chosen), np.array([item]))[0])
            for item in rest
        }
        best = max(rest, key=scores.__getitem__)
        chosen.append(best)
        rest.remove(best)
        left = [user for user in left if best not in user]
    return chosen + [-1] * (k - len(chosen))


def law_by_sets(data, domain, k, scale, stops_early):
    """Probability of every sequence, one after the other."""
    users, law = sets_of(data), {}
    for length in range(min(k, len(domain)) + 1):
        for sequence in permutations(domain, length):
            left, rest, log_probability = users, list(domain), 0.0
            for item in sequence:
                if stops_early and not left:
                    break
                counts = {x: sum(x in user for user in left) / scale for x in rest}
                top = max(counts.values())
                total = math.fsum(math.exp(count - top) for count in counts.values())
                log_probability += counts[item] - top - math.log(total)
                rest.remove(item)
                left = [user for user in left if item not in user]
            else:
                if length == min(k, len(domain)) or (stops_early and not left):
                    law[sequence] = math.exp(log_probability)
    return law


def divergence(law, other, eps):
    """Smallest delta of (eps, delta)-DP for two laws, in both directions."""

    def one_way(first, second):
        return math.fsum(max(0.0, p - math.exp(eps) * second.get(s, 0.0)) for s, p in first.items())

    return max(one_way(law, other), one_way(other, law))


# ---- residual counts


def test_residual_counts_of_the_example():
    residual = Residual(Incidence.of(letters(*EXAMPLE)))
    assert residual.counts.tolist() == [3, 2, 3]
    assert residual.choose(0) == 3
    assert residual.counts.tolist() == [0, 1, 2]
    assert residual.choose(2) == 2
    assert residual.exhausted
    assert residual.counts.tolist() == [0, 0, 0]


@pytest.mark.parametrize("seed", range(5))
def test_residual_counts_after_any_choices(seed):
    data = random_data(seed)
    rng = np.random.default_rng(seed)
    among = rng.random(data.num_items) < 0.7
    incidence = Incidence.of(data, among)
    residual, left = Residual(incidence), sets_of(data)
    copies = []
    for position in rng.permutation(incidence.items.size)[:5].tolist():
        copies.append((residual.copy(), residual.counts.copy(), residual.users_left))
        item = int(incidence.items[position])
        new = sum(item in user for user in left)
        left = [user for user in left if item not in user]
        assert residual.choose(position) == new
        assert residual.counts.tolist() == [
            sum(x in user for user in left) for x in incidence.items.tolist()
        ]
        assert residual.users_left == len(left)
        assert residual.choose(position) == 0
    for copy, counts, users_left in copies:
        np.testing.assert_array_equal(copy.counts, counts)
        assert copy.users_left == users_left


# ---- laws


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("k", [1, 2, 3, 7])
def test_law_by_enumeration(kind, k):
    data = letters("ab", "a", "ac", "bc", "c", "d", "abd")
    for scale, domain in ((0.7, (0, 1, 2, 3)), (5.0, (0, 2)), (2.0, (1, 2, 3)), (1.0, (3,))):
        law = kind().law(HittingState(data, k, scale), domain)
        slow = law_by_sets(data, domain, k, scale, kind.stops_early)
        assert law.keys() == slow.keys()
        for sequence, probability in slow.items():
            assert law[sequence] == pytest.approx(probability, rel=1e-12)
        assert math.fsum(law.values()) == pytest.approx(1.0, abs=1e-13)


def test_law_without_anything_to_choose():
    state = HittingState(letters("ab"), 3, 1.0)
    assert UserPeeling().law(state, ()) == {(): 1.0}
    assert set(UserPeeling().law(state)) == {(0, 1), (1, 0)}
    assert set(UserPeelingEarlyStop().law(state)) == {(0,), (1,)}


def test_law_of_greedy_is_one_sequence():
    state = Greedy().prepare(letters(*EXAMPLE), eps=None, delta=None, k=2)
    law = Greedy().law(state)
    assert {sequence for sequence, probability in law.items() if probability > 0} == {(0, 2)}
    assert math.fsum(law.values()) == 1.0


@pytest.mark.parametrize("kind", KINDS)
def test_frequencies_follow_the_law(kind):
    data = letters(*EXAMPLE)
    trials = 20_000
    domains = (0, 1, 2), (0, 2)
    mask = np.zeros((2 * trials, 3), bool)
    for part, domain in enumerate(domains):
        mask[part * trials : (part + 1) * trials, list(domain)] = True
    state = HittingState(data, 3, 1.2)
    chosen = kind(path="traced").select(state, trial_keys(11, 0, 2 * trials), mask)
    for part, domain in enumerate(domains):
        ours = chosen[part * trials : (part + 1) * trials]
        sequences, counts = np.unique(ours, axis=0, return_counts=True)
        found = {
            tuple(x for x in sequence if x >= 0): count
            for sequence, count in zip(sequences.tolist(), counts.tolist(), strict=True)
        }
        law = kind().law(state, domain)
        assert found.keys() <= law.keys()
        for sequence, probability in law.items():
            count = found.get(sequence, 0)
            assert stats.binomtest(count, trials, min(probability, 1.0)).pvalue > LEVEL


# ---- paths


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_both_paths_make_the_choices_of_the_definition(kind, seed):
    data = random_data(seed)
    domains = random_domains(data, 12, seed)
    domains[0], domains[1] = False, True
    keys = trial_keys(seed, 5, 12)
    state = HittingState(data, 9, 3.0)
    lazy, traced = (kind(path=path).select(state, keys, domains) for path in ("lazy", "traced"))
    np.testing.assert_array_equal(lazy, traced)
    assert lazy.dtype == traced.dtype == np.int32
    for row, key, domain in zip(lazy.tolist(), keys, domains, strict=True):
        possible = np.flatnonzero(domain).tolist()
        assert row == chosen_by_sets(data, key, possible, 9, 3.0, kind.stops_early)


def test_paths_agree_where_trials_begin_alike():
    sizes = synthetic.SetSizes("lognormal", mean=6)
    data = synthetic.zipf_draws(s=1.2, num_users=3000, support=900, set_sizes=sizes, seed=3)
    keys = trial_keys(8, 0, 12)
    domains = np.repeat(random_domains(data, 2, 2, share=0.3), 6, axis=0)
    state = HittingState(data, 60, 1.5)
    lazy, traced = (
        UserPeeling(path=path).select(state, keys, domains) for path in ("lazy", "traced")
    )
    np.testing.assert_array_equal(lazy, traced)
    # The first choices are common, the later ones are not.
    assert len({tuple(row) for row in lazy[:, :4].tolist()}) <= 4
    assert len({tuple(row) for row in lazy.tolist()}) == 12


def test_a_trial_depends_on_its_own_key_and_domain_only(monkeypatch):
    data = random_data(9)
    domains = random_domains(data, 12, 9)
    keys = trial_keys(1, 0, 12)
    state = HittingState(data, 9, 2.0)
    whole = UserPeeling().select(state, keys, domains)
    np.testing.assert_array_equal(UserPeeling().select(state, keys[3:5], domains[3:5]), whole[3:5])
    # Also not on how much noise is drawn at a time.
    monkeypatch.setattr("wgm_jax.selection.hitting_lazy._BLOCK", 1)
    np.testing.assert_array_equal(UserPeeling().select(state, keys, domains), whole)
    # Nor, in the traced path, on how many trials fit into a batch.
    monkeypatch.setattr("wgm_jax.selection.hitting_traced._BYTES_IN_FLIGHT", 3 * 8 * 160)
    np.testing.assert_array_equal(UserPeeling(path="traced").select(state, keys, domains), whole)


def test_no_domain_is_all_items():
    data, keys = random_data(4), trial_keys(2, 0, 12)
    state = HittingState(data, 9, 2.0)
    everything = np.ones((12, data.num_items), bool)
    for path in ("lazy", "traced"):
        used = UserPeeling(path=path)
        np.testing.assert_array_equal(
            used.select(state, keys), used.select(state, keys, everything)
        )


# ---- special cases


@pytest.mark.parametrize("path", ["lazy", "traced"])
def test_small_domains(path):
    data, keys = random_data(2), trial_keys(0, 0, 3)
    domains = np.zeros((3, data.num_items), bool)
    domains[1, [3, 5]] = True
    domains[2, :] = True
    chosen = UserPeeling(path=path).select(HittingState(data, 20, 2.0), keys, domains)
    assert chosen.shape == (3, 20)
    assert chosen[0].tolist() == [-1] * 20
    assert sorted(chosen[1, :2].tolist()) == [3, 5]
    assert (chosen[1, 2:] == -1).all()
    assert sorted(chosen[2, : data.num_items].tolist()) == list(range(data.num_items))
    assert (chosen[2, data.num_items :] == -1).all()
    nothing = UserPeeling(path=path).select(HittingState(data, 4, 2.0), keys, domains & False)
    assert (nothing == -1).all()


def test_one_choice_is_the_largest_noisy_count():
    data, keys = random_data(6), trial_keys(3, 0, 50)
    chosen = UserPeeling().select(HittingState(data, 1, 5.0), keys)
    noise = gumbel(keys[:, None], 0, np.arange(data.num_items))
    np.testing.assert_array_equal(chosen[:, 0], np.argmax(data.frequencies + 5.0 * noise, axis=1))


@pytest.mark.parametrize("path", ["lazy", "traced"])
def test_greedy_on_the_example_and_with_ties(path):
    keys = trial_keys(0, 0, 2)
    data = letters(*EXAMPLE)
    # a and c tie in the first round: the smaller index is taken. After c the last round has zeros.
    state = Greedy().prepare(data, eps=1.0, delta=1e-5, k=3)
    domains = np.array([[True, True, True], [False, True, True]])
    chosen = Greedy(path=path).select(state, keys, domains)
    assert chosen.tolist() == [[0, 2, 1], [2, 1, -1]]
    assert users_hit(data, chosen[:, :2]).tolist() == [5, 4]
    if path == "lazy":
        assert Greedy(path=path).select(state, keys).tolist() == [[0, 2, 1]] * 2


@pytest.mark.parametrize("seed", range(3))
def test_greedy_beside_the_lazy_greedy_of_theory(seed):
    data = random_data(seed, num_users=300, support=80)
    chosen = Greedy().select(HittingState(data, 90, 0.0), trial_keys(0, 0, 1))
    items, hits = greedy_hitting_set(data, 90)
    assert chosen[0].tolist() == items.tolist()
    assert hits_by_prefix(data, chosen)[0].tolist() == hits.tolist()


def test_equal_items_are_equally_likely():
    data = synthetic.equal_frequencies(num_items=4, frequency=3)
    law = UserPeeling().law(HittingState(data, 2, 1.5))
    assert list(law.values()) == pytest.approx([1 / 12] * 12, rel=1e-13)


@pytest.mark.parametrize("path", ["lazy", "traced"])
def test_only_the_specimen_stops_when_everyone_is_hit(path):
    data, keys = letters("abc", "ab", "ac"), trial_keys(4, 0, 40)
    state = HittingState(data, 3, 0.2)
    peeled = UserPeeling().select(state, keys)
    # The same with a domain of one item.
    domains = np.repeat([[True, True, True], [False, True, False]], 40, axis=0)
    stopped, single = np.split(
        UserPeelingEarlyStop(path=path).select(state, np.tile(keys, (2, 1)), domains), 2
    )
    assert (peeled >= 0).all()
    for row, short in zip(peeled.tolist(), stopped.tolist(), strict=True):
        length = next(n for n in (1, 2, 3) if users_hit(data, np.array([row[:n]], np.int32)) == 3)
        assert short == row[:length] + [-1] * (3 - length)
    # A user who holds nothing of the domain is never hit, so nothing stops.
    assert (single[:, 0] == 1).all()


def test_smaller_k_with_the_same_noise_comes_first_and_hits_no_more():
    data, keys = random_data(5, num_users=400, support=60), trial_keys(6, 0, 8)
    domains = random_domains(data, 8, 5)
    used = UserPeeling()
    states = [used.prepare(data, eps=1.0, delta=1e-5, k=k) for k in (20, 50)]
    assert states[0].family == states[1].family == states[0].scale
    short, long = (used.select(state, keys, domains) for state in states)
    np.testing.assert_array_equal(short, long[:, :20])
    hits = hits_by_prefix(data, long)
    assert (np.diff(hits, axis=1) >= 0).all()
    np.testing.assert_array_equal(hits[:, 19], users_hit(data, short))


def test_scale_is_the_smaller_of_two():
    data = letters("ab")

    def scale(k):
        return UserPeeling().prepare(data, eps=1.0, delta=1e-5, k=k).scale

    assert scale(1) == pytest.approx(1.0, rel=1e-12)
    assert scale(10) == pytest.approx(7.7485, abs=5e-5)
    assert scale(50) == scale(200) == pytest.approx(8.8253, abs=5e-5)
    given = UserPeeling(scale=3).prepare(data, eps=1.0, delta=1e-5, k=200)
    assert given.scale == 3.0


def test_the_exact_accountant_needs_less_noise_than_both():
    data, keys = random_data(5), trial_keys(6, 0, 8)
    used = UserPeeling(accountant="exact")
    states = [used.prepare(data, eps=1.0, delta=1e-5, k=k) for k in (1, 10, 200)]
    assert [state.scale for state in states] == pytest.approx([1.0, 5.674, 8.612], abs=5e-4)
    # Every k has its own noise; where it is the same, choices are shared with the other accountant.
    assert len({state.family for state in states}) == 3
    closed = UserPeeling().prepare(data, eps=1.0, delta=1e-5, k=1)
    assert closed.scale == pytest.approx(states[0].scale, rel=1e-12)
    same = UserPeeling(scale=states[1].scale)
    np.testing.assert_array_equal(
        used.select(states[1], keys),
        same.select(same.prepare(data, eps=1.0, delta=1e-5, k=10), keys),
    )


@pytest.mark.parametrize(
    ("eps", "delta", "k"), [(1.0, 0.01, 2), (1.0, 0.01, 3), (1.0, 1e-3, 3), (2.0, 0.05, 2)]
)
def test_the_exact_accountant_keeps_delta_and_spends_nearly_all_of_it(eps, delta, k):
    """One user more or less with an item, beside items of other users: laws enumerated.

    The game's value is nearly that of the best of these data, so any smaller scale would show.
    """
    state = UserPeeling(accountant="exact").prepare(letters("a"), eps=eps, delta=delta, k=k)
    assert state.scale < UserPeeling().noise_scale(eps=eps, delta=delta, k=k)

    def largest(scale):
        found = []
        for mine, others, count in ((7, 7, 3), (7, 5, 1), (4, 4, 3), (2, 3, 1)):
            rest = [letter for letter in "bcdefgh"[:others] for _ in range(count)]
            laws = [
                UserPeeling().law(HittingState(letters(*rest, *["a"] * number), k, scale))
                for number in (mine, mine + 1)
            ]
            found.append(divergence(*laws, eps=eps))
        return max(found)

    assert 0.9 * delta < largest(state.scale) <= delta
    # The best of these data notice a scale too small by a twentieth, and half of it too.
    assert largest(state.scale * 0.95) > delta
    assert largest(state.scale / 2) > delta


# ---- hits


@pytest.mark.parametrize("seed", range(3))
def test_users_hit_by_sets(seed):
    data = random_data(seed)
    chosen = np.array(
        [[3, 3, 0, -1], [-1, -1, -1, -1], [-1, 2, -1, 5], [1, 4, 7, 2], [3, 3, 0, -1]], np.int32
    )
    expected = [
        [sum(bool(user & set(row[: k + 1])) for user in sets_of(data)) for k in range(4)]
        for row in chosen.tolist()
    ]
    assert hits_by_prefix(data, chosen).tolist() == expected
    assert users_hit(data, chosen).tolist() == [row[-1] for row in expected]


# ---- erratum 6: stopping when users run out


def test_stopping_early_is_not_private():
    both, first = 120, 200
    data = synthetic.nested_pair(num_both=both, num_first=first)
    more = UserItems.from_csr(
        np.append(data.items, 1).astype(np.int64), np.append(data.offsets, data.num_pairs + 1)
    )
    assert more.num_users == data.num_users + 1
    deltas = {}
    for kind in KINDS:
        used = kind()
        state, other = (used.prepare(d, eps=1.0, delta=1e-5, k=2) for d in (data, more))
        deltas[kind] = divergence(used.law(state), used.law(other), eps=1.0)
    assert deltas[UserPeelingEarlyStop] > 1 - 1e-12
    assert deltas[UserPeeling] <= 1e-5
    # However much noise: the rounds that are missing tell that nobody is left.
    loud = UserPeelingEarlyStop(scale=1000)
    laws = [loud.law(HittingState(d, 2, 1000.0)) for d in (data, more)]
    assert divergence(*laws, eps=1.0) > 0.5


# ---- bad input


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda d: UserPeeling().prepare(d, eps=1.0, delta=1e-5, k=0), "k = 0: must be a whole"),
        (lambda d: UserPeeling().prepare(d, eps=1.0, delta=1e-5, k=2.5), "k = 2.5: must be"),
        (lambda d: Greedy().prepare(d, eps=1.0, delta=1e-5, k="3"), "k = 3: must be a whole"),
        (lambda d: UserPeeling().prepare(d, eps=-1.0, delta=1e-5, k=2), "eps = -1.0: must be"),
        (lambda d: UserPeeling(scale=0.0), "scale = 0.0: must be a finite number above 0"),
        (
            lambda d: UserPeeling(accountant="open"),
            "accountant = open: must be one of closed, exact, paper",
        ),
        (
            lambda d: UserPeeling(accountant="exact", scale=2.0),
            "accountant = exact: must not be given together with a scale",
        ),
        (lambda d: UserPeeling(path="fast"), "path = fast: must be one of auto, lazy, traced"),
        (
            lambda d: UserPeeling().select(
                HittingState(d, 1, 1.0), trial_keys(0, 0, 2), np.ones((2, 4), bool)
            ),
            "domain = (2, 4): must have one row per trial of all items, (2, 3)",
        ),
        (
            lambda d: UserPeeling().law(HittingState(d, 2, 1.0), (0, 3)),
            "domain = (0, 3): must hold",
        ),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(InvalidInput) as error:
        call(letters(*EXAMPLE))
    assert str(error.value).startswith(message)


def test_law_of_large_data_is_refused():
    data = synthetic.equal_frequencies(num_items=40, frequency=1)
    with pytest.raises(InvalidInput, match="40 items, k = 5, 78960960 sequences: must have"):
        UserPeeling().law(HittingState(data, 5, 1.0))
