"""The mathematical objects of private domain discovery, and what can be proved about them.

Float64 NumPy and SciPy, no JAX, no file access. Usable alone.
"""

from theory._check import InvalidInput
from theory.bound import Bound
from theory.profile import Profile
from theory.user_items import UserItems

__all__ = ["Bound", "InvalidInput", "Profile", "UserItems"]
