"""Tables of flows: one per level of the tree, and the matrix of all pairs of leaves."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from trellis.model.plans.flows import FlowDesign
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

_ESTIMATES = {
    False: "the noisy measurement of the flow itself",
    True: "the best linear unbiased estimate from all measurements above and below",
}
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
    lines = [
        f"| {plain(name)} | {size:,} | {published:,} |"
        for name, size, published in zip(plan.levels, plan.areas, rows, strict=True)
    ]
    levels = "\n".join(["| level | possible pairs | published |", "|---|---|---|", *lines])
    codes = ["origin", "destination", *shape.attributes]
    attributes = "".join(f", {code(name)}" for name in shape.attributes)
    return f"""# {plain(plan.release)}

One table of flows per level of the tree, origin level first in its name, as Parquet; some also as
CSV. Pairs that are not listed have a count of zero.

{levels}

Columns: `origin` and `destination` (the areas){attributes}, `count` (the published number of
trips), `std_error`, `lower`, `upper`. Counts add up exactly from level to level. `{MATRIX}.parquet`
holds all pairs of the finest areas as `origin`, `dest` and `count`.

## Margins of error

`std_error` is that of {_ESTIMATES[plan.method.looks_below]}. `lower` and
`upper` enclose the true number with {in_percent(plan.confidence)} confidence, for a flow that was
named before the table was seen: an interval around that number, rounded, kept between zero and the
total where that is exact, and widened where needed to contain the published count. Among flows that
were picked because they are listed, or because they are large, more are too high than too low.

The published count is whole and was fitted to the counts of the levels above (estimator
`{plan.method}`). A pair without any trip can be listed, one with a few can be missing.

{codes_in_markdown(f"{plan.levels[-1]}.csv", codes)}

{protected_in_markdown(plan)}
"""
