"""The spine and the areas of interest, as Parquet; what a plan says about them, as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from trellis.model.plans.plan import Plan
from trellis.model.trees.areas import AreaPlan, Category
from trellis.model.trees.hierarchy import Hierarchy
from trellis.model.trees.spine import Spine, SpinePlan
from trellis.storage.codes import codes_from_arrow, codes_to_arrow, level_codes
from trellis.storage.hierarchies import hierarchy_digest, hierarchy_from_table, hierarchy_to_table
from trellis.storage.parquet import read_table, refusing_damage, write_table


def write_spine(path: Path, spine: Spine) -> None:
    """The hierarchy's columns; class of the share; position of a leaf in the published order."""
    table = hierarchy_to_table(spine.hierarchy)
    leaf = np.full(table.num_rows, -1, dtype=np.int64)
    leaf[-spine.leaf_order.size :] = spine.leaf_order
    table = table.append_column("class", pa.array(np.concatenate(spine.classes)))
    write_table(path, table.append_column("leaf", pa.array(leaf)))


def read_spine(path: Path) -> Spine:
    table = read_table(path)
    with refusing_damage(path):
        tree = hierarchy_from_table(table)
        ends = np.cumsum(tree.sizes)[:-1]
        classes = np.split(table["class"].to_numpy().astype(np.int16), ends)
        leaf = table["leaf"].to_numpy()[-tree.sizes[-1] :].astype(np.int64)
        return Spine(tree, leaf, tuple(classes))


def write_areas(path: Path, hierarchy: Hierarchy, categories: Sequence[Category]) -> None:
    """One row per published leaf, one column per category: the entity, empty outside."""
    columns: dict[str, pa.Array] = {"geocode": level_codes(hierarchy, -1)}
    for category in categories:
        inside = category.member >= 0
        columns[category.name] = pa.DictionaryArray.from_arrays(
            pa.array(category.member, mask=~inside), codes_to_arrow(category.codes)
        )
    write_table(path, pa.table(columns))


def read_areas(path: Path, names: Sequence[str]) -> tuple[Category, ...]:
    table = read_table(path)
    with refusing_damage(path):
        return tuple(_category(name, table[name].combine_chunks()) for name in names)


def _category(name: str, column: pa.DictionaryArray) -> Category:
    member = column.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int32)
    return Category(name, codes_from_arrow(pa.chunked_array([column.dictionary])), member)


def spine_digest(tree: Hierarchy, leaf_order: np.ndarray, classes: Sequence[np.ndarray]) -> str:
    """SHA-256 of the tree, the places of its leaves and the classes of its nodes."""
    digest = sha256(hierarchy_digest(tree).encode())
    for array in (leaf_order, *classes):
        digest.update(array.astype("<i8").tobytes())
    return digest.hexdigest()


def category_digest(category: Category) -> str:
    digest = sha256("\0".join(category.codes.tolist()).encode())
    digest.update(category.member.astype("<i4").tobytes())
    return digest.hexdigest()


# -- in a plan ------------------------------------------------------------------------------------


def spine_to_json(plan: Plan) -> dict[str, Any]:
    """Nothing for a plan without areas of interest and without a spine."""
    content: dict[str, Any] = {}
    if plan.interests:
        content["areas"] = [asdict(area) for area in plan.interests]
    if (spine := plan.spine) is not None:
        content["spine"] = {
            "steps": list(spine.steps),
            "levels": [
                {
                    "level": name,
                    "nodes": size,
                    "classes": [
                        {"share": str(share), "nodes": n}
                        for share, n in zip(shares, counts, strict=True)
                    ],
                }
                for name, size, shares, counts in zip(
                    spine.levels, spine.sizes, spine.shares, spine.nodes, strict=True
                )
            ],
            "paths": [list(path) for path in spine.paths],
            "keeps_whole": list(spine.keeps_whole),
            "sha256": spine.digest,
        }
    return content


def spine_from_json(content: dict[str, Any]) -> dict[str, Any]:
    """The fields of a plan."""
    fields: dict[str, Any] = {
        "interests": tuple(AreaPlan(**area) for area in content.get("areas", ())),
    }
    if "spine" in content:
        spine = content["spine"]
        levels = spine["levels"]
        fields["spine"] = SpinePlan(
            levels=tuple(level["level"] for level in levels),
            sizes=tuple(level["nodes"] for level in levels),
            shares=tuple(tuple(Fraction(c["share"]) for c in level["classes"]) for level in levels),
            nodes=tuple(tuple(c["nodes"] for c in level["classes"]) for level in levels),
            paths=tuple(tuple(path) for path in spine["paths"]),
            keeps_whole=tuple(spine["keeps_whole"]),
            steps=tuple(spine["steps"]),
            digest=spine["sha256"],
        )
    return fields
