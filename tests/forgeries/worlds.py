"""Run folders to forge: every kind, a spine, areas of interest, another method, a withdrawal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

import spine_worlds
import trellis
from kinds import WORLDS
from kinds.world import RHO
from measuring import reestimate
from trellis.samples.demo import write_demo
from trellis.workflow.progress import Silent
from trellis.workflow.public.run_folder import RunFolder

LEDGER = "ledger.sqlite"
RULES: dict[str, Any] = {
    "structural_zeros": ["age = 0 and sex = f"],
    "edit_rules": ["age = 0 requires age > 1"],
    "constraints": [
        {"name": "homes", "source": "facilities.csv", "level": "town", "area": "town",
         "query": "age", "facilities": "homes", "open_to_all": ["1", "2"], "binds": "output"},
    ],
}  # fmt: skip
"""Of a release of histograms."""


def of_kind(kind: str, **changes: Any) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        spec = trellis.Spec.load(WORLDS[kind].write(folder, **RHO | changes))
        return trellis.run(spec, folder / "run").path

    return make


def reestimated(folder: Path) -> Path:
    """Counts by another method; the folder is `run` here too."""
    first = of_kind("counts")(folder)
    first.rename(folder / "first")
    return reestimate(RunFolder(folder / "first"), "gls", folder / "run", Silent()).path


def state(folder: Path, budget: str = "1") -> Path:
    """Enough blocks to see how measurements scatter."""
    write_demo(folder, n_blocks=1500)
    content = yaml.safe_load((folder / "spec.yaml").read_text())
    content["privacy"]["budget"] = {"rho": budget}
    return trellis.run(trellis.Spec.parse(content, folder), folder / "run").path


def withdrawn(folder: Path) -> Path:
    spec = trellis.Spec.load(WORLDS["counts"].write(folder))
    first, again = (
        trellis.run(spec, folder / "run"),
        trellis.run(spec, folder / "again", new_edition=True),
    )
    trellis.Ledger(folder / LEDGER).withdraw_run(first, reason="A mistake.", superseded_by=again)
    return first.path


MAKERS: dict[str, Callable[[Path], Path]] = {
    "counts": of_kind("counts"),
    "exact totals": of_kind("counts", unprotected__totals=["nation", "state"]),
    "histograms": of_kind("histograms"),
    "rules": of_kind("histograms", **RULES),
    "group sizes": of_kind("group_sizes"),
    "flows": of_kind("flows"),
    "spine": lambda folder: spine_worlds.release(folder).path,
    "areas": lambda folder: spine_worlds.release(folder, spine=None).path,
    "another method": reestimated,
    "a state": state,
    "withdrawn": withdrawn,
}
KINDS = ("counts", "histograms", "group sizes", "flows")
COVERED = ("counts", "rules", "group sizes", "flows", "spine", "another method")
"""Together they have every file of every kind; a spine comes with areas of interest."""
