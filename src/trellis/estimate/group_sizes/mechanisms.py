r"""From noisy tables of group sizes to whole ones: the mechanisms a spec can name.

All share one signature. `noisy` holds one array of whole numbers per level, root first:

- `histogram` mechanisms: n_0 .. n_N, the groups of each size, areas x sizes;
- `cumulative` mechanisms: c_0 .. c_{N-1}, the groups of at most each size, areas x (sizes - 1).
  c_N is the number of groups of the area. It is public, is not measured, and comes from `groups`.

`groups` are the public numbers of groups by leaf. Histogram mechanisms use their sum only.
`weights` say how much each level counts in sums of squares; the best are the reciprocals of the
noise's variances, and equal ones the default. The answer holds whole numbers of groups, areas x
sizes, per level.

Reference: Fioretto, Van Hentenryck and Zhu, Artificial Intelligence 2021, arXiv:2006.15673, for all
but `cumulative_joint`; M_H and M_c are their names, with superscript r for relaxed, dp for exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from trellis.errors import StructureError
from trellis.estimate.group_sizes import checks
from trellis.estimate.group_sizes.joint import fit_cumulative
from trellis.estimate.group_sizes.least_squares import least_squares
from trellis.model import Hierarchy
from trellis.model.arrays import Ints
from trellis.model.plans.kinds.group_sizes import (
    DEFAULT_SIZE_METHOD,
    SIZE_METHODS,
)
from trellis.numerics.group_sizes.error_diffusion import diffuse_errors
from trellis.numerics.group_sizes.isotonic import isotonic_whole_rows
from trellis.numerics.ties import tie_key
from trellis.privacy.group_size_changes import SizeQuery

GRID = 2**16
"""The relaxed histogram is found as a whole-number problem in units of 1 / GRID of a group."""

LARGEST_RELAXED = 2**40

Weights = Sequence[checks.Weight]


class PostProcessing(Protocol):
    """From noisy tables to whole ones; the same seed gives the same answer."""

    def __call__(
        self,
        hierarchy: Hierarchy,
        noisy: Sequence[ArrayLike],
        groups: ArrayLike,
        weights: Weights | None = None,
        *,
        tie_seed: int = 0,
    ) -> list[Ints]: ...


@dataclass(frozen=True, slots=True)
class GroupSizeMechanism:
    """What to measure, and what to make of it.

    `adds_up`: children add up to their parents and the root to the number of groups, always.
    `keeps_groups`: so does every area to its own public number of groups.
    """

    query: SizeQuery
    post_process: PostProcessing
    adds_up: bool
    keeps_groups: bool


def histogram_relaxed(
    hierarchy: Hierarchy,
    noisy: Sequence[ArrayLike],
    groups: ArrayLike,
    weights: Weights | None = None,
    *,
    tie_seed: int = 0,
) -> list[Ints]:
    """M_H^r: least squares over real counts, each rounded; they no longer add up.

    For comparison only. The real optimum is found to 1 / 65,536 of a group.
    """
    coarse = checks.noisy_tables(hierarchy, noisy)
    total = int(checks.group_counts(hierarchy, groups).sum())
    exact = checks.level_weights(hierarchy, weights)
    if max(coarse.largest) > LARGEST_RELAXED:
        raise StructureError("Noisy counts beyond 2^40 are too large for the relaxed method.")
    fine = checks.NoisyTables(
        [table * GRID for table in coarse.tables], [GRID * most for most in coarse.largest]
    )
    fitted = least_squares(hierarchy, fine, total * GRID, exact, tie_seed)
    return [(values + GRID // 2) // GRID for values in fitted]


def histogram_exact(
    hierarchy: Hierarchy,
    noisy: Sequence[ArrayLike],
    groups: ArrayLike,
    weights: Weights | None = None,
    *,
    tie_seed: int = 0,
) -> list[Ints]:
    """M_H^dp: the exact whole-number least squares; see `solve`."""
    checked = checks.noisy_tables(hierarchy, noisy)
    total = int(checks.group_counts(hierarchy, groups).sum())
    exact = checks.level_weights(hierarchy, weights)
    return least_squares(hierarchy, checked, total, exact, tie_seed)


def cumulative_relaxed(
    hierarchy: Hierarchy,
    noisy: Sequence[ArrayLike],
    groups: ArrayLike,
    weights: Weights | None = None,
    *,
    tie_seed: int = 0,  # noqa: ARG001 - no ties in real numbers
) -> list[Ints]:
    """M_c^r: joint least squares over real cumulative counts, each rounded; for comparison only.

    Every row is monotone, so no count is negative, and ends at its area's number of groups. Areas
    no longer add up.
    """
    tables, leaf_groups, exact = _cumulative_input(hierarchy, noisy, groups, weights)
    fit = fit_cumulative(hierarchy, tables, leaf_groups, exact)
    whole = [np.floor(values + 0.5).astype(np.int64) for values in fit.monotone]
    return _histograms(whole, hierarchy.sum_up(leaf_groups))


def cumulative_exact(
    hierarchy: Hierarchy,
    noisy: Sequence[ArrayLike],
    groups: ArrayLike,
    weights: Weights | None = None,
    *,
    tie_seed: int = 0,
) -> list[Ints]:
    """M_c^dp: each area's row made monotone and whole, differenced, then `histogram_exact`.

    The rows are optimal one by one, not jointly. The last step moves single groups between sizes
    without regard to their order, so cumulative counts drift: the earth mover's distance suffers.
    Areas keep their sum over all areas, not their own numbers of groups.
    """
    tables, leaf_groups, exact = _cumulative_input(hierarchy, noisy, groups, weights)
    key, first_index = tie_key(tie_seed), 0
    monotone, totals = [np.empty_like(table) for table in tables], hierarchy.sum_up(leaf_groups)
    for table, total, out in zip(tables, totals, monotone, strict=True):
        isotonic_whole_rows(table, total, key, first_index, out)
        first_index += table.size
    rows = checks.NoisyTables(_histograms(monotone, totals), [int(t.max()) for t in totals])
    return least_squares(hierarchy, rows, int(leaf_groups.sum()), exact, tie_seed)


def cumulative_joint(
    hierarchy: Hierarchy,
    noisy: Sequence[ArrayLike],
    groups: ArrayLike,
    weights: Weights | None = None,
    *,
    tie_seed: int = 0,  # noqa: ARG001 - errors are passed on, not drawn
) -> list[Ints]:
    """The default: joint least squares of cumulative counts, whole by error diffusion.

    All areas are fitted together under all conditions at once; see `monotone_least_squares` and
    `error_diffusion`. Everything adds up, and every area has its public number of groups, also if
    the fit stops short of its tolerance.
    """
    tables, leaf_groups, exact = _cumulative_input(hierarchy, noisy, groups, weights)
    fit = fit_cumulative(hierarchy, tables, leaf_groups, exact, workers=None)
    whole = np.empty(tables[-1].shape, np.int64)
    diffuse_errors(fit.adding_up[-1], leaf_groups, whole)
    return hierarchy.sum_up(_histograms([whole], [leaf_groups])[0])


_POST_PROCESSING: dict[str, PostProcessing] = {
    "histogram_relaxed": histogram_relaxed,
    "histogram_exact": histogram_exact,
    "cumulative_relaxed": cumulative_relaxed,
    "cumulative_exact": cumulative_exact,
    "cumulative_joint": cumulative_joint,
}

MECHANISMS: dict[str, GroupSizeMechanism] = {
    name: GroupSizeMechanism(m.query, _POST_PROCESSING[name], m.adds_up, m.keeps_groups)
    for name, m in SIZE_METHODS.items()
}

DEFAULT_MECHANISM = DEFAULT_SIZE_METHOD


# -- parts ----------------------------------------------------------------------------------------


def _cumulative_input(
    hierarchy: Hierarchy, noisy: Sequence[ArrayLike], groups: ArrayLike, weights: Weights | None
) -> tuple[list[Ints], Ints, list[Fraction]]:
    checked = checks.noisy_tables(hierarchy, noisy)
    if max(checked.largest) * checked.n_columns**2 >= 2**62:
        raise StructureError("Noisy cumulative counts are too large for exact 64-bit arithmetic.")
    exact = checks.level_weights(hierarchy, weights)
    return checked.tables, checks.group_counts(hierarchy, groups), exact


def _histograms(cumulative: Sequence[Ints], totals: Sequence[Ints]) -> list[Ints]:
    """Counts by size from cumulative ones and the areas' numbers of groups."""
    return [
        np.diff(np.column_stack([rows, total]), axis=1, prepend=0)
        for rows, total in zip(cumulative, totals, strict=True)
    ]
