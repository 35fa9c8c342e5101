"""Whole children of one parent, near real ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from trellis.errors import Infeasible, StructureError
from trellis.estimate.histograms.bounds import FamilyBound, blocked_cells, check_cells
from trellis.estimate.histograms.edit_rules import RuleSides, keep_rules
from trellis.estimate.histograms.family import (
    LARGEST,
    canonical_bound,
    check_marks,
    numbers,
    whole_parent,
)
from trellis.model.arrays import Floats, Ints, Marks
from trellis.model.queries import Query, parse_query
from trellis.model.schema import Schema
from trellis.numerics.histograms.least_squares.cell_sums import project_cells
from trellis.numerics.histograms.whole_numbers.exchange import exchange
from trellis.numerics.histograms.whole_numbers.nearest_whole import nearest_whole
from trellis.numerics.histograms.whole_numbers.repair import repair
from trellis.numerics.histograms.whole_numbers.rounding import round_cells
from trellis.numerics.histograms.whole_numbers.swaps import swap_units
from trellis.numerics.histograms.whole_numbers.weighted_queries import WeightedQueries, residuals
from trellis.numerics.histograms.whole_numbers.whole_bounds import WholeBounds, answers
from trellis.numerics.ties import tie_key

MOST_EXCHANGED = 2_000_000
"""Cells x children x children up to which pairs of children exchange units under constraints."""

COARSE = 16
"""Queries with at most so many cells count twice when units are swapped."""

UNBOUNDED = np.iinfo(np.int64).max // 4


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
    bounds = [canonical_bound(schema, bound) for bound in bounds]
    bounded = {bound.query: parse_query(schema, bound.query) for bound in bounds}
    active = np.flatnonzero(whole)
    check_marks(impossible, real.shape)
    blocked = blocked_cells(bounded, bounds, active, len(real), impossible)
    check_cells(blocked, active, schema)
    x = np.ascontiguousarray(real[:, active].T)
    project_cells(x, whole[active].astype(np.float64), blocked)
    parsed = [parse_query(schema, name) for name in queries]
    rounder = Rounder(parsed, list(bounded.values()), edit_rules)
    y = rounder.round(active, whole[active], x, bounds, blocked, tie_seed, 0)
    out = np.zeros(real.shape, dtype=np.int64)
    out[:, active] = y.T
    return out


class Rounder:
    """Rounds families that share their queries."""

    def __init__(
        self,
        queries: Sequence[Query],
        bounded: Sequence[Query],
        edit_rules: Sequence[RuleSides] = (),
    ) -> None:
        self._queries = list(queries)
        self._weights = [2.0 if query.n_cells <= COARSE else 1.0 for query in queries]
        self._bounded = {query.name: query for query in bounded}
        self.edit_rules = edit_rules

    def round(
        self,
        active: Ints,
        parent: Ints,
        x: Floats,
        bounds: Sequence[FamilyBound],
        blocked: Marks,
        tie_seed: int,
        first_index: int,
    ) -> Ints:
        """Cells x children, from real ones that add up; ties by index from `first_index` on."""
        y = np.zeros(x.shape, dtype=np.int64)
        round_cells(x, parent, tie_key(tie_seed), first_index, y)
        floors = np.minimum(np.floor(x + 1e-9).astype(np.int64), y)
        # Answers that are bounded hold for x, nearly, and are worth being kept.
        bounded = [self._bounded[bound.query] for bound in bounds]
        weights = [*self._weights, *(2.0 for _ in bounded)]
        queries = stacked_queries([*self._queries, *bounded], weights, active)
        if queries.weight.size:
            swap_units(queries, x, floors, blocked, y)
        if bounds:
            y = self._keep(bounds, queries, x, active, parent, blocked, y)
        if self.edit_rules:
            whole = self.whole_bounds(bounds, active, x.shape[1])
            keep_rules(self.edit_rules, active, whole, queries, blocked, x, y)
        return y

    def _keep(
        self,
        bounds: Sequence[FamilyBound],
        queries: WeightedQueries,
        x: Floats,
        active: Ints,
        parent: Ints,
        blocked: Marks,
        y: Ints,
    ) -> Ints:
        whole = self.whole_bounds(bounds, active, x.shape[1])
        e = residuals(queries, x, y)
        if not repair(whole, queries, e, blocked, y):
            nearest = nearest_whole(x, parent, whole, blocked)
            if nearest is None:
                raise Infeasible("No whole counts of the children keep all constraints.")
            y = nearest
            e = residuals(queries, x, y)
        if x.size * x.shape[1] <= MOST_EXCHANGED:
            exchange(whole, queries, e, x, blocked, y)
        kept = answers(whole, y)
        assert ((whole.lower <= kept) & (kept <= whole.upper)).all()
        return y

    def whole_bounds(
        self, bounds: Sequence[FamilyBound], active: Ints, n_children: int
    ) -> WholeBounds:
        row_of = [np.zeros((0, active.size), dtype=np.int64)]
        constraint = [np.zeros((0, n_children), dtype=np.int64)]
        lower, upper = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
        n_rows = n_constraints = 0
        for bound in bounds:
            query = self._bounded[bound.query]
            units = np.arange(n_children) if bound.group_of is None else bound.group_of
            ids = n_constraints + units * query.n_cells + np.arange(query.n_cells)[:, np.newaxis]
            constraint.append(np.where(units < 0, -1, ids))
            row_of.append(query.cell_of[active].astype(np.int64)[np.newaxis] + n_rows)
            least = np.where(np.isfinite(bound.lower), np.ceil(bound.lower - 1e-9), 0)
            most = np.where(np.isfinite(bound.upper), np.floor(bound.upper + 1e-9), UNBOUNDED)
            lower.append(least.astype(np.int64).ravel())
            upper.append(most.astype(np.int64).ravel())
            n_rows += query.n_cells
            n_constraints += lower[-1].size
        return WholeBounds(
            np.concatenate(row_of),
            np.concatenate(constraint).astype(np.int64),
            np.concatenate(lower),
            np.concatenate(upper),
        )


def stacked_queries(queries: Sequence[Query], weights: ArrayLike, active: Ints) -> WeightedQueries:
    """The queries one after the other, on some cells of the schema."""
    start = np.zeros(len(queries) + 1, dtype=np.int64)
    np.cumsum([query.n_cells for query in queries], out=start[1:])
    rows = np.zeros((len(queries), active.size), dtype=np.int64)
    for g, query in enumerate(queries):
        np.add(query.cell_of[active], start[g], out=rows[g])
    return WeightedQueries(rows, start, np.asarray(weights, dtype=np.float64))
