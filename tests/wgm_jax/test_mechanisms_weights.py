"""Weight steps against examples computed by hand, and their sensitivity over random neighbours."""

import dataclasses
from functools import cache

import jax
import numpy as np
import pytest

from theory import UserItems, calibrate
from wgm_jax.set_union.counts import GaussianCount, Korolova, LaplaceCount
from wgm_jax.set_union.dp_sips import DpSips
from wgm_jax.set_union.frame import Parameters
from wgm_jax.set_union.kept_sets import KeptSets
from wgm_jax.set_union.mad_safe import MadSafe
from wgm_jax.set_union.optimal_selection import OptimalSelection, SelectionParameters
from wgm_jax.set_union.policy_gaussian import (
    PolicyGaussian,
    PolicyGaussianL1,
    PolicyGaussianL1Published,
)
from wgm_jax.set_union.policy_greedy import (
    PolicyGreedy,
    PolicyGreedyPositive,
)
from wgm_jax.set_union.policy_laplace import PolicyLaplace
from wgm_jax.set_union.weighted_laplace import WeightedLaplace

ONE = np.array(1.0)


@cache
def weigher(mechanism, num_items):
    """Compiled: batches of rows (batch, users, slots) and caps (batch,) to weights and supports."""

    def weigh(rows, cap):
        parameters = Parameters(cap, cap, cap)
        if isinstance(mechanism, OptimalSelection):
            parameters = SelectionParameters(cap, cap)
        found = mechanism.weigh(KeptSets.from_rows(rows, num_items), parameters)
        return found.weights, found.support

    return jax.jit(jax.vmap(weigh))


def weigh(mechanism, rows, caps, num_items):
    """(weights, support), float64, by the frame's contract."""
    with jax.enable_x64(True):
        weights, support = weigher(mechanism, num_items)(rows, np.asarray(caps, np.float64))
    assert weights.dtype == np.float64
    return np.asarray(weights), np.asarray(support)


def rows_of(sets, num_items, users, slots):
    """Padded rows, (users, slots), from lists of item indices."""
    rows = np.full((users, slots), num_items, np.int32)
    for row, items in zip(rows, sets, strict=False):
        row[: len(items)] = items
    return rows


A, B, C = range(3)
FOUR = [[A], [A, B], [A, B], [A, B]]
EXAMPLES = [
    (PolicyGaussian(), FOUR[:2], 2, [1.4472, 0.8944]),
    (PolicyGaussian(), FOUR[:3], 2, [1.8944, 1.7889]),
    (PolicyGaussian(), FOUR, 2, [2, 2]),
    (PolicyGaussianL1(), FOUR[:2], 2, [1.7071, 0.7071]),
    (PolicyGaussianL1(), FOUR[:3], 2, [2, 1.4142]),
    (PolicyGaussianL1(), FOUR, 2, [2, 2]),
    (PolicyGaussianL1Published(), FOUR[:2], 2, [1.7071, 0.7071]),
    (PolicyGaussianL1Published(), FOUR[:3], 2, [2, 1.6213]),
    (PolicyGaussianL1Published(), FOUR, 2, [2, 2]),
    # The same with b renamed to come before a: other weights, and beyond the cap.
    (PolicyGaussianL1Published(), [[1], [0, 1]], 2, [0.7071, 1.7071]),
    (PolicyGaussianL1Published(), [[1], [0, 1], [0, 1]], 2, [1.4142, 2.4142]),
    (PolicyGaussianL1Published(), [[1], [0, 1], [0, 1], [0, 1]], 2, [2, 2.4142]),
    (WeightedLaplace(), [[A, B], [A]], np.inf, [1.5, 0.5]),
    (PolicyLaplace(), [[A]], 2, [1]),
    (PolicyLaplace(), [[A], [A, B]], 2, [1.5, 0.5]),
    (PolicyLaplace(), [[A], [A, B], [A, B, C]], 2, [1.8333, 0.8333, 0.3333]),
    (PolicyLaplace(), [[A], [A, B], [A, B, C], [A, B, C]], 2, [2, 1.25, 0.75]),
    # Lists aab, ba, aab, ab: own multiplicity first, ties in list order.
    (PolicyGreedy(), [[A, B]], 2.5, [1, 0]),
    (PolicyGreedy(), [[A, B], [B, A]], 2.5, [1, 1]),
    (PolicyGreedy(), [[A, B], [B, A], [A, B]], 2.5, [2, 1]),
    (PolicyGreedy(), [[A, B], [B, A], [A, B], [A, B]], 2.5, [2.5, 1.5]),
    (GaussianCount(), [[A, B], [A], [A, C]], np.inf, [3, 1, 1]),
    (DpSips(), [[A, B]] * 4 + [[A]], np.inf, [3.8284, 2.8284]),
    (DpSips(), [[B]] * 4, np.inf, [0, 4]),  # a released and deleted
    (MadSafe(d_max=2), [[A]] * 4 + [[A, B]] * 2, 3, [3.9142, 1.5142]),
    (DpSips(), [[A]] * 4 + [[A, B]] * 2, np.inf, [5.4142, 1.4142]),  # the plain mechanism
]


