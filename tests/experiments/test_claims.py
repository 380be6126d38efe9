"""The paper's claims come out as they should, and so do a user's own, false ones included."""

import pytest

from experiments.cells import Case
from experiments.claims import Claim, Settings, claims, select
from experiments.claims.erratum_3 import miss_frequency
from experiments.verdict import ExactEvidence, claim_success, judge
from experiments.verify import verify
from theory._check import InvalidInput
from wgm_jax.synthetic import SetSizes, zipf_draws

SETTINGS = Settings(num_trials=300)
FAMILIES = [claim for claim in claims() if claim.family is not None]

PLANTED = """
import numpy as np

from experiments.claims import Claim
from experiments.statistics.slopes import empirical_quantile
from experiments.verdict import QuantileEvidence


def observe(run):
    for index, cell in enumerate(run.cells):
        mass = np.ascontiguousarray(run.trials.missing_mass[:, index])
        yield cell, QuantileEvidence(mass, {factor} * empirical_quantile(mass, 0.95), run.beta)


{name} = {open}Claim(
    name="planted", title="Planted", kind="upper", statement="-", explicit="-", observe=observe
){close}
"""


@pytest.fixture
def planted(tmp_path):
    """Writes a claim file whose bound is a multiple of the quantile that is observed."""

    def write(*, factor, name="CLAIM"):
        path = tmp_path / "planted.py"
        brackets = ("[", "]") if name == "CLAIMS" else ("", "")
        text = PLANTED.format(factor=factor, name=name, open=brackets[0], close=brackets[1])
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write


@pytest.fixture(scope="module")
def case():
    sizes = SetSizes("geometric", mean=3, cap=10)
    return Case("zipf", zipf_draws(s=1.5, num_pairs=1000, set_sizes=sizes, seed=0))


@pytest.mark.parametrize("claim", FAMILIES, ids=lambda claim: claim.name)
def test_a_family_claim_comes_out_as_expected(claim):
    cells = list(claim.family(SETTINGS))
    verdicts = judge(claim.name, cells, level=0.01, expected=claim.expected)
    wrong = [(v.cell, v.verdict, v.bound, v.observed) for v in verdicts if v.success is False]
    assert wrong == []
    assert claim_success(verdicts, claim.expected) is True


def test_names_are_unique():
    names = [claim.name for claim in claims()]
    assert len(names) == len(set(names))


def test_every_erratum_has_a_twin_that_holds():
    known = {claim.name: claim for claim in claims()}
    errata = [claim for claim in known.values() if claim.expected == "refuted"]
    assert {claim.name[:9] for claim in errata} == {f"erratum-{i}" for i in range(1, 7)}
    for claim in errata:
        assert known[claim.twin].expected == "holds"
    assert all(claim.twin is None for claim in known.values() if claim.expected == "holds")


def test_erratum_1_has_the_numbers_of_the_counterexamples():
    lemma, theorem = select(["erratum-1"])
    first, second = (evidence for _, evidence in lemma.family(SETTINGS))
    assert first.bound == pytest.approx(0.39945, abs=5e-6)
    assert second.bound == pytest.approx(0.094, abs=5e-4)
    assert first.value == second.value == 0.5
    ((_, evidence),) = theorem.family(SETTINGS)
    assert evidence.bound == pytest.approx(0.538, abs=5e-4)
    assert evidence.observed == 1.0


@pytest.mark.parametrize(
    ("num_items", "expected"), [(10, 28.1), (10**3, 33.2), (10**6, 38.8), (10**9, 43.3)]
)
def test_erratum_3_has_the_miss_frequencies_of_equal_items(num_items, expected):
    assert miss_frequency(num_items, 1e-5) == pytest.approx(expected, abs=0.05)


def test_a_whole_name_selects_one_claim_even_where_others_start_with_it():
    assert [c.name for c in select(["theorem-3.6"])] == ["theorem-3.6"]


def test_a_beginning_selects_all_that_fit_once():
    names = [c.name for c in select(["theorem-3.3-instance-star", "theorem-3.3"])]
    assert names[0] == "theorem-3.3-instance-star"
    assert sorted(names) == sorted(c.name for c in claims() if c.name.startswith("theorem-3.3"))


def test_no_name_selects_everything():
    assert [c.name for c in select([])] == [c.name for c in claims()]


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(InvalidInput, match=r"theorem-9\.9.*must be one of theorem-3\.2, "):
        select(["theorem-9.9"])


@pytest.mark.parametrize("name", ["CLAIM", "CLAIMS"])
def test_a_claim_of_ones_own_that_holds_succeeds(planted, case, name):
    chosen = select([planted(factor=1.5, name=name)])
    assert [c.name for c in chosen] == ["planted"]
    settings = Settings(eps=(1.0,), num_trials=200)
    result = verify([case], chosen, settings, max_items_per_user=(1,))
    assert [v.verdict for v in result.outcomes[0].verdicts] == ["confirmed"]
    assert (result.outcomes[0].success, result.status) == (True, 0)


def test_a_planted_false_claim_is_refuted(planted, case):
    chosen = select(["lemma-3.1", planted(factor=0.5)])
    result = verify([case], chosen, Settings(num_trials=200), max_items_per_user=(1,))
    good, bad = result.outcomes
    assert good.success is True
    assert [v.verdict for v in bad.verdicts] == ["refuted", "refuted"]
    assert (bad.success, result.status) == (False, 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("CLAIM = 3", "must assign a Claim"),
        ("", "must assign a Claim"),
        ("1 / 0", "could not be run .ZeroDivisionError"),
        (None, "must be a claim's name or an existing Python file"),
    ],
)
def test_a_file_without_a_claim_is_refused(tmp_path, text, message):
    path = tmp_path / "own.py"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidInput, match=message):
        select([str(path)])


@pytest.mark.parametrize("both", [True, False])
def test_a_claim_needs_exactly_one_source_of_evidence(both):
    def cells(_):
        return [({}, ExactEvidence(0.1, 0.2, "upper"))]

    ways = {"observe": cells, "family": cells} if both else {}
    with pytest.raises(ValueError, match="exactly one"):
        Claim(name="x", title="x", kind="x", statement="x", explicit="x", **ways)


def test_two_claims_of_one_name_are_refused(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text("from experiments.claims import select\nCLAIM = select(['lemma-a.1'])[0]\n")
    with pytest.raises(InvalidInput, match="claim = lemma-a.1: must be the name of one claim"):
        select(["lemma-a.1", str(path), str(path)])
