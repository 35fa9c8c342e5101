"""Constraints of one family in the form that solver and rounding take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from trellis.errors import Infeasible
from trellis.estimate.histograms.queries import PreparedQueries
from trellis.model.arrays import Floats, Ints, Marks
from trellis.model.tables.queries import Query
from trellis.numerics.histograms.least_squares.objective import Bounds
from trellis.numerics.histograms.marginals import Stack
from trellis.numerics.histograms.whole_numbers.whole_bounds import WholeBounds

UNBOUNDED = np.iinfo(np.int64).max // 4


@dataclass(frozen=True, slots=True, eq=False)
class FamilyBound:
    """Least and greatest answers of a query: children (or groups of children) x its cells.

    Minus infinity (or 0) and infinity bind nothing; equal bounds fix an answer. `group_of` has one
    group for each child, -1 for a child in none; answers of a group are added up.
    """

    query: str
    lower: Floats
    upper: Floats
    group_of: Ints | None = None


def blocked_cells(
    queries: Mapping[str, Query],
    given: Sequence[FamilyBound],
    active: Ints,
    n_children: int,
    impossible: Marks | None,
) -> Marks:
    """Cells x children that must hold nothing; empty if there are none.

    An answer that can only be 0 empties all its cells, which costs nothing, where a constraint
    would have to be approached.
    """
    blocked = np.zeros((active.size, n_children), dtype=bool)
    if impossible is not None:
        blocked |= np.broadcast_to(impossible, (n_children, impossible.shape[-1]))[:, active].T
    for bound in given:
        cell_of = queries[bound.query].cell_of[active]
        if bound.group_of is None:
            blocked |= (bound.upper <= 0)[:, cell_of].T
        else:
            member = bound.group_of >= 0
            empty = (bound.upper <= 0)[bound.group_of[member]]
            blocked[:, member] |= empty[:, cell_of].T
    return blocked if blocked.any() else blocked[:0]


def stack_bounds(
    prepared: PreparedQueries,
    given: Sequence[FamilyBound],
    stack: Stack,
    parent: Floats,
    active: Ints,
) -> Bounds:
    """The bounds that bind, as constraints on rows of the stack.

    Raises where a query's answer for the parent cannot be shared out at all.
    """
    rows, sizes, children, lowers, uppers = [], [], [], [], []
    for bound in given:
        index = prepared.index(bound.query)
        query = prepared.queries[index]
        place = stack.rows(prepared.marginal_of[index])
        full_row = stack.full_row[place]
        totals = np.zeros(query.n_cells)
        np.add.at(totals, query.cell_of[active], parent)
        lower, upper = np.maximum(bound.lower, 0.0), bound.upper
        _check_totals(bound, lower, upper, totals, query.name)
        greatest = np.minimum(upper, totals)
        binds = ((lower > 0) | (upper < totals)) & (greatest > 0)  # the rest is blocked
        members = _members(bound, len(lower))
        unit, k = np.nonzero(binds[:, full_row])
        rows.append(place.start + k)
        sizes += [members[u].size for u in unit]
        children += [members[u] for u in unit]
        lowers.append(lower[unit, full_row[k]])
        uppers.append(greatest[unit, full_row[k]])
    whole, real = np.zeros(0, dtype=np.int64), np.zeros(0)
    return Bounds(
        np.concatenate([whole, *rows]),
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        np.concatenate([whole, *children]),
        np.concatenate([real, *lowers]),
        np.concatenate([real, *uppers]),
    )


def whole_bounds(
    queries: Mapping[str, Query], given: Sequence[FamilyBound], active: Ints, n_children: int
) -> WholeBounds:
    """The bounds on whole counts of the active cells."""
    row_of = [np.zeros((0, active.size), dtype=np.int64)]
    constraint = [np.zeros((0, n_children), dtype=np.int64)]
    lower, upper = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    n_rows = n_constraints = 0
    for bound in given:
        query = queries[bound.query]
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


def _members(bound: FamilyBound, n_units: int) -> list[Ints]:
    if bound.group_of is None:
        return [np.array([child]) for child in range(n_units)]
    return [np.flatnonzero(bound.group_of == group) for group in range(n_units)]


def _check_totals(
    bound: FamilyBound, lower: Floats, upper: Floats, totals: Floats, name: str
) -> None:
    """The children's bounds must leave room for the parent's answer, and not ask for more."""
    if (crossed := lower > upper).any():
        child, k = np.argwhere(crossed)[0]
        raise Infeasible(
            f"Query {name!r}, cell {k}: child {child} must hold at least {lower[child, k]:g} and "
            f"at most {upper[child, k]:g}."
        )
    covers_all = bound.group_of is None or (bound.group_of >= 0).all()
    greatest = upper.sum(axis=0) if covers_all else np.full(totals.size, inf)
    too_many = lower.sum(axis=0) > totals
    too_few = (greatest < totals) & (totals < inf)  # the root takes what it can hold
    for problem, wrong in (("at least", too_many), ("at most", too_few)):
        if wrong.any():
            k = int(np.argmax(wrong))
            need = (lower.sum(axis=0) if problem == "at least" else greatest)[k]
            raise Infeasible(
                f"Query {name!r}, cell {k}: the children together must hold {problem} {need:g}, "
                f"but their parent has {totals[k]:g}."
            )
