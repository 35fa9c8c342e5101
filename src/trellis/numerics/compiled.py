"""Numba's cache of compiled kernels: whether it is filled, and that it is not stale.

Numba recompiles a kernel when its own file changes, not when a file it calls changes. An upgrade,
or an edit, would then run old code, so the cache carries a digest of all kernel sources and is
emptied when they differ.
"""

from __future__ import annotations

from contextlib import suppress
from hashlib import sha256
from pathlib import Path

_HERE = Path(__file__).parent
_STAMP = _HERE / "__pycache__" / "kernels.sha256"


def drop_stale_kernels() -> None:
    """Empty the cache unless it was made from these sources."""
    digest = sha256()
    for source in sorted(_HERE.rglob("*.py")):
        digest.update(source.read_bytes())
    now = digest.hexdigest()
    with suppress(OSError):  # where nothing can be written, nothing was cached here either
        if _STAMP.exists() and _STAMP.read_text() == now:
            return
        for compiled in _HERE.rglob("*.nb[ic]"):
            compiled.unlink(missing_ok=True)
        _STAMP.parent.mkdir(exist_ok=True)
        _STAMP.write_text(now)


def are_kernels_cached() -> bool:
    """Whether kernels that a release needs, one kind or another, have been compiled before."""
    kernels = ("tree_gls", "chebyshev", "family_solver")
    return any(any(_HERE.rglob(f"{kernel}.*.nbi")) for kernel in kernels)
