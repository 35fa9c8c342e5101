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

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from trellis.model.arrays import Floats, Ints, Marks
from trellis.numerics.histograms.algebra.query_algebra import Algebra, Blocks
from trellis.numerics.histograms.least_squares.solver import Quadratic, StiffObjective
from trellis.numerics.histograms.marginals import Stack, add_up, hand_down

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
"""Counts that would rise after so many times the length of a step are held too."""


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


# -- measured rows --------------------------------------------------------------------------------


def cut_stiff_rows(
    stack: Stack, quadratic: Quadratic, mu: float, row_target: Floats, target: Floats
) -> Quadratic | StiffObjective:
    """The objective of weighted rows and cells, its stiff directions cut.

    A row's curvature is its weight times its number of cells. `row_target` and `target` are what
    rows and cells were measured as; the linear term is made here.
    """
    cells, rows = quadratic.diagonal, quadratic.row_weight
    least = mu if mu > 0 else _least_positive(cells, rows)
    if max(cells.max(), rows.max(initial=0.0) * len(cells)) > STIFF * least:
        space = _MeasuredRows.of(stack, cells, rows, least)
        cells, rows = space.halves(space.weight)
        if (space.cut < space.weight).any():
            whole = _with_linear(stack, quadratic, cells, rows, target, row_target)
            cut = _with_linear(stack, quadratic, *space.halves(space.cut), target, row_target)
            return StiffObjective(
                whole, cut, Multipliers(space, np.concatenate([target, row_target]))
            )
    return _with_linear(stack, quadratic, cells, rows, target, row_target)


def _with_linear(
    stack: Stack,
    quadratic: Quadratic,
    cells: Floats,
    rows: Floats,
    target: Floats,
    row_target: Floats,
) -> Quadratic:
    linear = cells * target
    hand_down(stack, rows * row_target, linear)
    return quadratic._replace(diagonal=cells, row_weight=rows, linear=linear)


def _least_positive(*weights: Floats) -> float:
    return float(min((w[w > 0].min() for w in weights if (w > 0).any()), default=0.0))


@dataclass(frozen=True, slots=True, eq=False)
class _MeasuredRows:
    """Cells, and below them the rows of a stack: their weights, and what these are cut to."""

    stack: Stack
    n_cells: int
    weight: Floats
    cut: Floats

    @classmethod
    def of(cls, stack: Stack, cells: Floats, rows: Floats, least: float) -> _MeasuredRows:
        sizes = np.empty((stack.n_rows, 1))
        add_up(stack, np.ones((len(cells), 1)), sizes)
        unit = least / np.concatenate([np.ones((len(cells), 1)), sizes])
        weight = np.minimum(np.concatenate([cells, rows]), GREATEST * unit)
        is_stiff = (weight > STIFF * unit).any()
        # Weights just above the cap stay: what little was left of them would be ill-conditioned.
        cut = np.where(is_stiff & (weight > 2 * KEPT * unit), KEPT * unit, weight)
        return cls(stack, len(cells), weight, cut)

    def halves(self, y: Floats) -> tuple[Floats, Floats]:
        """Of cells and of rows, each in one piece."""
        return y[: self.n_cells].copy(), y[self.n_cells :].copy()

    def answers(self, x: Floats) -> Floats:
        rows = np.empty((self.stack.n_rows, x.shape[1]))
        add_up(self.stack, x, rows)
        return np.concatenate([x, rows])

    def spread_back(self, y: Floats) -> Floats:
        cells, rows = self.halves(y)
        hand_down(self.stack, rows, cells)
        return cells

    def excess(self, y: Floats) -> Floats:
        return (self.weight - self.cut) * y

    def kept(self, y: Floats) -> Floats:
        return np.where(self.weight > self.cut, self.cut, 0.0) * y

    def faded(self, y: Floats) -> Floats:
        return (self.weight - self.cut) * self.inverse(y)

    def inverse(self, y: Floats) -> Floats:
        stiff = self.weight > self.cut
        return np.where(stiff, y / np.where(stiff, self.weight, 1.0), 0.0)

    def whole(self, y: Floats) -> Floats:
        return np.where(self.weight > self.cut, self.weight, 0.0) * y

    def over_excess(self, y: Floats) -> Floats:
        excess = self.weight - self.cut
        return self.weight**2 * np.where(excess > 0, y / np.where(excess > 0, excess, 1.0), 0.0)

    def weigh(self, y: Floats) -> Floats:
        return self.weight * y


