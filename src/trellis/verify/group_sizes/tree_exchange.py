r"""Whether whole tables on a tree are the nearest ones that add up: no unit is better elsewhere.

    minimise   sum over nodes r and sizes s of w_r (n_rs - y_rs)^2
    over       whole n >= 0 that add up over the tree, with a given sum over all sizes.

The objective is a sum of convex functions of sums over nested sets of leaves. For such a function
(laminar, and so M-convex; Murota, "Discrete Convex Analysis", 2003) a table is optimal if and only
if no move of one unit from one leaf and size to another improves it. A move changes the nodes on
both paths up to where they meet. So, from the leaves up, the cheapest way to add a unit below a
node and the cheapest way to take one away must not gain together; at the top, for any two sizes.

If both ways go through one child, what they cost at that child is counted twice, and that is never
less: adding a unit and taking it away again costs 2 w.
"""

from __future__ import annotations

import numpy as np

from trellis.verify.counts.families import Families


def is_nearest(
    families: list[Families], noisy: list[np.ndarray], counts: list[np.ndarray], weights: list[int]
) -> bool:
    """By level, root first: nodes x sizes of whole numbers, and one whole weight for each level."""
    add = take = np.zeros((1, 1), dtype=np.int64)
    never = np.int64(1 << 61)
    for index in reversed(range(len(counts))):
        level, weight = counts[index], np.int64(weights[index])
        gap = 2 * (level - noisy[index])
        is_leaf = index == len(counts) - 1
        add = weight * (gap + 1) + (0 if is_leaf else add)
        take = weight * (1 - gap) + (0 if is_leaf else take)
        take = np.where(level > 0, take, never)
        if index:
            add, take = families[index - 1].least(add), families[index - 1].least(take)
            if (add + take < 0).any():
                return False
    return int(add.min()) + int(take.min()) >= 0


def prices_fit(noisy: list[np.ndarray], counts: list[np.ndarray], weights: list[int]) -> bool:
    """Whether all costs are exact in 64 bits."""
    largest = [
        2 * (int(np.abs(y).max(initial=0)) + int(np.abs(n).max(initial=0))) + 1
        for y, n in zip(noisy, counts, strict=True)
    ]
    return sum(w * most for w, most in zip(weights, largest, strict=True)) < 1 << 60
