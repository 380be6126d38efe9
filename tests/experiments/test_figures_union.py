"""Verdicts on the paper's sentences about set union, on frames made by hand; the plots."""

import math

import polars as pl
import pytest

from experiments.figures import set_union
from experiments.figures.record import full_caption
from experiments.figures.registry import figures
from experiments.figures.union_flow import flow_sentences, flow_table
from experiments.figures.union_statements import judge_items, judge_same, judge_within
from experiments.plots.union import flow_dots, union_panels
from theory import InvalidInput

DEFAULT = {
    "num_items": 9, "delta": 1e-5, "private": True, "kind": "integrated", "trials": 20, "seed": 0,
    "lower_bound": 0.05,
}  # fmt: skip


def rows(dataset, mechanism, masses, *, eps=1.0, width=0.0, released=None):
    """One mechanism on one data set: Delta0 -> missing mass, with an interval and a count."""
    return [
        {
            **DEFAULT, "dataset": dataset, "mechanism": mechanism, "eps": eps,
            "max_items_per_user": bound, "missing_mass": mass,
            "missing_mass_low": mass - width, "missing_mass_high": mass + width,
            "released": 10.0 if released is None else released, "released_low": 1.0,
            "released_high": 20.0,
        }
        for bound, mass in masses.items()
    ]  # fmt: skip


def pair(dataset, wgm, policy, *, eps=1.0, width=0.0, released=(10.0, 10.0), bounds=(1, 50)):
    """WGM and Policy Gaussian, the same at every Delta0 but the last."""
    first, last = bounds
    same = {first: 0.5}
    return [
        *rows(dataset, "wgm", {**same, last: wgm}, eps=eps, released=released[0]),
        *rows(
            dataset, "policy-gaussian", {**same, last: policy}, eps=eps, width=width,
            released=released[1],
        ),
    ]  # fmt: skip


def within(*parts):
    frame = pl.DataFrame([row for part in parts for row in part])
    [found] = judge_within(frame, 1.0, "Section 5.1, Figure 1")
    return found


# ---- within 5 %


@pytest.mark.parametrize(
    ("masses", "width", "verdict"),
    [
        ([(0.42, 0.4), (0.3, 0.4)], 0.0, "reproduced"),  # exactly 5 % is within
        ([(0.421, 0.4), (0.3, 0.4)], 0.0, "with reservation"),
        ([(0.421, 0.4), (0.42, 0.4), (0.43, 0.4)], 0.0, "not reproduced"),
        ([(0.415, 0.4), (0.3, 0.4)], 0.01, "with reservation"),  # the interval holds 5 %
        ([(0.425, 0.4), (0.426, 0.4)], 0.01, "with reservation"),
        ([(0.5, 0.4)], 0.01, "not reproduced"),
        ([(0.3, 0.4)], 0.01, "reproduced"),
    ],
)
def test_each_verdict_on_within_five_per_cent_occurs(masses, width, verdict):
    found = within(*(pair(f"set-{i}", *each, width=width) for i, each in enumerate(masses)))
    assert found.verdict == verdict
    assert found.source == "Section 5.1, Figure 1"
    assert (
        found.says == "missing mass of the WGM within 5 % of Policy Gaussian's at every Δ0, ε = 1"
    )


def test_the_numbers_name_who_holds_and_the_worst_with_its_interval():
    found = within(
        pair("near", 0.41, 0.4, width=0.001),
        pair("ahead", 0.3, 0.4),
        pair("far", 0.55, 0.4, width=0.004, bounds=(1, 300)),
        pair("further", 0.8, 0.4),
    )
    # 0.41 / 0.4 - 1, and 0.55 / 0.404 - 1 to 0.55 / 0.396 - 1; "ahead" is even at Delta0 = 1.
    assert found.number == (
        "2 of 4 data sets (near +2.5 %, ahead 0.0 %); not further +100.0 % at Δ0 = 50, "
        "far +37.5 % [36.1, 38.9] at Δ0 = 300"
    )
    assert "Further than 5 % at Δ0 = 50, 300 only." in found.note
    assert "Too few" not in found.note and "own complete" not in found.note


