"""A scan in any number of passes gives what reading the whole table gives."""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings, strategies

from experiments.loading import DataError, blocks, load, scan
from theory import InvalidInput

FIELDS = ("frequencies", "multiplicity", "offsets", "sizes", "counts")
SIZES = ("num_users", "num_items", "num_pairs", "max_set_size")
SIZES += ("duplicates_removed", "missing_dropped")


@pytest.fixture
def write(tmp_path):
    def _write(name, content):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return _write


def assert_same(found, data):
    for name in FIELDS:
        np.testing.assert_array_equal(
            getattr(found.classes, name), getattr(data.item_classes, name)
        )
    for name in SIZES:
        assert getattr(found, name) == getattr(data, name), name


def check(monkeypatch, *paths, **options):
    """Same as load for several passes, in one block and in blocks of a few rows."""
    data = load(*paths, **options)
    for block, passes in ((1 << 25, 1), (1 << 25, 2), (64, 1), (17, 1), (200, 7)):
        monkeypatch.setattr(blocks, "BLOCK_BYTES", block)
        found = scan(*paths, passes=passes, **options)
        assert found.passes == passes
        assert_same(found, data)
    return data


def random_rows(seed, rows=120, users=20, items=20):
    rng = np.random.default_rng(seed)
    held = np.minimum(rng.zipf(1.5, rows), items)
    return [(f"u{i}", f"i{x}") for i, x in zip(rng.integers(0, users, rows), held, strict=True)]


def table(rows, *, header="user,item\n", mark=",", end="\n"):
    return header + "".join(mark.join(row) + end for row in rows)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("x.csv", {}),
        ("x.csv", {"end": "\r\n"}),
        ("x.tsv", {"mark": "\t", "header": "user\titem\n"}),
        ("x.dat", {"mark": "::", "header": "user::item\n"}),
        ("x.txt", {"mark": "   ", "header": "user  item\n"}),
        ("x.csv", {"header": "\ufeffuser,item\n"}),
        ("x.csv", {"header": "\n\nuser,item\n"}),
    ],
)
def test_separators_headers_and_line_ends(write, monkeypatch, name, options):
    data = check(monkeypatch, write(name, table(random_rows(1), **options)))
    assert data.duplicates_removed > 20 and data.max_set_size > 5


def test_missing_fields_and_blank_lines(write, monkeypatch):
    rows = 'user,item\nann,tea\n,tea\nann,\nbob\n\n\ncid,tea\n"",milk\nann,milk\n'
    for tail in ("", "\n", "\n\n\n", "\r\n\r\n", "dan,tea"):
        data = check(monkeypatch, write("x.csv", rows + tail))
        assert data.missing_dropped == 6
    check(
        monkeypatch, write("y.csv", "\n".join(["user,item", "a,b", *[""] * 40, "c,d", *[""] * 40]))
    )


def test_quoted_labels(write, monkeypatch):
    labels = ["a,b", "line\nbreak", 'quo"te', '"', "é😀", "line\r\nbreak", "NA", " ", "x" * 300]
    quoted = ['"' + label.replace('"', '""') + '"' for label in labels]
    rows = [(q, r) for i, q in enumerate(quoted) for r in quoted[i:]]
    data = check(monkeypatch, write("x.csv", table(rows)))
    assert data.num_items == data.num_users == len(labels)


def test_labels_stay_as_they_are_written(write, monkeypatch):
    data = check(monkeypatch, write("x.txt", "1 07\n1 7\n01 7\n1.0 7\n"))
    assert data.num_users == 3


def test_columns_by_number_without_header(write, monkeypatch):
    rows = [(item, "4", user) for user, item in random_rows(2)]
    check(monkeypatch, write("x.csv", table(rows, header="")), user=2, item=0, header=False)
    check(monkeypatch, write("x.csv", table(rows, header="i,n,u\n")), user="u", item="i")


def test_parts_and_folders(write, monkeypatch, tmp_path):
    parts = [write(f"all/{i}.csv", table(random_rows(i), header="user,item\n")) for i in range(3)]
    write("all/README.md", "nothing")
    data = check(monkeypatch, *parts)
    assert_same(scan(tmp_path / "all", passes=2), data)
    first, second = write("a.csv", "user,item\n1,2\n"), write("b.csv", "item,user\n8,9\n")
    check(monkeypatch, first, second)


