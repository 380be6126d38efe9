"""Classes of equal items, against counting by hand."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from theory import InvalidInput, Profile, UserItems
from theory.item_classes import ItemClasses

SETS = st.lists(st.sets(st.integers(0, 9), min_size=1, max_size=6), min_size=1, max_size=40)


def rows_by_hand(sets):
    """Item -> sorted ((set size, holders), ...)."""
    table = {}
    for held in sets:
        for item in held:
            table.setdefault(item, Counter())[len(held)] += 1
    return {item: tuple(sorted(sizes.items())) for item, sizes in table.items()}


def row(classes, index):
    entries = slice(classes.offsets[index], classes.offsets[index + 1])
    return tuple(
        zip(classes.sizes[entries].tolist(), classes.counts[entries].tolist(), strict=True)
    )


@given(SETS)
def test_classes_are_the_distinct_rows(sets):
    data = UserItems.from_sets(sets)
    classes = data.item_classes
    expected = rows_by_hand(sets)
    found = {
        label: row(classes, classes.class_of_item[code])
        for code, label in enumerate(data.item_labels)
    }
    assert found == expected
    distinct = Counter(expected.values())
    assert len(distinct) == classes.frequencies.size
    assert {row(classes, i): int(k) for i, k in enumerate(classes.multiplicity)} == distinct
    assert np.all(np.diff(classes.frequencies) <= 0)
    assert classes.frequencies[classes.class_of_item].tolist() == data.frequencies.tolist()
    assert (classes.num_items, classes.num_pairs) == (data.num_items, data.num_pairs)
    assert classes.max_set_size == data.max_set_size
    frequencies, items = classes.by_frequency
    held = Counter(data.frequencies.tolist())
    assert list(zip(frequencies.tolist(), items.tolist(), strict=True)) == sorted(
        held.items(), reverse=True
    )


@given(SETS, st.integers(1, 7))
def test_weights_at_a_contribution_bound(sets, bound):
    data = UserItems.from_sets(sets)
    classes = data.item_classes
    base, most = np.zeros(data.num_items), np.zeros(data.num_items)
    clipped = [Counter() for _ in range(data.num_items)]
    for start, end in zip(data.offsets[:-1], data.offsets[1:], strict=True):
        size = int(end - start)
        for item in data.items[start:end]:
            most[item] += min(size, bound) ** -0.5
            if size <= bound:
                base[item] += size**-0.5
            else:
                clipped[item][size] += 1
    index = classes.class_of_item
    np.testing.assert_allclose(classes.base_weight(bound)[index], base, rtol=1e-14)
    np.testing.assert_allclose(classes.largest_weight(bound)[index], most, rtol=1e-14)
    ends, sizes, counts = classes.clipped(bound)
    for item, expected in enumerate(clipped):
        entries = slice(ends[index[item]], ends[index[item] + 1])
        held = dict(zip(sizes[entries].tolist(), counts[entries].tolist(), strict=True))
        assert held == dict(expected)


def test_repeated_rows_are_added_up_in_any_order():
    found = ItemClasses.from_counts([1, 0, 1, 0, 2], [3, 2, 3, 9, 3], [4, 1, 1, 2, 5])
    assert found.frequencies.tolist() == [5, 3]
    assert found.multiplicity.tolist() == [2, 1]
    assert [row(found, 0), row(found, 1)] == [((3, 5),), ((2, 1), (9, 2))]


def test_more_users_like_these():
    classes = UserItems.from_sets([{0, 1}, {0}]).item_classes.scaled(3)
    again = UserItems.from_sets([{0, 1}, {0}] * 3).item_classes
    for name in ("frequencies", "multiplicity", "offsets", "sizes", "counts"):
        assert getattr(classes, name).tolist() == getattr(again, name).tolist()
    with pytest.raises(InvalidInput, match="factor = 0"):
        classes.scaled(0)
    with pytest.raises(InvalidInput, match="factor"):
        classes.scaled(2**61)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (([], [], []), "items = .*whole numbers"),
        (([0.5], [1], [1]), "items = .*whole numbers"),
        (([0], [0], [1]), "sizes = 0: must be whole numbers of at least 1"),
        (([0], [1], [-2]), "counts = -2: must be whole numbers of at least 1"),
        (([0, 1], [1, 1], [1]), "counts = 1 rows"),
        (([0, 2], [1, 1], [1, 1]), "items = 1: is a code without rows"),
    ],
)
def test_bad_tables_are_named(table, message):
    with pytest.raises(InvalidInput, match=message):
        ItemClasses.from_counts(*table)


def test_a_frequency_profile_of_equal_sets():
    profile = Profile.from_frequencies(
        [6, 4, 4], max_set_size=2, max_items_per_user=1, equal_sets=True
    )
    assert profile.num_users == 7
    assert profile.classes.counts.tolist() == [6, 4]
    assert profile.classes.sizes.tolist() == [2, 2]
    assert Profile.from_frequencies([6, 4], max_set_size=2, max_items_per_user=1).classes is None
    for frequencies in ([6, 5], [9, 1]):
        with pytest.raises(InvalidInput, match="must sum to 2 times the users"):
            Profile.from_frequencies(
                frequencies, max_set_size=2, max_items_per_user=1, equal_sets=True
            )