@pytest.mark.parametrize("mechanism", sorted({e[0] for e in EXAMPLES}, key=repr), ids=repr)
def test_examples_computed_by_hand(mechanism):
    examples = [example[1:] for example in EXAMPLES if example[0] == mechanism]
    rows = np.stack([rows_of(sets, 3, 6, 3) for sets, _, _ in examples])
    weights, support = weigh(mechanism, rows, [cap for _, cap, _ in examples], 3)
    for (sets, _, expected), found, inside in zip(examples, weights, support, strict=True):
        np.testing.assert_allclose(found, expected + [0] * (3 - len(expected)), atol=5.1e-5)
        held = {item for items in sets for item in items}
        assert inside.tolist() == [item in held for item in range(3)]


def random_pairs(rng, count, *, users=8, slots=4, num_items=7):
    """Rows without and with one more user, and who that is: (count, users, slots) twice."""
    lists = np.argsort(rng.random((count, users, num_items)) ** rng.uniform(1, 3, num_items), -1)
    rows = lists[..., :slots].astype(np.int32)
    sizes = rng.integers(0, slots + 1, (count, users, 1))
    rows[np.arange(slots) >= sizes] = num_items
    without = rows.copy()
    without[np.arange(count), rng.integers(0, users, count)] = num_items
    return without, rows


def norms(vectors, order):
    return np.linalg.norm(vectors, ord=order, axis=-1)


SOUND = [
    (PolicyGaussian(), 2),
    (PolicyGaussianL1(), 2),
    (PolicyLaplace(), 1),
    (PolicyGreedy(), 1),
    (WeightedLaplace(), 1),
    (DpSips(), 2),
    (MadSafe(d_max=2), 2),
    (MadSafe(d_max=3), 2),
    (MadSafe(), 2),
]


@pytest.mark.parametrize(("mechanism", "norm"), SOUND, ids=repr)
def test_one_user_moves_the_weights_by_at_most_one(mechanism, norm):
    """Over 6000 pairs, most of them near the cap; and new items get no more than t^(-1/norm)."""
    rng = np.random.default_rng(5)
    without, with_user = random_pairs(rng, 6000)
    caps = rng.uniform(0.3, 3, 6000)
    less, held = weigh(mechanism, without, caps, 7)
    more, now_held = weigh(mechanism, with_user, caps, 7)
    moved = norms(more - less, norm)
    assert moved.max() <= 1 + 1e-9
    assert moved.max() > 0.999  # a user alone moves by exactly 1
    new = now_held & ~held
    gained = np.where(new, more, 0)
    if isinstance(mechanism, PolicyGreedy):  # it may give all to one; its threshold knows
        assert gained.sum(axis=1).max() <= 1 + 1e-9
    else:
        assert (gained.max(axis=1) * new.sum(axis=1) ** (1 / norm)).max() <= 1 + 1e-9
    assert not (held & ~now_held).any()


@pytest.mark.parametrize(
    ("mechanism", "norm", "limit"),
    [
        (GaussianCount(), 2, 2),
        (LaplaceCount(), 1, 4),
        (Korolova(), 1, 4),
        (OptimalSelection(), 1, 4),
    ],
    ids=repr,
)
def test_one_user_moves_counts_by_one_each(mechanism, norm, limit):
    without, with_user = random_pairs(np.random.default_rng(5), 2000)
    less, _ = weigh(mechanism, without, np.ones(2000), 7)
    more, _ = weigh(mechanism, with_user, np.ones(2000), 7)
    assert norms(more - less, norm).max() == limit
    assert (more - less).max() == 1


