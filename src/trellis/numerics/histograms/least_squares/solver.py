r"""Least squares over a product of simplices: one family of histograms.

With the children's counts x (cells x children), minimise

    f(x) = 1/2 <x, H x> - <b, x>   where x >= 0 and, in every cell, sum_c x_c = p,

H = D + sum over marginals Q' W Q, by the steps of `accelerated`. They certify how far x is from the
optimum, and keep linear constraints.

**Stiff directions**, in which H is far above mu, would need ever shorter steps. There the weight w
is cut to some c, and the rest is left to multipliers y, as with constraints: with a = Q x - z, the
force w a is replaced by c a + (1 - c/w) y, and y by that force, round by round. What is minimised
then lies below f, and at x by (w - c)/2 (a - y/w)^2, which is added to the gap.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, sqrt
from typing import NamedTuple

import numpy as np

from trellis.model.arrays import Floats, Marks
from trellis.numerics.histograms.least_squares.accelerated import (
    CHECK_EVERY,
    SOLVED,
    STALLED,
    VIOLATED,
    minimise_from,
)
from trellis.numerics.histograms.least_squares.gradient import gradient_at
from trellis.numerics.histograms.least_squares.objective import (
    Bounds,
    Quadratic,
    StiffObjective,
    typical_weight,
)
from trellis.numerics.histograms.marginals import Stack

FIRST_PENALTY = 3.0
"""In units of mu. Greater ones slow each round of multipliers down more than they save rounds."""

MOST_ROUNDS, MOST_SLOW_ROUNDS = 100, 6
"""Of multipliers in stiff directions."""

STIFF_PROGRESS, FINER = 0.8, 0.1
"""By what factor a round should reduce what they miss, else the next is solved more finely."""


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
    scale = mu if mu > 0 else typical_weight(objective)
    allowed_gap = 0.5 * scale * x.size * tolerance**2
    penalty = FIRST_PENALTY * scale if scale > 0 else 1.0
    multiplier = np.zeros(bounds.row.size)

    def minimise(quadratic: Quadratic, allowed: float, most: int) -> Solution:
        return Solution(
            *minimise_from(
                stack, quadratic, parent, blocked, bounds, multiplier, mu, allowed, tolerance / 3,
                penalty, most, x,
            )
        )  # fmt: skip

    def gradient(quadratic: Quadratic) -> Floats:
        rows, out = np.empty((stack.n_rows, x.shape[1])), np.empty_like(x)
        forces = np.empty_like(multiplier)
        gradient_at(stack, quadratic, bounds, multiplier, penalty, x, rows, forces, out)
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
    scale = mu if mu > 0 else typical_weight(objective)
    if solution.gap <= 0 or size == 0:
        return 0.0
    return sqrt(2 * solution.gap / (scale * size)) if scale > 0 else inf