def test_where_nothing_comes_out_a_note_says_so():
    lost = [row | {"missing_mass": 0.999} for row in pair("lost", 0.4, 0.4)]
    assert "Nearly nothing comes out on lost, which" in within(lost, pair("a", 0.4, 0.4)).note
    assert "nothing" not in within(pair("a", 0.4, 0.4)).note


def test_two_policies_are_two_statements_and_others_none():
    frame = pl.DataFrame(
        [
            *pair("steam", 0.5, 0.4),
            *rows("steam", "policy-greedy", {1: 0.5, 50: 0.6}),
            *rows("steam", "dp-sips", {1: 0.1, 50: 0.1}),
            *rows("steam", "wgm (full)", {1: 0.9, 50: 0.9}),
        ]
    )
    gaussian, greedy = judge_within(frame, 1.0, "here")
    assert (gaussian.verdict, greedy.verdict) == ("not reproduced", "reproduced")
    assert "own complete data sets it holds on 0 of 1" in gaussian.note
    assert "Policy Greedy's" in greedy.says and "−" not in greedy.number
    assert judge_within(frame, 0.1, "here") == []


def test_without_an_interval_nothing_is_claimed():
    """Fewer than six trials: the limits are null, and a distance of 0 may be one of 50 %."""
    frame = pl.DataFrame(pair("a", 0.4, 0.4)).with_columns(
        pl.when(mechanism="policy-gaussian").then(None).otherwise("missing_mass_low")
        .alias("missing_mass_low"),
        pl.when(mechanism="policy-gaussian").then(None).otherwise("missing_mass_high")
        .alias("missing_mass_high"),
    )  # fmt: skip
    [found] = judge_within(frame, 1.0, "here")
    assert found.verdict == "with reservation"
    assert "Too few trials to tell on a." in found.note
    assert "[" not in found.number and "inf" not in found.number


@pytest.mark.parametrize(("wgm", "verdict"), [(0.0, "reproduced"), (0.1, "not reproduced")])
def test_a_policy_that_misses_nothing(wgm, verdict):
    assert within(pair("a", wgm, 0.0)).verdict == verdict


# ---- twice as many items


@pytest.mark.parametrize(
    ("ratios", "verdict"),
    [([2.0, 1.0], "reproduced"), ([1.8, 1.2, 1.2], "with reservation"), ([1.7], "not reproduced")],
)
def test_each_verdict_on_twice_as_many_items_occurs(ratios, verdict):
    parts = [pair(f"s{i}", 0.4, 0.4, released=(10.0, 10 * r)) for i, r in enumerate(ratios)]
    [found] = judge_items(pl.DataFrame([row for part in parts for row in part]), "here")
    assert found.verdict == verdict
    twice = sum(ratio >= 1.75 for ratio in ratios)
    assert found.number.startswith(f"1.75 times or more on {twice} of {len(ratios)} data sets")
    assert f"s0 {ratios[0]:.2f} (Policy Gaussian, Δ0 = 1)" in found.number


def test_less_than_one_item_is_nothing_to_compare_with():
    frame = pl.DataFrame(pair("a", 0.4, 0.4, released=(0.01, 5.0)))
    assert judge_items(frame, "here") == []


# ---- not qualitatively different


def both(dataset, large, small, opposite=False):
    """A data set at eps 1 and 0.1: (wgm, policy) of each; with 0.5 at Delta0 = 1, or with 0.1."""
    made = [*pair(dataset, *large), *pair(dataset, *small, eps=0.1)]
    for row in made:
        if opposite and row["eps"] == 0.1 and row["max_items_per_user"] == 1:
            row |= dict.fromkeys(("missing_mass", "missing_mass_low", "missing_mass_high"), 0.1)
    return made


def same(*parts):
    [found] = judge_same(pl.DataFrame([row for part in parts for row in part]), "here")
    return found


def test_each_verdict_on_not_qualitatively_different_occurs():
    alike = [both("a", (0.41, 0.4), (0.4, 0.4)), both("b", (0.48, 0.4), (0.44, 0.4))]
    found = same(*alike)
    assert found.verdict == "reproduced" and found.number == "same conclusions on 2 of 2 data sets"
    flips = both("c", (0.49, 0.4), (0.4, 0.4))
    found = same(*alike, flips)
    assert found.verdict == "with reservation"
    assert found.number == (
        "same conclusions on 2 of 3 data sets; not on "
        "c (within 5 % fails and holds, +22.5 % and 0.0 %)"
    )
    found = same(alike[0], flips, both("d", (0.41, 0.4), (0.41, 0.4), opposite=True))
    assert found.verdict == "not reproduced"
    assert "d (Δ0 = 1 leaves +22.0 % and −75.6 %)" in found.number
    assert judge_same(pl.DataFrame(pair("a", 0.4, 0.4)), "here") == []


