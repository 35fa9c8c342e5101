"""Differentially private release of hierarchical data.

    import trellis as tr

    spec = tr.load("spec.yaml")             # or tr.Counts(..), tr.Histograms(..), ..
    plan = spec.plan()                      # shares, noise, expected errors; touches no counts
    run = plan.measure(out="runs/x")        # charges the ledger, draws noise once
    release = run.estimate()                # tables, from the measurements alone
    release["county"].to_pandas()

Names are loaded on first use, so that `import trellis` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trellis.api.evaluation import evaluate_run
    from trellis.api.functions import account, check, plan, run, verify_run
    from trellis.api.inputs import (
        Areas,
        Gaussian,
        Hierarchy,
        Laplace,
        Optimal,
        Records,
        Register,
        Unit,
    )
    from trellis.api.ledgers import Ledger
    from trellis.api.logs import confidential_log
    from trellis.api.plans import Plan
    from trellis.api.releases import Release
    from trellis.api.runs import Run
    from trellis.api.specs import Counts, Flows, GroupSizes, Histograms, Spec, load
    from trellis.api.tables import Table
    from trellis.privacy.accounting.accountant import Accountant
    from trellis.samples.files import demo, starter

__version__ = "0.1.0"

_HOME = {
    "Accountant": "trellis.privacy",
    "Areas": "trellis.api.inputs",
    "Counts": "trellis.api.specs",
    "Flows": "trellis.api.specs",
    "Gaussian": "trellis.api.inputs",
    "GroupSizes": "trellis.api.specs",
    "Hierarchy": "trellis.api.inputs",
    "Histograms": "trellis.api.specs",
    "Laplace": "trellis.api.inputs",
    "Ledger": "trellis.api.ledgers",
    "Optimal": "trellis.api.inputs",
    "Plan": "trellis.api.plans",
    "Records": "trellis.api.inputs",
    "Register": "trellis.api.inputs",
    "Release": "trellis.api.releases",
    "Run": "trellis.api.runs",
    "Spec": "trellis.api.specs",
    "Table": "trellis.api.tables",
    "Unit": "trellis.api.inputs",
    "account": "trellis.api.functions",
    "check": "trellis.api.functions",
    "confidential_log": "trellis.api.logs",
    "demo": "trellis.samples.files",
    "evaluate_run": "trellis.api.evaluation",
    "load": "trellis.api.specs",
    "plan": "trellis.api.functions",
    "run": "trellis.api.functions",
    "starter": "trellis.samples.files",
    "verify_run": "trellis.api.functions",
}

__all__ = [
    "Accountant", "Areas", "Counts", "Flows", "Gaussian", "GroupSizes", "Hierarchy", "Histograms",
    "Laplace", "Ledger", "Optimal", "Plan", "Records", "Register", "Release", "Run", "Spec",
    "Table", "Unit", "account", "check", "confidential_log", "demo", "evaluate_run", "load", "plan",
    "run", "starter", "verify_run",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'trellis' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
