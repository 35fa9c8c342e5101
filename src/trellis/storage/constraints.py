"""Constraints as one Parquet file: a row per bound, as stated, before anything is derived.

    constraints.parquet    label, level, query, sense, binds, unit, cell, bound
    constraint_groups.parquet    label, area, unit: groups of areas, where there are any

`unit` is the position of an area in its level, or of a group; `cell` that of a cell of the query.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from trellis.model.plans.kinds.histograms import HistogramDesign
from trellis.model.plans.plan import Plan
from trellis.model.tables.constraints import ALONE, NO_BOUND, Constraints, LinearConstraint, Sense
from trellis.model.tables.rules import impossible_cells
from trellis.model.trees.hierarchy import Hierarchy
from trellis.storage.parquet import read_table, refusing_damage, repeated, write_table

FILE, GROUPS = "constraints.parquet", "constraint_groups.parquet"
RECORDS, OUTPUT = "records", "output"


def write_constraints(folder: Path, constraints: Constraints) -> None:
    """Nothing is written if there are none."""
    if not constraints.linear:
        return
    bounds, groups = [], []
    for constraint in constraints.linear:
        unit, cell = np.nonzero(constraint.bound != NO_BOUND)
        words = {
            "label": constraint.label,
            "level": constraint.level,
            "query": constraint.query,
            "sense": str(constraint.sense),
            "binds": RECORDS if constraint.binds_records else OUTPUT,
        }
        columns = {k: repeated(v, unit.size, pa.string()) for k, v in words.items()}
        columns |= {"unit": unit, "cell": cell, "bound": constraint.bound[unit, cell]}
        bounds.append(pa.table(columns))
        if constraint.group_of is not None:
            area = np.flatnonzero(constraint.group_of != ALONE)
            label = repeated(constraint.label, area.size, pa.string())
            member = {"label": label, "area": area, "unit": constraint.group_of[area]}
            groups.append(pa.table(member))
    write_table(folder / FILE, pa.concat_tables(bounds))
    if groups:
        write_table(folder / GROUPS, pa.concat_tables(groups))


def read_constraints(folder: Path, plan: Plan, hierarchy: Hierarchy) -> Constraints:
    """What was stated when the run began, with the structural zeros of the plan."""
    histogram = plan.design_as(HistogramDesign)
    impossible = impossible_cells(plan.schema, histogram.ordered, histogram.structural_zeros)
    path = folder / FILE
    if not path.exists():
        return Constraints((), impossible)
    table = read_table(path)
    groups = read_table(folder / GROUPS) if (folder / GROUPS).exists() else None
    with refusing_damage(path):
        labels = list(dict.fromkeys(table["label"].to_pylist()))
        found = tuple(_constraint(label, table, groups, plan, hierarchy) for label in labels)
        return Constraints(found, impossible)


def _constraint(
    label: str, table: pa.Table, groups: pa.Table | None, plan: Plan, hierarchy: Hierarchy
) -> LinearConstraint:
    part = _of_label(table, label)
    level, query, sense = (part[name][0].as_py() for name in ("level", "query", "sense"))
    member = None
    n_units = hierarchy.size(level)
    if groups is not None and label in groups["label"].to_pylist():
        rows = _of_label(groups, label)
        member = np.full(n_units, ALONE, dtype=np.int64)
        member[rows["area"].to_numpy()] = rows["unit"].to_numpy()
        n_units = int(member.max()) + 1
    bound = np.full((n_units, plan.width(query)), NO_BOUND, dtype=np.int64)
    bound[part["unit"].to_numpy(), part["cell"].to_numpy()] = part["bound"].to_numpy()
    # Before there was a column `binds`, every constraint bound the records.
    binds = part["binds"][0].as_py() if "binds" in part.column_names else RECORDS
    return LinearConstraint(label, level, query, Sense(sense), bound, member, binds == RECORDS)


def _of_label(table: pa.Table, label: str) -> pa.Table:
    return table.filter(pa.array([text == label for text in table["label"].to_pylist()]))
