"""All claims, in the order of the paper; further ones from files and entry points."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterable
from importlib.metadata import entry_points
from pathlib import Path

from experiments.claims._claim import Claim
from theory._check import invalid

ENTRY_POINTS = "wgm_jax.claims"

# One file each, in the order in which tables list them.
_FILES = (
    "theorem_3_2",
    "lemma_3_1",
    "theorem_3_3",
    "corollary_3_4",
    "theorem_3_5",
    "theorem_3_6",
    "lemma_4_1",
    "lemma_4_2",
    "theorem_4_3",
    "corollary_4_4",
    "theorem_4_5",
    "theorem_4_5_noise",
    "corollary_4_6",
    "lemma_a_1",
    "lemma_a_2",
    "lemma_b_1",
    "lemma_c_1",
    "lemma_c_2",
    "lemma_c_3",
    "lemma_c_4",
    "lemma_c_5",
    "corollary_c_6",
    "lemma_c_7",
    "lemma_c_8",
    "lemma_d_1",
    "section_2_3",
    "erratum_1",
    "erratum_2",
    "erratum_3",
    "erratum_4",
    "erratum_5",
    "erratum_6",
)


def claims() -> tuple[Claim, ...]:
    """Every claim known here, including those of installed packages.

    Returns:
        Claims in the order of the paper, then those of other packages.

    Example:
        >>> [claim.name for claim in claims()][:2]
        ['theorem-3.2', 'theorem-3.2-full']
    """
    found = [
        claim
        for file in _FILES
        for claim in importlib.import_module(f"experiments.claims.{file}").CLAIMS
    ]
    for point in entry_points(group=ENTRY_POINTS):
        loaded = point.load()
        found.extend([loaded] if isinstance(loaded, Claim) else loaded)
    return tuple(found)


def select(names: Iterable[str]) -> tuple[Claim, ...]:
    """Claims by name, by a beginning that fits ("theorem-3.3"), or from a Python file.

    Args:
        names: Names, beginnings of names, or paths that end in .py. Files are executed.

    Returns:
        The claims; all of them for no name.

    Raises:
        InvalidInput: A name that no claim has, or a file without a claim.

    Example:
        >>> [claim.name for claim in select(["theorem-3.6"])]
        ['theorem-3.6']
    """
    known = claims()
    chosen: list[Claim] = []
    for name in names:
        if name.endswith(".py"):
            chosen.extend(from_file(Path(name)))
            continue
        fitting = [c for c in known if c.name == name] or [
            c for c in known if c.name.startswith(name)
        ]
        if not fitting:
            invalid("claim", name, f"must be one of {', '.join(c.name for c in known)}")
        chosen.extend(c for c in fitting if c not in chosen)
    names_chosen = [claim.name for claim in chosen or known]
    for name in names_chosen:
        if names_chosen.count(name) > 1:
            invalid("claim", name, "must be the name of one claim only")
    return tuple(chosen) if chosen else known


def from_file(path: Path) -> list[Claim]:
    """The claims that a Python file defines as CLAIM or CLAIMS; the file is executed."""
    spec = importlib.util.spec_from_file_location(f"wgm_claim_{path.stem}", path)
    if not path.is_file() or spec is None or spec.loader is None:
        invalid("claim", str(path), "must be a claim's name or an existing Python file")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        invalid("claim", str(path), f"could not be run ({type(error).__name__}: {error})")
    found = getattr(module, "CLAIMS", None) or [getattr(module, "CLAIM", None)]
    good = [claim for claim in found if isinstance(claim, Claim)]
    if len(good) < len(found):
        invalid("claim", str(path), "must assign a Claim to CLAIM, or a list of them to CLAIMS")
    return good
