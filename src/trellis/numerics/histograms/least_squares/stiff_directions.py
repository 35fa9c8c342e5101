r"""Directions of a family's objective that are far stiffer than others.

Let f contain w/2 a^2 with a = A x - z, w far above the other weights. As `solver` says, w is
cut to c and a multiplier y stands for the rest, moved round by round to c a + (1 - c/w) y.

Part of y moves nothing: forces that are the same for all children of a cell, whose sum is given;
that push counts below 0; and that cancel between measurements which contradict one another. There
a cannot follow, and y would take w/c rounds to reach w a. So each round adds at once the n that
comes nearest to what y lacks,

    minimise sum of (w - c)/w^2 (t - n)^2,   t = w a - y,   where A'n moves no positive count,

by conjugate gradients. Any y is valid: it only decides how good the certificate is.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from trellis.model.arrays import Floats, Marks

STIFF = 3e4
"""How many times the least curvature a direction may have before it counts as stiff."""

KEPT = 1e4
"""The curvature that is left to it, in the same units."""

GREATEST = 1e10
"""Curvatures above are cut for good. Answers so precise are missed by next to nothing."""

MOST_STEPS = 50
"""Of conjugate gradients."""

FINE = 1e-20
"""The squared residual, relative to the first, at which they stop."""

MOST_REPEATS = 10
"""With more counts held at 0 each time."""

NEAR = 10.0
"""Counts that would rise within this many step lengths are held too."""


class Space(Protocol):
    """Answers to what is measured, and operators on them that are 0 but in stiff directions."""

    def answers(self, x: Floats) -> Floats:
        """A x."""
        ...

    def spread_back(self, y: Floats) -> Floats:
        """A'y: cells x children."""
        ...

    def excess(self, y: Floats) -> Floats:
        """Times w - c."""
        ...

    def kept(self, y: Floats) -> Floats:
        """Times c."""
        ...

    def faded(self, y: Floats) -> Floats:
        """Times 1 - c/w."""
        ...

    def inverse(self, y: Floats) -> Floats:
        """Over w."""
        ...

    def whole(self, y: Floats) -> Floats:
        """Times w."""
        ...

    def over_excess(self, y: Floats) -> Floats:
        """Times w^2 / (w - c)."""
        ...

    def weigh(self, y: Floats) -> Floats:
        """Times w, in all directions."""
        ...


class Multipliers:
    """The multipliers of one family: what moves counts, and apart from it what does not."""

    def __init__(self, space: Space, target: Floats) -> None:
        self._space, self._target = space, target
        self._force = np.zeros_like(target)
        self._idle = np.zeros_like(target)

    def shift(self) -> Floats:
        space = self._space
        moving = space.spread_back(space.faded(self._force))
        return moving + _not_shared(space.spread_back(space.faded(self._idle)))

    def update(self, x: Floats, gradient: Floats) -> float:
        space = self._space
        apart = space.answers(x) - self._target - space.inverse(self._idle)
        missed = apart - space.inverse(self._force)
        lost = 0.5 * float(np.sum(missed * space.excess(missed)))
        self._force = space.faded(self._force) + space.kept(apart)
        slack = np.maximum(gradient - _mean(gradient, x > 0), 0.0)
        self._idle += self._neutral(space.whole(apart) - self._force, x > 0, slack)
        return max(lost, 0.0)

    def value(self, x: Floats) -> float:
        apart = self._space.answers(x) - self._target
        return 0.5 * float(np.sum(apart * self._space.weigh(apart)))

    def _neutral(self, lacking: Floats, is_held: Marks, slack: Floats) -> Floats:
        """The n nearest to t that moves no positive count, and raises no other.

        A count of 0 stays while the gradient there has `slack`; one that runs out of it is held.
        """
        out = np.zeros_like(lacking)
        for _ in range(MOST_REPEATS):
            n = self._nearest(lacking - out, is_held)
            force = self._space.spread_back(n)
            force -= _mean(force, is_held)
            lifts = ~is_held & (force < 0)
            reach = np.where(lifts, slack / np.where(lifts, -force, 1.0), 1.0)
            length = min(1.0, float(reach.min(initial=1.0)))
            out += length * n
            slack = slack + length * force
            if length == 1.0:
                break
            is_held = is_held | (lifts & (reach <= NEAR * length))
        return out

    def _nearest(self, lacking: Floats, is_held: Marks) -> Floats:
        space = self._space

        def moved(y: Floats) -> Floats:
            force = space.spread_back(y)
            return np.where(is_held, force - _mean(force, is_held), 0.0)

        residual = moved(lacking)
        direction, out = residual.copy(), lacking.copy()
        first = size = float(np.sum(residual**2))
        for _ in range(MOST_STEPS):
            if size <= FINE * first:
                break
            step = space.over_excess(space.answers(direction))
            image = moved(step)
            length = size / float(np.sum(direction * image))
            out -= length * step
            residual -= length * image
            before, size = size, float(np.sum(residual**2))
            direction = residual + size / before * direction
        return out


def _mean(force: Floats, counted: Marks) -> Floats:
    """Of each cell, over the children that count; 0 for a root, which has no sums to keep."""
    if force.shape[1] == 1:
        return np.zeros_like(force)
    number = np.maximum(counted.sum(axis=1, keepdims=True), 1)
    return (force * counted).sum(axis=1, keepdims=True) / number


def _not_shared(force: Floats) -> Floats:
    """Less what all children of a cell share, which moves none of them and may be far greater."""
    return force - _mean(force, np.ones(force.shape, dtype=bool))
