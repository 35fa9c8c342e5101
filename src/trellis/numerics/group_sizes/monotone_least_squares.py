r"""Joint least squares of cumulative counts: they add up over areas and grow with size.

    minimise   sum over nodes r of w_r |x_r - y_r|^2
    over       x_parent = sum of x_child   and   0 <= x_r1 <= x_r2 <= ... <= G_r for each node r.

G_r is the public number of groups. The first set of conditions couples nodes, size by size; the
second couples sizes, node by node. The alternating direction method of multipliers (ADMM) gives
each its own copy, x and z, and a running sum u of their differences:

    x <- least squares on the tree, weights w, of (y + rho (z - u)) / (1 + rho)     (two passes)
    v <- 1.6 x - 0.6 z + u                                                    (over-relaxation)
    z <- isotonic regression of v, clipped to 0 .. G_r,      u <- v - z.

The penalty is rho w_r, so that one set of tree coefficients serves all rounds. Both copies tend to
the optimum, which is unique. x adds up in every round, z is monotone in every round.

Reference: Boyd, Parikh, Chu, Peleato and Eckstein, Found. Trends Mach. Learn. 2011 (3.4.3 for
over-relaxation).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numba import njit

from trellis.model.arrays import Floats, Ints
from trellis.numerics.group_sizes.isotonic import isotonic_row
from trellis.numerics.trees.weights import share_of_gap, weight_of_own

RunRows = Callable[..., list[float]]
"""Maps a kernel over runs of rows that fill arrays; see `trellis.execution.executor`."""

PENALTY = 2.0
RELAXATION = 1.6
CHECK_EVERY = 5


def run_inline(kernel: Callable[..., float], row_start: Ints, *filled: Floats) -> list[float]:
    """All rows in one call."""
    return [kernel(*filled, 0, row_start.size - 1)]


@dataclass(frozen=True, slots=True, eq=False)
class TreeCoefficients:
    """Nodes level by level, children `first[r] : end[r]`; both 0 for a leaf.

    `own` is the weight of a node's own value against the sum of its children in the upward pass
    (1 for a leaf), `share` what a node takes of its parent's gap in the downward pass.
    """

    first: Ints
    end: Ints
    own: Floats
    share: Floats


@dataclass(frozen=True, slots=True, eq=False)
class JointFit:
    """`adding_up` satisfies the sums, `monotone` the order; `gap` is their largest difference."""

    adding_up: Floats
    monotone: Floats
    gap: float
    rounds: int


def tree_coefficients(first: Ints, end: Ints, weight: Floats) -> TreeCoefficients:
    own, share = np.ones(first.size), np.ones(first.size)
    _coefficients(first, end, 1 / weight, own, share)
    return TreeCoefficients(first, end, own, share)


def joint_fit(
    tree: TreeCoefficients,
    noisy: Floats,
    groups: Floats,
    tolerance: float,
    most_rounds: int,
    run: RunRows = run_inline,
) -> JointFit:
    """Rounds until x and z differ by at most `tolerance` and z moves by no more than that."""
    x, z, u = np.empty_like(noisy), np.empty_like(noisy), np.zeros_like(noisy)
    row_start = np.arange(noisy.shape[0] + 1) * noisy.shape[1]
    x[:] = noisy
    _add_up(tree.first, tree.end, tree.own, tree.share, x)
    run(partial(_make_monotone, x, groups), row_start, z)
    gap, rounds = np.inf, 0
    while rounds < most_rounds:
        for _ in range(CHECK_EVERY):
            _targets(noisy, z, u, PENALTY, x)
            _add_up(tree.first, tree.end, tree.own, tree.share, x)
            gap = max(run(partial(_relaxed_step, x, groups, RELAXATION), row_start, z, u))
        rounds += CHECK_EVERY
        if gap <= tolerance:
            break
    return JointFit(x, z, gap, rounds)


# -- kernels --------------------------------------------------------------------------------------


@njit(nogil=True, cache=True)
def _coefficients(first: Ints, end: Ints, variance: Floats, own: Floats, share: Floats) -> None:
    """See `trellis.numerics.trees.gls`; here every node is measured."""
    subtree = variance.copy()
    for node in range(first.size - 1, -1, -1):
        if end[node] > first[node]:
            total = subtree[first[node] : end[node]].sum()
            own[node] = weight_of_own(total, variance[node])
            subtree[node] = own[node] * variance[node]
            for child in range(first[node], end[node]):
                share[child] = share_of_gap(subtree[child], total)


@njit(nogil=True, cache=True)
def _targets(y: Floats, z: Floats, u: Floats, penalty: float, x: Floats) -> None:
    for node in range(x.shape[0]):
        for s in range(x.shape[1]):
            x[node, s] = (y[node, s] + penalty * (z[node, s] - u[node, s])) / (1 + penalty)


@njit(nogil=True, cache=True)
def _add_up(first: Ints, end: Ints, own: Floats, share: Floats, x: Floats) -> None:
    """Replace x by its least-squares projection on the tables that add up."""
    n_sizes = x.shape[1]
    sums = np.empty(n_sizes)
    for node in range(x.shape[0] - 1, -1, -1):
        if end[node] > first[node]:
            sums[:] = 0
            for child in range(first[node], end[node]):
                for s in range(n_sizes):
                    sums[s] += x[child, s]
            for s in range(n_sizes):
                x[node, s] = own[node] * x[node, s] + (1 - own[node]) * sums[s]
    for node in range(x.shape[0]):
        if end[node] > first[node]:
            sums[:] = x[node]
            for child in range(first[node], end[node]):
                for s in range(n_sizes):
                    sums[s] -= x[child, s]
            for child in range(first[node], end[node]):
                for s in range(n_sizes):
                    x[child, s] += share[child] * sums[s]


@njit(nogil=True, cache=True)
def _make_monotone(x: Floats, groups: Floats, z: Floats, first: int, last: int) -> float:
    sums, sizes = np.empty(x.shape[1]), np.empty(x.shape[1])
    for node in range(first, last):
        isotonic_row(x[node], 0.0, groups[node], z[node], sums, sizes)
    return 0.0


@njit(nogil=True, cache=True)
def _relaxed_step(
    x: Floats,
    groups: Floats,
    relaxation: float,
    z: Floats,
    u: Floats,
    first: int,
    last: int,
) -> float:
    """Update z and u of nodes `first : last`; the largest |x - z| or move of z."""
    n_sizes = x.shape[1]
    sums, sizes, old = np.empty(n_sizes), np.empty(n_sizes), np.empty(n_sizes)
    gap = 0.0
    for node in range(first, last):
        for s in range(n_sizes):
            old[s] = z[node, s]
            u[node, s] += relaxation * x[node, s] + (1 - relaxation) * old[s]
        isotonic_row(u[node], 0.0, groups[node], z[node], sums, sizes)
        for s in range(n_sizes):
            u[node, s] -= z[node, s]
            gap = max(gap, abs(x[node, s] - z[node, s]), abs(z[node, s] - old[s]))
    return gap
