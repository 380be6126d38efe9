"""Verdicts as JUnit XML, the form in which continuous integration shows test results.

A claim is a suite and a cell is a test: it fails where the verdict is not the expected one, and is
skipped where nothing was decided.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any
from xml.etree import ElementTree

from experiments.report.labels import shown
from experiments.verdict import Verdict
from experiments.verify import Outcome

# What XML 1.0 cannot hold, not even escaped.
_FORBIDDEN = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(outcomes: Sequence[Outcome], *, seconds: float, settings: Mapping[str, Any]) -> bytes:
    """All outcomes as one XML document.

    Args:
        outcomes: One per claim.
        seconds: Time taken, of all together.
        settings: Recorded as properties of every suite.

    Returns:
        UTF-8 text with an XML declaration.
    """
    root = ElementTree.Element("testsuites", name="wgm verify", time=f"{seconds:.3f}")
    for outcome in outcomes:
        root.append(_suite(outcome, settings))
    for total in ("tests", "failures", "skipped"):
        root.set(total, str(sum(int(suite.get(total, "0")) for suite in root)))
    root.set("errors", "0")
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="utf-8", xml_declaration=True) + b"\n"


def _suite(outcome: Outcome, settings: Mapping[str, Any]) -> ElementTree.Element:
    suite = ElementTree.Element("testsuite", name=_clean(outcome.claim.name), errors="0")
    properties = ElementTree.SubElement(suite, "properties")
    about = {"title": outcome.claim.title, "expected": outcome.claim.expected, **settings}
    for name, value in about.items():
        text = _clean(shown(name, value))
        ElementTree.SubElement(properties, "property", name=_clean(name), value=text)
    seen: Counter[str] = Counter()
    for verdict in outcome.verdicts:
        name = _name(verdict)
        seen[name] += 1
        # Readers of such files tell tests apart by name.
        unique = name if seen[name] == 1 else f"{name} #{seen[name]}"
        _add(suite, outcome.claim.name, unique, verdict)
    if not outcome.verdicts:
        case = ElementTree.SubElement(suite, "testcase", _case(outcome.claim.name, "no cell"))
        why = "needs trials" if outcome.needs_trials else "no cell to judge"
        ElementTree.SubElement(case, "skipped", message=why)
    suite.set("tests", str(len(suite.findall("testcase"))))
    suite.set("failures", str(len(suite.findall("testcase/failure"))))
    suite.set("skipped", str(len(suite.findall("testcase/skipped"))))
    return suite


def _name(verdict: Verdict) -> str:
    settings = (f"{name} = {shown(name, value)}" for name, value in verdict.cell.items())
    return _clean(", ".join(settings)) or "cell"


def _add(suite: ElementTree.Element, claim: str, name: str, verdict: Verdict) -> None:
    case = ElementTree.SubElement(suite, "testcase", _case(claim, name))
    if verdict.success is True:
        return
    numbers = (
        f"bound {shown('', verdict.bound)}, observed {shown('', verdict.observed)}, "
        f"method {verdict.method}"
    )
    if verdict.success is None:
        ElementTree.SubElement(case, "skipped", message=f"{verdict.verdict}: {numbers}")
        return
    wanted = "to hold" if verdict.expected == "holds" else "to be refuted"
    message = f"{verdict.verdict}, expected {wanted}: {numbers}"
    failure = ElementTree.SubElement(case, "failure", message=message, type=verdict.verdict)
    entries = verdict.to_dict().items()
    failure.text = _clean("\n".join(f"{key}: {value}" for key, value in entries))


def _case(claim: str, name: str) -> dict[str, str]:
    return {"classname": _clean(claim), "name": name, "time": "0"}


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", text)
