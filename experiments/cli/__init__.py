"""The command `wgm`. Light at import: JAX, polars and matplotlib load inside the commands."""

from experiments.cli.app import main

__all__ = ["main"]
