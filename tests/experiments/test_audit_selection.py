"""The audit of selections: laws by hand, specimens, planted bugs, no false accusation."""

import dataclasses
import importlib.util
import itertools
import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.special import ndtr

from experiments.audit import NoExactLaw, Pair, Run, TableLaw, audit, examine, subject
from experiments.audit.selection_families import SELECTION_FAMILIES, random_selection_pair
from experiments.cli import main
from theory import calibrate
from theory.peeling import peeling_scale
from wgm_jax.registry import mechanisms
from wgm_jax.selection.hitting import UserPeeling
from wgm_jax.selection.limited_domain import LimitedDomain
from wgm_jax.selection.top_k import Peeling
from wgm_jax.selection.trials import OnFoundDomain

_spec = importlib.util.spec_from_file_location(
    "audit_bugs", Path(__file__).with_name("audit_bugs.py")
)
bugs = importlib.util.module_from_spec(_spec)
sys.modules["audit_bugs"] = bugs  # dataclasses look their module up
_spec.loader.exec_module(bugs)

SELECTIONS = [info for info in mechanisms() if info.task in ("top-k", "hitting-set")]
PRIVATE = [info.name for info in SELECTIONS if info.private]
# Section 7: when item 0 is chosen nobody is left, unless the extra user is there.
STOPPED = Pair((Run((0, 1), 120), Run((0,), 200)), (1,))


def claim(mechanism, **changes):
    return subject(
        mechanism, **{"eps": 1.0, "delta": 1e-5, "max_items_per_user": 3, "k": 2, **changes}
    )


# ---- laws


def test_law_behind_a_found_domain_by_hand():
    """Sum over four domains of P(domain), by ndtr, and the softmax of the counts in it."""
    eps, delta, counts = 1.0, 0.1, np.array([9.0, 7.0])
    noise = calibrate(eps=eps / 2, delta=delta / 2, max_items_per_user=3)
    scale = peeling_scale(eps=eps / 2, delta=delta / 2, k=1)
    found = ndtr((counts - noise.threshold) / noise.sigma)
    odds = np.exp(counts / scale)
    share = odds / odds.sum()
    one, other = found[0] * (1 - found[1]), found[1] * (1 - found[0])
    both = found[0] * found[1]
    expected = {
        (): (1 - found[0]) * (1 - found[1]),
        (3,): one + both * share[0],
        (7,): other + both * share[1],
    }
    law = claim("peeling", eps=eps, delta=delta, k=1).laws([(Run((3,), 9), Run((7,), 7))])[0]
    assert isinstance(law, TableLaw) and set(law.probabilities) == set(expected)
    for output, probability in expected.items():
        assert law.probabilities[output] == pytest.approx(probability, rel=1e-12)


def test_laws_of_cut_users_are_mixtures():
    """A user of three items who keeps one: limited-domain top-k as the mean over the three."""
    cut = LimitedDomain(k_bar=math.inf)
    whole = [
        claim(cut, max_items_per_user=1, k=1, delta=0.5).laws([(Run((0,), 3), Run((x,)))])[0]
        for x in range(3)
    ]
    law = claim(cut, max_items_per_user=1, k=1, delta=0.5).laws([(Run((0,), 3), Run((0, 1, 2)))])
    for output in {output for part in whole for output in part.probabilities}:
        mean = np.mean([part.probabilities.get(output, 0.0) for part in whole])
        assert law[0].probabilities[output] == pytest.approx(mean, rel=1e-12)


def test_what_has_no_law():
    public, found = claim("peeling-public"), claim("peeling")
    new = Pair((Run((0,), 3),), (1,))
    with pytest.raises(NoExactLaw, match="public"):
        examine(public, new)
    assert 0 < examine(found, new).limits.low <= 2.5e-6  # WGM's share for new items
    with pytest.raises(NoExactLaw, match="7 items"):
        found.laws([(Run(tuple(range(7))),)])
    assert found.laws([()])[0].probabilities == {(): 1.0}


# ---- specimens


@pytest.mark.parametrize("behind", [False, True])
def test_early_stop_tells_that_somebody_is_left(behind):
    stops = bugs.UserPeelingEarlyStop()
    found = examine(claim(OnFoundDomain(stops) if behind else stops), STOPPED)
    assert found.limits.low > 1 - 1e-8 and found.direction == "add"
    assert found.event.outcome == (0, 1)
    repaired = "user-peeling" if behind else "user-peeling-public"
    assert examine(claim(repaired), STOPPED).limits.high <= 1e-5


def test_the_search_finds_the_early_stop():
    for behind in (False, True):
        stops = bugs.UserPeelingEarlyStop()
        result = audit(
            claim(OnFoundDomain(stops) if behind else stops), seconds=None, max_evaluations=16
        )
        assert result.accused_after <= 4 and result.found_delta > 0.99


