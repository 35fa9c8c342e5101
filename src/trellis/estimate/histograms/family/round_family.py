"""Whole children of one parent, near real ones that are given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import ArrayLike

from trellis.errors import StructureError
from trellis.estimate.histograms.family.arguments import (
    LARGEST,
    canonical_bound,
    check_marks,
    numbers,
    whole_parent,
)
from trellis.estimate.histograms.family.bounds import FamilyBound
from trellis.estimate.histograms.family.edit_rules import KeepRules
from trellis.estimate.histograms.family.problem import FamilyProblem, cell_names
from trellis.estimate.histograms.family.repair import Repair
from trellis.estimate.histograms.family.rounding import Round
from trellis.estimate.histograms.family.solution import FamilySolution, SolveStatus
from trellis.model.arrays import Floats, Ints, Marks
from trellis.model.tables.queries import parse_query
from trellis.model.tables.rules import RuleSides
from trellis.model.tables.schema import Schema
from trellis.numerics.histograms.least_squares.cell_sums import project_cells


def round_family(
    schema: Schema,
    parent: ArrayLike,
    children: ArrayLike,
    queries: Sequence[str],
    *,
    bounds: Sequence[FamilyBound] = (),
    impossible: Marks | None = None,
    edit_rules: Sequence[RuleSides] = (),
    tie_seed: int = 0,
) -> Ints:
    """Whole children (children x cells) that add up to their parent in every cell.

    Largest remainders first, then swaps that bring the answers to `queries`, if there are any,
    nearer to those of the real `children`. Children that do not add up, or are negative, are first
    moved to the nearest ones that do. Bounds and impossible cells are kept; see `solve_family`.
    `edit_rules` have the cells on both sides of `a requires b`; they are kept as far as all else
    allows.
    """
    whole = whole_parent(parent, schema.n_cells)
    real = numbers(children, "Children")
    if real.ndim != 2 or real.shape[1] != schema.n_cells or not len(real):
        raise StructureError(f"Children must be an array of children x {schema.n_cells} cells.")
    if not (np.abs(real) <= LARGEST).all():
        raise StructureError("Children must be finite numbers of at most 2^50.")
    canonical = tuple(canonical_bound(schema, bound) for bound in bounds)
    active = np.flatnonzero(whole)
    check_marks(impossible, real.shape)
    problem = FamilyProblem(
        None,
        range(len(real)),
        active,
        whole[active],
        {bound.query: parse_query(schema, bound.query) for bound in canonical},
        [parse_query(schema, name) for name in queries],
        canonical,
        impossible,
        name_of_cell=cell_names(schema),
    )
    near = NearestReal(np.ascontiguousarray(real[:, active].T))
    found = KeepRules(Repair(Round(near, tie_seed)), edit_rules).solve(problem)
    out = np.zeros(real.shape, dtype=np.int64)
    out[:, active] = found.children
    return out


@dataclass(frozen=True, slots=True, eq=False)
class NearestReal:
    """In place of least squares: the real counts nearest to given ones that keep all sums.

    `given` is cells x children, and is moved. It knows nothing of bounds, nor of what is best.
    """

    given: Floats

    def solve(self, problem: FamilyProblem) -> FamilySolution:
        problem.check_cells()
        project_cells(self.given, problem.totals, problem.blocked)
        return FamilySolution(
            problem.active, self.given, SolveStatus.STALLED, inf, not problem.bounds
        )
