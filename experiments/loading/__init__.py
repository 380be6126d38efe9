"""Files to `UserItems`: tables, adjacency lists, baskets, text, Stack Exchange posts.

Nothing here imports polars until a file is read, so the command line can list formats and presets
at once.
"""

from experiments.loading.errors import DataError
from experiments.loading.presets import PRESETS, Layout, data_folder
from experiments.loading.reading import FORMATS, load
from experiments.loading.scan import Scan, scan

__all__ = ["FORMATS", "PRESETS", "DataError", "Layout", "Scan", "data_folder", "load", "scan"]
