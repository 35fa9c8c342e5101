"""The gradient of a family's objective, and how fast it can change."""

from __future__ import annotations

from math import inf

import numpy as np
from numba import njit

from trellis.numerics.histograms.fastmath import REORDER
from trellis.numerics.histograms.least_squares.objective import BY_ROW, UNWEIGHTED, Quadratic
from trellis.numerics.histograms.marginals import add_up, hand_down

POWER_STEPS = 8


@njit(nogil=True, cache=True, fastmath=REORDER)
def _weigh(stack, quadratic, rows):
    """Multiply stacked marginals by their weights."""
    width = rows.shape[1]
    for g in range(stack.source.size):
        n_atoms = quadratic.atoms[g]
        first, last = stack.row_start[g], stack.row_start[g + 1]
        if n_atoms == UNWEIGHTED:
            rows[first:last] = 0.0
        elif n_atoms == BY_ROW:
            for k in range(first, last):
                for c in range(width):
                    rows[k, c] *= quadratic.row_weight[k, c]
        elif n_atoms == 1:
            m = quadratic.mix_start[g]
            for k in range(first, last):
                for c in range(width):
                    rows[k, c] *= quadratic.mix[m, c]
        else:
            plain = np.empty((n_atoms, width))
            for k in range(first, last, n_atoms):
                plain[:] = rows[k : k + n_atoms]
                rows[k : k + n_atoms] = 0.0
                for a in range(n_atoms):
                    for b in range(n_atoms):
                        m = quadratic.mix_start[g] + a * n_atoms + b
                        for c in range(width):
                            rows[k + a, c] += quadratic.mix[m, c] * plain[b, c]


@njit(nogil=True, cache=True)
def constraint_value(bounds, r, rows):
    total = 0.0
    for i in range(bounds.start[r], bounds.start[r + 1]):
        total += rows[bounds.row[r], bounds.child[i]]
    return total


@njit(nogil=True, cache=True)
def _push(bounds, r, force, rows):
    for i in range(bounds.start[r], bounds.start[r + 1]):
        rows[bounds.row[r], bounds.child[i]] += force


@njit(nogil=True, cache=True)
def beyond(value, lower, upper):
    """How far a value lies above its upper bound, or (negative) below its lower one."""
    return value - upper if value > upper else (value - lower if value < lower else 0.0)


@njit(nogil=True, cache=True, fastmath=REORDER)
def gradient_at(stack, quadratic, bounds, multiplier, penalty, x, rows, forces, out):
    """The gradient of the (augmented) objective at x."""
    width = x.shape[1]
    for j in range(x.shape[0]):
        for c in range(width):
            out[j, c] = quadratic.diagonal[j, c] * x[j, c] - quadratic.linear[j, c]
    add_up(stack, x, rows)
    for r in range(forces.size):
        at = constraint_value(bounds, r, rows) + multiplier[r] / penalty
        forces[r] = penalty * beyond(at, bounds.lower[r], bounds.upper[r])
    _weigh(stack, quadratic, rows)
    for r in range(forces.size):
        _push(bounds, r, forces[r], rows)
    hand_down(stack, rows, out)


@njit(nogil=True, cache=True)
def greatest_eigenvalue(stack, quadratic, bounds, penalty, shape):
    """An upper bound of the largest eigenvalue, with the penalties counted as always active."""
    size = Quadratic(
        np.abs(quadratic.diagonal),
        quadratic.linear,
        np.abs(quadratic.row_weight),
        np.abs(quadratic.mix),
        quadratic.mix_start,
        quadratic.atoms,
    )
    v = np.ones(shape)
    rows = np.empty((stack.row_start[-1], shape[1]))
    forces = np.empty(bounds.row.size)
    least = inf
    for _ in range(POWER_STEPS):
        image = size.diagonal * v
        add_up(stack, v, rows)
        for r in range(forces.size):
            forces[r] = penalty * constraint_value(bounds, r, rows)
        _weigh(stack, size, rows)
        for r in range(forces.size):
            _push(bounds, r, forces[r], rows)
        hand_down(stack, rows, image)
        greatest = 0.0
        for j in range(shape[0]):
            for c in range(shape[1]):
                greatest = max(greatest, image[j, c] / v[j, c])
        least = min(least, greatest)
        if least == 0:
            break
        for j in range(shape[0]):  # kept away from 0, where the quotient would be rounding error
            for c in range(shape[1]):
                v[j, c] = image[j, c] / greatest + 1e-3 * v[j, c]
    return least
