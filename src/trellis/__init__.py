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
    from trellis.spec import Spec
    from trellis.workflow.api import plan, run
    from trellis.workflow.confidential.check import check
    from trellis.workflow.public.finishing import Release

__version__ = "0.1.0"
__all__ = ["Release", "Spec", "check", "plan", "run"]

_HOME = {
    "Release": "trellis.workflow.public.finishing",
    "Spec": "trellis.spec",
    "check": "trellis.workflow.confidential.check",
    "plan": "trellis.workflow.api",
    "run": "trellis.workflow.api",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'trellis' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
