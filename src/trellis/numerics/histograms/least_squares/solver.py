r"""Least squares over a product of simplices: one family of histograms.

With the children's counts x (cells x children), minimise

    f(x) = 1/2 <x, H x> - <b, x>   where x >= 0 and, in every cell, sum_c x_c = p,

H = D + sum over marginals Q' W Q, by FISTA: steps of length 1/L against the gradient at an
extrapolated point, projected cell by cell, and restarted when the momentum points uphill. L is an
upper bound of the largest eigenvalue: max (|H| v)_i / v_i for a positive v (Collatz and Wielandt).

**Certificate.** If no eigenvalue of H is below mu > 0 then, with x' the projection of x - g/mu,

    f(x) - f* <= gap = -<g, x' - x> - mu/2 |x' - x|^2,     |x - x*|^2 <= 2 gap / mu.

A multiple of the cell's threshold added to g changes nothing, as x' - x sums to 0 in each cell,
and leaves a sum of non-negative terms, exact to rounding. With mu = 0 the gap is that of Frank
and Wolfe, <g, x> - min <g, s>, and bounds f(x) - f* only.

**Linear constraints** l <= a'x <= u on sums of marginals over children enter by an augmented
Lagrangian with multipliers y: the certificate then holds for the constraints moved by the
`violation` that is left.

**Stiff directions**, in which H is far above mu, would need ever shorter steps. There the weight w
is cut to some c, and the rest is left to multipliers y, as with constraints: with a = Q x - z, the
force w a is replaced by c a + (1 - c/w) y, and y by that force, round by round. What is minimised
then lies below f, and at x by (w - c)/2 (a - y/w)^2, which is added to the gap.

References: Beck and Teboulle, SIAM J. Imaging Sci. 2009; O'Donoghue and Candes, Found. Comput.
Math. 2015, for the restart; Bertsekas, Constrained Optimization and Lagrange Multiplier Methods.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, sqrt
from typing import Any, NamedTuple, Protocol

import numpy as np
from numba import njit

from trellis.model.arrays import Floats, Ints, Marks
from trellis.numerics.histograms.fastmath import REORDER
from trellis.numerics.histograms.marginals import Stack, add_up, hand_down

FIRST_CHECK = 5
CHECK_EVERY = 10
"""Iterations between two looks at the certificate."""

POWER_STEPS = 8
MOST_NEWTON_STEPS = 1000
STALLED_CHECKS = 200
"""Looks without progress after which rounding errors are taken to forbid more."""

FIRST_PENALTY = 3.0
"""In units of mu. Greater ones slow each round of multipliers down more than they save rounds."""
PENALTY_GROWTH = 5.0
GREATEST_PENALTY = 1e7
"""How far the penalty may grow over its first value before constraints count as infeasible."""

MOST_ROUNDS, MOST_SLOW_ROUNDS = 100, 6
"""Of multipliers in stiff directions."""
STIFF_PROGRESS, FINER = 0.8, 0.1
"""By what factor a round should reduce what they miss, else the next is solved more finely."""

SOLVED, STALLED, VIOLATED = 0, 1, 2
UNWEIGHTED, BY_ROW = -1, 0


class Quadratic(NamedTuple):
    """The objective. Rows are those of a `Stack` of marginals, columns the children.

    The weights of marginal g are: none if `atoms[g]` is UNWEIGHTED; one for each row and child, in
    `row_weight`, if it is BY_ROW; else its rows are ordered (cell, atom), and the weight between
    the atoms a and b of a cell is `mix[mix_start[g] + a * atoms[g] + b]`, for each child.
    """

    diagonal: Floats
    linear: Floats
    row_weight: Floats
    mix: Floats
    mix_start: Ints
    atoms: Ints


class Excess(Protocol):
    """The multipliers of stiff directions."""

    def shift(self) -> Floats:
        """What they take from the linear term: cells x children."""
        ...

    def update(self, x: Floats, gradient: Floats) -> float:
        """Move them to the forces at x; returns by how much f(x) was underrated before.

        The gradient is that of what was minimised, at x.
        """
        ...

    def value(self, x: Floats) -> float:
        """f(x), but for what does not depend on x."""
        ...


class StiffObjective(NamedTuple):
    """An objective, one whose weights in stiff directions are cut, and what makes up for that."""

    whole: Quadratic
    cut: Quadratic
    excess: Excess


class Bounds(NamedTuple):
    """Constraint r: row `row[r]`, added over `child[start[r]:start[r+1]]`, is in [lower, upper]."""

    row: Ints
    start: Ints
    child: Ints
    lower: Floats
    upper: Floats


class Solution(NamedTuple):
    status: int
    gap: float
    violation: float
    worst: int
    iterations: int


def solve(
    stack: Stack,
    objective: Quadratic | StiffObjective,
    parent: Floats,
    blocked: Marks,
    bounds: Bounds,
    mu: float,
    tolerance: float,
    most_iterations: int,
    x: Floats,
) -> Solution:
    """Move `x` (cells x children) to the optimum, until the gap certifies the tolerance.

    A parent of infinity leaves a cell's sum free; this is the root, and it needs mu > 0.
    `blocked` marks children that may hold nothing of a cell; it may be empty. The tolerance is a
    distance in counts, as root mean square over all variables; without mu, of the measured rows.
    """
    scale = mu if mu > 0 else _typical_weight(objective)
    allowed_gap = 0.5 * scale * x.size * tolerance**2
    penalty = FIRST_PENALTY * scale if scale > 0 else 1.0
    multiplier = np.zeros(bounds.row.size)

    def minimise(quadratic: Quadratic, allowed: float, most: int) -> Solution:
        return Solution(
            *_solve(
                stack, quadratic, parent, blocked, bounds, multiplier, mu, allowed, tolerance / 3,
                penalty, most, x,
            )
        )  # fmt: skip

    def gradient(quadratic: Quadratic) -> Floats:
        rows, out = np.empty((stack.n_rows, x.shape[1])), np.empty_like(x)
        forces = np.empty_like(multiplier)
        _gradient(stack, quadratic, bounds, multiplier, penalty, x, rows, forces, out)
        return out

    if isinstance(objective, Quadratic):
        found = minimise(objective, allowed_gap, most_iterations)
    else:
        found = _solve_stiff(objective, minimise, gradient, allowed_gap, most_iterations, x)
    if mu > 0:
        found = found._replace(gap=min(found.gap, 0.5 * mu * _farthest(x, parent)))
    return found


def _farthest(x: Floats, parent: Floats) -> float:
    """The greatest squared distance that any other children of the parent have to x."""
    if np.isinf(parent).any():
        return inf
    corner = np.sum(x**2, axis=1) + parent**2 - 2 * parent * x.min(axis=1)
    return float(np.sum(corner))


def _solve_stiff(
    stiff: StiffObjective,
    minimise: Callable[[Quadratic, float, int], Solution],
    gradient: Callable[[Quadratic], Floats],
    allowed_gap: float,
    most_iterations: int,
    x: Floats,
) -> Solution:
    """Rounds of multipliers, each from where the last one ended; x is left at the best.

    If these do not get there, plain steps go on from it.
    """
    iterations, slow, allowed, before = 0, 0, allowed_gap / 2, inf
    best, nearest = Solution(VIOLATED, inf, inf, -1, 0), x.copy()
    for _ in range(MOST_ROUNDS):
        shifted = stiff.cut._replace(linear=stiff.cut.linear - stiff.excess.shift())
        found = minimise(shifted, allowed, most_iterations - iterations)
        iterations += found.iterations
        if found.status == VIOLATED:
            break
        lost = stiff.excess.update(x, gradient(shifted))
        gap = found.gap + lost
        if gap < best.gap:
            best, nearest[:] = found._replace(gap=gap), x
        if gap <= allowed_gap:
            return best._replace(status=SOLVED, iterations=iterations)
        if iterations >= most_iterations:
            break
        if lost > STIFF_PROGRESS * before:
            slow += 1
            if found.status == STALLED or slow == MOST_SLOW_ROUNDS:
                break
            allowed *= FINER  # what is left of the gap moves the stiff directions
        elif found.status == STALLED:
            allowed = max(allowed, 2 * found.gap)
        before = lost
    x[:] = nearest
    found = minimise(stiff.whole, allowed_gap, max(most_iterations - iterations, CHECK_EVERY))
    iterations += found.iterations
    if best.status == VIOLATED:
        return found._replace(iterations=iterations)
    if found.status == VIOLATED or stiff.excess.value(x) > stiff.excess.value(nearest):
        x[:], found = nearest, best
    gap = min(found.gap, best.gap)
    status = SOLVED if gap <= allowed_gap else STALLED
    return found._replace(status=status, gap=gap, iterations=iterations)


def distance(
    solution: Solution, mu: float, size: int, objective: Quadratic | StiffObjective
) -> float:
    """The root mean square distance to the optimum that a gap certifies."""
    scale = mu if mu > 0 else _typical_weight(objective)
    if solution.gap <= 0 or size == 0:
        return 0.0
    return sqrt(2 * solution.gap / (scale * size)) if scale > 0 else inf


def _typical_weight(objective: Quadratic | StiffObjective) -> float:
    quadratic = objective if isinstance(objective, Quadratic) else objective.whole
    weights = [w[w > 0] for w in (quadratic.row_weight, quadratic.diagonal, quadratic.mix)]
    least = [w.min() for w in weights if w.size]
    return float(min(least)) if least else 0.0


# -- kernels --------------------------------------------------------------------------------------


@njit(nogil=True, cache=True, fastmath=REORDER)
def threshold(row: Any, total: float, start: float) -> float:
    """The t at which the positive parts of row - t add up to total > 0, by Newton's method.

    The sum is convex and falls in t, so that after one step t only rises, and the entries above it
    only get fewer: once they do not, the step was exact (or rounding would go round in circles).
    """
    t = start
    above = 0.0
    for step in range(MOST_NEWTON_STEPS):
        count = 0.0
        surplus = 0.0
        for value in row:
            d = value - t
            surplus += d if d > 0 else 0.0
            count += 1.0 if d > 0 else 0.0
        if count > 0 and (count == above or (step > 2 and count > above)):
            break
        above = count
        if count == 0:
            t = row.max() - total  # to the left of the solution
        else:
            t += (surplus - total) / count
    return t


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
def _answer(bounds, r, rows):
    total = 0.0
    for i in range(bounds.start[r], bounds.start[r + 1]):
        total += rows[bounds.row[r], bounds.child[i]]
    return total


@njit(nogil=True, cache=True)
def _push(bounds, r, force, rows):
    for i in range(bounds.start[r], bounds.start[r + 1]):
        rows[bounds.row[r], bounds.child[i]] += force


@njit(nogil=True, cache=True)
def _beyond(value, lower, upper):
    """How far a value lies above its upper bound, or (negative) below its lower one."""
    return value - upper if value > upper else (value - lower if value < lower else 0.0)


@njit(nogil=True, cache=True, fastmath=REORDER)
def _gradient(stack, quadratic, bounds, multiplier, penalty, x, rows, forces, out):
    """The gradient of the (augmented) objective at x."""
    width = x.shape[1]
    for j in range(x.shape[0]):
        for c in range(width):
            out[j, c] = quadratic.diagonal[j, c] * x[j, c] - quadratic.linear[j, c]
    add_up(stack, x, rows)
    for r in range(forces.size):
        at = _answer(bounds, r, rows) + multiplier[r] / penalty
        forces[r] = penalty * _beyond(at, bounds.lower[r], bounds.upper[r])
    _weigh(stack, quadratic, rows)
    for r in range(forces.size):
        _push(bounds, r, forces[r], rows)
    hand_down(stack, rows, out)


@njit(nogil=True, cache=True)
def _greatest_eigenvalue(stack, quadratic, bounds, penalty, shape):
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
            forces[r] = penalty * _answer(bounds, r, rows)
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


@njit(nogil=True, cache=True, fastmath=REORDER)
def _step(x, gradient, inverse, parent, blocked, thresholds, row, j):
    """Row j of the projection of x - inverse * gradient, left in `row`; returns its threshold."""
    for c in range(row.size):
        row[c] = x[j, c] - inverse * gradient[j, c]
    if blocked.size:
        for c in range(row.size):
            if blocked[j, c]:
                row[c] = -inf
    t = 0.0 if parent[j] == inf else threshold(row, parent[j], thresholds[j])
    thresholds[j] = t
    for c in range(row.size):
        d = row[c] - t
        row[c] = d if d > 0 else 0.0
    return t


@njit(nogil=True, cache=True, fastmath=REORDER)
def _gap(x, gradient, mu, parent, blocked, thresholds, row):
    """An upper bound of f(x) - f*."""
    gap = 0.0
    for j in range(x.shape[0]):
        if mu > 0:
            t = _step(x, gradient, 1 / mu, parent, blocked, thresholds, row, j)
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
    greatest = _greatest_eigenvalue(stack, quadratic, bounds, penalty, x.shape)
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
            _gradient(stack, quadratic, bounds, multiplier, penalty, x, rows, forces, gradient)
            gap = _gap(x, gradient, mu, parent, blocked, far_thresholds, row)
            stalled = 0 if gap < 0.99 * best else stalled + 1
            best = min(best, gap)
            if gap <= allowed_gap or stalled > STALLED_CHECKS or greatest == 0:
                return gap, iteration
        _gradient(stack, quadratic, bounds, multiplier, penalty, ahead, rows, forces, gradient)
        uphill = 0.0
        next_momentum = 0.5 + sqrt(0.25 + momentum * momentum)
        push = (momentum - 1) / next_momentum
        for j in range(n):
            _step(ahead, gradient, inverse, parent, blocked, thresholds, row, j)
            for c in range(width):
                move = row[c] - x[j, c]
                uphill += (ahead[j, c] - row[c]) * move
                x[j, c] = row[c]
                ahead[j, c] = row[c] + push * move
        momentum = next_momentum
        if uphill > 0:
            momentum = 1.0
            ahead[:] = x
    _gradient(stack, quadratic, bounds, multiplier, penalty, x, rows, forces, gradient)
    return _gap(x, gradient, mu, parent, blocked, far_thresholds, row), most_iterations


@njit(nogil=True, cache=True)
def project_cells(x, parent, blocked):
    """Replace each cell's row by the nearest one that is not negative and adds up."""
    nothing = np.zeros(x.shape)
    thresholds = np.zeros(x.shape[0])
    row = np.empty(x.shape[1])
    for j in range(x.shape[0]):
        _step(x, nothing, 0.0, parent, blocked, thresholds, row, j)
        x[j] = row


@njit(nogil=True, cache=True)
def _solve(
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
            value = _answer(bounds, r, rows)
            missed = abs(_beyond(value, bounds.lower[r], bounds.upper[r]))
            if missed > violation:
                violation, worst = missed, r
            at = value + multiplier[r] / penalty
            multiplier[r] = penalty * _beyond(at, bounds.lower[r], bounds.upper[r])
        if violation <= allowed_violation:
            return (SOLVED if gap <= allowed_gap else STALLED), gap, violation, -1, total_iterations
        if violation > 0.25 * before:
            if penalty >= GREATEST_PENALTY * first_penalty:
                break
            penalty *= PENALTY_GROWTH
        before = violation
    return VIOLATED, gap, violation, worst, total_iterations
