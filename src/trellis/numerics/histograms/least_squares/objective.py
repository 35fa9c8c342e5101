"""What the children of a family are fitted to, and the linear constraints on them."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from trellis.model.arrays import Floats, Ints

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


def typical_weight(objective: Quadratic | StiffObjective) -> float:
    quadratic = objective if isinstance(objective, Quadratic) else objective.whole
    weights = [w[w > 0] for w in (quadratic.row_weight, quadratic.diagonal, quadratic.mix)]
    least = [w.min() for w in weights if w.size]
    return float(min(least)) if least else 0.0
