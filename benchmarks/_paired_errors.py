"""Errors of histograms of the generated state, and ratios of them in paired runs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from _generated_state import LEVELS, SCHEMA, State
from numpy.typing import NDArray

from trellis.model.tables.queries import parse_query
from trellis.model.tables.sparse_counts import SparseCounts

SHOWN = ("total", "hispanic * cenrace", "votingage", "hhgq", "detailed")


def mean_absolute_errors(counts: Sequence[SparseCounts], state: State) -> NDArray[np.float64]:
    """Levels x queries."""
    out = np.zeros((len(LEVELS), len(SHOWN)))
    for level in range(len(LEVELS)):
        n_nodes = state.hierarchy.sizes[level]
        for first in range(0, n_nodes, 4096):
            last = min(first + 4096, n_nodes)
            miss = counts[level].dense(first, last) - state.truth[level][first:last]
            for i, name in enumerate(SHOWN):
                query = parse_query(SCHEMA, name)
                answer = query.answer(miss)
                out[level, i] += np.abs(answer).sum() / (n_nodes * query.n_cells)
    return out


def print_ratios(
    new: NDArray[np.float64], old: NDArray[np.float64], last_column: dict[str, float] | None = None
) -> None:
    """Mean of `new` over mean of `old` (runs x levels x queries), +- 2 paired standard errors."""
    print(f"{'':<13}" + "".join(f"{name:>22}" for name in SHOWN))
    for level, name in enumerate(LEVELS):
        row = f"{name:<13}"
        for i in range(len(SHOWN)):
            a, b = new[:, level, i], old[:, level, i]
            if b.mean() == 0:
                row += f"{'exact':>22}"
                continue
            ratio = a.mean() / b.mean()
            spread = np.std(a - ratio * b, ddof=1) / b.mean() / np.sqrt(len(a))
            row += f"{ratio:>14.3f} +-{2 * spread:>5.3f}"
        print(row + f"{(last_column or {}).get(name, ''):>14}")
