"""Numba's cache of compiled kernels: that it is not stale, and when it is filled.

Numba recompiles a kernel when its own file changes, not when a file it calls changes. An upgrade,
or an edit, would then run old code, so the cache carries a digest of all kernel sources and is
emptied when they differ.
"""

from __future__ import annotations

from collections.abc import Callable
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


def tell_when_compiling(tell: Callable[[], None]) -> None:
    """Call `tell` when the first kernel is compiled; loading it from the cache is not compiling."""
    from numba.core import event

    class FirstTime(event.Listener):
        told = False

        def on_start(self, event: event.Event) -> None:
            del event
            if not self.told:
                self.told = True
                tell()

        def on_end(self, event: event.Event) -> None:
            del event

    event.register("numba:compile", FirstTime())
