"""The promise about published tables of group sizes: they are what the method makes of the noise.

`histogram_exact` is shown to be optimal, and so is the last step of `cumulative_exact`, after rows
that are made again; of several optima, any is accepted. The two relaxed methods and
`cumulative_joint` are fitted again, and every number must be a rounding of the fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import gcd, lcm

import numpy as np

from trellis.verify.counts.families import Families, sums_up
from trellis.verify.counts.measured_tree import exact_totals, plain_tree
from trellis.verify.counts.recomputed import estimated, is_too_old
from trellis.verify.counts.ties import ranks
from trellis.verify.files.run_files import RunFiles
from trellis.verify.group_sizes.isotonic import nearest_rows, pooled
from trellis.verify.group_sizes.joint_fit import Forest, fits
from trellis.verify.group_sizes.real_optimum import real_optimum
from trellis.verify.group_sizes.tree_exchange import is_nearest, prices_fit

MOST_SOLVED = 1 << 16
"""Numbers on all levels up to which the relaxed histogram is solved again."""

MOST_STEPS = 1 << 27
"""Rounds of the joint fit times numbers on all levels."""

_GRID = 1e-3
"""The relaxed histogram is found on a grid, by promise to 1 / 65,536 of a group."""

Tables = list[np.ndarray]


@dataclass(frozen=True, slots=True, eq=False)
class Sizes:
    """By level, root first: what was measured, published counts, public numbers of groups."""

    run: RunFiles
    families: list[Families]
    noisy: Tables
    counts: Tables
    groups: Tables
    weights: list[Fraction]

    @classmethod
    def of(cls, run: RunFiles) -> Sizes:
        tree, exact = plain_tree(run), exact_totals(run)
        return cls(
            run,
            tree.families,
            [values.astype(np.int64) for values in tree.values],
            [estimated(run, level.name, "count").astype(np.int64) for level in run.levels],
            [exact[level.name][:, 0] for level in run.levels],
            [Fraction(weight) for weight in run.plan["weights"]],
        )

    @property
    def n_numbers(self) -> int:
        return sum(table.size for table in self.counts)

    @property
    def whole_weights(self) -> list[int]:
        """In the same ratios."""
        common = lcm(*(weight.denominator for weight in self.weights))
        whole = [int(weight * common) for weight in self.weights]
        return [weight // gcd(*whole) for weight in whole]


def fitted_sizes(run: RunFiles) -> Iterator[str]:
    """Tables of group sizes are what the method makes of the measurements."""
    if is_too_old(run):
        return
    sizes, method = Sizes.of(run), run.plan["method"]
    if run.adds_up:
        for level, table, sums in zip(
            run.levels, sizes.counts, sums_up(sizes.families, sizes.counts[-1]), strict=True
        ):
            if not np.array_equal(table, sums):
                yield f"estimated counts of level {level.name} are not sums of the leaves"
    if not _METHODS[method](sizes):
        yield f"counts are not those that {method} makes of the measurements"


def _too_large(sizes: Sizes) -> bool:
    """What is not computed again passes, and is noted."""
    sizes.run.notes.append(f"Not computed again: {sizes.run.plan['method']} of tables this large.")
    return True


def _histogram_exact(sizes: Sizes) -> bool:
    return _is_nearest(sizes, sizes.noisy)


def _cumulative_exact(sizes: Sizes) -> bool:
    """Rows are made monotone and whole, one by one, before they are taken for measured counts."""
    rows, first = [], 0
    for table, most in zip(sizes.noisy, sizes.groups, strict=True):
        rows.append(
            _whole_rows(table, most.astype(np.int64), sizes.run.identity["tie_seed"], first)
        )
        first += table.size
    return _is_nearest(sizes, rows)


def _whole_rows(table: np.ndarray, most: np.ndarray, seed: int, first: int) -> np.ndarray:
    """Counts by size from the nearest monotone rows; a mean of k + 1/2 goes by its rank."""
    sums, sizes, start = pooled(table)
    index = first + np.arange(len(table))[:, np.newaxis] * table.shape[1] + start
    down, rest = np.divmod(sums, sizes)
    goes_up = np.where(
        2 * rest == sizes, (ranks(seed, index) & np.uint64(1)) == 1, 2 * rest > sizes
    )
    whole = np.clip(down + goes_up, 0, most[:, np.newaxis])
    return np.diff(np.column_stack([whole, most]), axis=1, prepend=0)


def _is_nearest(sizes: Sizes, rows: Tables) -> bool:
    weights = sizes.whole_weights
    if prices_fit(rows, sizes.counts, weights):
        return is_nearest(sizes.families, rows, sizes.counts, weights)
    return _too_large(sizes)


def _histogram_relaxed(sizes: Sizes) -> bool:
    if sizes.n_numbers > MOST_SOLVED:
        return _too_large(sizes)
    weights = [float(weight / max(sizes.weights)) for weight in sizes.weights]
    noisy = [table.astype(float) for table in sizes.noisy]
    found = real_optimum(sizes.families, noisy, weights, int(sizes.groups[0][0]))
    return _are_rounded(sizes.counts, found, _GRID)


def _cumulative_relaxed(sizes: Sizes) -> bool:
    published = [np.cumsum(table, axis=1)[:, :-1] for table in sizes.counts]
    return _some_fit(sizes, lambda _, monotone: _are_rounded(published, monotone))


def _cumulative_joint(sizes: Sizes) -> bool:
    """Leaf after leaf, the errors of rounding go on to the next leaf.

    What a leaf was given follows from the published counts of the leaves before it.
    """
    published = np.cumsum(sizes.counts[-1], axis=1)[:, :-1]

    def holds(adding_up: Tables, _: Tables) -> bool:
        errors = adding_up[-1] - published
        target = adding_up[-1] + np.cumsum(errors, axis=0) - errors
        return _are_rounded([published], [nearest_rows(target, sizes.groups[-1])])

    return _some_fit(sizes, holds)


def _some_fit(sizes: Sizes, holds: Callable[[Tables, Tables], bool]) -> bool:
    """Whether the joint fit leads there; it may be too long to be followed."""
    found = [holds(*both) for both in _fits(sizes)]
    return any(found) if found else _too_large(sizes)


def _fits(sizes: Sizes) -> Iterator[tuple[Tables, Tables]]:
    """All levels; one that was not measured has the sums of the level below it."""
    kept = [index for index, weight in enumerate(sizes.weights) if weight]
    families, above = [], None
    for index in range(len(sizes.counts)):
        if above is not None:
            above = above[sizes.families[index - 1].parent]
        if index in kept:
            families += [] if above is None else [Families(above, sizes.run.levels[index].name)]
            above = np.arange(len(sizes.counts[index]))
    forest = Forest(families, [float(sizes.weights[i] / max(sizes.weights)) for i in kept])
    noisy, groups = [sizes.noisy[i].astype(float) for i in kept], [sizes.groups[i] for i in kept]
    for both in fits(forest, noisy, groups, MOST_STEPS // max(1, sizes.n_numbers)):
        adding_up, monotone = (_filled(sizes, kept, tables) for tables in both)
        yield adding_up, monotone


def _filled(sizes: Sizes, kept: list[int], tables: Tables) -> Tables:
    found = dict(zip(kept, tables, strict=True))
    for index in reversed(range(len(sizes.counts))):
        if index not in found:
            found[index] = sizes.families[index].sum(found[index + 1])
    return [found[index] for index in range(len(sizes.counts))]


def _are_rounded(whole: Tables, real: Tables, doubt: float = 1e-6) -> bool:
    return all(
        (np.abs(a - b) <= 0.5 + doubt + 1e-11 * np.abs(b)).all()
        for a, b in zip(whole, real, strict=True)
    )


_METHODS: dict[str, Callable[[Sizes], bool]] = {
    "histogram_relaxed": _histogram_relaxed,
    "histogram_exact": _histogram_exact,
    "cumulative_relaxed": _cumulative_relaxed,
    "cumulative_exact": _cumulative_exact,
    "cumulative_joint": _cumulative_joint,
}
