"""Operators that are written on marginals, applied to histograms and to answers of queries."""

from __future__ import annotations

import numpy as np
from numba import njit

from trellis.numerics.histograms.fastmath import REORDER
from trellis.numerics.histograms.marginals import add_up, hand_down


@njit(nogil=True, cache=True, fastmath=REORDER)
def apply_written(stack, atoms, starts, whole, written, which, x, rows, out):
    """Operator `which[c]` on column c of x, into `out`; `rows` is work space."""
    width = x.shape[1]
    if whole >= 0:
        for j in range(x.shape[0]):
            for c in range(width):
                out[j, c] = written[whole, which[c]] * x[j, c]
    add_up(stack, x, rows)
    for g in range(atoms.size):
        n_atoms = atoms[g]
        plain = np.empty((n_atoms, width))
        for k in range(stack.row_start[g], stack.row_start[g + 1], n_atoms):
            plain[:] = rows[k : k + n_atoms]
            rows[k : k + n_atoms] = 0.0
            for a in range(n_atoms):
                for b in range(n_atoms):
                    entry = starts[g] + a * n_atoms + b
                    for c in range(width):
                        rows[k + a, c] += written[entry, which[c]] * plain[b, c]
    hand_down(stack, rows, out)


@njit(nogil=True, cache=True, fastmath=REORDER)
def add_gain(stack, atoms, starts, targets, whole, written, which, values, own, rows, out):
    """Add the weighted marginals of one query's spread answers to `rows`, and cells to `out`."""
    width = which.size
    if whole >= 0:
        for j in range(values.shape[0]):
            for c in range(width):
                out[j, c] += written[whole, which[c]] * values[j, c]
    add_up(stack, values, own)
    for g in range(atoms.size):
        n_atoms = atoms[g]
        for k in range(0, stack.row_start[g + 1] - stack.row_start[g], n_atoms):
            for a in range(n_atoms):
                for b in range(n_atoms):
                    entry = starts[g] + a * n_atoms + b
                    for c in range(width):
                        rows[targets[g] + k + a, c] += (
                            written[entry, which[c]] * own[stack.row_start[g] + k + b, c]
                        )
