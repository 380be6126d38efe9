"""Sweeps: resume after a kill, failures, refusals, what lies in the folder."""

import hashlib
import json
import math
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from experiments.sweep import Measured, parse_grid, store, sweep
from theory import InvalidInput


def grid_of(num_groups=12, eps=(1.0,), **privacy):
    return parse_grid(
        {
            "data": {"kind": "singletons", "N": list(range(1, num_groups + 1))},
            "privacy": {"eps": list(eps), "delta": 1e-5, "max_items_per_user": "max", **privacy},
        }
    )


class Fake:
    """Numbers that are a function of the cell; some groups or cells fail."""

    def __init__(self, fails=lambda group: False, offset=0.0):
        self.calls, self.fails, self.offset = [], fails, offset

    def __call__(self, group):
        self.calls.append((group.data.settings["N"], group.eps))
        if self.fails(group):
            raise RuntimeError("cannot read /home/zoe/secret folder/x.csv\nline two")
        size = group.data.settings["N"]
        return [
            Measured(
                {
                    "mm_mean": math.sin(size * e) + self.offset,
                    "upper": math.inf if size == 2 else 1,
                    "exact_mean": None,
                    "max_items_per_user": size,
                    "sampler": "fake",
                    "run_seconds": len(self.calls),
                },
                {"missing_mass": np.full(3, e)},
            )
            for e in group.eps
        ]


def tables(folder):
    return [(folder / name).read_bytes() for name in ("results.parquet", "results.csv")]


KILLED = """
    import os, sys
    sys.path[:0] = {path!r}
    from test_sweep_runner import Fake, grid_of
    from experiments.sweep import sweep
    from pathlib import Path

    class Killed(Fake):
        def __call__(self, group):
            if len(self.calls) == 3:
                os._exit(9)
            return super().__call__(group)

    sweep(grid_of(), Path({folder!r}), measure=Killed())
"""


def test_killed_after_3_of_12_computes_9_and_merges_the_same_bytes(tmp_path):
    script = KILLED.format(
        path=[str(Path(__file__).parent), str(Path(__file__).parents[2])],
        folder=str(tmp_path / "killed"),
    )
    ended = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], timeout=120)
    assert ended.returncode == 9
    assert len(list((tmp_path / "killed" / "cells").glob("*.json"))) == 3
    assert not (tmp_path / "killed" / "results.csv").exists()

    resumed = Fake()
    result = sweep(grid_of(), tmp_path / "killed", measure=resumed)
    whole = sweep(grid_of(), tmp_path / "whole", measure=Fake())
    assert [size for size, _ in resumed.calls] == list(range(4, 13))
    assert (result.computed, result.skipped, result.total) == (9, 3, 12)
    assert (whole.computed, whole.skipped) == (12, 0)
    assert result.ok and tables(tmp_path / "killed") == tables(tmp_path / "whole")


def test_group_is_recomputed_whole_but_only_missing_cells_written(tmp_path):
    grid = grid_of(2, eps=(0.5, 1, 2))
    sweep(grid, tmp_path, measure=Fake())
    before = tables(tmp_path)
    paths = [tmp_path / "cells" / f"{cell.name}.json" for cell in grid.cells]
    kept = paths[0].stat().st_mtime_ns
    paths[1].unlink()
    again = Fake()
    result = sweep(grid, tmp_path, measure=again)
    assert again.calls == [(1, (0.5, 1.0, 2.0))] and result.computed == 1
    assert paths[0].stat().st_mtime_ns == kept and tables(tmp_path) == before


def test_merged_table(tmp_path):
    grid = grid_of(3, eps=(2, 1))
    result = sweep(grid, tmp_path, measure=Fake())
    frame = pl.read_parquet(result.table)
    assert frame["cell"].to_list() == [cell.name for cell in grid.cells]
    assert list(zip(frame["N"], frame["eps"], strict=True)) == [
        (n, e) for n in (1, 2, 3) for e in (2.0, 1.0)
    ]
    assert "run_seconds" not in frame.columns
    assert frame["max_items_per_user"].to_list() == [1, 1, 2, 2, 3, 3]  # what "max" was
    assert frame["upper"].to_list() == [1, 1, math.inf, math.inf, 1, 1]
    assert frame["exact_mean"].dtype == pl.Float64 and frame["exact_mean"].null_count() == 6
    assert frame["mm_mean"].to_list() == [math.sin(n * e) for n in (1, 2, 3) for e in (2, 1)]
    csv = pl.read_csv(tmp_path / "results.csv", schema_overrides=frame.schema)
    assert csv.equals(frame)