# ---- the flow


def everyone(dataset, flow, wgm, full, policy, *, eps=1.0, width=0.0):
    return [
        *rows(dataset, "wgm", {1: wgm + 0.1, 50: wgm}, eps=eps),
        *rows(dataset, "wgm (full)", {1: full, 50: full + 0.1}, eps=eps),
        *rows(dataset, "policy-gaussian", {1: 0.95, 50: policy}, eps=eps, width=width),
        *rows(dataset, "policy-greedy", {1: 0.95, 50: 0.9}, eps=eps, width=width),
        *rows(dataset, "bernoulli-flow", {300: flow}, eps=eps),
    ]


def test_the_flow_is_compared_with_the_best_of_the_others():
    good = everyone("a", 0.3, 0.5, 0.4, 0.6)
    frame = pl.DataFrame(good)
    assert flow_sentences(frame) == [
        "It leaves less than the WGM in 1 of 1 cases, 0.750 to 0.750 of it at ε = 1.",
        "It leaves less than the policies in 1 of 1 cases, 0.500 to 0.500 of it at ε = 1.",
    ]
    # Ahead by less than the interval of the policy is not clearly ahead.
    close = everyone("b", 0.3, 0.5, 0.4, 0.301, width=0.01)
    wgm, policies = flow_sentences(pl.DataFrame([*good, *close]))
    assert "2 of 2 cases, 0.750 to 0.750" in wgm
    assert policies.startswith("It leaves less than the policies in 1 of 2 cases, 0.500 to 0.997")
    assert policies.endswith("; not clearly less on b (0.997 at ε = 1).")
    incomplete = frame.filter(pl.col("mechanism") != "bernoulli-flow")
    assert flow_sentences(incomplete) == [] and flow_table(incomplete).is_empty()


def test_two_rounds_are_compared_with_one_and_drawn_where_they_are_known():
    frame = pl.DataFrame([*everyone("a", 0.3, 0.5, 0.4, 0.6), *everyone("b", 0.2, 0.4, 0.3, 0.3)])
    assert "bernoulli-flow-2" not in set(flow_dots(flow_table(frame), titles={})[1]["series"])
    more = pl.DataFrame(rows("a", "bernoulli-flow-2", {300: 0.27}))
    both = pl.concat([frame, more])
    assert flow_sentences(both)[:2] == flow_sentences(frame)
    assert flow_sentences(both)[2] == (
        "Two rounds leave less than one in 1 of 1 cases, 0.900 to 0.900 of it at ε = 1."
    )
    figure, data = flow_dots(flow_table(both), titles={})
    own = data.filter(series="bernoulli-flow-2")
    assert own.select("dataset", "y", "at").rows() == [("a", 0.27, 300)]
    drawn = {(float(x), float(y)) for dots in figure.axes[0].collections
             for x, y in dots.get_offsets()}  # fmt: skip
    assert drawn == set(data.select("y", "place").iter_rows())
    assert "bernoulli-flow-2" in [text.get_text() for text in figure.legends[0].get_texts()]
    [spec] = [spec for spec in set_union.SPECS if spec.name == "bernoulli-flow"]
    assert "Two rounds: means of 20 trials" in full_caption(spec, both, [])
    assert "Two rounds" not in full_caption(spec, frame, [])
    tasks = spec.tasks(["steam"], 20, 3)
    [task] = [task for task in tasks if task.settings["mechanisms"] == ["bernoulli-flow-2"]]
    assert (task.settings["trials"], task.settings["seed"]) == (4, 3)


