"""Grid files: cells, names, and what is refused."""

import copy
from importlib.resources import files
from pathlib import Path

import pytest

from experiments.sweep import load_grid, parse_grid
from theory import InvalidInput

BASE = {
    "data": {"kind": "zipf_profile", "s": 2, "C": 8, "N": 1000},
    "privacy": {"eps": 1, "delta": 1e-5, "max_items_per_user": 1},
}


def changed(**tables):
    grid = copy.deepcopy(BASE)
    for name, keys in tables.items():
        grid[name] = {**grid.get(name, {}), **keys} if isinstance(keys, dict) else keys
    return grid


def names(grid):
    return [cell.name for cell in parse_grid(grid).cells]


def test_example_is_valid_and_documented():
    path = Path(str(files("experiments.sweep") / "example.toml"))
    assert len(load_grid(path).cells) == 2 * 2 * 2 * 3 * 2
    documented = Path(__file__).parents[2].joinpath("docs", "sweeps.md").read_text()
    shown = documented.split("```toml\n")[1].split("```")[0]
    told = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    assert "\n".join(told).strip() == shown.strip()


def test_product_in_order_with_eps_fastest():
    grid = parse_grid(
        changed(data={"s": [1.5, 2]}, privacy={"eps": [1, 0.1], "max_items_per_user": ["max", 3]})
    )
    found = [(c.group.data.settings["s"], c.group.max_items_per_user, c.eps) for c in grid.cells]
    assert found == [(s, k, e) for s in (1.5, 2) for k in ("max", 3) for e in (1, 0.1)]
    assert len(grid.groups) == 4
    assert len(set(names(changed(data={"s": [1.5, 2]})))) == 2


def test_name_does_not_depend_on_order_or_spelling():
    base = names(BASE)
    for n in (1e3, 1000.0):
        assert names(changed(data={"N": n})) == base
    assert names(changed(privacy={"eps": 1.0, "max_items_per_user": 1.0})) == base
    reordered = {t: dict(reversed(keys.items())) for t, keys in reversed(BASE.items())}
    assert names(reordered) == base
    assert names(changed(run={"trials": 1e3, "seed": 0.0, "beta": 0.05})) == base
    zero = names(changed(privacy={"eps": 0}))
    assert names(changed(privacy={"eps": -0.0})) == zero


@pytest.mark.parametrize(
    "table, key, value",
    [
        ("data", "s", 2.5),
        ("data", "C", 9),
        ("data", "N", 1001),
        ("data", "data_seed", 1),
        ("data", "set_sizes", {"law": "geometric", "mean": 2}),
        ("privacy", "eps", 1.5),
        ("privacy", "delta", 1e-6),
        ("privacy", "max_items_per_user", "max"),
        ("privacy", "method", "full"),
        ("run", "beta", 0.1),
        ("run", "trials", 1001),
        ("run", "seed", 1),
    ],
)
def test_name_depends_on_every_parameter(table, key, value):
    assert names(changed(**{table: {key: value}})) != names(BASE)


def test_name_is_the_same_for_ever():
    # A change here orphans every stored cell: raise SCHEMA if it is meant.
    assert names(BASE) == ["d66ce222f2d00742"]


def test_duplicates_count_once():
    assert len(names(changed(privacy={"eps": [1, 1.0, 2, 1e0]}, data={"N": [1e3, 1000]}))) == 2
    law = {"law": "geometric", "mean": 2}
    laws = [law, {**law, "mean": 2.0, "spread": 7}]  # spread has no effect here
    assert len(names(changed(data={"set_sizes": laws}))) == 1
    assert names({**BASE, "data": [BASE["data"], BASE["data"]]}) == names(BASE)


def test_max_and_number_are_two_cells():
    grid = parse_grid(changed(privacy={"max_items_per_user": ["max", 7, 7.0]}))
    assert [group.max_items_per_user for group in grid.groups] == ["max", 7]


