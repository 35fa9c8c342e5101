r"""Promises about whole counts: each family is the nearest one that adds up to its parent.

The methods minimise sum_c w_c (y_c - x_c)^2 over whole y >= 0 with a given sum, family by family
and cell by cell. Unit k of a child costs w (2 k - 1 - 2 x), more than the unit before it. So y is
optimal if and only if no unit that was taken costs more than one that was not.

Where x are whole and weights equal, costs are whole numbers, and ties between them are broken by
`ties`: there, y is the only answer. Where x are real numbers, any optimum up to rounding is
accepted.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trellis.verify.counts.families import Families, sums_up
from trellis.verify.counts.linear import LevelFit, level_fits
from trellis.verify.counts.measured_tree import MeasuredTree, measured_tree
from trellis.verify.counts.recomputed import estimated, is_too_old, on_tree
from trellis.verify.counts.ties import ranks
from trellis.verify.files.run_files import RunFiles

ROUNDING = 1e-9
"""Real numbers this near to a whole number and a half may have been rounded either way."""


def whole_counts(run: RunFiles) -> Iterator[str]:
    """Whole counts are the nearest to the estimates that add up, family by family."""
    if not run.is_whole or is_too_old(run):
        return
    tree = measured_tree(run)
    leaves = estimated(run, run.levels[-1].name, "count")
    for level, sums in zip(run.levels, sums_up(Families.of(run.levels), leaves), strict=True):
        if not np.array_equal(estimated(run, level.name, "count"), sums):
            yield f"estimated counts of level {level.name} are not sums of the leaves"
    if run.plan["method"] == "bottomup":
        yield from _from_leaves(run, tree, leaves)
        return
    counts = on_tree(run, tree, "count")
    if run.plan["method"] == "topdown":
        fits = [_as_measured(tree, index) for index in range(len(counts))]
    else:
        fits = level_fits(tree, on_tree(run, tree, "centre"))
    for fit in fits:
        if not _is_nearest(run, tree, fit, counts[fit.index]):
            yield f"counts of level {tree.names[fit.index]} are not the nearest to the estimates"


def _as_measured(tree: MeasuredTree, index: int) -> LevelFit:
    """Counts go by what was measured on the level itself."""
    values = tree.values[index]
    return LevelFit(index, True, values, tree.variance[index], np.zeros_like(values))


def _is_nearest(run: RunFiles, tree: MeasuredTree, fit: LevelFit, counts: np.ndarray) -> bool:
    if not fit.index:
        return _is_root(run, tree, fit, counts)
    is_exact, weight = fit.variance == 0, _weights(fit.variance)
    if (np.abs(counts - fit.subtree)[is_exact] > ROUNDING * (1 + counts[is_exact])).any():
        return False
    whole = _is_whole_level(run, tree, fit)
    n_nodes = sum(map(len, tree.values))
    first = sum(map(len, tree.values[: fit.index]))
    for cell in range(counts.shape[1]):
        x, slack = fit.subtree[:, cell], fit.slack[:, cell]
        index = first + cell * n_nodes + np.arange(len(counts)) if whole else None
        if whole:
            x, slack, weight = np.rint(x), np.zeros(len(x)), np.ones(len(x))
        if not is_cheapest(
            tree.families[fit.index - 1], (x, slack, weight), counts[:, cell], is_exact,
            None if index is None else ranks(run.identity["tie_seed"], index),
        ):  # fmt: skip
            return False
    return True


def _is_root(run: RunFiles, tree: MeasuredTree, fit: LevelFit, counts: np.ndarray) -> bool:
    """The nearest whole numbers, or those with the exact sum of the cells."""
    x, slack, y = fit.subtree[0], fit.slack[0] + ROUNDING, counts[0]
    if tree.root_sum is None:
        return bool((np.abs(y - np.maximum(x, 0)) <= np.where(x < 0, 0, 0.5) + slack).all())
    whole = run.plan["method"] == "topdown"
    tie = ranks(run.identity["tie_seed"], np.arange(y.size)) if whole else None
    numbers = x, np.zeros(y.size) if whole else slack, np.ones(y.size)
    one = Families(np.zeros(y.size, dtype=np.int64), tree.names[0])
    is_free = np.zeros(y.size, dtype=bool)
    return y.sum() == tree.root_sum and is_cheapest(one, numbers, y, is_free, tie)


def _from_leaves(run: RunFiles, tree: MeasuredTree, leaves: np.ndarray) -> Iterator[str]:
    """What was measured on leaves, without negative numbers; all cells below an exact total."""
    values = tree.values[-1]
    exact = run.plan["unprotected_totals"]
    if not exact:
        if not np.array_equal(leaves, np.maximum(values, 0)):
            yield "counts of the leaves are not what was measured"
        return
    area = np.arange(len(leaves))
    for family in reversed(tree.families[len(exact) - 1 :]):
        area = family.parent[area]
    families = Families(np.repeat(area, values.shape[1]), tree.names[-1])
    x, y = values.ravel(), leaves.ravel()
    numbers, is_free = (x, np.zeros(y.size), np.ones(y.size)), np.zeros(y.size, dtype=bool)
    tie = ranks(run.identity["tie_seed"], np.arange(y.size))
    if not is_cheapest(families, numbers, y, is_free, tie):
        yield "counts of the leaves are not the nearest to what was measured"


def is_cheapest(
    families: Families,
    numbers: tuple[np.ndarray, np.ndarray, np.ndarray],
    counts: np.ndarray,
    is_fixed: np.ndarray,
    tie: np.ndarray | None,
) -> bool:
    """Whether no unit that was taken costs more than one that was not, family by family.

    `numbers` are values, their slack and their weights. With `tie`, costs are exact, and of units
    of equal cost those with the least ranks must have been taken.
    """
    value, slack, weight = numbers
    doubt = 2 * weight * slack
    taken = np.where(is_fixed | (counts == 0), -np.inf, weight * (2 * (counts - value) - 1) - doubt)
    left = np.where(is_fixed, np.inf, weight * (2 * (counts - value) + 1) + doubt)
    dearest, cheapest = families.most(taken), families.least(left)
    if (dearest > cheapest).any():
        return False
    if tie is None:
        return True
    ends = dearest[families.parent], cheapest[families.parent]
    is_last = (taken == ends[0]) & (ends[0] == ends[1]) & np.isfinite(taken)
    is_next = (left == ends[1]) & (ends[0] == ends[1]) & np.isfinite(left)
    last = families.most(np.where(is_last, tie, np.uint64(0)))
    following = families.least(np.where(is_next, tie, np.uint64(2**64 - 1)))
    return not (last > following).any()


def _weights(variance: np.ndarray) -> np.ndarray:
    """Precisions; an unmeasured child takes what the others leave, at no cost."""
    return np.divide(1.0, variance, out=np.zeros_like(variance), where=variance > 0)


def _is_whole_level(run: RunFiles, tree: MeasuredTree, fit: LevelFit) -> bool:
    """Whether the values are whole and, where they are not exact, all measured equally well."""
    if run.plan["method"] == "topdown":
        return True
    variance = fit.variance[fit.variance > 0]
    is_leaf = fit.index == len(tree.values) - 1
    return is_leaf and bool(np.isfinite(variance).all()) and np.unique(variance).size <= 1
