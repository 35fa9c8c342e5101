"""The least and the greatest answers that facts allow, each by a linear program over all cells."""

import numpy as np
from scipy.optimize import linprog

from trellis.model.tables.constraints import NO_BOUND, Sense
from trellis.model.tables.queries import parse_query


def answers_by_program(hierarchy, schema, exact, bounds, wanted):
    """For each (level, query): lower and upper of areas x cells, over real tables of the leaves.

    `exact` has by level the exact answers of queries, `bounds` the constraints.
    """
    n_leaves, n_cells = hierarchy.sizes[-1], schema.n_cells

    def row(level, area, query, cell):
        """An answer as weights of the cells of leaves."""
        leaves = np.arange(n_leaves)
        for below in range(hierarchy.leaf_level, level, -1):
            leaves = hierarchy.parents(below)[leaves]
        return np.outer(leaves == area, query.cell_of == cell).astype(float).ravel()

    equal, at_most = [], []
    for level, answers in enumerate(exact):
        for name, values in answers.items():
            query = parse_query(schema, name)
            equal += [(row(level, a, query, k), v) for (a, k), v in np.ndenumerate(values)]
    for c in bounds.linear:
        level, query = hierarchy.index(c.level), parse_query(schema, c.query)
        for (unit, cell), bound in np.ndenumerate(c.bound):
            if bound == NO_BOUND:
                continue
            areas = [unit] if c.group_of is None else np.flatnonzero(c.group_of == unit)
            weights = sum((row(level, a, query, cell) for a in areas), np.zeros(n_leaves * n_cells))
            if c.sense is Sense.EQUAL:
                equal.append((weights, bound))
            else:
                sign = 1 if c.sense is Sense.AT_MOST else -1
                at_most.append((sign * weights, sign * bound))
    most = np.tile(np.where(bounds.impossible, 0.0, np.inf), n_leaves)
    box = np.column_stack([np.zeros(most.size), most])
    program = {"bounds": box}
    for key, rows in (("eq", equal), ("ub", at_most)):
        if rows:
            program |= {
                f"A_{key}": np.array([w for w, _ in rows]),
                f"b_{key}": [b for _, b in rows],
            }
    found = {}
    for level, name in wanted:
        query = parse_query(schema, name)
        shape = (hierarchy.size(level), query.n_cells)
        lower, upper = np.empty(shape), np.empty(shape)
        for area, cell in np.ndindex(shape):
            weights = row(level, area, query, cell)
            low, high = linprog(weights, **program), linprog(-weights, **program)
            assert low.status == 0
            assert high.status in (0, 3)
            lower[area, cell] = low.fun
            upper[area, cell] = -high.fun if high.status == 0 else np.inf
        found[level, name] = lower, upper
    return found
