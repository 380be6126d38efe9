"""The reference of all public names, made from their docstrings.

    python docs/reference.py                    writes docs/api.md: one line per name
    python docs/reference.py --html build/api   writes HTML pages, with pdoc (extra dev)

A name is public if the `__all__` of its module lists it. A module without `__all__` is an inside
of its package, whatever it is called.
"""

from __future__ import annotations

import argparse
import ast
import functools
import importlib
import inspect
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("theory", "wgm_jax", "experiments")
# The commands `wgm` and `wgm bench` are the way to these.
COMMANDS = ("experiments.bench", "experiments.cli")
INDEX = ROOT / "docs" / "api.md"
_HEAD = """# Public names

One line each, from the docstrings, by module. A name is public if its module's `__all__` lists it.
Everything else may change without notice. `help(name)` shows arguments, results, errors, the
statement of the paper behind it, and an example that the tests run; so do the HTML pages that

    python docs/reference.py --html build/api

writes (extra `dev`; they need no network). This file is written by `python docs/reference.py`, and
a test holds it equal to the code.
"""


@dataclass(frozen=True)
class Name:
    """A public name.

    Attributes:
        module: Module whose `__all__` lists it.
        name: The name.
        value: What it stands for.
        home: Module that defines it.
        doc: Its docstring; of a constant, the string below its assignment. "" without one.
    """

    module: str
    name: str
    value: Any
    home: str
    doc: str

    @property
    def is_function(self) -> bool:
        """Whether it is a function."""
        return inspect.isfunction(inspect.unwrap(self.value))

    @property
    def summary(self) -> str:
        """First paragraph of the docstring, on one line."""
        return _first_paragraph(self.doc)


def public_modules() -> list[str]:
    """Modules that have an `__all__`, found in the sources; nothing is imported."""
    found = []
    for path in sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py")):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        if module.startswith(COMMANDS):
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        if any(name == "__all__" for name, _ in _constants(tree)):
            found.append(module)
    return sorted(found, key=lambda module: (ROOMS.index(module.partition(".")[0]), module))


def public_names(module: str) -> list[Name]:
    """Names that the module's `__all__` lists, without regard to case."""
    here = importlib.import_module(module)
    return [
        Name(module, name, getattr(here, name), *_origin(module, name))
        for name in sorted(here.__all__, key=str.lower)
    ]


def index() -> str:
    """The text of docs/api.md."""
    parts = [_HEAD]
    for module in public_modules():
        about = inspect.getdoc(importlib.import_module(module)) or ""
        parts.append(f"## {module}\n\n{_first_paragraph(about)}\n")
        lines = ["| name | | defined in |", "|---|---|---|"]
        for each in public_names(module):
            file = inspect.getsourcefile(importlib.import_module(each.home))
            assert file is not None
            path = Path(file).resolve().relative_to(ROOT).as_posix()
            summary = re.sub(r"([|*]|<(?=\w))", r"\\\1", each.summary)
            lines.append(f"| `{each.name}` | {summary} | [{path}](../{path}) |")
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def pages(folder: Path) -> None:
    """Write the HTML pages of all public modules, with pdoc.

    Args:
        folder: Made if it does not exist.

    Raises:
        Warning: pdoc finds something that it cannot show.
    """
    import pdoc.render

    wanted = []
    for module in public_modules():
        wanted += [module, rf"!{re.escape(module)}\..*"]  # a package without its insides
        here = importlib.import_module(module)
        for each in public_names(module):  # pdoc sees only what has been imported
            setattr(here, each.name, each.value)
    pdoc.render.configure(docformat="google")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Fields of a named tuple: shown as they are written.
        warnings.filterwarnings("ignore", "Error parsing type annotation ForwardRef")
        pdoc.pdoc(*wanted, output_directory=folder)


def _first_paragraph(doc: str) -> str:
    return " ".join(doc.partition("\n\n")[0].split())


@functools.cache
def _tree(module: str) -> ast.Module:
    file = inspect.getsourcefile(importlib.import_module(module))
    assert file is not None
    return ast.parse(Path(file).read_text(encoding="utf-8"))


def _origin(module: str, name: str) -> tuple[str, str]:
    """Module that defines a name, and the name's docstring."""
    for node in ast.walk(_tree(module)):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return _origin(node.module, alias.name)
    value = getattr(importlib.import_module(module), name)
    if inspect.isclass(value) or inspect.isfunction(inspect.unwrap(value)):
        return module, inspect.getdoc(value) or ""
    return module, dict(_constants(_tree(module))).get(name, "")


def _constants(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Names assigned at the top of a module, and the strings below them."""
    for node, after in zip(tree.body, [*tree.body[1:], None], strict=True):
        targets = node.targets if isinstance(node, ast.Assign) else ()
        targets = [node.target] if isinstance(node, ast.AnnAssign) else targets
        doc = ""
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            doc = inspect.cleandoc(str(after.value.value))
        for target in targets:
            if isinstance(target, ast.Name):
                yield target.id, doc


def main() -> None:
    """Write what the command line asks for."""
    parser = argparse.ArgumentParser(description="Write docs/api.md, or HTML pages of all names.")
    parser.add_argument("--html", type=Path, metavar="FOLDER", help="write HTML pages there")
    folder = parser.parse_args().html
    if folder is None:
        INDEX.write_text(index(), encoding="utf-8")
    else:
        pages(folder)


if __name__ == "__main__":
    main()
