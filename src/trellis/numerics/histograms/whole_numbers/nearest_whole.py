"""The nearest whole numbers under constraints, by HiGHS: for families that moves cannot repair."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import optimize, sparse

from trellis.model.arrays import Floats, Ints, Marks
from trellis.numerics.feasibility.whole_program import least_whole
from trellis.numerics.histograms.whole_numbers.whole_bounds import WholeBounds


def nearest_whole(
    x: Floats,
    parent: Ints | None,
    bounds: WholeBounds,
    blocked: Marks,
) -> Ints | None:
    """Whole y >= 0 (cells x children) of least |y - x| in sum, or nearly; None if there is none.

    Without a parent the cells' sums are free.

    Written as y = floor + up - down with the floor of x, a price of 1 - 2 f for the first unit up
    over a remainder f, 1 for each further one, and 1 for each unit down.
    """
    n, width = x.shape
    size = x.size
    floors = np.floor(x + 1e-9)
    remainder = np.clip(x - floors, 0, 1)
    price = np.concatenate([1 - 2 * remainder.ravel(), np.ones(2 * size)])
    most_up = np.ones(size)
    if blocked.size:
        most_up[blocked.ravel()] = 0
        floors = np.where(blocked, 0.0, floors)
    more = np.where(most_up > 0, np.inf, 0.0)
    most: Any = np.concatenate([most_up, more, floors.ravel()])

    def signed(matrix: Any) -> Any:
        return sparse.hstack([matrix, matrix, -matrix], format="csr")

    rules = []
    if parent is not None:
        sums = sparse.kron(sparse.eye(n), np.ones((1, width)), format="csr")
        missing: Any = parent - floors.sum(axis=1)
        rules.append(optimize.LinearConstraint(signed(sums), missing, missing))
    if bounds.lower.size:
        which = bounds.constraint[bounds.row_of].reshape(-1)  # layers x cells x children
        variable = np.tile(np.arange(size), bounds.row_of.shape[0])
        inside = which >= 0
        matrix = sparse.csr_matrix(
            (np.ones(inside.sum()), (which[inside], variable[inside])),
            shape=(bounds.lower.size, size),
        )
        have = matrix @ floors.ravel()
        least: Any = bounds.lower - have
        greatest: Any = bounds.upper - have
        rules.append(optimize.LinearConstraint(signed(matrix), least, greatest))
    found = least_whole(price, rules, most)
    if found is None:
        return None
    up, further, down = found.reshape(3, n, width)
    return floors.astype(np.int64) + up + further - down
