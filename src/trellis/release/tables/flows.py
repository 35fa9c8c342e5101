"""Tables of flows: one per level of the tree, and the matrix of all pairs of leaves."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from trellis.model.plans.kinds.flows import FlowDesign
from trellis.model.plans.percent import in_percent
from trellis.model.plans.plan import Plan
from trellis.model.tables.carried_bounds import Range
from trellis.model.tables.schema import Schema
from trellis.model.trees.flows import FlowLevel, FlowTree, Nodes
from trellis.model.trees.hierarchy import Hierarchy
from trellis.release.documents.markdown import code, plain
from trellis.release.documents.reading_guide import codes_in_markdown, protected_in_markdown
from trellis.release.tables.counts import write_level_table
from trellis.release.tables.intervals import interval, interval_factor
from trellis.storage.codes import level_codes
from trellis.storage.parquet import write_table
from trellis.wording import guides as words

MATRIX = "od_matrix"
"""Origin, destination and count of all pairs of leaves, as tools for flow maps read them."""


def write_flow_tables(
    folder: Path,
    plan: Plan,
    tree: FlowTree,
    level: int,
    flows: FlowLevel,
    allowed: Range,
    csv: bool | None,
) -> None:
    """The table of one level; with that of the pairs of leaves, the matrix."""
    table = flow_table(plan, tree, level, flows, allowed)
    write_level_table(folder, plan.levels[level], table, csv)
    if level == tree.shape.leaf_pairs:
        text = {name: table[name].cast(pa.string()) for name in ("origin", "destination")}
        matrix = {"origin": text["origin"], "dest": text["destination"], "count": table["count"]}
        write_table(folder / f"{MATRIX}.parquet", pa.table(matrix))


def flow_table(
    plan: Plan, tree: FlowTree, level: int, flows: FlowLevel, allowed: Range
) -> pa.Table:
    """Columns origin, destination, <attributes>, count, std_error, lower, upper."""
    margin = flows.counts, flows.centre, flows.std_error
    lower, upper = interval(*margin, interval_factor(plan), allowed)
    return pa.table(
        {
            **codes_of(tree, level, flows.nodes),
            **_categories(plan.schema, flows.nodes),
            "count": flows.counts,
            "std_error": flows.std_error,
            "lower": lower,
            "upper": upper,
        }
    )


def codes_of(tree: FlowTree, level: int, nodes: Nodes) -> dict[str, pa.Array]:
    """The codes of both areas."""
    origin, destination = tree.shape.depths(level)
    return {
        "origin": _coded(tree.origins, origin, nodes.origin),
        "destination": _coded(tree.destinations, destination, nodes.destination),
    }


def _coded(hierarchy: Hierarchy, level: int, positions: np.ndarray) -> pa.Array:
    return pa.DictionaryArray.from_arrays(
        pa.array(positions.astype(np.int32)), level_codes(hierarchy, level)
    )


def _categories(schema: Schema, nodes: Nodes) -> dict[str, pa.Array]:
    if nodes.cell is None:
        return {}
    positions = np.unravel_index(nodes.cell, schema.shape)
    return {
        name: pa.DictionaryArray.from_arrays(
            pa.array(position.astype(np.int32)), pa.array(categories, pa.string())
        )
        for name, categories, position in zip(
            schema.names, schema.categories, positions, strict=True
        )
    }


def flow_guide(plan: Plan, rows: Sequence[int]) -> str:
    """Markdown for users of flows."""
    shape = plan.design_as(FlowDesign).shape
    sizes = zip(plan.levels, plan.areas, rows, strict=True)
    lines = [
        words.FLOW_LEVEL.format(level=plain(name), pairs=pairs, published=published)
        for name, pairs, published in sizes
    ]
    columns = ["origin", "destination", *shape.attributes]
    return words.FLOWS.format(
        release=plain(plan.release),
        levels="\n".join([words.FLOW_LEVELS_HEAD, *lines]),
        attributes="".join(f", {code(name)}" for name in shape.attributes),
        matrix=MATRIX,
        estimate=words.FLOW_ESTIMATE[plan.method.looks_below],
        confidence=in_percent(plan.confidence),
        method=plan.method,
        codes=codes_in_markdown(f"{plan.levels[-1]}.csv", columns),
        protected=protected_in_markdown(plan),
    )
