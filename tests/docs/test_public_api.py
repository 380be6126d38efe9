"""Every public name says what it does, what it takes, and shows it in an example that runs.

What is public is computed (docs/reference.py); that the examples run is pytest's part, which
collects the doctests of all modules.
"""

import ast
import builtins
import dataclasses
import doctest
import functools
import importlib
import importlib.util
import inspect
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def _load_reference():
    spec = importlib.util.spec_from_file_location("reference", ROOT / "docs" / "reference.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["reference"] = module
    spec.loader.exec_module(module)
    return module


reference = _load_reference()
MODULES = reference.public_modules()
SECTIONS = ("Args", "Attributes", "Returns", "Yields", "Raises", "Source", "Example", "Examples")


def sections(doc):
    """Sections of a Google docstring by title: text after the title, and the lines below it."""
    found, title = {"": []}, ""
    for line in inspect.cleandoc(doc).splitlines():
        head = re.match(rf"({'|'.join(SECTIONS)}):(?: (.*))?$", line)
        if head:
            title = head[1]
            assert title not in found, f"section {title} twice"
            found[title] = [head[2]] if head[2] else []
        else:
            found[title].append(line)
    return found


def entries(lines):
    """Names that a section explains: `name:` or `name (type):`, one level in."""
    inside = textwrap.dedent("\n".join(lines)).splitlines()
    return [
        m[1].lstrip("*")
        for line in inside
        if (m := re.match(r"(\*{0,2}[\w.]+)(?: \(.*?\))?:", line))
    ]


def parameters(function):
    return [name for name in inspect.signature(function).parameters if name not in ("self", "cls")]


def fields(cls):
    """What an object of the class shows: fields of a dataclass or a named tuple."""
    if dataclasses.is_dataclass(cls):
        return [f.name for f in dataclasses.fields(cls) if not f.name.startswith("_")]
    return list(getattr(cls, "_fields", ()))


def refuses(function):
    """Whether the function's own lines raise, or check its arguments."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(function))))
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and node.exc is not None:
            return True
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id == "invalid" or node.func.id.startswith("check_"):
                return True
    return False


def examples(doc):
    return [e for e in doctest.DocTestParser().get_examples(doc) if e.source.strip() != "..."]


@functools.cache
def exceptions():
    """Names of exceptions that a caller can catch: Python's and ours."""
    ours = [each for module in MODULES for each in reference.public_names(module)]
    found = {**vars(builtins), **{each.name: each.value for each in ours}}
    return {n for n, v in found.items() if inspect.isclass(v) and issubclass(v, Exception)}


def problems_of_function(each):
    found = sections(each.doc)
    if "Returns" not in found and "Yields" not in found:
        if inspect.unwrap(each.value).__annotations__.get("return") not in (None, "None"):
            yield "no Returns"
    explained, taken = entries(found.get("Args", [])), parameters(each.value)
    if explained != taken:
        yield f"Args explains {explained}, the function takes {taken}"
    if refuses(each.value) and "Raises" not in found:
        yield "raises, but has no Raises"
    for error in entries(found.get("Raises", [])):
        if error not in exceptions():
            yield f"Raises names {error}, which is no public exception"
    if each.home.startswith("theory") and "Source" not in found:
        yield "no Source"
    yield from problems_of_example(each)


def problems_of_class(each, shown):
    found = sections(each.doc)
    explained, there = entries(found.get("Attributes", [])), fields(each.value)
    if dataclasses.is_dataclass(each.value) and not set(there) <= set(explained):
        yield f"Attributes explains {explained}, the fields are {there}"
    for name, member in vars(each.value).items():
        function = member.fget if isinstance(member, property) else getattr(member, "func", member)
        function = getattr(function, "__func__", function)
        if name.startswith("_") or name in there or not inspect.isroutine(function):
            continue
        if not function.__doc__:
            yield f"{name} has no docstring"
        elif "Args" in (inside := sections(function.__doc__)):
            explained, taken = entries(inside["Args"]), parameters(function)
            if explained != taken:
                yield f"{name}: Args explains {explained}, it takes {taken}"
    if each.name not in shown:  # the example may be that of a function that returns it
        yield from problems_of_example(each)


def problems_of_example(each):
    shown = examples("\n".join(sections(each.doc).get("Example", [])))
    if not any(example.want for example in shown):
        yield "no example with a result"
    if not any(re.search(rf"\b{each.name}\b", example.source) for example in shown):
        yield "its example does not use it"
    if any(doctest.SKIP in example.options for example in shown):
        yield "its example is skipped"


def returned(names):
    """Words in the return annotations of the public functions."""
    words = set()
    for each in names:
        if each.is_function:
            hint = inspect.unwrap(each.value).__annotations__.get("return")
            words |= set(re.findall(r"\w+", hint if isinstance(hint, str) else repr(hint)))
    return words


def problems(names):
    shown = returned(names)
    for each in names:
        if not each.summary:
            yield f"{each.module}.{each.name}: no docstring"
        elif each.is_function:
            yield from (f"{each.module}.{each.name}: {p}" for p in problems_of_function(each))
        elif inspect.isclass(each.value):
            yield from (f"{each.module}.{each.name}: {p}" for p in problems_of_class(each, shown))


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_is_documented_with_an_example(module):
    names = reference.public_names(module)
    assert names
    assert list(problems(names)) == []


def test_the_index_is_that_of_the_code():
    # python docs/reference.py writes it anew
    assert reference.INDEX.read_text(encoding="utf-8") == reference.index()


def test_the_readme_and_the_guides_import_public_names_only():
    wrong = []
    for path in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/*.md"))]:
        line = r"^(?:>>> )?\s*from ((?:theory|wgm_jax|experiments)[\w.]*) import ([\w, ]+)$"
        for module, names in re.findall(line, path.read_text(encoding="utf-8"), re.MULTILINE):
            known = importlib.import_module(module).__all__ if module in MODULES else ()
            wrong += [(path.name, module, n) for n in names.split(", ") if n not in known]
    assert wrong == []


def test_a_bad_docstring_is_found():
    def bad(kept: int, gone: int) -> int:
        """Adds.

        Args:
            kept: One.
            more: Another.

        Raises:
            Nonsense: Never.

        Example:
            >>> 1 + 1
            2
        """
        raise ValueError(kept + gone)

    made = reference.Name("theory", "bad", bad, "theory", inspect.getdoc(bad))
    assert list(problems([made])) == [
        f"theory.bad: {problem}"
        for problem in (
            "no Returns",
            "Args explains ['kept', 'more'], the function takes ['kept', 'gone']",
            "Raises names Nonsense, which is no public exception",
            "no Source",
            "its example does not use it",
        )
    ]


@pytest.mark.slow
def test_pages_are_written_without_a_warning_and_need_nothing_from_elsewhere(tmp_path):
    pytest.importorskip("pdoc")
    code = "import runpy, sys; sys.argv[1:] = ['--html', sys.argv[1]]; "
    code += f"runpy.run_path({str(ROOT / 'docs' / 'reference.py')!r}, run_name='__main__')"
    # A process of its own: the tests' type checks would show in the signatures.
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, str(tmp_path)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stderr == ""
    for module in MODULES:
        page = tmp_path.joinpath(*module.split(".")).with_suffix(".html").read_text("utf-8")
        for each in reference.public_names(module):
            assert f'id="{each.name}"' in page, f"{module}.{each.name}"
        assert (
            re.findall(r'<(?:script|link|img|iframe)[^>]*(?:src|href)="(?:https?:)?//', page) == []
        )
    beside = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.html")}
    assert beside == {"index.html", *(m.replace(".", "/") + ".html" for m in MODULES)}