def test_failing_cell_is_recorded_and_others_go_on(tmp_path):
    grid = grid_of(3, eps=(0.5, 1))
    bad = Fake(fails=lambda group: group.data.settings["N"] == 2 and 1.0 in group.eps)
    result = sweep(grid, tmp_path, measure=bad)
    assert not result.ok and result.computed == 6
    (failure,) = result.failures
    assert failure.cell == grid.cells[3].name and "eps=1 " in failure.label
    assert failure.error.startswith("RuntimeError: cannot read") and "\n" not in failure.error
    record = store.read_json(tmp_path / "cells" / f"{failure.cell}.json")
    assert record["status"] == "failed" and record["where"]
    assert "zoe" not in json.dumps(record)
    assert pl.read_parquet(result.table).height == 5
    manifest = store.read_json(tmp_path / "manifest.json")
    assert manifest["status"] == "failures" and manifest["failures"][0]["cell"] == failure.cell

    fixed = Fake()
    again = sweep(grid, tmp_path, measure=fixed)
    assert again.ok and again.computed == 1 and fixed.calls == [(2, (0.5, 1.0))]
    whole = tmp_path / "whole"
    sweep(grid, whole, measure=Fake())
    assert tables(tmp_path) == tables(whole)
    assert store.read_json(tmp_path / "manifest.json")["failures"] == []


def test_all_cells_fail(tmp_path):
    sweep(grid_of(1), tmp_path, measure=Fake())
    (tmp_path / "cells" / f"{grid_of(1).cells[0].name}.json").unlink()
    result = sweep(grid_of(1), tmp_path, measure=Fake(fails=lambda group: True))
    assert result.table is None and len(result.failures) == 1
    assert not (tmp_path / "results.csv").exists()  # no stale table


def test_too_few_rows_is_a_failure(tmp_path):
    result = sweep(grid_of(1, eps=(1, 2)), tmp_path, measure=lambda group: [])
    assert len(result.failures) == 2 and "ValueError" in result.failures[0].error


def test_interrupt_is_not_a_failure(tmp_path):
    def interrupted(group):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep(grid_of(1), tmp_path, measure=interrupted)
    assert not list((tmp_path / "cells").iterdir())


def test_refuses_another_grid_unless_told(tmp_path):
    sweep(grid_of(2), tmp_path, measure=Fake())
    before = sorted((p, p.read_bytes()) for p in tmp_path.rglob("*") if p.is_file())
    with pytest.raises(InvalidInput, match="out = .*holds results of another grid"):
        sweep(grid_of(3), tmp_path, measure=Fake())
    assert sorted((p, p.read_bytes()) for p in tmp_path.rglob("*") if p.is_file()) == before
    result = sweep(grid_of(3), tmp_path, measure=Fake(), accept_other_version=True)
    assert (result.computed, result.skipped) == (1, 2)


def test_refuses_another_version_unless_told(tmp_path):
    sweep(grid_of(2), tmp_path, measure=Fake())
    for path in tmp_path.rglob("*.json"):
        path.write_bytes(path.read_bytes().replace(b'"jax": "', b'"jax": "0.'))
    with pytest.raises(InvalidInput, match=r"another version \(jax 0\..* there, .* here\)"):
        sweep(grid_of(2), tmp_path, measure=Fake())
    result = sweep(grid_of(2), tmp_path, measure=Fake(), accept_other_version=True)
    assert result.computed == 0
    manifest = store.read_json(tmp_path / "manifest.json")
    assert manifest["versions"] == store.versions()
    assert [v["jax"] for v in manifest["other_versions"]] == ["0." + store.versions()["jax"]]


@pytest.mark.parametrize("content", [b"{", b"[]", None])
def test_cells_without_a_usable_manifest_are_refused(tmp_path, content):
    sweep(grid_of(2), tmp_path, measure=Fake())
    if content is None:
        (tmp_path / "manifest.json").unlink()
    else:
        (tmp_path / "manifest.json").write_bytes(content)
    with pytest.raises(InvalidInput, match="another grid"):
        sweep(grid_of(2), tmp_path, measure=Fake())


