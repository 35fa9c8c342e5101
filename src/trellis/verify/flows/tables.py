"""The promises of a release of flows. Each check yields what is wrong."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from trellis.verify.files.flow_files import (
    NODE,
    both_sides,
    depths_of,
    estimated,
    level_names,
    n_cells,
    node_keys,
    parents_of,
    tree_steps,
)
from trellis.verify.files.run_files import RunFiles
from trellis.verify.files.trees import no_tree, read_tree
from trellis.verify.plan.price import noise_variance


def flow_tree(run: RunFiles) -> Iterator[str]:
    """The levels are those of the tree over both hierarchies, with as many possible pairs."""
    sides, flow = both_sides(run), run.plan["flow"]
    for name in sorted({"hierarchy.parquet", "destinations.parquet"} & set(run.sizes)):
        yield from no_tree(read_tree(run, name))
    if len(run.plan["levels"]) != len(tree_steps(run)) + 1:
        yield "plan.json has another number of levels than the tree"
        return
    for level, planned in enumerate(run.plan["levels"]):
        origin, destination = depths_of(run, level)
        is_cells = level > 0 and tree_steps(run)[level - 1] == "cell"
        size = sides["origin"].size(origin) * sides["destination"].size(destination)
        if planned["nodes"] != size * (n_cells(run) if is_cells else 1):
            yield f"level {planned['level']} has another number of possible pairs than planned"
        name = f"{flow['origin_levels'][origin]}-to-{flow['destination_levels'][destination]}"
        if not planned["level"].startswith(name):
            yield f"level {planned['level']} is not where the tree has it"


def flow_measurements(run: RunFiles) -> Iterator[str]:
    """Each level was measured once, with the planned noise, on all children of certain nodes."""
    expected = {f"level={q['level']}/query={q['query']}.parquet" for q in run.plan["queries"]}
    folder = run.path / "measurements"
    there = {p.relative_to(folder).as_posix() for p in folder.rglob("*.parquet")}
    for name in sorted(there ^ expected):
        yield f"measurements/{name} is not both planned and there"
    above = {"origin": np.zeros(1, np.int64), "destination": np.zeros(1, np.int64)}
    for level, query in enumerate(run.plan["queries"]):
        name = f"measurements/level={query['level']}/query={query['query']}.parquet"
        table = run.table(name)
        nodes = above if level == 0 else _children(run, level - 1, above)
        columns = {key: table[key].to_numpy() for key in NODE if key in table.column_names}
        if list(columns) != list(nodes) or any(
            not np.array_equal(columns[key], nodes[key]) for key in nodes
        ):
            yield f"{name} does not list all children of the nodes of the level above, in order"
            return
        if table.schema.field("value").type != pa.int64() or table["value"].null_count:
            yield f"{name} holds values that are not whole numbers"
        variance = 0.0 if query["noise"] is None else noise_variance(query["noise"])
        if not np.allclose(table["variance"].to_numpy(), variance, rtol=1e-9, atol=0):
            yield f"{name} states another variance than its noise has"
        expanded = table["expanded"].to_numpy(zero_copy_only=False)
        above = {key: values[expanded] for key, values in columns.items()}


def _children(run: RunFiles, level: int, above: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """All children of nodes of `level`, family by family."""
    step = tree_steps(run)[level]
    if step == "cell":
        numbers = np.full(above["origin"].size, n_cells(run))
        first = np.zeros_like(numbers)
    else:
        depth = depths_of(run, level)[0 if step == "origin" else 1]
        numbers, first = both_sides(run)[step].children(depth, above[step])
    begins = np.repeat(np.cumsum(numbers) - numbers, numbers)
    child = np.repeat(first, numbers) + np.arange(numbers.sum()) - begins
    nodes = {key: np.repeat(values, numbers) for key, values in above.items()}
    return {**nodes, step: child}


def flow_tables(run: RunFiles) -> Iterator[str]:
    """Each table lists the estimated flows with the codes of their areas, once each, above zero."""
    sides = both_sides(run)
    for level, name in enumerate(level_names(run)):
        table, positions = run.released(name), estimated(run, level)
        attributes = run.plan["flow"]["attributes"] if "cell" in positions else []
        names = ["origin", "destination", *attributes, "count", "std_error", "lower", "upper"]
        if table.column_names != names:
            yield f"release/{name}.parquet has other columns than promised"
            continue
        for side, depth in zip(("origin", "destination"), depths_of(run, level), strict=True):
            codes = np.array(sides[side].codes[depth], dtype=object)[positions[side]]
            if table[side].to_pylist() != codes.tolist():
                yield f"release/{name}.parquet names other areas than estimated"
        for attribute, values in _categories(run, positions).items():
            if table[attribute].to_pylist() != values:
                yield f"release/{name}.parquet names other cells than estimated"
        if len(np.unique(node_keys(run, level, positions))) != len(table):
            yield f"release/{name}.parquet lists a pair twice"
        if table["count"].null_count or not pa.types.is_integer(table["count"].type):
            yield f"release/{name}.parquet has counts that are not whole numbers"
        elif (table["count"].to_numpy() <= 0).any():
            yield f"release/{name}.parquet lists counts that are not above zero"
        elif not np.array_equal(table["count"].to_numpy(), positions["count"]):
            yield f"release/{name}.parquet has other counts than estimated"


def flow_sums(run: RunFiles) -> Iterator[str]:
    """Flows add up to the flow above them, on every level."""
    names = level_names(run)
    for level in range(1, len(names)):
        below, above = estimated(run, level), estimated(run, level - 1)
        lifted = parents_of(run, level, below)
        keys, place = np.unique(node_keys(run, level - 1, lifted), return_inverse=True)
        sums = np.zeros(keys.size, dtype=np.int64)
        np.add.at(sums, place, below["count"])
        order = np.argsort(node_keys(run, level - 1, above))
        same = np.array_equal(keys, node_keys(run, level - 1, above)[order])
        if not same or not np.array_equal(sums, above["count"][order]):
            yield f"flows of level {names[level]} do not add up to level {names[level - 1]}"
    root = run.plan["queries"][0]
    exact = [names[0]] if root["noise"] is None else []
    if exact != run.plan["unprotected_totals"]:
        yield "plan.json measures other exact totals than it lists as unprotected"


def flow_matrix(run: RunFiles) -> Iterator[str]:
    """The matrix holds the pairs of leaves of the table of their level."""
    level = len(tree_steps(run)) - bool(run.plan["flow"]["attributes"])
    table, matrix = run.released(level_names(run)[level]), run.table("release/od_matrix.parquet")
    if matrix.column_names != ["origin", "dest", "count"]:
        yield "release/od_matrix.parquet has other columns than promised"
        return
    for ours, theirs in (("origin", "origin"), ("dest", "destination"), ("count", "count")):
        if matrix[ours].to_pylist() != table[theirs].to_pylist():
            yield f"release/od_matrix.parquet differs from the table in {ours}"


def _categories(run: RunFiles, nodes: dict[str, np.ndarray]) -> dict[str, list[str]]:
    if "cell" not in nodes:
        return {}
    cells = [run.cells[i] for i in nodes["cell"]]
    return {name: [c[axis] for c in cells] for axis, name in enumerate(run.plan["schema"])}
