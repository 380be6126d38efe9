"""The timing of laws by kept copies runs, and says what was timed."""

import pytest

from experiments.bench.count_laws import MECHANISMS, time_count_laws
from theory import UserItems

DATA = UserItems.from_sets([*[(0, 1, 2)] * 30, *[(0, 3)] * 15, *[(1,)] * 9])


def test_a_row_for_every_mechanism_and_one_for_nobody_clipped(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    rows = time_count_laws(DATA, max_items_per_user=2, repeats=2, seconds=1e-4)
    ways = [(row["mechanism"], row["max_items_per_user"]) for row in rows]
    assert ways == [*((name, 2) for name in MECHANISMS), ("wgm", 3)]
    assert rows[0]["times_wgm"] == pytest.approx(1, abs=1e-12)
    assert all(row["cpu_seconds_per_1000"] > 0 for row in rows)
    # Thirty users are clipped at 2, none at 3.
    assert rows[0]["open_slots"] > 0 == rows[-1]["open_slots"]
