"""The plan that a path leads to, whatever lies there."""

from __future__ import annotations

from pathlib import Path

from trellis.model.plans.plan import Plan
from trellis.spec import Spec
from trellis.storage.plans import read_plan
from trellis.verify.files.inventory import refuse_strange, refuse_strange_plan
from trellis.workflow.preparing.prepare import prepare
from trellis.workflow.public.run_folder import RunFolder


def plan_at(path: Path) -> Plan:
    """From a run folder, a plan, or a spec (which is planned, without touching counts)."""
    if path.is_dir():
        refuse_strange(path)
        return RunFolder(path).plan()
    if path.suffix == ".json":
        refuse_strange_plan(path)
        return read_plan(path)
    return prepare(Spec.load(path)).plan
