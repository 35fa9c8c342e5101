"""Best linear unbiased estimates of flows, on the part of the tree that was measured.

The two passes of `trellis.numerics.trees.gls`, run by run, on a tree that is known only as far as
it was measured: all children of some nodes (`expanded`), nothing below the others. All nodes of a
level have the variance s^2 of its noise. Up, with S and V the sums of u and v over the children,

    u = a z + (1 - a) S,   v = a s^2,   a = V / (V + s^2)      (not expanded: u = z, v = s^2),

and down, with the final estimate n_p of the parent,

    n_c = u_c + b (n_p - S),   Var_c = v_c (1 - b) + b^2 Var_p,   b = v_c / V.
"""

from __future__ import annotations

from numba import njit
from numpy.typing import NDArray

from trellis.model.arrays import Floats, Ints
from trellis.numerics.trees.weights import weight_of_own


@njit(nogil=True, cache=True)
def estimates_from_below(
    values: Ints,
    expanded: NDArray,
    sums: Floats,
    variances: Floats,
    own: float,
    u: Floats,
    v: Floats,
) -> None:
    """Fill `u` and `v`; `sums` and `variances` hold S and V of the expanded nodes, in order."""
    place = 0
    for node in range(values.size):
        u[node], v[node] = values[node], own
        if expanded[node]:
            weight = weight_of_own(variances[place], own)
            u[node] = weight * values[node] + (1 - weight) * sums[place]
            v[node] = weight * own
            place += 1


@njit(nogil=True, cache=True)
def estimates_from_above(
    u: Floats,
    v: Floats,
    start: Ints,
    above: Floats,
    above_variance: Floats,
    final: Floats,
    final_variance: Floats,
) -> None:
    """Fill `final` and its variances from those of the parents, family by family."""
    for family in range(above.size):
        total, gap = 0.0, above[family]
        for child in range(start[family], start[family + 1]):
            total += v[child]
            gap -= u[child]
        for child in range(start[family], start[family + 1]):
            share = v[child] / total  # positive and finite: all are measured
            final[child] = u[child] + share * gap
            final_variance[child] = v[child] * (1 - share) + share**2 * above_variance[family]
