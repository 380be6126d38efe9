"""Strict settings for every test: types checked at run time, no silent promotion, no warnings."""

import os

# Checked before any of our packages is imported: every annotated call is type- and shape-checked.
from jaxtyping import install_import_hook

install_import_hook(["theory", "wgm_jax", "experiments"], "beartype.beartype")

from pathlib import Path  # noqa: E402

import pytest  # noqa: E402

os.environ.setdefault("MPLBACKEND", "agg")
# Commands keep compiled programs in the user's cache folder; tests leave it alone.
os.environ["JAX_ENABLE_COMPILATION_CACHE"] = "false"


@pytest.fixture(autouse=True, scope="session")
def _strict_jax():
    """Promotion between dtypes or ranks is an error inside our kernels."""
    import jax

    jax.config.update("jax_numpy_dtype_promotion", "strict")
    jax.config.update("jax_numpy_rank_promotion", "raise")


@pytest.fixture(scope="session")
def data_collection() -> Path:
    """Folder of the real data sets; a test that needs it is skipped where it is absent."""
    beside = Path(__file__).resolve().parents[1].parent / "shared" / "data"
    folder = Path(os.environ.get("WGM_DATA", beside))
    if not folder.is_dir():
        pytest.skip(f"no data collection: WGM_DATA is not set and {beside} does not exist")
    return folder
