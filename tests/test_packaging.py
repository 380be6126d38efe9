"""What is installed, which room imports which, and what stays light."""

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import entry_points
from importlib.resources import files
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("theory", "wgm_jax", "experiments")
FORBIDDEN = {
    "theory": {"wgm_jax", "experiments", "jax", "jaxlib"},
    "wgm_jax": {"experiments"},
    "experiments": set(),
}
DATA_FILES = ("theory/py.typed", "wgm_jax/py.typed", "experiments/py.typed")
DATA_FILES += ("experiments/sweep/example.toml",)


def _sources(room: str) -> list[Path]:
    return sorted((ROOT / room).rglob("*.py"))


def _imported(source: str) -> set[str]:
    """Top-level names of all imports, also those inside functions and for type checkers."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found.add(node.module.partition(".")[0])
    return found


def _module(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def _python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT)


def test_imports_are_found_wherever_they_are():
    source = "import a.b\nif True:\n  from c.d import e\ndef f():\n  import g as h\nfrom . import i"
    assert _imported(source) == {"a", "c", "g"}


@pytest.mark.parametrize("room", ROOMS)
def test_rooms_import_in_one_direction(room):
    found = {path: _imported(path.read_text(encoding="utf-8")) for path in _sources(room)}
    wrong = {str(path): names & FORBIDDEN[room] for path, names in found.items()}
    assert found
    assert {path: names for path, names in wrong.items() if names} == {}


def test_light_modules_never_import_jax():
    # One process imports all of them, one by one, and names the first that brings JAX in.
    found = [_module(path) for room in ("theory", "experiments") for path in _sources(room)]
    # These two run mechanisms; commands import them when they do.
    heavy = ("experiments.audit", "experiments.comparison")
    light = [name for name in found if not name.startswith(heavy)]
    light += ["wgm_jax", "wgm_jax.registry", "wgm_jax.synthetic"]
    code = (
        "import importlib, sys\n"
        "for name in sys.argv[1:]:\n"
        "    importlib.import_module(name)\n"
        "    assert 'jax' not in sys.modules, name\n"
    )
    done = _python(code, *light)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.parametrize(
    "command",
    [
        ["--help"],
        ["mechanisms"],
        ["claims"],
        ["calibrate", "--eps=1", "--delta=1e-5", "--max-items-per-user=9", "--json"],
    ],
    ids=lambda command: command[0],
)
def test_light_commands_never_import_jax(command):
    code = (
        "import sys\n"
        "from experiments.cli import main\n"
        "try:\n"
        "    main(sys.argv[1:])\n"
        "except SystemExit as done:\n"
        "    assert not done.code, done.code\n"
        "assert 'jax' not in sys.modules\n"
    )
    done = _python(code, *command)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout


@pytest.mark.parametrize("room", ROOMS)
def test_every_folder_of_modules_is_a_package(room):
    # Package discovery takes packages only: a folder without __init__.py is lost in the wheel.
    folders = {path.parent for path in _sources(room)}
    assert [str(f) for f in sorted(folders) if not (f / "__init__.py").is_file()] == []


def test_installed_package_has_its_command_and_data_files():
    (command,) = entry_points(group="console_scripts", name="wgm")
    assert command.value == "experiments.cli:main"
    for name in DATA_FILES:
        room, _, rest = name.partition("/")
        assert files(room).joinpath(rest).is_file(), name


@pytest.mark.slow
def test_wheel_holds_all_sources_and_data_files(tmp_path):
    # From a copy: setuptools would otherwise also pack what an older build left in build/.
    copy = tmp_path / "source"
    copy.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    for room in ROOMS:
        shutil.copytree(ROOT / room, copy / room, ignore=shutil.ignore_patterns("__pycache__"))
    made = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", tmp_path, copy],
        capture_output=True,
        text=True,
    )
    assert made.returncode == 0, made.stderr[-2000:]
    (wheel,) = tmp_path.glob("wgm_jax-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        (metadata,) = (n for n in names if n.endswith("dist-info/entry_points.txt"))
        assert "wgm = experiments.cli:main" in archive.read(metadata).decode()
    expected = {str(p.relative_to(ROOT)) for room in ROOMS for p in _sources(room)}
    packed = {name for name in names if ".dist-info/" not in name}
    assert packed == expected | set(DATA_FILES)
    assert any(name.endswith("/licenses/LICENSE") for name in names)


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_constraints_are_exact_and_cover_every_dependency():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    wrong = [p for p in pins if not re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][A-Za-z0-9.+!]*", p)]
    assert not wrong
    pinned = {_normal(pin.partition("==")[0]) for pin in pins}
    assert len(pinned) == len(pins)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    needed = project["dependencies"] + extras["test"] + extras["dev"]
    asked = {_normal(re.split(r"[\[<>=!~; ]", need, maxsplit=1)[0]) for need in needed}
    assert asked - {"wgm-jax"} <= pinned


def test_continuous_integration_runs_the_tests_as_the_readme_does():
    (readme,) = {
        line.rpartition("&& .venv/bin/")[2].strip()
        for line in (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
        if "-e '.[test]' &&" in line
    }
    assert readme.startswith("python -m pytest")
    last = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()[-1]
    assert last == f'"$venv/bin/python"{readme.removeprefix("python")}'