# -- estimates of subtrees ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class StiffPrecisions:
    """Precisions J of a level's classes of nodes, and `cut` in their stiff directions.

    `written` has the operators of `Space`, by their names; J is `weigh`.
    """

    algebra: Algebra
    least: Floats
    cut: Floats
    written: dict[str, Floats]

    @classmethod
    def of(
        cls,
        algebra: Algebra,
        covariance: Blocks,
        free: list[Marks],
        exact: list[Marks],
    ) -> StiffPrecisions:
        """From covariances, whose great eigenvalues are exact where those of J would be lost.

        What is known exactly gets the least weight: a constraint decides there.
        """
        spectra = [_spectrum(p, at) for p, at in zip(covariance, free, strict=True)]
        positive = [values[:, at] for (values, _), at in zip(spectra, free, strict=True)]
        least = min(float(values.min()) for values in positive if values.size)
        lowest = np.full(len(covariance[0]), np.inf)
        cuts: Blocks = []
        whole: Blocks = []
        parts: dict[str, Blocks] = {}
        for (values, vectors), known in zip(spectra, exact, strict=True):
            w = np.minimum(np.where(known, least, values), GREATEST * least)
            lowest = np.minimum(lowest, w.min(axis=1))
            stiff = w > 2 * KEPT * least
            c = np.where(stiff, KEPT * least, w)
            cuts.append(_operator(c, vectors))
            whole.append(_operator(w, vectors))
            some = np.where(stiff, w, 2.0)  # for quotients
            for name, part in {
                "excess": w - c,
                "kept": c,
                "faded": (w - c) / some,
                "inverse": 1 / some,
                "whole": w,
                "over_excess": w**2 / np.where(stiff, w - c, 1.0),
            }.items():
                parts.setdefault(name, []).append(_operator(np.where(stiff, part, 0.0), vectors))
        parts["weigh"] = whole
        written = {name: algebra.written(blocks) for name, blocks in parts.items()}
        return cls(algebra, lowest, algebra.written(cuts), written)


def _operator(values: Floats, vectors: Floats) -> Floats:
    return (vectors * values[:, np.newaxis]) @ vectors.transpose(0, 2, 1)


def _spectrum(blocks: Floats, free: Marks) -> tuple[Floats, Floats]:
    """Eigenvalues and vectors of the inverses: 0 and unit vectors for coordinates not free."""
    values = np.zeros(blocks.shape[:2])
    vectors = np.repeat(np.eye(blocks.shape[1])[np.newaxis], len(blocks), axis=0)
    at = np.flatnonzero(free)
    if at.size:
        variances, inside = np.linalg.eigh(blocks[:, at[:, np.newaxis], at])
        lowest = np.finfo(float).eps * variances[:, -1:]
        values[:, at] = 1 / np.maximum(variances, lowest)
        vectors[:, at[:, np.newaxis], at] = inside
    return values, vectors


@dataclass(frozen=True, slots=True, eq=False)
class StiffSubtrees:
    """All cells of the children of a family, of which only the active ones may hold anyone."""

    precisions: StiffPrecisions
    classes: Ints
    active: Ints

    def _apply(self, name: str, y: Floats) -> Floats:
        return self.precisions.algebra.apply(self.precisions.written[name], self.classes, y)

    def answers(self, x: Floats) -> Floats:
        out = np.zeros((self.precisions.algebra.tree.n_cells, x.shape[1]))
        out[self.active] = x
        return out

    def spread_back(self, y: Floats) -> Floats:
        return y[self.active]

    def excess(self, y: Floats) -> Floats:
        return self._apply("excess", y)

    def kept(self, y: Floats) -> Floats:
        return self._apply("kept", y)

    def faded(self, y: Floats) -> Floats:
        return self._apply("faded", y)

    def inverse(self, y: Floats) -> Floats:
        return self._apply("inverse", y)

    def whole(self, y: Floats) -> Floats:
        return self._apply("whole", y)

    def over_excess(self, y: Floats) -> Floats:
        return self._apply("over_excess", y)

    def weigh(self, y: Floats) -> Floats:
        return self._apply("weigh", y)
