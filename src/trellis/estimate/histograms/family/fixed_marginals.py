"""Fix marginals of few cells before the rest of a family.

Many small cells that must not be negative push a coarse marginal away from what was measured of it.
A pass fits the marginal on its own, as a family of a coarser histogram, rounds it, and holds it as
a constraint. This helps with few cells; fixing large marginals does harm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from trellis.errors import Infeasible
from trellis.estimate.histograms.family.bounds import FamilyBound
from trellis.estimate.histograms.family.least_squares import LeastSquares
from trellis.estimate.histograms.family.problem import FamilyProblem
from trellis.estimate.histograms.family.repair import Repair
from trellis.estimate.histograms.family.rounding import Round
from trellis.estimate.histograms.family.solution import FamilySolution
from trellis.estimate.histograms.family.solver import FamilySolver
from trellis.estimate.histograms.objectives import CoarsenedObjective
from trellis.estimate.histograms.queries import PreparedQueries, coarsened
from trellis.model.arrays import Floats, Ints
from trellis.model.tables.queries import Query
from trellis.numerics.histograms.least_squares.objective import UNWEIGHTED, Quadratic
from trellis.numerics.histograms.marginals import MarginalTree, Stack

FINE = 1e-3
MOST_ITERATIONS = 5000


@dataclass(frozen=True, slots=True)
class FixMarginals:
    """Solves a family with the marginals `passes`, in this order, fixed.

    A pass sees its own marginal alone. Where what it fixed clashes with another pass, or with
    bounds on other cells, the family does without the last passes: they are not a promise.
    """

    inner: FamilySolver
    passes: Sequence[str]
    tie_seed: int

    def solve(self, problem: FamilyProblem) -> FamilySolution:
        for kept in range(len(self.passes), 0, -1):
            try:
                return self.inner.solve(self._fixed(problem, self.passes[:kept]))
            except Infeasible:
                continue
        return self.inner.solve(problem)

    def _fixed(self, problem: FamilyProblem, passes: Sequence[str]) -> FamilyProblem:
        for name in passes:
            held = fixed_marginal(problem, problem.queries[name], self.tie_seed)
            problem = problem if held is None else problem.with_bounds([held])
        return problem


def fixed_marginal(problem: FamilyProblem, query: Query, tie_seed: int) -> FamilyBound | None:
    """Whole answers of the children to `query`, as a bound that holds them.

    Fitted under the bounds of this query and coarser ones. None if the precision is singular: then
    nothing of its own determines the marginal.
    """
    assert isinstance(problem.objective, CoarsenedObjective)
    assert problem.parent is not None
    nodes = problem.nodes
    precision, linear = problem.objective.coarse(query, nodes.start, nodes.stop)
    mu = 0.999 * float(np.linalg.eigvalsh(precision.transpose(2, 0, 1))[:, 0].min())
    if mu <= 1e-12 * precision.max():
        return None
    coarse = {b.query: coarsened(problem.queries[b.query], query) for b in problem.bounds}
    own = {name: q for name, q in coarse.items() if q is not None}
    parent = np.zeros(query.n_cells, dtype=np.int64)
    np.add.at(parent, query.cell_of[problem.active], problem.parent)
    # Cells that the parent does not have stay in, so that the precision keeps its shape.
    active = np.arange(query.n_cells)
    marginal = FamilyProblem(
        _Marginal.of(precision, linear, mu, tuple(own.values())),
        nodes,
        active,
        parent,
        own,
        [replace(query, cell_of=active.astype(np.int32))],
        tuple(bound for bound in problem.bounds if bound.query in own),
        first_index=problem.first_index,
    )
    found = Repair(Round(LeastSquares(FINE, MOST_ITERATIONS), tie_seed)).solve(marginal)
    fixed = found.children.astype(np.float64)
    return FamilyBound(query.name, fixed, fixed)


@dataclass(frozen=True, slots=True, eq=False)
class _Marginal:
    """The objective 1/2 y' W y - b' y of each child, whose least eigenvalue is mu or more.

    `precision` W is cells x cells x children, `linear` b cells x children.
    """

    prepared: PreparedQueries
    precision: Floats
    linear: Floats
    mu: float
    place: int
    """Of the marginal itself in the tree of those that are bounded."""

    @classmethod
    def of(
        cls, precision: Floats, linear: Floats, mu: float, bounded: tuple[Query, ...]
    ) -> _Marginal:
        n_cells = len(linear)
        maps = [np.arange(n_cells), *(q.cell_of for q in bounded)]
        tree = MarginalTree.of(maps, n_cells, [True] + [False] * len(bounded))
        place = {position: g for g, position in enumerate(tree.order)}
        prepared = PreparedQueries(bounded, tree, tuple(place[1 + i] for i in range(len(bounded))))
        return cls(prepared, precision, linear, mu, place[0])

    def quadratic(
        self,
        stack: Stack,
        active: Ints,  # noqa: ARG002 - all cells are
        first: int,
        last: int,
    ) -> tuple[Quadratic, float, Floats]:
        n_maps, n_children = stack.source.size, last - first
        atoms = np.full(n_maps, UNWEIGHTED)
        atoms[self.place] = len(self.linear)
        quadratic = Quadratic(
            np.zeros(self.linear.shape),
            np.ascontiguousarray(self.linear),  # another layout would compile the kernels again
            np.zeros((0, n_children)),
            np.ascontiguousarray(self.precision.reshape(-1, n_children)),
            np.zeros(n_maps, dtype=np.int64),
            atoms,
        )
        return quadratic, self.mu, np.zeros(self.linear.shape)
