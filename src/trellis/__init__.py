"""Differentially private release of hierarchical data.

    spec = trellis.Spec.load("spec.yaml")
    trellis.plan(spec)                      # shares, noise, expected errors; touches no counts
    release = trellis.run(spec, out="runs/x")
    release.table("county")

Names are loaded on first use, so that `import trellis` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trellis.workflow.api import plan, run
    from trellis.workflow.check import check
    from trellis.workflow.config import Spec
    from trellis.workflow.public_half import Release

__version__ = "0.1.0"
__all__ = ["Release", "Spec", "check", "plan", "run"]

_HOME = {
    "Release": "trellis.workflow.public_half",
    "Spec": "trellis.workflow.config",
    "check": "trellis.workflow.check",
    "plan": "trellis.workflow.api",
    "run": "trellis.workflow.api",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'trellis' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
