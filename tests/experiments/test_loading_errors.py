"""Every bad file: one line that begins with its name and says what to do."""

import gzip
import os
import zipfile

import polars as pl
import pytest

from experiments.loading import PRESETS, DataError, load
from theory import InvalidInput

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256)) * 4
PAIRS = "user,item\n" + "".join(f"u{i},i{i % 7}\n" for i in range(2000))


def refusal(*paths, **options):
    with pytest.raises(DataError) as caught:
        load(*paths, **options)
    message = str(caught.value)
    assert message.isprintable() and len(message) < 1000
    return message


@pytest.fixture
def write(tmp_path):
    def _write(name, content):
        (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
        return tmp_path / name

    return _write


def test_missing_column_lists_the_columns(write):
    path = write("purchases.csv", "customer_id,sku,ts\nc1,s1,x\n")
    expected = "purchases.csv: no column 'user' (columns: customer_id, sku, ts); use --user-column"
    assert refusal(path) == expected
    assert refusal(path, user="user") == expected
    assert refusal(path, user="customer_id").endswith(
        "no column 'item' (columns: customer_id, sku, ts); use --item-column"
    )
    assert "no column 3 (numbers from 0" in refusal(path, user=0, item=3)
    assert "no column -1 " in refusal(path, user=-1, item=0)
    assert "use --text-column" in refusal(path, format="text")
    assert "'body'" in refusal(path, format="text", text="sku,body")
    two = write("two.csv", "customer,sku\nc,s\n")
    assert "no column 'user' (columns: customer, sku)" in refusal(two)


def test_many_columns_do_not_hide_the_advice(write):
    header = ",".join(f"column number {i} " + "x" * 10_000 for i in range(50))
    message = refusal(write("wide.csv", header + "\n" + ",".join("1" * 50)), user="u", item="i")
    assert message.endswith("use --user-column")


def test_no_header_and_several_columns_need_numbers(write):
    message = refusal(write("u.data", "196\t242\t3\t88\n186\t302\t3\t89\n"))
    assert message.startswith("u.data: no header") and "--user-column" in message


def test_ambiguous_column(write):
    assert "several columns 'a'" in refusal(write("x.csv", "a,a,b\n1,2,3\n"), user="a", item="b")


def test_missing_file_and_folder(tmp_path):
    assert refusal(tmp_path / "none.csv") == f"{tmp_path / 'none.csv'}: no such file or folder"
    assert "no data files in this folder" in refusal(tmp_path)
    (tmp_path / "steam").mkdir()
    assert "folders in it: steam" in refusal(tmp_path)
    assert "null" in refusal("a\0b")


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read everything")
def test_unreadable_file(write):
    path = write("x.csv", PAIRS)
    path.chmod(0)
    assert "ermission" in refusal(path)


@pytest.mark.parametrize("format", ["pairs", "adjacency", "baskets", "text"])
@pytest.mark.parametrize("name", ["photo.png", "photo.csv", "photo"])
def test_binary(write, format, name):
    assert refusal(write(name, PNG), format=format) == f"{name}: a binary file, not text"


def test_other_encodings(write):
    latin = write("x.csv", "user,item\nJosé,tea\n".encode("latin-1"))
    assert refusal(latin) == "x.csv: not UTF-8 text (byte 0xe9); save it as UTF-8"
    assert "UTF-16" in refusal(write("y.csv", "user,item\na,b\n".encode("utf-16")))
    cut = write("z.csv", "user,item\na,é".encode()[:-1])
    assert "not UTF-8" in refusal(cut)


@pytest.mark.parametrize("format", ["pairs", "adjacency", "baskets", "text", "posts-xml"])
def test_truncated_gzip_is_never_half_read(write, format):
    packed = gzip.compress(PAIRS.encode())
    for length in (len(packed) - 1, len(packed) // 2, 12, 5):
        message = refusal(write("x.csv.gz", packed[:length]), format=format)
        assert message.startswith("x.csv.gz: ") and "gzip" in message


def test_damaged_archives(write, tmp_path):
    packed = bytearray(gzip.compress(PAIRS.encode()))
    packed[-6] ^= 1
    assert "damaged gzip" in refusal(write("x.gz", bytes(packed)))
    assert "not a gz file" in refusal(write("y.csv.gz", PAIRS))
    with zipfile.ZipFile(tmp_path / "x.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.csv", PAIRS)
    whole = (tmp_path / "x.zip").read_bytes()
    assert "zip" in refusal(write("cut.zip", whole[:-30]))
    flipped = bytearray(whole)
    flipped[60] ^= 255
    assert "damaged" in refusal(write("flip.zip", bytes(flipped)))
    with zipfile.ZipFile(tmp_path / "e.zip", "w") as archive:
        archive.writestr("README.md", "")
    assert "no data files" in refusal(tmp_path / "e.zip")
    with zipfile.ZipFile(tmp_path / "t.xlsx", "w") as archive:
        archive.writestr("[Content_Types].xml", "<x/>")
    assert "office document" in refusal(tmp_path / "t.xlsx")
    nested = PAIRS.encode()
    for _ in range(5):
        nested = gzip.compress(nested)
    assert "compressed more than" in refusal(write("n.gz", nested))


def test_damaged_parquet(tmp_path, write):
    pl.DataFrame({"user": ["a"] * 50, "item": ["b"] * 50}).write_parquet(tmp_path / "x.parquet")
    content = (tmp_path / "x.parquet").read_bytes()
    assert "Parquet" in refusal(write("cut.parquet", content[:-20]))
    assert "Parquet" in refusal(tmp_path / "x.parquet", format="adjacency")
    structs = pl.DataFrame({"user": [{"a": 1}], "item": ["b"]})
    structs.write_parquet(tmp_path / "s.parquet")
    assert "holds no labels" in refusal(tmp_path / "s.parquet")


@pytest.mark.parametrize("format", ["pairs", "adjacency", "baskets", "text"])
@pytest.mark.parametrize("content", ["", "\n\n", "\ufeff"])
def test_empty_file(write, format, content):
    assert refusal(write("x.csv", content), format=format) == "x.csv: empty file"


def test_no_users(write):
    assert "no users" in refusal(write("x.csv", "user,item\n"))
    assert "none of 2 rows" in refusal(write("x.csv", "user,item\n,a\nb,\n"))


def test_only_empty_sets(write):
    message = refusal(write("x.txt", "u1\nu2\nu3\n"), format="adjacency")
    assert message == "x.txt: only empty sets: 3 users, none with an item"
    assert "only empty sets" in refusal(write("x.csv", "text\n!\n?\n"), format="text")
    assert "only empty sets" in refusal(write("x.csv", ",,\n,\n"), format="baskets")


def test_wrong_number_of_fields_names_the_line(write):
    path = write("x.csv", "user,item\nu1,a\nu2,b,c\n")
    assert refusal(path) == "x.csv: line 3 has 3 fields, the first 2"


def test_unclosed_quote(write):
    assert "never closed" in refusal(write("x.csv", 'user,item\nu1,"a\nu2,b\n'))


def test_xml(write):
    posts = '<?xml version="1.0"?><posts><row OwnerUserId="1" Body="x"/></posts>'
    assert "posts-xml" in refusal(write("Posts.xml", posts))
    assert "not well-formed" in refusal(write("p.xml", posts[:-4]), format="posts-xml")
    assert "not well-formed" in refusal(write("p.png", PNG), format="posts-xml")
    assert "no <row>" in refusal(write("p.xml", "<a/>"), format="posts-xml")
    nobody = write("p.xml", '<posts><row Body="x"/></posts>')
    assert "OwnerUserId" in refusal(nobody, format="posts-xml")
    bomb = '<!DOCTYPE b [<!ENTITY a "x">' + "".join(
        f'<!ENTITY a{i} "&a{i - 1 if i else ""};' + '&a;" >' for i in range(9)
    )
    bomb += ']><posts><row OwnerUserId="1" Body="&a8;"/></posts>'
    assert "DOCTYPE" in refusal(write("p.xml", bomb), format="posts-xml")


def test_one_bad_part_spoils_all(write):
    good, bad = write("a.csv", PAIRS), write("b.csv", "who,what\na,b\n")
    assert refusal(good, bad).startswith("b.csv: no column 'user'")


def test_arguments():
    with pytest.raises(InvalidInput, match="steam, imdb"):
        load("x", preset="stem")
    with pytest.raises(InvalidInput, match="must be one of pairs, adjacency"):
        load("x", format="json")
    with pytest.raises(InvalidInput, match="at least one file"):
        load()
    with pytest.raises(InvalidInput, match="separator"):
        load("x", separator="")
    with pytest.raises(InvalidInput, match="has no meaning for format baskets"):
        load("x", format="baskets", user="u")


def test_preset_without_collection(monkeypatch, tmp_path):
    monkeypatch.setenv("WGM_DATA", str(tmp_path))
    for name in PRESETS:
        assert "no such file or folder" in refusal(preset=name)
    monkeypatch.delenv("WGM_DATA")
    monkeypatch.setattr("experiments.loading.reading.data_folder", lambda: None)
    assert refusal(preset="steam").startswith("steam: no path given, and WGM_DATA")
