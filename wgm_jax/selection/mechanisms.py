"""The mechanisms of the registry that are more than a selector with its defaults."""

from __future__ import annotations

from wgm_jax.selection.hitting import UserPeeling
from wgm_jax.selection.selector import OnFoundDomain
from wgm_jax.selection.top_k import Peeling

# Algorithms 2 and 4 of the paper: half of the budget finds the domain, half selects from it.
PEELING = OnFoundDomain(Peeling())
USER_PEELING = OnFoundDomain(UserPeeling())