def test_parquet(monkeypatch, tmp_path):
    monkeypatch.setattr(blocks, "_ROWS_OF_PARQUET", 70)
    rng = np.random.default_rng(3)
    users = pl.Series(rng.integers(0, 60, 500)).cast(pl.Int32)
    items = pl.Series([None if x == 3 else float(x) for x in rng.integers(0, 40, 500)])
    frame = pl.DataFrame({"n": items, "item": items.fill_null(np.nan), "user": users})
    frame.write_parquet(tmp_path / "a.parquet", row_group_size=110)
    data = check(monkeypatch, tmp_path / "a.parquet")
    assert data.missing_dropped > 0
    wide = frame.with_columns(pl.col("user").cast(pl.Int64) + 30)
    wide.write_parquet(tmp_path / "b.parquet")
    check(monkeypatch, tmp_path / "a.parquet", tmp_path / "b.parquet")
    texts = frame.select(pl.format("i{}", "n").cast(pl.Categorical).alias("item"), "user")
    texts.write_parquet(tmp_path / "c.parquet")
    check(monkeypatch, tmp_path / "c.parquet")


def test_passes_follow_from_the_memory_budget(write):
    path = write("x.csv", table(random_rows(5, rows=4000)))
    assert scan(path).passes == 1
    wide = write("y.csv", table([("u" * 1000, "i" * 1000)] * 40_000))
    assert scan(wide, memory_budget=2**27).passes == 2
    rows = blocks.PlainFile.peek("x", path, separator=None, header=None, asked=[]).rows
    assert abs(rows - 4001) < 10


_FIELDS = strategies.sampled_from(["a", "b", "1", "", '"x,y"', '"p\nq"', '""', " "])
_ROWS = strategies.lists(_FIELDS, min_size=1, max_size=3).map(",".join)
_TEXTS = strategies.text('ab1,"\n ', max_size=40) | strategies.lists(_ROWS).map("\n".join)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(_TEXTS, strategies.booleans(), strategies.sampled_from([5, 16, 1000]))
def test_any_file_is_refused_or_gives_what_load_gives(text, named, block):
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "BLOCK_BYTES", block)
        path = Path(folder, "x.csv")
        path.write_text(("user,item\n" if named else "") + text, newline="")
        options = {} if named else {"user": 0, "item": 1, "header": False}
        try:
            found = scan(path, passes=2, **options)
        except DataError:
            return
        assert_same(found, load(path, **options))


def refusal(*paths, **options):
    with pytest.raises(DataError) as caught:
        scan(*paths, **options)
    message = str(caught.value)
    assert message.isprintable() and len(message) < 1000
    return message


def test_packed_files_are_refused_with_advice(write):
    assert refusal(write("x.csv.gz", b"\x1f\x8b\x08\0")).startswith("x.csv.gz: a packed file")
    assert "unpack it" in refusal(write("x.zip", b"PK\x03\x04"))


@pytest.mark.parametrize("block", [1 << 25, 40])
def test_damage_is_an_error_that_names_the_line(write, monkeypatch, block):
    monkeypatch.setattr(blocks, "BLOCK_BYTES", block)
    good = table([("u1", "i1")] * 40)
    for header in ("user,item\n", ""):
        rows = header + "u1,i1\n" * 40 + "u2,i2,3\n" + "u1,i1\n" * 40
        line = 41 + bool(header)
        message = refusal(write("x.csv", rows), user=0, item=1, header=bool(header))
        assert message == f"x.csv: line {line} has 3 fields, the first 2"
    stray = refusal(write("x.csv", good + '5" disk,a\n' + 'b,3" disk\n'))
    assert stray.startswith("x.csv: line 42: a quotation mark inside a field")
    assert "line 42" in refusal(write("x.csv", good + '"5" disk,a\n' + '"",b\n'))
    assert "never closed" in refusal(write("x.csv", good + 'u,"a\n' + "u1,i1\n" * 300))
    assert "never closed" in refusal(write("x.csv", good + 'u,"a'))
    monkeypatch.setattr(blocks, "_LONGEST_ROW", 100)
    if block < 1000:
        long = refusal(write("x.csv", good + 'u,"a\n' + "u1,i1\n" * 300))
        assert "a row from line 42 on is longer than" in long
    assert "not UTF-8" in refusal(write("x.csv", good.encode() + "José,tea\n".encode("latin-1")))
    assert "old Mac" in refusal(write("x.csv", "user,item\ra,b"))
    assert "line 42: an old Mac" in refusal(write("x.csv", good + "u1,i1\r" + good))
    assert "line 42 has 3 fields" in refusal(write("x.csv", good + "u1,i1,"))
    assert "between spaces" in refusal(write("x.txt", 'user item\na b\n"a b" c\n'))


