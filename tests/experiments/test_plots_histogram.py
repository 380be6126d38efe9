"""The histogram of the missing mass: its counts, and every reference in or beside the picture."""

import numpy as np
import polars as pl
import pytest

from experiments.plots.histogram import REFERENCES, mass_histogram
from theory import InvalidInput

MASSES = np.random.default_rng(0).normal(0.5, 0.01, 1000)
TRIALS = pl.concat(
    pl.DataFrame({"eps": [eps] * 1000, "trial": np.arange(1000), "missing_mass": MASSES + shift})
    for eps, shift in ((1.0, 0.0), (0.1, 0.3))
)
KNOWN = pl.DataFrame(
    {"eps": [1.0, 0.1], "lower_bound": [0.1, 0.78], "exact_mean": [0.5, 0.8],
     "certificate": [0.52, None], "upper_instance_star": [0.9, 1.7]}
)  # fmt: skip


def places(axis) -> list[float]:
    return [float(np.ravel(line.get_xdata())[0]) for line in axis.lines]


def test_counts_are_those_of_the_trials():
    figure, plotted = mass_histogram(TRIALS, KNOWN, title="<b> $x$")
    assert plotted.columns == ["eps", "from", "to", "trials"]
    for eps, shift in ((1.0, 0.0), (0.1, 0.3)):
        part = plotted.filter(pl.col("eps") == eps)
        assert part["trials"].sum() == 1000
        for low, high, count in part.select("from", "to", "trials").rows()[:-1]:
            assert count == np.count_nonzero((MASSES + shift >= low) & (MASSES + shift < high))
    assert len(figure.axes) == 2


def test_references_are_drawn_where_they_are_or_named_at_the_edge():
    figure, _ = mass_histogram(TRIALS, KNOWN)
    near, far = ({"exact_mean", "certificate"}, {"lower_bound", "upper_instance_star"})
    axis = figure.axes[0]
    lines = {places(axis)[i]: line.get_color() for i, line in enumerate(axis.lines)}
    values = KNOWN.row(0, named=True)
    assert lines == {values[name]: REFERENCES[name][1] for name in near}
    texts = {text.get_text(): text.get_color() for text in axis.texts}
    assert texts == {"← 10 %": REFERENCES["lower_bound"][1],
                     "90 % →": REFERENCES["upper_instance_star"][1]}  # fmt: skip
    assert far and all(axis.get_xlim()[0] < x < axis.get_xlim()[1] for x in lines)
    # At the other eps the lower bound is near, and the certificate is not known.
    assert sorted(places(figure.axes[1])) == [0.78, 0.8]
    assert [text.get_text() for text in figure.axes[1].texts] == ["170 % →"]


def test_one_value_and_nothing_known():
    figure, plotted = mass_histogram(
        pl.DataFrame({"eps": [1.0] * 3, "trial": [0, 1, 2], "missing_mass": [1.0] * 3}),
        pl.DataFrame({"eps": [1.0]}),
    )
    assert plotted["trials"].to_list() == [3] and not figure.axes[0].lines
    with pytest.raises(InvalidInput, match="missing_mass"):
        mass_histogram(pl.DataFrame({"eps": [1.0]}), KNOWN)
