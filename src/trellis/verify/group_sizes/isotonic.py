"""Isotonic regression of many rows at once, by pooling neighbours that are in the wrong order."""

from __future__ import annotations

import numpy as np


def pooled(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For each number of each row: sum, size and first place of the block that it ends up in.

    The mean of a block is the nearest non-decreasing sequence there. Whole numbers are added and
    compared exactly. Blocks of equal mean are pooled too.
    """
    n_rows, width = rows.shape
    sums, sizes = np.zeros_like(rows), np.zeros(rows.shape, dtype=np.int64)
    height = np.zeros(n_rows, dtype=np.int64)  # blocks so far
    for column in rows.T:
        total, size = column.copy(), np.ones(n_rows, dtype=np.int64)
        falls = np.arange(n_rows)
        while True:
            falls = falls[height[falls] > 0]
            top = height[falls] - 1
            falling = sums[falls, top] * size[falls] >= total[falls] * sizes[falls, top]
            falls, top = falls[falling], top[falling]
            if not falls.size:
                break
            total[falls] += sums[falls, top]
            size[falls] += sizes[falls, top]
            height[falls] = top
        sums[np.arange(n_rows), height], sizes[np.arange(n_rows), height] = total, size
        height += 1
    is_block = np.arange(width) < height[:, np.newaxis]
    length = sizes[is_block]
    first = np.cumsum(length) - length
    blocks = (np.repeat(values, length) for values in (sums[is_block], length, first % width))
    sums, sizes, first = (values.reshape(rows.shape) for values in blocks)
    return sums, sizes, first


def nearest_rows(rows: np.ndarray, most: np.ndarray) -> np.ndarray:
    """The nearest non-decreasing real rows within 0 .. `most`, one number for each row."""
    sums, sizes, _ = pooled(rows)
    return np.clip(sums / sizes, 0.0, most[:, np.newaxis])
