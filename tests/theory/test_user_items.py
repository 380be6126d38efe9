import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from theory import InvalidInput, UserItems

LABELS = ["a", "a\0", "a\0b", "", "é", "🦊", "日本", "x" * 10_000, " a", "A"]


def test_labels_stay_what_they_are():
    users = list(range(len(LABELS)))
    data = UserItems.from_pairs(users, LABELS)
    assert data.num_items == len(LABELS)
    assert data.item_labels is not None
    assert [data.item_labels[i] for i in data.items] == LABELS


def test_number_and_text_are_two_items():
    data = UserItems.from_sets([[1, "1"], [1]])
    assert data.num_items == 2
    assert dict(zip(data.item_labels, data.frequencies, strict=True)) == {1: 2, "1": 1}


def test_tuples_and_bytes_are_labels():
    data = UserItems.from_pairs([("u", 1), ("u", 2)], [b"x", b"x"])
    assert (data.num_users, data.num_items) == (2, 1)


def test_counts_what_it_drops():
    data = UserItems.from_pairs([1, 1, None, 2, 3], ["a", "a", "b", None, float("nan")])
    assert (data.num_pairs, data.duplicates_removed, data.missing_dropped) == (1, 1, 3)
    data = UserItems.from_sets([[], ["a", "a"], [], ["b"], [], []])
    assert (data.num_users, data.empty_users_dropped, data.duplicates_removed) == (2, 4, 1)
    assert UserItems.from_csr([4, 4, 2], [0, 0, 2, 3, 3]).empty_users_dropped == 2


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 7)), min_size=1, max_size=40))
def test_agrees_with_python_sets(pairs):
    users, items = zip(*pairs, strict=True)
    data = UserItems.from_pairs(users, items)
    wanted: dict[int, set[int]] = {}
    for user, item in pairs:
        wanted.setdefault(user, set()).add(item)
    assert data.user_labels is not None and data.item_labels is not None
    found = {
        user: {data.item_labels[j] for j in data.items[a:b]}
        for user, a, b in zip(data.user_labels, data.offsets[:-1], data.offsets[1:], strict=True)
    }
    assert found == wanted
    assert data.duplicates_removed == len(pairs) - sum(map(len, wanted.values()))
    assert data.frequencies.sum() == data.num_pairs == sum(map(len, wanted.values()))
    assert data.max_set_size == max(map(len, wanted.values()))


@pytest.mark.parametrize("kind", ["polars", "lazy", "pandas", "pandas-object", "arrow"])
@pytest.mark.parametrize("items", [LABELS, list(range(len(LABELS)))])
def test_frames_agree_with_pairs(kind, items):
    users = [0, 0, 1, 1, 2, 2, 3, 3, 3, 0]
    frame = pl.DataFrame({"who": users, "what": items})
    if kind == "lazy":
        frame = frame.lazy()
    elif kind == "pandas":
        frame = frame.to_pandas()
    elif kind == "pandas-object":
        import pandas as pd

        frame = pd.DataFrame({"who": users, "what": pd.Series(items, dtype=object)})
    elif kind == "arrow":
        frame = frame.to_arrow()
    data = UserItems.from_frame(frame, user="who", item="what")
    wanted = UserItems.from_pairs(users, items)
    assert data.items.tolist() == wanted.items.tolist()
    assert data.offsets.tolist() == wanted.offsets.tolist()
    assert data.item_labels is not None and wanted.item_labels is not None
    assert list(data.item_labels) == list(wanted.item_labels)


@pytest.mark.parametrize("null", [None, float("nan")])
def test_gaps_in_frames_are_counted(null):
    import pandas as pd

    frame = pd.DataFrame({"u": [1, 2, 3], "i": [5, null, 5]})
    data = UserItems.from_frame(frame, user="u", item="i")
    assert (data.num_pairs, data.missing_dropped) == (2, 1)
    polars_frame = pl.DataFrame({"u": [1, 2, 3], "i": [5, None, 5]})
    assert UserItems.from_frame(polars_frame, user="u", item="i").missing_dropped == 1


def test_arrays_are_read_only():
    data = UserItems.from_sets([["a"]])
    with pytest.raises(ValueError, match="read-only"):
        data.items[0] = 3


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: UserItems.from_sets(["ab", "c"]), r"sets = ab: must be a collection of items"),
        (lambda: UserItems.from_sets("abc"), "not a string"),
        (lambda: UserItems.from_sets([[], []]), "2 empty users: must hold at least one user"),
        (lambda: UserItems.from_sets([]), "0 empty users"),
        (lambda: UserItems.from_pairs([], []), "must hold at least one user"),
        (lambda: UserItems.from_pairs([1], [1, 2]), r"items = 2 entries: must have as many"),
        (lambda: UserItems.from_pairs([1], [[1]]), "hashable"),
        (lambda: UserItems.from_csr([0, 1], [0, 1]), "must rise from 0 to the number of pairs, 2"),
        (
            lambda: UserItems.from_frame(pl.DataFrame({"a": [1]}), user="u", item="a"),
            "user = u: must be one of the columns a",
        ),
    ],
)
def test_bad_input_is_named(make, message):
    with pytest.raises(InvalidInput, match=message):
        make()