def test_files_without_data(write, tmp_path):
    for content in ("", "\n\n", "\ufeff"):
        assert refusal(write("x.csv", content)) == "x.csv: empty file"
    assert refusal(write("x.csv", "user,item\n")).endswith("none of 0 rows has a user and an item")
    assert "none of 2 rows" in refusal(write("x.csv", "user,item\n,a\nb,\n"))
    assert "no such file" in refusal(tmp_path / "none.csv")
    assert "no column 'user'" in refusal(write("x.csv", "who,what,n\na,b,1\n"))


def test_bad_parquet(tmp_path):
    path = tmp_path / "x.parquet"
    pl.DataFrame({"user": ["a"], "item": [["b"]]}).write_parquet(path)
    assert "one user and one item per row" in refusal(path)
    content = path.read_bytes()
    path.write_bytes(content[:-20])
    assert "Parquet" in refusal(path)


def test_a_file_that_changes_is_an_error(write, monkeypatch):
    path = write("x.csv", table(random_rows(1)))
    read = blocks.PlainFile.read

    def growing(self, columns, *, block_bytes):
        yield from read(self, columns, block_bytes=block_bytes)
        with path.open("a") as file:
            file.write("u,i\n")

    monkeypatch.setattr(blocks.PlainFile, "read", growing)
    assert refusal(path) == "x.csv: changed while it was read"


def test_bad_arguments(write):
    path = write("x.csv", "user,item\na,b\n")
    for bad in ({"passes": 0}, {"memory_budget": 5}, {"separator": ""}):
        with pytest.raises(InvalidInput, match=next(iter(bad))):
            scan(path, **bad)
    with pytest.raises(InvalidInput, match="paths"):
        scan()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from /proc")
def test_memory_stays_below_the_budget(tmp_path):
    """260 MB of text: load needs half a gigabyte and more, the scan less than half of it."""
    rng = np.random.default_rng(0)
    rows = 5_000_000
    frame = pl.DataFrame({"user": rng.integers(0, 2_000_000, rows)}).with_columns(
        item=pl.Series(np.minimum(rng.zipf(1.3, rows), 100_000))
    )
    frame = frame.select(
        pl.format("user-number-{}@example.org", "user").alias("user"),
        pl.format("article-number-{}-of-the-shop", "item").alias("item"),
    )
    path = tmp_path / "large.csv"
    frame.write_csv(path)
    assert path.stat().st_size > 2.5e8
    # Peak resident memory above that of the imports alone, in bytes. Not ru_maxrss: a child takes
    # its parent's over.
    code = (
        "import sys, polars, scipy.sparse\n"
        "from experiments.loading import load\n"
        "from experiments.loading.scan import scan\n"
        "status = lambda: dict(row.split(':') for row in open('/proc/self/status'))\n"
        "peak = lambda: int(status()['VmHWM'].split()[0]) * 1024\n"
        "before = peak()\n"
        "found = {call}\n"
        "print(found.num_pairs, peak() - before)\n"
    )
    calls = {
        "load": "load(sys.argv[1])",
        "scan": "scan(sys.argv[1], memory_budget=2**27)",
    }
    found = {}
    for name, call in calls.items():
        command = [sys.executable, "-c", code.format(call=call), str(path)]
        run = subprocess.run(command, check=True, capture_output=True, text=True)
        found[name] = tuple(map(int, run.stdout.split()))
    assert found["scan"][0] == found["load"][0]
    assert found["scan"][1] < 2**28 < 2**29 < found["load"][1]