def test_greedy_without_noise_is_accused():
    result = audit(claim("greedy"), seconds=None, max_evaluations=40)
    assert result.found_delta == pytest.approx(1.0) and result.as_expected


# ---- planted bugs, and no false accusation


@pytest.mark.parametrize(
    "name", ["name-dependent tie-breaking", "limited domain without the offset"]
)
def test_planted_bugs(name):
    check_bug(name, 64)


@pytest.mark.slow
@pytest.mark.parametrize("name", bugs.SELECTION_BUGS)
def test_every_planted_bug(name):
    check_bug(name, 300)


def check_bug(name, evaluations):
    mechanism, behind, k, least = bugs.SELECTION_BUGS[name]
    wrong = claim(OnFoundDomain(mechanism) if behind else mechanism, k=k, name=name)
    result = audit(wrong, seconds=None, max_evaluations=evaluations)
    assert result.accused and result.found_delta >= least


def test_both_stages_spend_the_whole_budget():
    """At eps = 1 counts near the threshold are too far from each other to show it."""
    twice = claim("peeling", eps=6.0, delta=2e-5, max_items_per_user=2, k=3)
    wrong = dataclasses.replace(twice, eps=3.0, delta=1e-5)
    result = audit(wrong, seconds=None, max_evaluations=64, stop_when_accused=True)
    assert result.accused and result.found_delta > 1e-5
    right = claim("peeling", eps=3.0, max_items_per_user=2, k=3)
    assert not audit(right, seconds=None, max_evaluations=64).accused


@pytest.mark.parametrize(
    ("mechanism", "least"),
    [("peeling", 0.15), ("limited-domain", 0.1)],
)
def test_no_false_accusation(mechanism, least):
    """At a large delta, where lambda is not k/eps; what is found is a good part of delta."""
    right = claim(mechanism, eps=0.5, delta=0.2, k=3)
    result = audit(right, seconds=None, max_evaluations=200)
    assert not result.accused and result.finding.limits.high <= 0.2
    assert result.found_delta > least * 0.2


@pytest.mark.slow
@pytest.mark.parametrize("name", [*PRIVATE, "peeling-tight", "limited-domain-all", "hitting-scale"])
@pytest.mark.parametrize(("eps", "delta", "k"), [(1.0, 1e-5, 1), (1.0, 1e-5, 3), (0.5, 0.2, 3)])
def test_no_false_accusation_of_any_private_selection(name, eps, delta, k):
    more = {
        "peeling-tight": Peeling(conversion="tight"),
        "limited-domain-all": LimitedDomain(k_bar=math.inf),
        "hitting-scale": OnFoundDomain(UserPeeling()),
    }
    right = claim(more.get(name, name), eps=eps, delta=delta, k=k, max_items_per_user=2)
    result = audit(right, seconds=None, max_evaluations=400, seed=4)
    assert result.evaluations > 50 and not result.accused
    if delta == 1e-5 and right.finder is not None and k > 1:
        assert result.found_delta > 2e-6  # WGM's quarter of delta, for new items


# ---- the search


def test_pairs_are_neighbours_of_few_items():
    right, generator = claim("peeling"), np.random.default_rng(0)
    pairs = [pair for family in SELECTION_FAMILIES for pair in itertools.islice(family(right), 80)]
    pairs += [random_selection_pair(generator, right) for _ in range(40)]
    for pair in pairs:
        assert pair.num_items <= 6 and len(set(pair.extra)) == len(pair.extra) >= 1
        assert all(run.repeat >= 1 and run.items for run in pair.before) and not pair.after
    assert len({(pair.before, pair.extra) for pair in pairs}) > len(pairs) / 2


@pytest.mark.parametrize(
    ("name", "status", "accused"), [("peeling", 0, False), ("user-peeling-early-stop", 0, True)]
)
def test_command(capsys, name, status, accused):
    with pytest.raises(SystemExit) as stopped:
        main(["audit", name, "--evaluations", "16", "-k", "2", "--json"])
    told = json.loads(capsys.readouterr().out)
    assert (stopped.value.code or 0) == status and told["accused"] is accused
    if accused:
        assert told["event"]["worst_outcome"] in ([0], [0, 1]) and told["found_delta"] > 0.99
    with pytest.raises(SystemExit) as stopped:
        main(["audit", name, "--evaluations", "16", "-k", "0"])
    assert stopped.value.code == 2 and "k must be" in capsys.readouterr().err
    with pytest.raises(SystemExit) as stopped:
        main(["audit", name, "--evaluations", "4", "--quiet"])
    assert ("in this order" in capsys.readouterr().out) is accused
