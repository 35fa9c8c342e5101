"""The promises about a spine. Each check yields what is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from trellis.verify.run_files import RunFiles


def spine(run: RunFiles) -> Iterator[str]:
    """The spine has the published root and leaves, and shares that sum to one on every path."""
    planned, tree, published = run.plan["spine"], run.tree, run.levels
    if tree[0].codes != published[0].codes:
        yield "spine.parquet has another root than the hierarchy"
    leaves = published[-1].codes
    places = run.spine_leaves
    if sorted(places.tolist()) != list(range(len(leaves))):
        yield "spine.parquet does not hold every leaf exactly once"
    elif [leaves[i] for i in places.tolist()] != tree[-1].codes:
        yield "spine.parquet holds other leaves than the hierarchy"
    above = 1
    for index, (level, plan) in enumerate(zip(tree, planned["levels"], strict=True)):
        numbers = np.bincount(run.node_classes[index], minlength=len(plan["classes"])).tolist()
        if numbers != [c["nodes"] for c in plan["classes"]] or sum(numbers) != plan["nodes"]:
            yield f"level {level.name} of the spine has other nodes than planned"
        if index and set(level.parent.tolist()) != set(range(above)):
            yield f"level {level.name} of the spine leaves a node without children, or a parent"
        above = len(level)
    yield from _paths(run)
    yield from _queries(run)


def _paths(run: RunFiles) -> Iterator[str]:
    """What every leaf's path costs, node by node."""
    planned = run.plan["spine"]
    shares = [[Fraction(c["share"]) for c in level["classes"]] for level in planned["levels"]]
    found = {(int(run.node_classes[0][0]),)}
    of_node = [(int(run.node_classes[0][0]),)]
    for level, classes in zip(run.tree[1:], run.node_classes[1:], strict=True):
        of_node = [
            (*of_node[parent], share_class)
            for parent, share_class in zip(level.parent.tolist(), classes.tolist(), strict=True)
        ]
        found = set(of_node)
    if sorted(map(list, found)) != sorted(planned["paths"]):
        yield "the paths of spine.parquet are not those that plan.json accounts for"
    for path in found:
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
