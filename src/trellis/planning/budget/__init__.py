"""Shares of a budget and the noise they buy."""

from trellis.planning.budget.by_table import noise_for_tables
from trellis.planning.budget.noise import noise_for_shares
from trellis.planning.budget.shares import Shares

__all__ = ["Shares", "noise_for_shares", "noise_for_tables"]
