"""Small hand-made files in every format, read to exactly the sets written into them."""

import csv
import gzip
import io
import zipfile

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings, strategies

import experiments.loading as loading
from experiments.loading import load

BUYS = "who,what,n\nann,tea,1\nann,milk,2\nbob,tea,3\nann,tea,4\n"
BUYS_SETS = {"ann": {"tea", "milk"}, "bob": {"tea"}}


def sets(data):
    """The data set as a dictionary of labels, from its public parts."""
    items, offsets = data.items.tolist(), data.offsets.tolist()
    return {
        user: {data.item_labels[x] for x in items[offsets[i] : offsets[i + 1]]}
        for i, user in enumerate(data.user_labels)
    }


@pytest.fixture
def write(tmp_path):
    def _write(name, content):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return _write


def test_pairs_by_name_by_number_and_from_strings(write):
    path = write("buys.csv", BUYS)
    by_name = load(path, user="who", item="what")
    assert sets(by_name) == BUYS_SETS
    assert by_name.duplicates_removed == 1
    assert sets(load(path, user=0, item=1)) == BUYS_SETS  # third column shows the header
    assert sets(load(str(path), user="0", item="1", header=True)) == BUYS_SETS
    assert sets(load(path, user="what", item="who")) == {"tea": {"ann", "bob"}, "milk": {"ann"}}


def test_name_of_digits_wins_over_number(write):
    path = write("x.csv", "1,0\nann,tea\n")
    assert sets(load(path, user="1", item="0", header=True)) == {"ann": {"tea"}}
    assert sets(load(path, user=1, item=0, header=True)) == {"tea": {"ann"}}


@pytest.mark.parametrize("header", ["user,item", "User_ID,ITEM ID", "item-id,userid"])
def test_usual_names_are_found(write, header):
    rows = ["ann,tea"] if header.lower().startswith("user") else ["tea,ann"]
    assert sets(load(write("x.csv", "\n".join([header, *rows])))) == {"ann": {"tea"}}


def test_two_columns_of_numbers_without_header(write):
    assert sets(load(write("x.txt", "1 07\n1 7\n01 7\n"))) == {"1": {"07", "7"}, "01": {"7"}}


def test_header_told_overrules(write):
    path = write("x.csv", "who,what\nann,tea\n")
    assert sets(load(path, header=False)) == {"who": {"what"}, "ann": {"tea"}}
    numbers = write("y.csv", "1,2\n3,4\n")
    assert sets(load(numbers, header=True, user=0, item=1)) == {"3": {"4"}}


@pytest.mark.parametrize(
    ("name", "mark"),
    [("a.csv", ","), ("a.csv", ";"), ("a.tsv", "\t"), ("a.dat", "\t"), ("a.txt", " "), ("a", "|")]
    + [("a.dat", "::")],
)
def test_separator_is_found(write, name, mark):
    path = write(name, BUYS.replace(",", mark))
    assert sets(load(path, user="who", item="what")) == BUYS_SETS


@pytest.mark.parametrize("told", ["¦", "\\t", "tab", "::", "#"])
def test_separator_told(write, told):
    mark = "\t" if told in ("\\t", "tab") else told
    path = write("x.txt", BUYS.replace(",", mark))
    assert sets(load(path, user="who", item="what", separator=told)) == BUYS_SETS


def test_columns_aligned_by_spaces(write):
    assert sets(load(write("x.txt", "  1   2 \n 10   3\n"))) == {"1": {"2"}, "10": {"3"}}


def test_difficult_labels_are_legal(write):
    labels = [
        "a,b",
        "line\nbreak",
        'quo"te',
        "é😀",
        "nul\0",
        "x" * 10_000,
        " ",
        "line\r\nbreak",
        "NA",
    ]
    quoted = ['"' + label.replace('"', '""') + '"' for label in labels]
    path = write("x.csv", "\ufeffuser,item\r\n" + "".join(f"{q},{q}\r\n" for q in quoted))
    assert sets(load(path)) == {label: {label} for label in labels}


def test_stray_quotes_are_characters(write):
    path = write("x.csv", 'user,item\nu1,5" disk\nu2,a\nu3,3" disk\n')
    assert sets(load(path)) == {"u1": {'5" disk'}, "u2": {"a"}, "u3": {'3" disk'}}


