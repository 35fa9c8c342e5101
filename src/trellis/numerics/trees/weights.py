"""The two numbers that least squares on a tree of totals rests on, with their limits.

A node is measured with variance s^2, and its children's estimates have variances v_c that add up
to V. Upwards the measurement gets the weight V / (V + s^2), and the children get the rest;
downwards child c closes the part v_c / V of what the children miss of their parent.
"""

from __future__ import annotations

from math import inf

from numba import njit


@njit(nogil=True, cache=True)
def weight_of_own(total: float, own: float) -> float:
    """V / (V + s^2), with its limits."""
    if total == inf or own == 0:
        return 1.0
    return 0.0 if own == inf else total / (total + own)


@njit(nogil=True, cache=True)
def share_of_gap(v: float, total: float) -> float:
    """v_c / V, with its limits, if at most one child has v = infinity."""
    if total == inf:
        return 1.0 if v == inf else 0.0
    return v / total if total > 0 else 0.0
