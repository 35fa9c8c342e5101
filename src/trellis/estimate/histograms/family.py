"""Real-valued children of one parent: weighted least squares that keeps sums, signs and bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import ArrayLike

from trellis.errors import Infeasible, StructureError
from trellis.estimate.histograms.bounds import FamilyBound, blocked_cells, check_cells, stack_bounds
from trellis.estimate.histograms.queries import PreparedQueries, separates_cells
from trellis.model.arrays import Floats, Ints, Marks
from trellis.model.histogram_estimates import FIT_TOLERANCE
from trellis.model.queries import parse_query
from trellis.model.schema import Schema
from trellis.numerics.histograms.least_squares.accelerated import VIOLATED
from trellis.numerics.histograms.least_squares.objective import BY_ROW, Quadratic, StiffObjective
from trellis.numerics.histograms.least_squares.solver import distance, solve
from trellis.numerics.histograms.least_squares.stiff_rows import cut_stiff_rows
from trellis.numerics.histograms.marginals import Stack

TOLERANCE = FIT_TOLERANCE
"""That large families are solved to."""

FINE_TOLERANCE = 1e-8
FINE_SIZE = 2000
"""Families with at most so many variables are solved to the fine tolerance."""

MOST_ITERATIONS = 50_000

LEAST_VARIANCE = 1e-100
"""Smaller ones, other than 0, count as this one, so that weights stay within numbers."""

LARGEST = 2**50
"""Counts and answers up to which the distances between them are kept exactly enough."""


@dataclass(frozen=True, slots=True, eq=False)
class FamilySolution:
    """Children x cells; how far they can be from the optimum, and from their constraints.

    `distance` is a certified bound of the root mean square over all children and all cells that
    the parent has. If no query separates the cells, the optimum is not unique, and the bound is
    on measured answers. Under constraints it holds for right-hand sides moved by `violation`.
    """

    children: Floats
    distance: float
    violation: float
    iterations: int


Tables = Mapping[str, ArrayLike] | Sequence[ArrayLike]


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
    tables = _tables(queries, values)
    n_children = _n_children(tables, queries)
    z, weight, exact = [], [], []
    for query, name, table, given in zip(
        parsed, queries, tables, _tables(queries, variances), strict=True
    ):
        shape = (n_children, query.n_cells)
        value = _shaped(table, shape, f"Values of {name!r}")
        variance = _variance(given, shape, name)
        positive = np.where(variance > 0, np.maximum(variance, LEAST_VARIANCE), inf)
        weight.append(1 / positive)
        z.append(np.where(variance < inf, value, 0.0))
        if not (np.abs(z[-1]) <= LARGEST).all():
            raise StructureError(
                f"Values of {name!r} must be finite where they were measured, and at most 2^50."
            )
        if (variance == 0).any():
            low = np.where(variance == 0, value, -inf)
            exact.append(FamilyBound(query.name, low, np.where(variance == 0, value, inf)))
    bounds = [*exact, *(canonical_bound(schema, bound) for bound in bounds)]
    known = {query.name for query in parsed}
    extra = dict.fromkeys(bound.query for bound in bounds if bound.query not in known)
    prepared = PreparedQueries.of(
        [*parsed, *(parse_query(schema, name) for name in extra)],
        schema.n_cells,
        [bound.query for bound in bounds],
    )
    active = np.flatnonzero(whole)
    size = active.size * n_children
    if tolerance is None:
        tolerance = FINE_TOLERANCE if size <= FINE_SIZE else TOLERANCE
    by_name = {query.name: query for query in prepared.queries}
    check_marks(impossible, (n_children, schema.n_cells))
    blocked = blocked_cells(by_name, bounds, active, n_children, impossible)
    check_cells(blocked, active, schema)
    family = _Family(prepared, active, whole[active].astype(np.float64), n_children)
    x, found = family.fit(z, weight, bounds, blocked, tolerance)
    children = np.zeros((n_children, schema.n_cells))
    children[:, active] = x.T
    return FamilySolution(children, *found)


@dataclass(frozen=True, slots=True, eq=False)
class _Family:
    prepared: PreparedQueries
    active: Ints
    parent: Floats
    n_children: int

    def fit(
        self,
        values: Sequence[Floats],
        weights: Sequence[Floats],
        given: Sequence[FamilyBound],
        blocked: Marks,
        tolerance: float,
    ) -> tuple[Floats, tuple[float, float, int]]:
        """Cells x children, with distance, violation and number of iterations."""
        stack = self.prepared.tree.restrict(self.active)
        bounds = stack_bounds(self.prepared, given, stack, self.parent, self.active)
        if not self.active.size:
            return np.zeros((0, self.n_children)), (0.0, 0.0, 0)
        quadratic, mu, x = weighted_queries(
            self.prepared, self.active, stack, values, weights, self.n_children
        )
        found = solve(
            stack, quadratic, self.parent, blocked, bounds, mu, tolerance, MOST_ITERATIONS, x
        )
        if found.status == VIOLATED:
            raise Infeasible(
                "No counts of the children keep all constraints: the solver stops "
                f"{found.violation:.2g} short of one of them."
            )
        certified = distance(found, mu, x.size, quadratic)
        return x, (certified, found.violation, found.iterations)


def weighted_queries(
    prepared: PreparedQueries,
    active: Ints,
    stack: Stack,
    values: Sequence[Floats],
    weights: Sequence[Floats],
    n_children: int,
) -> tuple[Quadratic | StiffObjective, float, Floats]:
    """The objective of measured queries, its least eigenvalue at least, and where to start.

    `values` and `weights` (broadcastable to children x cells of the query) belong to the first
    queries of `prepared`.
    """
    shape = (active.size, n_children)
    diagonal, cells_measured = np.zeros(shape), np.zeros(shape)
    rows_measured = np.zeros((stack.n_rows, n_children))
    row_weight = np.zeros_like(rows_measured)
    for i, (z, w) in enumerate(zip(values, weights, strict=True)):
        query = prepared.queries[i]
        w = np.broadcast_to(w, z.shape)
        if separates_cells(query):
            cells = query.cell_of[active]
            diagonal += w[:, cells].T
            cells_measured += (w * z)[:, cells].T
        else:
            place = stack.rows(prepared.marginal_of[i])
            cells = stack.full_row[place]
            row_weight[place] += w[:, cells].T
            rows_measured[place] += (w * z)[:, cells].T
    mu = float(diagonal.min())
    x = cells_measured / np.where(diagonal > 0, diagonal, 1.0)
    rows = rows_measured / np.where(row_weight > 0, row_weight, 1.0)
    n_groups = stack.source.size
    quadratic = Quadratic(
        diagonal,
        cells_measured,
        row_weight,
        np.zeros((0, n_children)),
        np.zeros(n_groups, dtype=np.int64),
        np.full(n_groups, BY_ROW),
    )
    return cut_stiff_rows(stack, quadratic, mu, rows, x), mu, x.copy()


# -- arguments ------------------------------------------------------------------------------------


def whole_parent(parent: ArrayLike, n_cells: int) -> Ints:
    values = numbers(parent, "The parent's counts")
    if values.shape != (n_cells,):
        raise StructureError(f"The parent needs one whole number for each of {n_cells} cells.")
    if not ((values >= 0) & (values <= LARGEST) & (values == np.rint(values))).all():
        raise StructureError(
            "The parent's counts must be whole numbers, none below 0 and none above 2^50."
        )
    return values.astype(np.int64)


def numbers(given: ArrayLike, what: str) -> Floats:
    """An array of numbers, whatever their shape."""
    try:
        return np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise StructureError(f"{what} must be numbers, with rows of one length.") from None


def check_marks(impossible: Marks | None, shape: tuple[int, int]) -> None:
    """Marks of cells, or of children x cells."""
    if impossible is not None and np.shape(impossible) not in (shape, (1, shape[1]), shape[1:]):
        raise StructureError(
            f"Impossible cells must be marked for {shape[1]} cells, or {shape[0]} children x "
            f"{shape[1]} cells."
        )


def _tables(queries: Sequence[str], tables: Tables) -> list[ArrayLike]:
    if isinstance(tables, Mapping):
        if missing := [name for name in queries if name not in tables]:
            raise StructureError(f"Nothing is given for query {missing[0]!r}.")
        return [tables[name] for name in queries]
    if len(tables) != len(queries):
        raise StructureError(f"{len(tables)} tables for {len(queries)} queries.")
    return list(tables)


def _n_children(tables: Sequence[ArrayLike], queries: Sequence[str]) -> int:
    sizes = {
        len(np.atleast_1d(numbers(table, f"Values of {name!r}")))
        for name, table in zip(queries, tables, strict=True)
    }
    if len(sizes) != 1 or sizes == {0}:
        raise StructureError(
            "Values need one row for each child, at least one child and at least one query."
        )
    return sizes.pop()


def _shaped(table: ArrayLike, shape: tuple[int, int], what: str) -> Floats:
    values = numbers(table, what)
    if values.ndim == 1 and shape[1] == 1:
        values = values[:, np.newaxis]
    if values.shape != shape:
        raise StructureError(f"{what} must have {shape[0]} children x {shape[1]} cells.")
    return values


def _variance(given: ArrayLike, shape: tuple[int, int], name: str) -> Floats:
    variance = numbers(given, f"Variances of {name!r}")
    if variance.ndim == 1 and variance.size == shape[0]:
        variance = variance[:, np.newaxis]
    if variance.ndim and variance.shape not in (shape, (shape[0], 1)):
        raise StructureError(
            f"Variances of {name!r} must be one number, one for each child, or {shape[0]} x "
            f"{shape[1]}."
        )
    if not (variance >= 0).all():
        raise StructureError(f"A variance of {name!r} is negative or missing.")
    return np.broadcast_to(variance, shape)


def canonical_bound(schema: Schema, bound: FamilyBound) -> FamilyBound:
    query = parse_query(schema, bound.query)
    lower, upper = (np.asarray(side, dtype=np.float64) for side in (bound.lower, bound.upper))
    return FamilyBound(query.name, lower, upper, bound.group_of)
