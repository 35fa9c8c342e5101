"""Shares of a budget, the noise they buy, and the errors it makes.

Names are looked up when they are first used: SciPy takes a while to import, and reading a spec does
without it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trellis.planning.budget.allocation import allocate, least_budget, least_split, split_budget
    from trellis.planning.budget.by_table import noise_for_tables
    from trellis.planning.budget.clipped import clipped_bias, clipped_mse, clipped_variance
    from trellis.planning.budget.noise import noise_for_shares

__all__ = [
    "allocate",
    "clipped_bias",
    "clipped_mse",
    "clipped_variance",
    "least_budget",
    "least_split",
    "noise_for_shares",
    "noise_for_tables",
    "split_budget",
]

_HOME = {
    "allocate": "allocation",
    "clipped_bias": "clipped",
    "clipped_mse": "clipped",
    "clipped_variance": "clipped",
    "least_budget": "allocation",
    "least_split": "allocation",
    "noise_for_shares": "noise",
    "noise_for_tables": "by_table",
    "split_budget": "allocation",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
