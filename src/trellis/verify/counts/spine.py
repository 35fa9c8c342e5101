"""The promises about a spine. Each check yields what is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pyarrow as pa

from trellis.verify.files.run_files import RunFiles


def spine(run: RunFiles) -> Iterator[str]:
    """The spine has the published root and leaves, and shares that sum to one on every path."""
    planned, tree, published = run.plan["spine"], run.tree, run.levels
    if tree[0].codes != published[0].codes:
        yield "spine.parquet has another root than the hierarchy"
    leaves, places = published[-1], run.spine_leaves
    if not np.array_equal(np.sort(places), np.arange(len(leaves))):
        yield "spine.parquet does not hold every leaf exactly once"
    elif not leaves.geocodes.take(pa.array(places)).equals(tree[-1].geocodes):
        yield "spine.parquet holds other leaves than the hierarchy"
    if not _is_plain(run):
        yield "spine.parquet says more than a spine has to say"
    above = 1
    for index, (level, plan) in enumerate(zip(tree, planned["levels"], strict=True)):
        numbers = np.bincount(run.node_classes[index], minlength=len(plan["classes"])).tolist()
        if numbers != [c["nodes"] for c in plan["classes"]] or sum(numbers) != plan["nodes"]:
            yield f"level {level.name} of the spine has other nodes than planned"
        if index and not np.array_equal(np.unique(level.parent), np.arange(above)):
            yield f"level {level.name} of the spine leaves a node without children, or a parent"
        above = len(level)
    yield from _paths(run)
    yield from _queries(run)


def _is_plain(run: RunFiles) -> bool:
    """The root has no parent, only leaves are leaves, and nothing passes through."""
    table = run.table("spine.parquet")
    inner = table["level"].to_numpy() < len(run.tree) - 1
    leaf = table["leaf"].to_numpy()
    passes = table["passes_through"].to_numpy(zero_copy_only=False)
    return bool(
        (leaf[inner] == -1).all() and not passes.any() and run.tree[0].parent.tolist() == [-1]
    )


def _paths(run: RunFiles) -> Iterator[str]:
    """What every leaf's path costs: kinds of paths, told apart level by level."""
    planned = run.plan["spine"]
    shares = [[Fraction(c["share"]) for c in level["classes"]] for level in planned["levels"]]
    paths = [[int(run.node_classes[0][0])]]
    kind = np.zeros(1, dtype=int)  # of the path that ends at each node
    for level, classes in zip(run.tree[1:], run.node_classes[1:], strict=True):
        most = int(classes.max()) + 1
        keys, kind = np.unique(kind[level.parent] * most + classes, return_inverse=True)
        paths = [[*paths[key // most], int(key % most)] for key in keys.tolist()]
    if sorted(paths) != sorted(planned["paths"]):
        yield "the paths of spine.parquet are not those that plan.json accounts for"
    for path in paths:
        if sum(shares[i][k] for i, k in enumerate(path)) != 1:
            yield "the shares of a path of spine.parquet do not sum to one"


def _queries(run: RunFiles) -> Iterator[str]:
    """Each share of a level is measured with its own noise, and nothing else is."""
    expected = {
        (level["level"], number, c["share"])
        for level in run.plan["spine"]["levels"]
        for number, c in enumerate(level["classes"])
        if Fraction(c["share"]) > 0
    }
    noisy = [q for q in run.plan["queries"] if q["noise"] is not None]
    if {(q["level"], q["class"], q["share"]) for q in noisy} != expected:
        yield "plan.json measures other shares than its spine has"
