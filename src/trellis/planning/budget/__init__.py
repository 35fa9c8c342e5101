"""Shares of a budget, the noise they buy, and the errors it makes."""

from trellis.planning.budget.allocation import allocate, least_budget, least_split, split_budget
from trellis.planning.budget.clipped import clipped_bias, clipped_mse, clipped_variance
from trellis.planning.budget.noise import noise_for_shares
from trellis.planning.budget.shares import Shares

__all__ = [
    "Shares",
    "allocate",
    "clipped_bias",
    "clipped_mse",
    "clipped_variance",
    "least_budget",
    "least_split",
    "noise_for_shares",
    "split_budget",
]
