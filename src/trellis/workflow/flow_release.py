"""The public half of a release of flows: estimates and tables, from measurements alone."""

from __future__ import annotations

from pathlib import Path

from trellis.model.flows import FlowTree
from trellis.model.plan import Plan
from trellis.release.flow_tables import flow_guide, write_flow_tables
from trellis.storage.flows import estimate_table, estimates_file, read_flow_level, table_writer


def write_flow_estimates(
    folder: Path, measurements: Path, plan: Plan, tree: FlowTree, tie_seed: int
) -> None:
    """One file per level, written run by run."""
    from trellis.estimate.flows.levels import estimate_flow_levels  # compiles

    for level, runs in estimate_flow_levels(measurements, plan, tree, tie_seed):
        with table_writer(estimates_file(folder, plan.levels[level])) as file:
            for run in runs:
                file.write(estimate_table(run))


def write_flow_release(
    folder: Path, estimates: Path, plan: Plan, tree: FlowTree, csv: bool | None
) -> None:
    """Tables of all levels, the matrix, and how to read them."""
    rows = []
    for level, name in enumerate(plan.levels):
        flows = read_flow_level(estimates, name)
        rows.append(len(flows.nodes))
        write_flow_tables(folder, plan, tree, level, flows, csv)
    (folder / "README.md").write_text(flow_guide(plan, rows), encoding="utf-8")
