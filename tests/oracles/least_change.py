"""The best table of a family under edit rules, by an exact integer program (HiGHS)."""

from __future__ import annotations

import numpy as np
from scipy import optimize, sparse

from oracles.edit_rules import SlowFamily


def least_change(family: SlowFamily, parent, known, bounds=(), impossible=None):
    """Fewest broken rules and least objective over all tables that keep what `family.y` keeps.

    `family.x` and `family.y` are children x cells. Each answer is a whole number, so its squared
    residual is the sum of steps of one unit whose prices grow: the program with these steps is
    exact. Residuals of 20 and more take steps of a tenth of them, which are dearer by at most
    1/400, so that the table found is as near to the best one, and as `GAP`. A `known` table that is
    allowed bounds the answers, because no residual of a better one can exceed the root of its
    objective. `bounds` are triples of a matrix, lower and upper answers of children x rows.
    """
    program = _Program(family, parent, known, bounds, impossible)
    fewest = round(program.solve(program.broken_price).fun)
    if fewest == len(family.broken(known)):
        program.keep_below(family.objective(known))
    found = program.solve(program.distance_price, most_broken=fewest)
    y = np.rint(found.x[: known.size]).astype(np.int64).reshape(known.shape)
    assert len(family.broken(y)) == fewest
    return fewest, family.objective(y), y


GAP = 1e-3
"""Part of the cost by which the program may miss its own best."""


def _breakpoints(wanted, first, last):
    """Whole numbers from first to last, every one near `wanted`."""
    low = high = min(max(int(wanted), first), last)
    out = [low]
    while low > first or high < last:
        if low > first:
            low = max(first, low - max(1, int(wanted - low) // 10))
            out.insert(0, low)
        if high < last:
            high = min(last, high + max(1, int(high - wanted) // 10))
            out.append(high)
    return np.array(out)


class _Program:
    """Columns: y (children x cells), whether a rule is kept by nobody, whether broken, steps."""

    def __init__(self, family, parent, known, bounds, impossible):
        self.family, self.shape = family, known.shape
        n_children, n_cells = known.shape
        self.n_pairs = len(family.rules) * n_children
        self.first_step = known.size + 2 * self.n_pairs
        self.rows, self.lower, self.upper = [], [], []
        self.top = np.inf
        for j in range(n_cells):
            self._row({c * n_cells + j: 1.0 for c in range(n_children)}, parent[j], parent[j])
        for q, least, most in bounds:
            for c, k in np.ndindex(n_children, len(q)):
                columns = {c * n_cells + j: 1.0 for j in np.flatnonzero(q[k])}
                self._row(columns, least[c, k], most[c, k])
        for r, (given, needed) in enumerate(family.rules):
            for c in range(n_children):
                present = known.size + r * n_children + c
                broken = present + self.n_pairs
                size = float(parent[given].sum())
                has = {c * n_cells + j: 1.0 for j in np.flatnonzero(given)}
                self._row({**has, present: -size}, -np.inf, 0)
                needs = {c * n_cells + j: 1.0 for j in np.flatnonzero(needed)}
                self._row({**needs, present: -1.0, broken: 1.0}, 0, np.inf)
        most = np.tile(parent, n_children).astype(float)
        if impossible is not None:
            most[np.asarray(impossible).ravel()] = 0
        may_break = np.zeros((len(family.rules), n_children))
        for c, r in family.broken(family.y):
            may_break[r, c] = 1
        self.most = np.concatenate([most, np.ones(self.n_pairs), may_break.ravel()])

    def _row(self, columns, lower, upper):
        self.rows.append(columns)
        self.lower.append(lower)
        self.upper.append(upper)

    @property
    def broken_price(self):
        return np.repeat([0.0, 1.0], [self.first_step - self.n_pairs, self.n_pairs])

    def keep_below(self, objective):
        self.top = objective

    @property
    def distance_price(self):
        """Adds the steps of every answer; call it last."""
        family, (n_children, n_cells) = self.family, self.shape
        price, lengths, column = [], [], self.first_step
        for q, weight in zip(family.matrices, family.weights, strict=True):
            for c, k in np.ndindex(n_children, len(q)):
                wanted = float(q[k] @ family.x[c])
                cells = np.flatnonzero(q[k])
                size = int(sum(self.most[c * n_cells + j] for j in cells))
                reach = np.sqrt(self.top / weight) + 1e-6
                ends = int(max(0, np.ceil(wanted - reach))), int(min(size, wanted + reach))
                at = _breakpoints(wanted, *ends)
                price += list(weight * np.diff((at - wanted) ** 2) / np.diff(at))
                lengths += list(np.diff(at))
                columns = {c * n_cells + j: 1.0 for j in cells}
                columns |= {column + i: -1.0 for i in range(at.size - 1)}
                self._row(columns, at[0], at[0])
                column += at.size - 1
        self.most = np.concatenate([self.most, lengths])
        return np.concatenate([np.zeros(self.first_step), price])

    def solve(self, price, most_broken=None):
        rows = [(i, j, v) for i, row in enumerate(self.rows) for j, v in row.items()]
        i, j, v = (np.array(part) for part in zip(*rows, strict=True))
        a = sparse.csr_array((v, (i, j)), shape=(len(self.rows), price.size))
        constraints = [optimize.LinearConstraint(a, np.array(self.lower), np.array(self.upper))]
        if most_broken is not None:
            chosen = np.zeros((1, price.size))
            chosen[0, self.first_step - self.n_pairs : self.first_step] = 1
            constraints.append(optimize.LinearConstraint(chosen, 0, most_broken))
        n_steps = price.size - self.first_step
        whole = np.repeat([1, 0], [self.first_step, n_steps])
        found = optimize.milp(
            price, constraints=constraints, integrality=whole, bounds=optimize.Bounds(0, self.most),
            options={"mip_rel_gap": GAP},
        )  # fmt: skip
        assert found.status == 0, found.message
        return found
