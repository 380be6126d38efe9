"""Annotation shared by the vectorised functions of this package."""

from typing import TypeAlias

import numpy as np
from jaxtyping import Float64

# What a float64 NumPy function returns: an array, or for scalar arguments a NumPy scalar.
Floats: TypeAlias = Float64[np.ndarray, "..."] | np.float64
