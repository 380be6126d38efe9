"""`pip install FOLDER` for the tutorial, without a network or a build backend.

Does what installing a wheel of a pure Python project would do: copies its modules and writes the
metadata that entry points are found by, into the last folder of PYTHONPATH.
"""

from __future__ import annotations

import os
import shutil
import sys
import tomllib
from pathlib import Path


def install(source: Path, target: Path) -> None:
    """Install the project in `source` into `target`."""
    settings = tomllib.loads((source / "pyproject.toml").read_text(encoding="utf-8"))
    project = settings["project"]
    for module in settings["tool"]["setuptools"]["py-modules"]:
        shutil.copy(source / f"{module}.py", target)
    name, version = project["name"].replace("-", "_"), project["version"]
    info = target / f"{name}-{version}.dist-info"
    info.mkdir(exist_ok=True)
    metadata = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {version}\n"
    (info / "METADATA").write_text(metadata, encoding="utf-8")
    lines = []
    for group, points in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{point} = {value}" for point, value in points.items()), ""]
    (info / "entry_points.txt").write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    install(Path(sys.argv[-1]), Path(os.environ["PYTHONPATH"].split(os.pathsep)[-1]))
