"""Hypothesis strategies that yield only valid objects."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import inf

import numpy as np
from hypothesis import strategies as st

from trellis.model import Hierarchy


@st.composite
def hierarchies(draw: st.DrawFn, max_levels: int = 4, max_children: int = 3) -> Hierarchy:
    """Trees of one to `max_levels` levels; areas may have one child, or end early."""
    n_levels = draw(st.integers(1, max_levels))
    leaves, deepest = [], [("r",)]
    for _ in range(n_levels - 1):
        size = len(deepest)
        counts = draw(st.lists(st.integers(0, max_children), min_size=size, max_size=size))
        leaves += [path for path, n in zip(deepest, counts, strict=True) if n == 0]
        deepest = [
            (*path, f"{path[-1]}.{child}")
            for path, n in zip(deepest, counts, strict=True)
            for child in range(n)
        ]
    return Hierarchy.from_paths(leaves + deepest)


@st.composite
def variances(draw: st.DrawFn, hierarchy: Hierarchy) -> list[np.ndarray]:
    """Variances from 0 to infinity, whether or not they identify every node."""
    one = st.one_of(st.sampled_from([0.0, inf, inf]), st.floats(0.01, 100))
    return [np.array(draw(st.lists(one, min_size=size, max_size=size))) for size in hierarchy.sizes]


@st.composite
def identifiable_variances(draw: st.DrawFn, hierarchy: Hierarchy) -> list[np.ndarray]:
    """Variances from 0 to infinity that leave no node undetermined."""
    levels = draw(variances(hierarchy))
    known = [np.isfinite(level) for level in levels]
    for level in reversed(range(hierarchy.n_levels - 1)):
        start = hierarchy.child_start[level]
        for parent in range(hierarchy.size(level)):
            children = np.arange(start[parent], start[parent + 1])
            unknown = children[~known[level + 1][children]]
            levels[level + 1][unknown[1:]] = draw(st.floats(0.01, 100))
            known[level][parent] |= not unknown.size
    if not known[0][0]:
        levels[0][0] = 1.0
    return levels


@dataclass(frozen=True)
class Family:
    """Estimates, a total and weights, each exact in double precision."""

    x: list[Fraction]
    total: int
    weights: list[Fraction | float]


def quarters(least: int, greatest: int) -> st.SearchStrategy[Fraction]:
    return st.integers(4 * least, 4 * greatest).map(lambda n: Fraction(n, 4))


@st.composite
def families(draw: st.DrawFn, max_children: int = 8) -> Family:
    """Families with ties, negative estimates, and children of weight 0 and infinity."""
    size = draw(st.integers(1, max_children))
    x = draw(st.lists(quarters(-6, 12), min_size=size, max_size=size))
    one_weight = st.one_of(st.sampled_from([Fraction(1), Fraction(0), inf]), quarters(1, 5))
    weights = draw(st.lists(one_weight, min_size=size, max_size=size))
    weights[draw(st.integers(0, size - 1))] = Fraction(1)  # someone must take what is left
    x = [Fraction(abs(round(v))) if w == inf else v for v, w in zip(x, weights, strict=True)]
    fixed = sum(int(v) for v, w in zip(x, weights, strict=True) if w == inf)
    return Family(x, fixed + draw(st.integers(0, 25)), weights)


@st.composite
def whole_families(draw: st.DrawFn, max_children: int = 12) -> tuple[list[int], int]:
    """Whole estimates and a total."""
    values = st.one_of(st.integers(-3, 3), st.integers(-100, 100))
    x = draw(st.lists(values, min_size=1, max_size=max_children))
    return x, draw(st.integers(0, 60))
