import importlib.util
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def oracle():
    """The slow implementation in tests/oracle_wgm.py."""
    path = Path(__file__).resolve().parents[1] / "oracle_wgm.py"
    spec = importlib.util.spec_from_file_location("oracle_wgm", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
