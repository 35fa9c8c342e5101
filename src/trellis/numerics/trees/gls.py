r"""Best linear unbiased estimates on a tree of totals, in two passes.

Each node has at most one measurement z of variance s^2, independent of all others, and is the sum
of its children. Generalised least squares over all measurements factors along the tree.

Up, with S = sum_c u_c and V = sum_c v_c over the children of a node,

    u = a z + (1 - a) S,   v = a s^2,   a = V / (V + s^2)      (a leaf: u = z, v = s^2):

the estimate `u` of variance `v` from the measurements at and below the node. Down, with the final
estimate n_p of the parent and its variance,

    n_c = u_c + b (n_p - S),   Var_c = v_c (1 - b) + b^2 Var_p,   b = v_c / V      (root: u, v).

Limits. s^2 = 0 is an exact total, s^2 = infinity an unmeasured node whose z is not read. A node
with an unmeasured child learns nothing from its children (V = infinity: a = 1); downwards that
child takes what the parent leaves, and a second one makes both unidentifiable, which is an error.
Where nothing is known, u is 0 and v infinity. Nothing here returns NaN.

Variances do not depend on the values: planning calls the two variance passes alone.

Reference: Hay, Rastogi, Miklau and Suciu, PVLDB 2010, arXiv:0904.0942, for equal variances.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import inf
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from trellis.errors import StructureError
from trellis.model import Hierarchy
from trellis.model.arrays import Floats, Ints
from trellis.numerics.trees.weights import share_of_gap, weight_of_own

RunFamilies = Callable[..., list[int]]
"""Maps a kernel over runs of families that fill arrays; see `trellis.execution.executor`."""

GREATEST_VARIANCE = 1e100
"""Beyond it sums could overflow; infinity means unmeasured."""

FINE = -1
"""What a kernel returns that found no fault; otherwise the parent at which it stopped."""


def run_inline(kernel: Callable[..., int], start: Ints, *filled: Floats) -> list[int]:
    """All families in one call."""
    return [kernel(*filled, 0, start.size - 1)]


# -- passes ---------------------------------------------------------------------------------------


def node_variances(hierarchy: Hierarchy, variance: Sequence[ArrayLike]) -> list[Floats]:
    """Validate one variance, or one array of them, per level; return an array per level."""
    if len(variance) != hierarchy.n_levels:
        raise StructureError(f"{len(variance)} variances for {hierarchy.n_levels} levels.")
    levels = []
    for name, size, given in zip(hierarchy.level_names, hierarchy.sizes, variance, strict=True):
        values = np.asarray(given)
        if values.shape not in ((), (size,)) or values.dtype.kind not in "iuf":
            raise StructureError(
                f"Variances of level {name!r} must be one number, or an array of {size}."
            )
        if not np.all((values >= 0) & ((values <= GREATEST_VARIANCE) | (values == inf))):
            raise StructureError(
                f"A variance of level {name!r} is negative, missing or above "
                f"{GREATEST_VARIANCE:g}. Use infinity for areas that are not measured."
            )
        levels.append(np.array(np.broadcast_to(values, (size,)), dtype=np.float64))
    return levels


def variances_up(
    hierarchy: Hierarchy, variance: Sequence[ArrayLike], run: RunFamilies = run_inline
) -> list[Floats]:
    """Variance `v` of each node's estimate from its own subtree, per level, root first."""
    own = node_variances(hierarchy, variance)
    subtree = own.copy()
    for level in reversed(range(hierarchy.n_levels - 1)):
        start, below, here = hierarchy.child_start[level], subtree[level + 1], own[level]
        out = subtree[level] = np.empty_like(here)
        run(partial(_variances_up, start, below, here), start, out)
    return subtree


def variances_down(
    hierarchy: Hierarchy, subtree: Sequence[Floats], run: RunFamilies = run_inline
) -> list[Floats]:
    """Variance of each node's final estimate, from the `subtree` variances of `variances_up`."""
    if subtree[0][0] == inf:
        raise StructureError(
            f"Nothing that is measured determines the total of {str(hierarchy.codes(0)[0])!r} on "
            f"level {hierarchy.level_names[0]!r}. Measure it, or all areas of a level below it."
        )
    final = [subtree[0].copy()]
    for level in range(hierarchy.n_levels - 1):
        start, above, below = hierarchy.child_start[level], final[level], subtree[level + 1]
        final.append(out := np.empty_like(below))
        kernel = partial(_variances_down, start, below, above)
        if (area := _fault(hierarchy, level, run(kernel, start, out))) is not None:
            raise StructureError(
                f"Two or more areas of level {hierarchy.level_names[level + 1]!r} in {area} are "
                "not measured, nor determined by areas below them, so they cannot be told apart. "
                "Measure all but one of them, or all areas of a level below them."
            )
    return final