def test_old_line_ends_blank_lines_and_missing_fields(write):
    assert sets(load(write("mac.csv", "user,item\rann,tea\rbob,tea"))).keys() == {"ann", "bob"}
    data = load(write("x.csv", 'user,item\nann,tea\n,tea\nann,\nbob\n"",""\ncid,tea\n\n\n'))
    assert sets(data) == {"ann": {"tea"}, "cid": {"tea"}}
    assert data.missing_dropped == 4


def test_gzip_zip_folder_and_parts(write, tmp_path):
    first, second = "user,item\nann,tea\n", "user,item\nann,milk\nbob,tea\n"
    packed = write(
        "first.csv.gz", gzip.compress(first.encode()[:9]) + gzip.compress(first.encode()[9:])
    )
    plain = write("second.csv", second)
    assert sets(load(packed, plain)) == BUYS_SETS
    with zipfile.ZipFile(tmp_path / "both.zip", "w") as archive:
        archive.writestr("data/a.csv", first)
        archive.writestr("data/b.csv.gz", gzip.compress(second.encode()))
        archive.writestr("README.txt", "not data")
        archive.writestr("__MACOSX/a.csv", b"\0\xff")
    assert sets(load(tmp_path / "both.zip")) == BUYS_SETS
    for name, content in [("b.csv", second), ("a.csv", first), (".x", "?"), ("README.md", "# R")]:
        write("folder/" + name, content)
    (tmp_path / "folder" / "inner").mkdir()
    data = load(tmp_path / "folder")
    assert sets(data) == BUYS_SETS
    assert list(data.user_labels) == ["ann", "bob"]  # a before b


def test_header_found_in_first_part_holds_for_others(write):
    first, second = write("a.csv", "user,item\n1,2\n"), write("b.csv", "item,user\n8,9\n")
    assert sets(load(first, second)) == {"1": {"2"}, "9": {"8"}}


def test_parquet_keeps_types_and_takes_lists(tmp_path):
    path = tmp_path / "x.parquet"
    pl.DataFrame({"user": [1, 1, 2, None], "item": ["a", "b", "", "c"]}).write_parquet(path)
    data = load(path)
    assert sets(data) == {1: {"a", "b"}}
    assert data.missing_dropped == 2
    lists = pl.DataFrame({"user": ["u", "v", "w"], "item": [[1, 2], [], [2, None]]})
    lists.write_parquet(path)
    data = load(path, user=0, item=1)
    assert sets(data) == {"u": {1, 2}, "w": {2}}
    assert (data.empty_users_dropped, data.missing_dropped) == (1, 1)
    categories = pl.DataFrame(
        {"a": pl.Series(["p", "q"], dtype=pl.Categorical), "b": [1.5, float("nan")]}
    )
    categories.write_parquet(path)
    assert sets(load(path, user="a", item="b")) == {"p": {1.5}}


def test_adjacency_joins_parts_and_counts_empty(write):
    train = write("train.txt", "0 1 2 \n1\n\n2\t3  3\r\n3\n")
    test = write("test.txt", "1 5\n0 1 4\n")
    data = load(train, test, format="adjacency")
    assert sets(data) == {"0": {"1", "2", "4"}, "1": {"5"}, "2": {"3"}}
    assert (data.empty_users_dropped, data.duplicates_removed) == (1, 2)
    data = load(write("x.csv", 'ann,"tea, hot",milk\n,tea\nbob,,tea\n'), format="adjacency")
    assert sets(data) == {"ann": {"tea, hot", "milk"}, "bob": {"tea"}}
    assert data.missing_dropped == 1


def test_baskets(write):
    data = load(write("retail.dat", "1 2 3 \n\n2 2 \n"), format="baskets")
    assert sets(data) == {0: {"1", "2", "3"}, 2: {"2"}}
    assert (data.empty_users_dropped, data.duplicates_removed) == (1, 1)
    for name, content in [
        ("x.csv", "citrus fruit,milk\nmilk"),
        ("x.csv", '"citrus fruit", "milk"\nmilk\n'),
        ("x.dat", "fruit;milk\nmilk"),
        ("x.tsv", "citrus fruit\tmilk\nmilk"),
    ]:
        read = sets(load(write(name, content), format="baskets"))
        assert read[1] == {"milk"} and len(read[0]) == 2
    path = write("head.txt", "items\n1 2\n")
    assert sets(load(path, format="baskets", header=True)) == {0: {"1", "2"}}


