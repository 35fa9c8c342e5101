"""The public half of a release of flows: estimate, tables and pictures, from measurements alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from trellis.evaluate.flow_pictures import flow_section
from trellis.model.flows import FlowLevel, FlowTree
from trellis.model.plan import Plan
from trellis.release.flow_tables import codes_of, flow_guide, write_flow_tables
from trellis.storage.flows import estimate_table, estimates_file, read_flow_level, table_writer

_MOST_SHOWN = 20


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


def flows_in_report(estimates: Path, plan: Plan, tree: FlowTree) -> str:
    """Pictures of the coarsest pairs, and the largest flows of the finest."""
    assert plan.flow is not None
    fine = plan.flow.leaf_pairs
    both_split = (level for level in range(fine) if min(plan.flow.depths(level)) >= 1)
    shown = []
    for level in (next(both_split, fine), fine):
        flows = read_flow_level(estimates, plan.levels[level])
        shown.append((plan.levels[level], _named(tree, level, flows)))
    return flow_section(*shown)


def _named(tree: FlowTree, level: int, flows: FlowLevel) -> list[tuple[str, str, int, float]]:
    """The largest flows with the codes of their areas, and their standard errors."""
    largest = np.argsort(-flows.counts, kind="stable")[: _MOST_SHOWN * 3]
    codes = codes_of(tree, level, flows.nodes[largest])
    return list(
        zip(
            codes["origin"].to_pylist(),
            codes["destination"].to_pylist(),
            flows.counts[largest].tolist(),
            flows.std_error[largest].tolist(),
            strict=True,
        )
    )
