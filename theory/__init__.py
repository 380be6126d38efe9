"""The mathematical objects of private domain discovery, and what can be proved about them.

Float64 NumPy and SciPy, no JAX, no file access. Usable alone.
"""

from theory._check import InvalidInput
from theory.asymptotics import (
    Sandwich,
    regime_map,
    sandwich,
    sigma_limit_large_eps,
    sigma_limit_small_eps,
    sigma_necessary,
    sigma_sufficient,
    threshold_upper,
)
from theory.bernoulli_sums import LatticeLaw, bernoulli_sum_law
from theory.bound import Bound
from theory.budget import Budget
from theory.calibration import Calibration, calibrate, spent_delta, verify_calibration
from theory.certificates import (
    certificate,
    chernoff_bound,
    exact_exceedance,
    exact_max_quantile,
    exact_quantile,
    hinge_bound,
    max_missing_mass_bracket,
    missing_mass_law,
    variance_bound,
)
from theory.gaussian import gaussian_delta, gaussian_sigma, log_gaussian_delta
from theory.hard_selection import hard_frequency, hard_selection_data
from theory.hard_zipf import hard_zipf_frequencies, hard_zipf_profile
from theory.hitting_bounds import (
    hard_hits_bound,
    hits_bound,
    hits_upper_bound,
    lemma_c7,
    lemma_c8,
)
from theory.hitting_game import hitting_game_delta, hitting_game_scale
from theory.hitting_optimum import (
    HittingOptimum,
    greedy_hitting_set,
    opt_upper_bound,
    optimal_hits,
)
from theory.item_classes import ItemClasses
from theory.kept_copies import few_copies_probability, heavy_miss_probability
from theory.lemmas import (
    gaussian_maximum_bound,
    gumbel_maximum_bound,
    lemma_c2_frequency,
    lemma_c3_frequency,
    lemma_c4_weight,
    lemma_c5,
)
from theory.lower_bounds import (
    hard_zipf_bound,
    instance_lower_bound,
    optimal_miss_probability,
    optimal_selection_probability,
    selection_threshold,
)
from theory.miss_bound import miss_probability_bound
from theory.miss_probability import (
    MissProbabilities,
    exact_mean,
    exact_means,
    loss_probabilities,
    miss_probabilities,
)
from theory.oracle_gap import oracle_gap
from theory.peeling import (
    hitting_scale,
    limited_domain_offset,
    local_eps,
    peeling_delta,
    peeling_scale,
    user_peeling_scale,
)
from theory.printed_bounds import (
    corollary_34_shape,
    lemma_c2_mass,
    lemma_c2_printed,
    lemma_c4_printed,
    theorem_33_printed,
    theorem_33_shape,
    theorem_36_printed,
)
from theory.profile import Profile
from theory.quantiles import quantile_interval
from theory.top_k_bounds import (
    hard_top_k_bound,
    peeling_loss_bound,
    top_k_bound,
    top_k_lower_bound,
)
from theory.upper_bounds import instance_bound, linf_bound, tau_u1, tau_u1_star, zipf_bound
from theory.user_items import UserItems
from theory.zipf import (
    ZipfCertificate,
    best_certificate,
    log_zipf_constant,
    max_set_size_bound,
    zipf_certificate,
    zipf_tail_bound,
)

__all__ = [
    "LatticeLaw",
    "bernoulli_sum_law",
    "certificate",
    "chernoff_bound",
    "exact_exceedance",
    "few_copies_probability",
    "heavy_miss_probability",
    "exact_max_quantile",
    "exact_quantile",
    "hinge_bound",
    "max_missing_mass_bracket",
    "missing_mass_law",
    "variance_bound",
    "ItemClasses",
    "MissProbabilities",
    "exact_mean",
    "exact_means",
    "loss_probabilities",
    "miss_probabilities",
    "oracle_gap",
    "quantile_interval",
    "Bound",
    "Budget",
    "HittingOptimum",
    "greedy_hitting_set",
    "hard_frequency",
    "hard_hits_bound",
    "hard_selection_data",
    "hard_top_k_bound",
    "hits_bound",
    "hits_upper_bound",
    "lemma_c7",
    "lemma_c8",
    "opt_upper_bound",
    "optimal_hits",
    "peeling_loss_bound",
    "top_k_bound",
    "top_k_lower_bound",
    "hitting_game_delta",
    "hitting_game_scale",
    "hitting_scale",
    "limited_domain_offset",
    "local_eps",
    "peeling_delta",
    "peeling_scale",
    "user_peeling_scale",
    "Calibration",
    "InvalidInput",
    "Profile",
    "Sandwich",
    "UserItems",
    "ZipfCertificate",
    "best_certificate",
    "calibrate",
    "corollary_34_shape",
    "gaussian_delta",
    "gaussian_maximum_bound",
    "gaussian_sigma",
    "gumbel_maximum_bound",
    "hard_zipf_bound",
    "hard_zipf_frequencies",
    "hard_zipf_profile",
    "instance_bound",
    "instance_lower_bound",
    "lemma_c2_frequency",
    "lemma_c2_mass",
    "lemma_c2_printed",
    "lemma_c3_frequency",
    "lemma_c4_printed",
    "lemma_c4_weight",
    "lemma_c5",
    "linf_bound",
    "log_gaussian_delta",
    "log_zipf_constant",
    "max_set_size_bound",
    "miss_probability_bound",
    "optimal_miss_probability",
    "optimal_selection_probability",
    "regime_map",
    "sandwich",
    "selection_threshold",
    "sigma_limit_large_eps",
    "sigma_limit_small_eps",
    "sigma_necessary",
    "sigma_sufficient",
    "spent_delta",
    "tau_u1",
    "tau_u1_star",
    "theorem_33_printed",
    "theorem_33_shape",
    "theorem_36_printed",
    "threshold_upper",
    "verify_calibration",
    "zipf_bound",
    "zipf_certificate",
    "zipf_tail_bound",
]
