"""Random releases of counts and of group sizes, for checks that must pass whatever was released."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa

import trellis
from trellis.api.releases import Release

SIZE_METHODS = (
    "histogram_relaxed", "histogram_exact", "cumulative_relaxed", "cumulative_exact",
    "cumulative_joint",
)  # fmt: skip


def random_tree(rng: np.random.Generator, depth: int) -> pa.Table:
    """Columns l0 .. ; families of one to five, and areas that end early."""
    paths: list[list[str]] = [["r"]]
    for level in range(1, depth):
        grown = []
        for path in paths:
            if len(path) < level or (level > 1 and rng.random() < 0.1):
                grown.append(path)  # ends early
                continue
            grown += [[*path, f"{path[-1]}{k}"] for k in range(int(rng.integers(1, 6)))]
        paths = grown
    if max(map(len, paths)) < depth:
        return random_tree(rng, depth)
    columns = zip(*([*p, *[None] * (depth - len(p))] for p in paths), strict=True)
    return pa.table({f"l{i}": pa.array(c, pa.string()) for i, c in enumerate(columns)})


def leaf_codes(tree: pa.Table) -> list[str]:
    rows = zip(*(column.to_pylist() for column in tree.columns), strict=True)
    return [[code for code in row if code is not None][-1] for row in rows]


def privacy(budget: str, *, laplace: bool, replaced: bool) -> dict[str, Any]:
    return {
        "unit": "person",
        "neighbours": "replace" if replaced else "add_remove",
        "max_contribution": 1,
        "mechanism": "discrete_laplace" if laplace else "discrete_gaussian",
        "budget": {"epsilon" if laplace else "rho": budget},
    }


@dataclass(frozen=True)
class CountsShape:
    """What a release of counts has; `exact` levels have exact totals besides the root."""

    depth: int = 4
    n_cells: int = 1
    method: str = "gls_topdown"
    budget: str = "1"
    laplace: bool = False
    replaced: bool = True
    exact: int = 0
    areas: bool = False
    spine: bool = False

    @classmethod
    def random(cls, rng: np.random.Generator) -> Self:
        methods = ["gls_topdown", "gls_topdown", "gls", "topdown", "bottomup"]
        depth, n_cells = int(rng.integers(2, 6)), int(rng.choice([1, 1, 2, 3]))
        method, replaced = str(rng.choice(methods)), bool(rng.random() < 0.7)
        has_exact = replaced and n_cells == 1 and depth > 2 and rng.random() < 0.5
        exact = int(rng.integers(1, depth - 1)) if has_exact else 0
        areas = bool(rng.random() < 0.5)
        # A level with exact totals cannot be redrawn, and steps redraw the last but one.
        can_redraw = depth - 2 > exact and method[:3] == "gls"
        return cls(
            depth, n_cells, method, str(rng.choice(["1/20", "1", "30"])), bool(rng.random() < 0.4),
            replaced, exact, areas, bool(areas and can_redraw and rng.random() < 0.7),
        )  # fmt: skip


def release_counts(rng: np.random.Generator, folder: Path, shape: CountsShape) -> Release:
    """Records for a shape, many areas without any, and the release of them."""
    tree = random_tree(rng, shape.depth)
    codes = leaf_codes(tree)
    content: dict[str, Any] = {
        "release": "random", "kind": "counts", "dataset": "random",
        "data": {"area": "place", "cells": {f"c{i}": f"x{i}" for i in range(shape.n_cells)}},
        "hierarchy": {"columns": tree.column_names},
        "privacy": privacy(shape.budget, laplace=shape.laplace, replaced=shape.replaced),
        "estimate": {"method": shape.method},
        "output": {"csv": False},
    }  # fmt: skip
    frames: dict[str, Any] = {}
    if shape.exact:
        content["unprotected"] = {"totals": tree.column_names[: shape.exact + 1]}
    if shape.areas:
        content["areas"] = {"zone": {"area": "place", "entity": "zone", "public": True}}
        zone = [f"z{k}" if k < 4 else None for k in rng.integers(0, 5, len(codes)).tolist()]
        zone[0] = "z0"
        frames["areas"] = {"zone": pa.table({"place": codes, "zone": pa.array(zone, pa.string())})}
    if shape.spine:
        content["spine"] = [
            {"regroup_leaves": {"areas": ["zone"], "fanout_cutoff": 2}},
            "bypass",
        ]
    people = rng.integers(0, 40, (shape.n_cells, len(codes))) * (rng.random(len(codes)) < 0.6)
    table = pa.table({"place": codes, **{f"x{i}": cell for i, cell in enumerate(people)}})
    spec = trellis.Spec.parse(content, folder)
    return trellis.run(spec, folder / "run", data=table, hierarchy=tree, **frames)


@dataclass(frozen=True)
class SizesShape:
    """What a release of groups by size has."""

    depth: int = 3
    cap: int = 4
    method: str = "cumulative_joint"
    budget: str = "1"
    laplace: bool = False
    replaced: bool = True

    @classmethod
    def random(cls, rng: np.random.Generator) -> Self:
        return cls(
            int(rng.integers(2, 5)), int(rng.integers(1, 7)), str(rng.choice(SIZE_METHODS)),
            str(rng.choice(["1/5", "2", "50"])), bool(rng.random() < 0.5),
            bool(rng.random() < 0.5),
        )  # fmt: skip


def release_sizes(rng: np.random.Generator, folder: Path, shape: SizesShape) -> Release:
    """Groups for a shape, some areas without any, and the release of them."""
    tree = random_tree(rng, shape.depth)
    codes, n_sizes = leaf_codes(tree), shape.cap + 1
    content: dict[str, Any] = {
        "release": "random", "kind": "group_sizes", "dataset": "random",
        "data": {"area": "place", "size": "size", "groups": "homes"},
        "group_register": {"groups": "homes", "area": "place"},
        "sizes": {"cap": shape.cap, "top_code": True},
        "hierarchy": {"columns": tree.column_names},
        "privacy": privacy(shape.budget, laplace=shape.laplace, replaced=shape.replaced)
        | {"shares": "uniform"},
        "unprotected": {"groups": True},
        "estimate": {"method": shape.method},
        "output": {"csv": False},
    }  # fmt: skip
    homes = rng.poisson(6, (len(codes), n_sizes)) * (rng.random((len(codes), 1)) < 0.8)
    table = {
        "place": np.repeat(codes, n_sizes),
        "size": np.tile(np.arange(n_sizes), len(codes)),
        "homes": homes.ravel(),
    }
    register = pa.table({"place": codes, "homes": homes.sum(axis=1)})
    spec = trellis.Spec.parse(content, folder)
    return trellis.run(
        spec, folder / "run", data=pa.table(table), hierarchy=tree, register=register
    )
