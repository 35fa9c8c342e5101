r"""Accelerated steps to the optimum of one family, with a certificate of how near they come.

FISTA: steps of length 1/L against the gradient at an extrapolated point, projected cell by cell,
and restarted when the momentum points uphill. L is an upper bound of the largest eigenvalue of H:
max (|H| v)_i / v_i for a positive v (Collatz and Wielandt).

**Certificate.** If no eigenvalue of H is below mu > 0 then, with x' the projection of x - g/mu,

    f(x) - f* <= gap = -<g, x' - x> - mu/2 |x' - x|^2,     |x - x*|^2 <= 2 gap / mu.

A multiple of the cell's threshold added to g changes nothing, as x' - x sums to 0 in each cell,
and leaves a sum of non-negative terms, exact to rounding. With mu = 0 the gap is that of Frank
and Wolfe, <g, x> - min <g, s>, and bounds f(x) - f* only.

**Linear constraints** l <= a'x <= u on sums of marginals over children enter by an augmented
Lagrangian with multipliers y: the certificate then holds for the constraints moved by the
`violation` that is left.

References: Beck and Teboulle, SIAM J. Imaging Sci. 2009; O'Donoghue and Candes, Found. Comput.
Math. 2015, for the restart; Bertsekas, Constrained Optimization and Lagrange Multiplier Methods.
"""

from __future__ import annotations

from math import inf, sqrt

import numpy as np
from numba import njit

from trellis.numerics.histograms.fastmath import REORDER
from trellis.numerics.histograms.least_squares.cell_sums import project_cells, projected_step
from trellis.numerics.histograms.least_squares.gradient import (
    beyond,
    constraint_value,
    gradient_at,
    greatest_eigenvalue,
)
from trellis.numerics.histograms.marginals import add_up

FIRST_CHECK = 5

CHECK_EVERY = 10
"""Iterations between two looks at the certificate."""

STALLED_CHECKS = 200
"""Looks without progress after which rounding errors are taken to forbid more."""
PENALTY_GROWTH = 5.0

GREATEST_PENALTY = 1e7
"""How far the penalty may grow over its first value before constraints count as infeasible."""
SOLVED, STALLED, VIOLATED = 0, 1, 2


@njit(nogil=True, cache=True, fastmath=REORDER)
def _gap(x, gradient, mu, parent, blocked, thresholds, row):
    """An upper bound of f(x) - f*."""
    gap = 0.0
    for j in range(x.shape[0]):
        if mu > 0:
            t = projected_step(x, gradient, 1 / mu, parent, blocked, thresholds, row, j)
            for c in range(row.size):
                d = x[j, c] - row[c]
                steepness = gradient[j, c] + mu * t
                gap += (
                    0.5 * mu * d * d if row[c] > 0 else x[j, c] * (steepness - 0.5 * mu * x[j, c])
                )
        else:
            lowest = inf
            for c in range(row.size):
                if not (blocked.size and blocked[j, c]):
                    lowest = min(lowest, gradient[j, c])
            for c in range(row.size):
                gap += (gradient[j, c] - lowest) * x[j, c]
    return gap


@njit(nogil=True, cache=True, fastmath=REORDER)
def _accelerate(
    stack, quadratic, parent, blocked, bounds, multiplier, penalty, mu, allowed_gap,
    most_iterations, x,
):  # fmt: skip
    """FISTA with fixed multipliers; returns the gap and the number of iterations."""
    n, width = x.shape
    greatest = greatest_eigenvalue(stack, quadratic, bounds, penalty, x.shape)
    inverse = 1 / greatest if greatest > 0 else 0.0
    rows = np.empty((stack.row_start[-1], width))
    forces = np.empty(bounds.row.size)
    gradient = np.empty(x.shape)
    ahead = x.copy()
    row = np.empty(width)
    thresholds = np.zeros(n)
    far_thresholds = np.zeros(n)
    momentum = 1.0
    best = inf
    stalled = 0
    for iteration in range(most_iterations + 1):
        if iteration == FIRST_CHECK or iteration % CHECK_EVERY == 0:
            gradient_at(stack, quadratic, bounds, multiplier, penalty, x, rows, forces, gradient)
            gap = _gap(x, gradient, mu, parent, blocked, far_thresholds, row)
            stalled = 0 if gap < 0.99 * best else stalled + 1
            best = min(best, gap)
            if gap <= allowed_gap or stalled > STALLED_CHECKS or greatest == 0:
                return gap, iteration
        gradient_at(stack, quadratic, bounds, multiplier, penalty, ahead, rows, forces, gradient)
        uphill = 0.0
        next_momentum = 0.5 + sqrt(0.25 + momentum * momentum)
        push = (momentum - 1) / next_momentum
        for j in range(n):
            projected_step(ahead, gradient, inverse, parent, blocked, thresholds, row, j)
            for c in range(width):
                move = row[c] - x[j, c]
                uphill += (ahead[j, c] - row[c]) * move
                x[j, c] = row[c]
                ahead[j, c] = row[c] + push * move
        momentum = next_momentum
        if uphill > 0:
            momentum = 1.0
            ahead[:] = x
    gradient_at(stack, quadratic, bounds, multiplier, penalty, x, rows, forces, gradient)
    return _gap(x, gradient, mu, parent, blocked, far_thresholds, row), most_iterations


@njit(nogil=True, cache=True)
def minimise_from(
    stack, quadratic, parent, blocked, bounds, multiplier, mu, allowed_gap, allowed_violation,
    penalty, most_iterations, x,
):  # fmt: skip
    project_cells(x, parent, blocked)
    if not multiplier.size:
        gap, iterations = _accelerate(
            stack, quadratic, parent, blocked, bounds, multiplier, penalty, mu, allowed_gap,
            most_iterations, x,
        )  # fmt: skip
        return (SOLVED if gap <= allowed_gap else STALLED), gap, 0.0, -1, iterations
    rows = np.empty((stack.row_start[-1], x.shape[1]))
    first_penalty = penalty
    before = inf
    total_iterations = 0
    gap, violation, worst = inf, inf, -1
    while total_iterations < most_iterations:
        gap, iterations = _accelerate(
            stack, quadratic, parent, blocked, bounds, multiplier, penalty, mu, allowed_gap,
            most_iterations - total_iterations, x,
        )  # fmt: skip
        total_iterations += max(1, iterations)
        add_up(stack, x, rows)
        violation = 0.0
        for r in range(multiplier.size):
            value = constraint_value(bounds, r, rows)
            missed = abs(beyond(value, bounds.lower[r], bounds.upper[r]))
            if missed > violation:
                violation, worst = missed, r
            at = value + multiplier[r] / penalty
            multiplier[r] = penalty * beyond(at, bounds.lower[r], bounds.upper[r])
        if violation <= allowed_violation:
            return (SOLVED if gap <= allowed_gap else STALLED), gap, violation, -1, total_iterations
        if violation > 0.25 * before:
            if penalty >= GREATEST_PENALTY * first_penalty:
                break
            penalty *= PENALTY_GROWTH
        before = violation
    return VIOLATED, gap, violation, worst, total_iterations