def estimates_up(
    hierarchy: Hierarchy,
    noisy: Sequence[NDArray[Any]],
    variance: Sequence[ArrayLike],
    subtree: Sequence[Floats],
    run: RunFamilies = run_inline,
) -> list[Floats]:
    """Estimate `u` of each node from its own subtree; `subtree` comes from `variances_up`.

    Arrays of `noisy` have shape (nodes,) or (nodes, columns); columns share their variances.
    """
    own = node_variances(hierarchy, variance)
    values = [_known_values(z, s2) for z, s2 in zip(noisy, own, strict=True)]
    for level in reversed(range(hierarchy.n_levels - 1)):
        start, u, v = hierarchy.child_start[level], values[level + 1], subtree[level + 1]
        z, s2 = values[level], own[level]
        kernel = partial(_estimates_up, start, _columns(u), v, s2)
        if (area := _fault(hierarchy, level, run(kernel, start, _columns(z)))) is not None:
            raise StructureError(
                f"The exact total of {area} is not the sum of the exact totals below it. "
                "Correct one of them, or give it a variance."
            )
    return values


def estimates_down(
    hierarchy: Hierarchy,
    estimates: Sequence[Floats],
    subtree: Sequence[Floats],
    run: RunFamilies = run_inline,
) -> list[Floats]:
    """Final estimate of each node, from `estimates_up` and `variances_up`."""
    final = [estimates[0].copy()]
    for level in range(hierarchy.n_levels - 1):
        start, above = hierarchy.child_start[level], final[level]
        u, v = estimates[level + 1], subtree[level + 1]
        final.append(out := np.empty_like(u))
        kernel = partial(_estimates_down, start, _columns(u), v, _columns(above))
        run(kernel, start, _columns(out))
    return final


def _known_values(noisy: NDArray[Any], variance: Floats) -> Floats:
    """A copy with zeros where nothing is measured."""
    values = np.array(noisy, dtype=np.float64, order="C")
    values[variance == inf] = 0
    return values


def _columns(values: Floats) -> Floats:
    return values if values.ndim == 2 else values[:, np.newaxis]


def _fault(hierarchy: Hierarchy, level: int, results: list[int]) -> str | None:
    """The first parent of `level` that a kernel stopped at, in words."""
    for parent in results:
        if parent != FINE:
            code = str(hierarchy.codes(level)[parent])
            return f"{code!r} of level {hierarchy.level_names[level]!r}"
    return None


# -- kernels --------------------------------------------------------------------------------------


@njit(nogil=True, cache=True)
def _variances_up(
    start: Ints, below: Floats, own: Floats, out: Floats, first: int, last: int
) -> int:
    for parent in range(first, last):
        total = 0.0
        for child in range(start[parent], start[parent + 1]):
            total += below[child]
        weight = weight_of_own(total, own[parent])
        # Without a weight the node's own variance may be infinite, and 0 * inf is NaN.
        out[parent] = weight * own[parent] if weight > 0 else total
    return FINE


@njit(nogil=True, cache=True)
def _variances_down(
    start: Ints, v: Floats, above: Floats, out: Floats, first: int, last: int
) -> int:
    for parent in range(first, last):
        lo, hi = start[parent], start[parent + 1]
        widest = lo
        for child in range(lo, hi):
            if v[child] > v[widest]:
                widest = child
        others = 0.0
        for child in range(lo, hi):
            if child != widest:
                others += v[child]
        if others == inf:
            return parent
        total = others + v[widest]
        for child in range(lo, hi):
            share = share_of_gap(v[child], total)
            out[child] = v[child] * (1 - share) + share**2 * above[parent]
        # The share of this child may be almost, or in the limit exactly, one. The same value
        # without the difference 1 - share:
        share = share_of_gap(v[widest], total)
        out[widest] = share * (others + share * above[parent])
    return FINE


@njit(nogil=True, cache=True)
def _estimates_up(
    start: Ints,
    u: Floats,
    v: Floats,
    own: Floats,
    values: Floats,
    first: int,
    last: int,
) -> int:
    """Turn the measurements in `values` into estimates."""
    sums = np.empty(values.shape[1])
    for parent in range(first, last):
        total = 0.0
        sums[:] = 0
        for child in range(start[parent], start[parent + 1]):
            total += v[child]
            for column in range(sums.size):
                sums[column] += u[child, column]
        if total == inf:
            continue  # nothing to learn from the children
        weight = weight_of_own(total, own[parent])
        for column in range(sums.size):
            z, s = values[parent, column], sums[column]
            if total == 0 and own[parent] == 0 and abs(z - s) > 1e-9 * (1 + abs(z) + abs(s)):
                return parent
            values[parent, column] = weight * z + (1 - weight) * s
    return FINE


@njit(nogil=True, cache=True)
def _estimates_down(
    start: Ints,
    u: Floats,
    v: Floats,
    above: Floats,
    out: Floats,
    first: int,
    last: int,
) -> int:
    gap = np.empty(u.shape[1])
    for parent in range(first, last):
        total = 0.0
        gap[:] = above[parent]
        for child in range(start[parent], start[parent + 1]):
            total += v[child]
            for column in range(gap.size):
                gap[column] -= u[child, column]
        for child in range(start[parent], start[parent + 1]):
            share = share_of_gap(v[child], total)
            for column in range(gap.size):
                out[child, column] = u[child, column] + share * gap[column]
    return FINE