def test_the_flow_is_drawn_beside_the_best_of_the_others():
    frame = pl.DataFrame([*everyone("a", 0.3, 0.5, 0.4, 0.6), *everyone("$b", 0.2, 0.4, 0.3, 0.3)])
    table = flow_table(frame)
    assert table.filter(dataset="a").select("series", "y", "at").rows() == [
        ("[L2]", 0.05, None), ("bernoulli-flow", 0.3, 300), ("best policy", 0.6, 50),
        ("wgm (full)", 0.4, 1), ("wgm", 0.5, 50),
    ]  # fmt: skip
    figure, data = flow_dots(table, titles={})
    assert data.drop("place").equals(table)
    # The data set that WGM serves best is on top.
    assert dict(data.select("dataset", "place").iter_rows()) == {"a": 0.0, "$b": 1.0}
    [axes] = figure.axes
    assert [text.get_text() for text in axes.get_yticklabels()] == ["a", r"\$b"]
    drawn = {(float(x), float(y)) for dots in axes.collections for x, y in dots.get_offsets()}
    assert drawn == set(data.select("y", "place").iter_rows())
    with pytest.raises(InvalidInput, match="at least one row"):
        flow_dots(table.head(0), titles={})


# ---- panels


def test_panels_show_every_number_of_one_eps():
    names = ["steam", "b", "c", "d"]
    made = [row for name in names for row in everyone(name, 0.3, 0.5, 0.4, 0.6, width=0.01)]
    made += everyone("steam", 0.9, 0.9, 0.9, 0.9, eps=0.1)
    frame = pl.DataFrame(made)
    figure, data = union_panels(frame, eps=1.0, titles={"steam": "steam\nSteam Games"})
    assert data["dataset"].unique(maintain_order=True).to_list() == names
    assert set(data["eps"]) == {1.0}
    shown = [axes for axes in figure.axes if axes.axison]
    assert len(shown) == 8 and len(figure.axes) == 12
    titles = [axes.get_title() for axes in shown if axes.get_title()]
    assert titles == ["steam\nSteam Games", "b", "c", "d"]
    upper = figure.axes[0]
    for name in ("wgm", "wgm (full)", "policy-gaussian", "bernoulli-flow"):
        [line] = [each for each in upper.get_lines() if each.get_label() == name]
        own = data.filter(dataset="steam", panel="missing mass", series=name).sort("place")
        assert list(line.get_ydata()) == own["y"].to_list()
        assert list(line.get_xdata()) == own["place"].to_list()
    assert [text.get_text() for text in figure.axes[3].get_xticklabels()] == ["1", "50", "300"]
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels[:2] == ["[L2]", "wgm"] and len(labels) == 6
    distance = data.filter(dataset="b", panel="distance", series="policy-gaussian", x=50)
    assert math.isclose(distance["y"].item(), 20.0)
    with pytest.raises(InvalidInput, match="must be one of the frame's"):
        union_panels(frame, eps=0.5, titles={})


def test_specs_ask_for_their_group_and_draw_their_eps():
    specs = {spec.name: spec for spec in figures() if spec.name in ("1", "8", "9", "10")}
    present = ["steam", "imdb", "ml-1m"]
    for name, expected in {"1": ["ml-1m", "imdb"], "8": ["steam"], "9": ["ml-1m", "imdb"]}.items():
        tasks = specs[name].tasks(present, 20, 3)
        assert list(dict.fromkeys(task.dataset for task in tasks)) == expected
        assert {task.settings["max_items_per_user"] for task in tasks} == set(set_union.BOUNDS)
        assert all(task.settings["eps"] == [1.0, 0.1] for task in tasks)
    assert specs["8"].tasks(["imdb"], 20, 0) == []
    frame = pl.DataFrame(
        [*everyone("steam", 0.3, 0.5, 0.4, 0.6), *everyone("steam", 0.9, 0.9, 0.9, 0.9, eps=0.1)]
    )
    for name, eps in (("8", 1.0), ("10", 0.1)):
        spec = specs[name]
        assert set(spec.draw(frame)[1]["eps"]) == {eps}
        statements = spec.judge(frame)
        caption = full_caption(spec, frame, statements)
        assert f"ε = {eps:g}" in caption and "steam (Steam Games)" in caption
        assert all(f"Figure {name}" in each.source for each in statements)
    kinds = [len(specs[name].judge(frame)) for name in ("8", "10")]
    assert kinds == [3, 3]  # two policies; and twice as many items, or the other eps
