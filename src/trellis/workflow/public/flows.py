"""The public half of a release of flows: estimates and tables, from measurements alone."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from trellis.errors import RunFolderError
from trellis.execution.progress import in_parts, tell_done
from trellis.model.plans.flow_estimators import DEFAULT_PENALTY, MOST_PENALTY, has_penalty
from trellis.model.plans.plan import Plan
from trellis.model.results.exact_totals import flow_range, settled
from trellis.model.trees.flows import FlowTree
from trellis.release.documents.data_package import write_data_package
from trellis.release.tables.flows import flow_guide, write_flow_tables
from trellis.storage.flows import estimate_table, estimates_file, read_flow_level, table_writer


def with_estimator(
    spec: dict[str, Any], plan: Plan, estimator: str, penalty: Fraction | None
) -> tuple[dict[str, Any], Plan]:
    """The same spec and plan with another estimator; only sparse ones have a penalty."""
    if has_penalty(estimator):
        penalty = next(
            p for p in (penalty, plan.penalty, Fraction(DEFAULT_PENALTY)) if p is not None
        )
        if not 0 <= penalty <= MOST_PENALTY:
            raise RunFolderError(f"A penalty lies between 0 and {MOST_PENALTY}, not at {penalty}.")
    elif penalty is not None:
        raise RunFolderError(f"The method {estimator!r} has no penalty; sparse and gls_sparse do.")
    estimate = {} if penalty is None else {"penalty": str(penalty)}
    plan = replace(plan, method=estimator, penalty=penalty, expected_errors=None)
    return {**spec, "estimator": estimator, "estimate": estimate}, plan


def write_flow_estimates(
    folder: Path, measurements: Path, plan: Plan, tree: FlowTree, tie_seed: int
) -> None:
    """One file per level, written run by run."""
    from trellis.estimate.flows.levels import estimate_flow_levels  # compiles

    total = 0
    for level, runs in estimate_flow_levels(measurements, plan, tree, tie_seed):
        with table_writer(estimates_file(folder, plan.levels[level])) as file:
            for run in runs:
                total = total if level else int(run.counts.sum())
                allowed = flow_range(plan, level, total)
                std_error = settled(run.std_error, allowed, run.counts)
                file.write(estimate_table(replace(run, std_error=std_error)))
        tell_done((level + 1) / len(plan.levels))


def write_flow_release(
    folder: Path, estimates: Path, plan: Plan, tree: FlowTree, csv: bool | None
) -> None:
    """Tables of all levels, the matrix, and how to read them."""
    rows, total = [], 0
    for level, name in in_parts(enumerate(plan.levels)):
        flows = read_flow_level(estimates, name)
        rows.append(len(flows.nodes))
        total = total if level else int(flows.counts.sum())
        allowed = flow_range(plan, level, total)
        write_flow_tables(folder, plan, tree, level, flows, allowed, csv)
    (folder / "README.md").write_text(flow_guide(plan, rows), encoding="utf-8")
    write_data_package(folder, plan)