def test_damaged_or_foreign_cell_is_computed_again(tmp_path):
    grid = grid_of(3)
    sweep(grid, tmp_path, measure=Fake())
    before = tables(tmp_path)
    first, second, third = (tmp_path / "cells" / f"{cell.name}.json" for cell in grid.cells)
    first.write_bytes(first.read_bytes()[:40])
    second.write_bytes(third.read_bytes())
    again = Fake()
    sweep(grid, tmp_path, measure=again)
    assert [size for size, _ in again.calls] == [1, 2] and tables(tmp_path) == before


def test_unwritable_folder_is_refused_before_any_work(tmp_path):
    (tmp_path / "taken").write_text("a file")
    fake = Fake()
    for folder in (tmp_path / "taken", tmp_path / "taken" / "inside"):
        with pytest.raises(InvalidInput, match="out = .*: must be a folder that can be") as caught:
            sweep(grid_of(1), folder, measure=fake)
        assert "\n" not in str(caught.value)
    if os.name == "posix" and os.getuid() != 0:
        (tmp_path / "sealed").mkdir(mode=0o555)
        with pytest.raises(InvalidInput, match="must be a folder"):
            sweep(grid_of(1), tmp_path / "sealed", measure=fake)
    assert fake.calls == []


def test_leftovers_are_removed_and_none_left(tmp_path):
    grid = grid_of(2)
    (tmp_path / "cells").mkdir()
    name = grid.cells[0].name
    (tmp_path / "cells" / f".{name}.json.12345678.tmp").write_text("half")
    (tmp_path / ".results.csv.12345678.tmp").write_text("half")
    result = sweep(grid, tmp_path, measure=Fake())
    assert result.computed == 2 and not list(tmp_path.rglob(".*"))


def test_keep_trials(tmp_path):
    grid = grid_of(2, eps=(1, 2))
    sweep(grid, tmp_path, measure=Fake())
    result = sweep(grid, tmp_path, measure=Fake(), keep_trials=True)
    assert result.computed == 4  # complete, but without what is now asked for
    for cell in grid.cells:
        frame = pl.read_parquet(tmp_path / "cells" / f"{cell.name}.trials.parquet")
        assert frame["missing_mass"].to_list() == [cell.eps] * 3
    assert sweep(grid, tmp_path, measure=Fake(), keep_trials=True).computed == 0


def test_progress_and_manifest(tmp_path):
    told = []
    grid, note = grid_of(2, eps=(1, 2)), lambda *entry: told.append(entry)
    result = sweep(grid, tmp_path, measure=Fake(), progress=note)
    assert [(done, total) for done, total, _ in told] == [(d, 4) for d in (0, 2, 2, 4, 4)]
    assert "singletons(N=2)" in told[2][2] and result.samplers == ("fake",)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert manifest["versions"] == store.versions() and manifest["sampler"] == ["fake"]
    assert manifest["seeds"] == [0] and manifest["settings"]["eps"] == [1.0, 2.0]
    assert manifest["status"] == "complete" and manifest["created"].endswith("+00:00")
    assert str(tmp_path) not in (tmp_path / "manifest.json").read_text()


# ---- store


def test_write_atomic_leaves_the_old_file_when_the_writer_fails(tmp_path):
    path = tmp_path / "a.bin"
    store.write_atomic(path, b"old")

    def broken(file):
        file.write(b"new")
        raise RuntimeError

    with pytest.raises(RuntimeError):
        store.write_atomic(path, broken)
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["a.bin"]
    store.write_atomic(path, lambda file: file.write(b"new"))
    assert path.read_bytes() == b"new"


def test_json_keeps_every_float(tmp_path):
    values = [math.inf, -math.inf, 5e-324, 0.1 + 0.2, -0.0]
    store.write_json(tmp_path / "a.json", {"v": np.array(values), "nan": math.nan})
    read = store.read_json(tmp_path / "a.json")
    assert list(map(repr, read["v"])) == list(map(repr, values)) and math.isnan(read["nan"])
    json.loads((tmp_path / "a.json").read_text(), parse_constant=lambda name: pytest.fail(name))


def test_new_results_folders_differ(tmp_path):
    folders = [store.new_results_folder(tmp_path / "out", "verify") for _ in range(3)]
    assert len(set(folders)) == 3 and all(folder.is_dir() for folder in folders)


def test_source_digest_is_of_the_source():
    assert len(store.versions()["source"]) == 16
    assert store.versions()["source"] != hashlib.sha256().hexdigest()[:16]