def test_published_l1_descent_moves_by_more_than_one():
    rng = np.random.default_rng(5)
    without, with_user = (np.sort(rows) for rows in random_pairs(rng, 6000))  # by name
    caps = rng.uniform(0.3, 3, 6000)
    less, _ = weigh(PolicyGaussianL1Published(), without, caps, 7)
    more, _ = weigh(PolicyGaussianL1Published(), with_user, caps, 7)
    assert norms(more - less, 2).max() > 1.15


def spill_pair(num_items=8):
    """Rows of 904 users, and of one more: a user whose 1/8 at each of eight items spills over.

    Cap 14.125. Per item a: six helpers d are brought to 14 by 14 users, and a user of (d, c) fills
    d and gives 7/8 to c; with eight users of c alone, c is at 13.25; 14 users bring a to 14. The
    last user, of (a, c, b), fills a by 1/8 and c by 7/8, exactly. The additional user fills all a
    before, so that 1/8 is left for b. Eighths are exact in binary.
    """
    before, after, next_item = [], [], num_items
    for a in range(num_items):
        c, b = next_item, next_item + 1
        next_item += 2
        for d in range(next_item, next_item + 6):
            before += [[d]] * 14 + [[d, c]]
        next_item += 6
        before += [[c]] * 8 + [[a]] * 14
        after.append([a, c, b])
    return before, list(range(num_items)), after, next_item


def test_positive_support_lets_one_user_put_others_items_at_risk():
    before, extra, after, num_items = spill_pair()
    assert len(before) + len(after) == 904
    lists = [before + [[]] + after, before + [extra] + after]
    rows = np.stack([rows_of(sets, num_items, 905, 8) for sets in lists])
    weights, support = weigh(PolicyGreedyPositive(), rows, [14.125] * 2, num_items)
    spilled = [after[a][2] for a in range(8)]
    assert (weights[0, spilled] == 0).all() and not support[0, spilled].any()
    assert (weights[1, spilled] == 0.125).all() and support[1, spilled].all()
    # Nothing else moves by more than a sound step would; the support is what leaks.
    assert np.abs(weights[1] - weights[0]).sum() == 1
    # All in the support, as the sound variant has it: the same weights, no leak.
    again, everywhere = weigh(PolicyGreedy(), rows, [14.125] * 2, num_items)
    assert (again == weights).all() and everywhere.all()


def test_rows_of_a_user_may_have_gaps_and_masks_hide_pairs():
    """A kept mask over the full lists gives what the lists of kept items give."""
    lists = np.array([[0, 1, 2], [2, 0, 1], [1, 2, 0]], np.int32)
    mask = np.array([[True, False, True], [False, True, True], [True, True, False]])
    holes = np.where(mask, lists, 3).astype(np.int32)
    packed = rows_of([list(r[m]) for r, m in zip(lists, mask, strict=True)], 3, 3, 3)
    for mechanism in (PolicyGaussianL1Published(), MadSafe()):
        found, _ = weigh(mechanism, np.stack([holes, packed]), [1.7, 1.7], 3)
        np.testing.assert_allclose(found[0], found[1], atol=1e-15)
    with jax.enable_x64(True):
        kept = np.pad(mask.ravel(), (0, 3))
        sets = dataclasses.replace(KeptSets.from_rows(lists, 3), kept=kept)
        cap = np.array(1.7)
        masked = np.asarray(MadSafe().weigh(sets, Parameters(cap, cap, cap)).weights)
    np.testing.assert_allclose(masked, found[1], atol=1e-15)


@pytest.mark.parametrize("mechanism", [PolicyGreedy(), PolicyGaussianL1Published()])
def test_a_user_goes_by_names_not_by_who_came_before(mechanism):
    """Items are numbered as they first appear; one user in front must not reorder the others."""
    sets = [{"tea", "milk"}, {"milk", "apple"}, {"apple", "tea"}]
    noise = calibrate(eps=np.ones(1), delta=1e-5, max_items_per_user=2)
    numbered, lists = set(), []
    for first in ("tea", "milk", "apple"):
        data = UserItems.from_sets([[first], *(sorted(items, key=len) for items in sets)])
        kept = mechanism.prepare(data, noise).sets
        numbered.add(tuple(data.item_labels))
        ends = data.offsets[1:]
        names = [data.item_labels[i] for i in kept.items[: data.num_pairs].tolist()]
        lists.append([names[start:end] for start, end in zip(ends[:-1], ends[1:], strict=True)])
    assert len(numbered) > 1
    assert lists == [[sorted(items) for items in sets]] * 3
