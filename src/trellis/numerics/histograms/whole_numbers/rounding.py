"""Counts cut down to whole numbers; the units that are missing go to the largest remainders."""

from __future__ import annotations

import numpy as np
from numba import njit

from trellis.numerics.histograms.whole_numbers.weighted_queries import TIE
from trellis.numerics.ties import priority


@njit(nogil=True, cache=True)
def round_cells(x, parent, key, first_index, y):
    """Floors plus largest remainders, cell by cell, for x and y of shape cells x children.

    x is taken to add up to `parent` but for rounding errors. Ties fall by the hash of key and index
    `first_index + cell * children + child`.
    """
    n, width = x.shape
    claim = np.empty(width)
    for j in range(n):
        missing = parent[j]
        for c in range(width):
            y[j, c] = np.int64(np.floor(x[j, c] + TIE))
            missing -= y[j, c]
            claim[c] = x[j, c] - y[j, c]
        if missing == 0:
            continue
        for c in range(width):
            claim[c] += TIE * (priority(key, first_index + j * width + c) / 2.0**64)
        order = np.argsort(claim)
        step = 1 if missing > 0 else -1
        i = 0
        while missing != 0:
            c = order[width - 1 - i % width] if step > 0 else order[i % width]
            i += 1
            # A child without any of the cell gets none while others can take it.
            if (step > 0 and claim[c] < 2 * TIE and i <= width) or (step < 0 and y[j, c] == 0):
                continue
            y[j, c] += step
            missing -= step


@njit(nogil=True, cache=True)
def round_single(queries, x, key):
    """Whole numbers near a single histogram, whose total is rounded as well.

    All queries weigh the same. Units move from the cell whose answers lie highest to the one whose
    answers lie lowest while the squared residuals fall.
    """
    n = x.size
    rows = queries.rows
    n_queries = rows.shape[0]
    y = np.floor(x + TIE).astype(np.int64)
    claim = x - y
    missing = min(n, max(0, np.int64(np.rint(x.sum())) - y.sum()))
    for j in range(n):
        claim[j] += TIE * (priority(key, j) / 2.0**64)
    order = np.argsort(claim)
    up = np.zeros(n, np.bool_)
    for i in range(missing):
        up[order[n - 1 - i]] = True
        y[order[n - 1 - i]] += 1
    e = np.zeros(queries.row_start[-1])
    for g in range(n_queries):
        for j in range(n):
            e[rows[g, j]] += y[j] - x[j]
    score = np.empty(n)
    for _ in range(4 * n):
        score[:] = 0.0
        for g in range(n_queries):
            for j in range(n):
                score[j] += e[rows[g, j]]
        giver, taker = -1, -1
        for j in range(n):
            if up[j]:
                if giver < 0 or score[j] > score[giver]:
                    giver = j
            elif x[j] > y[j] + TIE and (taker < 0 or score[j] < score[taker]):
                taker = j
        if giver < 0 or taker < 0:
            break
        cost = score[taker] - score[giver]
        for g in range(n_queries):
            cost += rows[g, giver] != rows[g, taker]
        if cost >= -TIE:
            break
        up[giver], up[taker] = False, True
        y[giver] -= 1
        y[taker] += 1
        for g in range(n_queries):
            e[rows[g, giver]] -= 1
            e[rows[g, taker]] += 1
    return y
