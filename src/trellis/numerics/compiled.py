"""Whether the kernels have been compiled on this machine before."""

from __future__ import annotations

from pathlib import Path

from trellis.numerics import tree_gls


def are_kernels_cached() -> bool:
    """True if Numba's cache holds a kernel that every release needs."""
    kernel = tree_gls._variances_up
    folder = Path(kernel.stats.cache_path or "")
    return any(folder.glob(f"tree_gls.{kernel.__name__}-*.nbi"))
