"""Set-union mechanisms of the literature beside the weighted Gaussian one.

All are instances of the frame in `wgm_jax.set_union.frame`: keep a uniform subset of every user's
items, weigh, add noise, threshold; some repeat it with what is left.
"""