@pytest.mark.parametrize(
    "tables, message",
    [
        ({"privacy": {"eps": -1}}, "privacy.eps = -1: must be a number in [0, 1e5]"),
        ({"privacy": {"eps": [1, float("nan")]}}, "privacy.eps = nan: must be a number in [0,"),
        ({"privacy": {"eps": [[1]]}}, "privacy.eps = [1]: must be a value or a flat list"),
        ({"privacy": {"eps": []}}, "privacy.eps = []: must be a value or a list of at least one"),
        ({"privacy": {"eps": True}}, "privacy.eps = True: must be a number in [0, 1e5]"),
        ({"privacy": {"delta": 0.6}}, "privacy.delta = 0.6: must be in (0, 0.5]"),
        ({"privacy": {"max_items_per_user": 2.5}}, "privacy.max_items_per_user = 2.5: must be a w"),
        (
            {"privacy": {"max_items_per_user": "all"}},
            "all: must be a whole number from 1 to 1e9, o",
        ),
        ({"privacy": {"method": "half"}}, "privacy.method = half: must be one of split, full"),
        ({"privacy": {"epsilon": 1}}, "privacy.epsilon = 1: is not a key of [privacy]; its keys"),
        ({"run": {"trials": 0}}, "run.trials = 0: must be a whole number of at least 1"),
        ({"run": {"seed": -1}}, "run.seed = -1: must be a whole number of at least 0"),
        ({"run": {"beta": 1}}, "run.beta = 1: must be in (0, 1)"),
        ({"run": {"mechanism": "wgn"}}, "run.mechanism = wgn: must be one of wgm"),
        ({"data": {"s": 1}}, "data.s = 1: must be a finite number above 1"),
        ({"data": {"C": 0.5}}, "data.C = 0.5: must be a finite number of at least 1"),
        ({"data": {"kind": "zipf"}}, "data.kind = zipf: must be one of zipf_profile, zipf_draws"),
        ({"data": {"support": 5}}, "data.support = 5: is not a key of [data]; its keys are kind"),
        ({"data": {"set_sizes": "constant"}}, "data.set_sizes = constant: must be an inline table"),
        ({"data": {"set_sizes": {"law": "flat"}}}, "data.set_sizes.law = flat: must be one of con"),
        ({"data": {"set_sizes": {"mode": 3}}}, "data.set_sizes.mode = 3: is not a key of set_siz"),
        ({"data": {"set_sizes": {"mean": "8"}}}, "data.set_sizes.mean = 8: must be a finite num"),
        ({"data": 3}, "data = 3: must be a table [data] or several tables [[data]]"),
        ({"extra": 1}, "extra = 1: is not a table of a grid; its tables are data, privacy, run"),
        ({"run": {"trials": list(range(1, 100_003))}}, "cells = 100002: must be at most 100000"),
    ],
)
def test_refused_in_one_line(tables, message):
    with pytest.raises(InvalidInput) as caught:
        parse_grid(changed(**tables))
    assert message in str(caught.value) and "\n" not in str(caught.value)


def test_missing_keys_are_named():
    without = changed()
    del without["privacy"]["delta"]
    with pytest.raises(InvalidInput, match="privacy.delta.*must be given"):
        parse_grid(without)
    with pytest.raises(InvalidInput, match="data.kind.*must be given"):
        parse_grid({"privacy": BASE["privacy"]})


@pytest.mark.parametrize("content", [b"eps = = 1", b"\xff\xfe\x00binary", None])
def test_unreadable_grid_file(tmp_path, content):
    path = tmp_path / "grid.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InvalidInput, match="grid = .*: must be") as caught:
        load_grid(path)
    assert "\n" not in str(caught.value)


def test_file_cells_are_named_by_content_not_by_place(tmp_path):
    def grid_in(folder, content):
        folder.mkdir()
        (folder / "buys.csv").write_text(content)
        told = {**BASE, "data": {"kind": "file", "paths": "buys.csv", "user": 0, "item": "what"}}
        return parse_grid(told, folder)

    here = grid_in(tmp_path / "a", "who,what\nann,tea\n")
    there = grid_in(tmp_path / "b", "who,what\nann,tea\n")
    edited = grid_in(tmp_path / "c", "who,what\nann,milk\n")
    assert here.name == there.name != edited.name
    assert str(tmp_path) not in str(here.cells[0].parameters)
    assert here.groups[0].data.name == "buys.csv"


def test_file_must_exist_and_preset_be_known(tmp_path, monkeypatch):
    def parse(**keys):
        return parse_grid({**BASE, "data": {"kind": "file", **keys}}, tmp_path)

    with pytest.raises(InvalidInput, match="data.paths = no.csv: must be a file or folder"):
        parse(paths="no.csv")
    with pytest.raises(InvalidInput, match="data.paths = .*: must be given, unless a preset"):
        parse()
    with pytest.raises(InvalidInput, match="data.preset = stem: must be one of steam"):
        parse(preset="stem")
    (tmp_path / "retail").mkdir()
    (tmp_path / "retail" / "a.txt").write_text("1 2 3\n2 3\n")
    monkeypatch.setenv("WGM_DATA", str(tmp_path))
    (spec,) = (group.data for group in parse(preset="retail").groups)
    assert spec.name == "retail" and spec.build().num_pairs == 5


@pytest.mark.parametrize(
    "data, pairs",
    [
        ({"kind": "zipf_profile", "s": 2, "C": 8, "N": 500}, 500),
        ({"kind": "zipf_draws", "s": 1.2, "N": 500, "support": 99}, 500),
        ({"kind": "hard_zipf", "s": 2, "C": 1, "N": 500}, 500),
        ({"kind": "singletons", "N": 500}, 500),
        ({"kind": "equal_frequencies", "num_items": 5, "frequency": 100}, 500),
    ],
)
def test_every_kind_builds(data, pairs):
    (spec,) = (group.data for group in parse_grid({**BASE, "data": data}).groups)
    assert spec.build().num_pairs == pairs
