"""The spine and the areas of interest in a plan: valid, and described as their files have them.

The tree of a spine was searched for. It is not searched again: its steps are those of spec.yaml,
its shares sum to one on every path (see `counts.spine`), and what the plan says about it is true.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from hashlib import sha256
from typing import Any

import numpy as np

from trellis.verify.files.run_files import RunFiles, ancestors
from trellis.verify.files.safe_files import Unreadable
from trellis.verify.files.trees import tree_digest
from trellis.verify.plan.noise import Asked


def spine_queries(run: RunFiles, query: str) -> list[Asked]:
    """One query for each share of each level of the spine."""
    return [
        Asked(level["level"], query, Fraction(c["share"]), share_class=number)
        for level in run.plan["spine"]["levels"]
        for number, c in enumerate(level["classes"])
        if Fraction(c["share"])
    ]


def spine_keys(run: RunFiles) -> dict[str, Any]:
    """The keys `areas` and `spine` of plan.json, where spec.yaml has them."""
    spec, found = run.spec, {}
    levels = [level["level"] for level in run.plan["levels"]]
    if named := [name for name in spec.get("areas") or {} if name not in levels]:
        found["areas"] = [_category(run, name) for name in named]
    if spec.get("spine"):
        found["spine"] = _spine(run)
    return found


def _category(run: RunFiles, name: str) -> dict[str, Any]:
    column = run.table("areas.parquet", [name])[name].combine_chunks()
    codes = column.dictionary.to_pylist()
    if codes != sorted(set(codes)):
        raise Unreadable("areas.parquet does not list the entities of a category in order")
    digest = sha256("\0".join(codes).encode())
    digest.update(column.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype("<i4"))
    return {"name": name, "entities": len(codes), "digest": digest.hexdigest()}


def _spine(run: RunFiles) -> dict[str, Any]:
    planned, tree = run.plan["spine"], run.tree
    digest = sha256(tree_digest(tree).encode())
    for array in (run.spine_leaves, *run.node_classes):
        digest.update(array.astype("<i8").tobytes())
    return {
        "steps": [_in_words(step) for step in run.spec["spine"]],
        "levels": [_level(run, index) for index in range(len(tree))],
        "paths": planned["paths"],  # those of the tree, as `counts.spine` checks
        "keeps_whole": _keeps_whole(run),
        "sha256": digest.hexdigest(),
    }


def _level(run: RunFiles, index: int) -> dict[str, Any]:
    """Shares are those of plan.json, in order, each once."""
    level, planned = run.tree[index], run.plan["spine"]["levels"][index]
    shares = sorted({Fraction(c["share"]) for c in planned["classes"]})
    nodes = np.bincount(run.node_classes[index], minlength=len(shares)).tolist()
    classes = [{"share": str(s), "nodes": n} for s, n in zip(shares, nodes, strict=True)]
    return {"level": level.name, "nodes": len(level), "classes": classes}


def _keeps_whole(run: RunFiles) -> list[int]:
    """For each published level, on how many levels of the spine its areas lie in one node each."""
    published, tree, last = run.levels, run.tree, len(run.tree) - 1
    found = []
    for index in range(len(published)):
        area = ancestors(published, len(published) - 1, index)[run.spine_leaves]
        whole = 0
        for depth in range(len(tree)):
            node = ancestors(tree, last, depth)
            pairs = np.unique(area * np.int64(len(tree[depth])) + node).size
            if pairs != len(published[index]):
                break
            whole += 1
        found.append(whole)
    return found


def _in_words(step: Mapping[str, Any]) -> str:
    ((name, keys),) = step.items()
    if name == "branch":
        return f"branch at {keys['level']}: {', '.join(keys['inside'])} apart from the rest"
    if name == "bypass":
        return "parents bypassed where no estimate gets worse"
    by = ", ".join(keys["areas"])
    if name == "regroup_leaves":
        return f"leaves regrouped by {by} (fanout_cutoff {keys['fanout_cutoff']}, {keys['cut']})"
    group = keys.get("name", f"{keys['level']}_group")
    return f"{group} above {keys['level']} by {by} (fanout_cutoff {keys['fanout_cutoff']})"
