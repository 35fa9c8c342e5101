"""Fix a marginal of few cells before the rest of a family.

Many small cells that may not be negative push a coarse marginal away from what was measured of it.
A pass fits the marginal on its own, as a family of a coarser histogram, rounds it, and holds it as
a constraint. This helps with few cells; fixing large marginals does harm.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from trellis.estimate.histograms.bounds import FamilyBound, blocked_cells, stack_bounds
from trellis.estimate.histograms.queries import PreparedQueries
from trellis.estimate.histograms.rounding import Rounder
from trellis.model.arrays import Floats, Ints
from trellis.model.queries import Query, is_finer
from trellis.numerics.histograms.least_squares.objective import UNWEIGHTED, Quadratic
from trellis.numerics.histograms.least_squares.solver import solve
from trellis.numerics.histograms.marginals import MarginalTree

FINE = 1e-3
MOST_ITERATIONS = 5000


def coarsened(query: Query, within: Query) -> Query | None:
    """`query` as a query on the cells of `within`; None unless it is coarser."""
    if not is_finer(within, query):
        return None
    cell_of = np.zeros(within.n_cells, dtype=np.int32)
    cell_of[within.cell_of] = query.cell_of
    return replace(query, cell_of=cell_of)


def coarse_information(
    query: Query,
    measured: Sequence[Query],
    values: Sequence[Floats],
    weights: Sequence[Floats],
    n_children: int,
) -> tuple[Floats, Floats]:
    """W and b of the measured queries that are no finer than `query`.

    `values` are children x cells, `weights` broadcast to them.
    """
    precision = np.zeros((query.n_cells, query.n_cells, n_children))
    linear = np.zeros((query.n_cells, n_children))
    for other, z, given in zip(measured, values, weights, strict=True):
        if (coarse := coarsened(other, query)) is not None:
            w, cell_of = np.broadcast_to(given, z.shape), coarse.cell_of
            same = cell_of[:, np.newaxis] == cell_of
            precision += same[:, :, np.newaxis] * w[:, cell_of].T
            linear += (w * z)[:, cell_of].T
    return precision, linear


def fix_marginal(
    query: Query,
    precision: Floats,
    linear: Floats,
    parent: Ints,
    bounds: Sequence[FamilyBound],
    queries: Mapping[str, Query],
    tie_seed: int,
    first_index: int,
) -> FamilyBound | None:
    """Whole answers of the children to `query`, as a bound that holds them.

    None if W is singular: then nothing of its own determines the marginal.
    Minimises 1/2 y' W y - b' y for each child under the bounds of this query and coarser ones;
    `precision` W is cells x cells x children, `linear` b cells x children and `parent` the
    parent's answer.
    """
    n_cells, n_children = linear.shape
    mu = 0.999 * float(np.linalg.eigvalsh(precision.transpose(2, 0, 1))[:, 0].min())
    if mu <= 1e-12 * precision.max():
        return None
    coarse = {b.query: coarsened(queries[b.query], query) for b in bounds}
    own = {name: q for name, q in coarse.items() if q is not None}
    kept = [bound for bound in bounds if bound.query in own]
    maps = [np.arange(n_cells), *(q.cell_of for q in own.values())]
    tree = MarginalTree.of(maps, n_cells, [True] + [False] * len(own))
    place = {position: g for g, position in enumerate(tree.order)}
    prepared = PreparedQueries(
        tuple(own.values()), tree, tuple(place[1 + i] for i in range(len(own)))
    )
    active = np.arange(n_cells)
    stack = tree.restrict(active)
    blocked = blocked_cells(own, kept, active, n_children, None)
    # Cells that the parent does not have stay in, so that W keeps its shape, but hold nothing.
    empty = parent == 0
    blocked = np.zeros((n_cells, n_children), dtype=bool) if not blocked.size else blocked
    total = np.where(empty, np.inf, parent.astype(np.float64))
    blocked[empty] = True
    rows = stack_bounds(prepared, kept, stack, parent.astype(np.float64), active)
    atoms = np.full(len(maps), UNWEIGHTED)
    atoms[place[0]] = n_cells
    quadratic = Quadratic(
        np.zeros(linear.shape),
        np.ascontiguousarray(linear),  # another layout would compile the kernels again
        np.zeros((0, n_children)),
        np.ascontiguousarray(precision.reshape(-1, n_children)),
        np.zeros(len(maps), dtype=np.int64),
        atoms,
    )
    x = np.zeros(linear.shape)
    solve(stack, quadratic, total, blocked, rows, mu, FINE, MOST_ITERATIONS, x)
    y = Rounder([replace(query, cell_of=active.astype(np.int32))], list(own.values())).round(
        active, parent, x, kept, blocked, tie_seed, first_index
    )
    fixed = y.T.astype(np.float64)
    return FamilyBound(query.name, fixed, fixed)