def test_words_in_the_stated_order(write):
    path = write("x.csv", 'id,text\n1,"A<br />b a &lt;i&gt;DON\'T &amp;<p\n>é"\n2,!\n1,z\n')
    raw = load(path, format="text")
    assert sets(raw) == {0: {"a", "b", "lt", "i", "gt", "don't", "amp"}, 2: {"z"}}
    assert raw.empty_users_dropped == 1
    undone = load(path, format="text", text="text", unescape=True)
    assert sets(undone)[0] == {"a", "b", "don't"}
    grouped = load(path, format="text", user="id", text=1, unescape=True)
    assert sets(grouped) == {"1": {"a", "b", "don't", "z"}}


def test_tag_hidden_by_entities_and_lower_case_to_ascii(write):
    path = write("x.csv", "text\n&lt;b class=x&gt;K\u0130 1&lt;2\n")  # Kelvin sign, dotted I
    assert sets(load(path, format="text", unescape=True)) == {
        0: {"k\u0131".replace("\u0131", "i"), "1", "2"}
    }


def test_several_text_columns_and_plain_lines(write):
    path = write("x.csv", "title,body,t\na,b,1\nc,,2\n")
    expected = {0: {"a", "b"}, 1: {"c"}}
    assert sets(load(path, format="text", text="title,body")) == expected
    assert sets(load(path, format="text", text=["title", 1])) == expected
    assert sets(load(write("x.txt", "One, two\n\nthree\n"), format="text")) == {
        0: {"one", "two"},
        2: {"three"},
    }


def test_posts_xml(write):
    rows = [
        '<row Id="1" OwnerUserId="7" Title="Good ale" Body="&lt;p&gt;It &amp;amp; I&lt;/p&gt;" />',
        '<row Id="2" OwnerUserId="7" Body="ale" />',
        '<row Id="3" Body="nobody" />',
        '<row Id="4" OwnerUserId="8" Body="&lt;p&gt;" />',
    ]
    xml = '\ufeff<?xml version="1.0" encoding="utf-8"?>\n<posts>' + "\n".join(rows) + "</posts>"
    data = load(write("Posts.xml.gz", gzip.compress(xml.encode())), format="posts-xml")
    assert sets(data) == {"7": {"good", "ale", "it", "i"}}
    assert (data.missing_dropped, data.empty_users_dropped) == (1, 1)


def test_preset_applies_its_layout_and_arguments_overrule(write, tmp_path, monkeypatch):
    row = '{},"{}",{},1.0,0\n'
    content = "".join(
        row.format(*x) for x in [(1, "A, B", "purchase"), (1, "C", "play"), (2, "C", "purchase")]
    )
    path = write("steam/steam-200k.csv.gz", gzip.compress(content.encode()))
    assert sets(load(path, preset="steam")) == {"1": {"A, B"}, "2": {"C"}}
    monkeypatch.setenv("WGM_DATA", str(tmp_path))
    assert sets(load(preset="steam")) == {"1": {"A, B"}, "2": {"C"}}
    assert sets(load(preset="steam", user=1, item=0)) == {"A, B": {"1"}, "C": {"2"}}
    assert loading.data_folder() == tmp_path


def test_large_file_with_quoted_line_breaks_is_whole(write):
    rows = 60_000
    body = "".join(f'u{i % 5000},"i,{i % 977}\nx"\n' for i in range(rows))
    data = load(write("big.csv", "user,item\n" + body))
    assert (data.num_users, data.num_items) == (5000, 977)
    assert data.num_pairs + data.duplicates_removed == rows


LABEL = strategies.text(
    strategies.one_of(
        strategies.sampled_from("ab 0\",;\t\n\r'\0"), strategies.characters(codec="utf-8")
    ),
    max_size=6,
)


@given(strategies.lists(strategies.tuples(LABEL, LABEL), min_size=1, max_size=12))
@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_what_a_csv_writer_wrote_is_read_back(write, rows):
    """Any labels, as Python's own writer quotes them; rows with an empty one are dropped."""
    text = io.StringIO(newline="")
    csv.writer(text).writerows([("user", "item"), *rows])
    path = write("x.csv", text.getvalue())
    expected = {}
    for user, item in rows:
        if user and item:
            expected.setdefault(user, set()).add(item)
    if expected:
        data = load(path)
        assert sets(data) == expected
        assert data.missing_dropped == sum(not (user and item) for user, item in rows)
    else:
        with pytest.raises(loading.DataError, match="no users"):
            load(path)
