"""Real-valued children of one parent: weighted least squares that keeps sums, signs and bounds."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import numpy as np
from numpy.typing import ArrayLike

from trellis.errors import Infeasible, StructureError
from trellis.estimate.histograms.family.arguments import (
    LARGEST,
    Tables,
    canonical_bound,
    check_marks,
    number_of_children,
    shaped,
    shaped_variance,
    tables_by_query,
    whole_parent,
)
from trellis.estimate.histograms.family.bounds import FamilyBound
from trellis.estimate.histograms.family.least_squares import TOLERANCE, LeastSquares
from trellis.estimate.histograms.family.problem import FamilyProblem, cell_names
from trellis.estimate.histograms.family.solution import FamilySolution, SolveStatus
from trellis.estimate.histograms.objectives import GivenAnswers
from trellis.estimate.histograms.queries import PreparedQueries
from trellis.model.arrays import Floats, Marks
from trellis.model.tables.queries import Query, parse_query
from trellis.model.tables.schema import Schema

FINE_TOLERANCE = 1e-8
FINE_SIZE = 2000
"""Families with at most this many variables are solved to the fine tolerance."""

LEAST_VARIANCE = 1e-100
"""Smaller ones, other than 0, count as this one, so that weights stay within numbers."""


def solve_family(
    schema: Schema,
    parent: ArrayLike,
    queries: Sequence[str],
    values: Tables,
    variances: Tables,
    *,
    bounds: Sequence[FamilyBound] = (),
    impossible: Marks | None = None,
    tolerance: float | None = None,
) -> FamilySolution:
    """The children that fit their noisy answers best and add up to their parent in every cell.

    Minimises the sum over children and queries of (answer - value)^2 / variance over non-negative
    children that sum to `parent`. `values` and `variances` have one entry for each query, by name
    or in their order: children x cells of the query. A variance may also be one number, or one for
    each child; 0 makes an answer exact and infinity ignores it. `impossible` marks cells, or
    children x cells, that must be empty.
    """
    if tolerance is not None and not 0 < tolerance < inf:
        raise StructureError("The tolerance must be a positive number of counts.")
    parsed = [parse_query(schema, name) for name in queries]
    whole = whole_parent(parent, schema.n_cells)
    z, weights, exact = _measured(parsed, queries, values, variances)
    bounds = [*exact, *(canonical_bound(schema, bound) for bound in bounds)]
    prepared = _prepared(schema, parsed, bounds)
    active, n_children = np.flatnonzero(whole), len(z[0])
    check_marks(impossible, (n_children, schema.n_cells))
    problem = FamilyProblem(
        GivenAnswers(prepared, z, weights),
        range(n_children),
        active,
        whole[active],
        {query.name: query for query in prepared.queries},
        parsed,
        tuple(bounds),
        impossible,
        name_of_cell=cell_names(schema),
    )
    if tolerance is None:
        tolerance = FINE_TOLERANCE if active.size * n_children <= FINE_SIZE else TOLERANCE
    found = LeastSquares(tolerance).solve(problem)
    if found.status is SolveStatus.VIOLATED:
        raise Infeasible(
            "No counts of the children keep all constraints: the solver stops "
            f"{found.violation:.2g} short of one of them."
        )
    return found.on_all_cells(schema.n_cells)


def _measured(
    parsed: Sequence[Query], names: Sequence[str], values: Tables, variances: Tables
) -> tuple[list[Floats], list[Floats], list[FamilyBound]]:
    """Values and weights of all queries, children x cells, and the answers that are exact."""
    tables = tables_by_query(names, values)
    n_children = number_of_children(tables, names)
    z, weights, exact = [], [], []
    for query, name, table, given in zip(
        parsed, names, tables, tables_by_query(names, variances), strict=True
    ):
        shape = (n_children, query.n_cells)
        value = shaped(table, shape, f"Values of {name!r}")
        variance = shaped_variance(given, shape, name)
        positive = np.where(variance > 0, np.maximum(variance, LEAST_VARIANCE), inf)
        weights.append(1 / positive)
        z.append(np.where(variance < inf, value, 0.0))
        if not (np.abs(z[-1]) <= LARGEST).all():
            raise StructureError(
                f"Values of {name!r} must be finite where they were measured, and at most 2^50."
            )
        if (variance == 0).any():
            low = np.where(variance == 0, value, -inf)
            exact.append(FamilyBound(query.name, low, np.where(variance == 0, value, inf)))
    return z, weights, exact


def _prepared(
    schema: Schema, parsed: Sequence[Query], bounds: Sequence[FamilyBound]
) -> PreparedQueries:
    """The queries that are measured, followed by those that are bounded alone."""
    known = {query.name for query in parsed}
    extra = dict.fromkeys(bound.query for bound in bounds if bound.query not in known)
    return PreparedQueries.of(
        [*parsed, *(parse_query(schema, name) for name in extra)],
        schema.n_cells,
        [bound.query for bound in bounds],
    )
