"""Stiff directions of weighted answers: rows that are measured far more precisely than others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trellis.model.arrays import Floats
from trellis.numerics.histograms.least_squares.objective import Quadratic, StiffObjective
from trellis.numerics.histograms.least_squares.stiff_directions import (
    GREATEST,
    KEPT,
    STIFF,
    Multipliers,
)
from trellis.numerics.histograms.marginals import Stack, add_up, hand_down


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
