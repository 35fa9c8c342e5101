"""The counts of flows, family by family, and the descent that decided where to measure."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise, product

import numpy as np

from trellis.verify.files.flow_files import estimated, level_names, node_keys
from trellis.verify.files.run_files import RunFiles
from trellis.verify.flows.margins import Linear, measured, places, upwards
from trellis.verify.flows.rules import (
    Families,
    Rule,
    chebyshev,
    is_least_squares,
    least_squares,
    ranks,
    sparse,
)
from trellis.verify.plan.price import noise_variance

MOST_ROWS = 10_000_000
MOST_DOUBTFUL = 8
"""Estimates in a family that may be rounded either way, up to which all ways are tried."""
_NEAR_HALF = 1e-7
OLDEST = 3


class _Measured:
    """A level: its measurements, the families of its rows, and what is published."""

    def __init__(self, run: RunFiles, level: int, rows: Linear, above: Linear | None) -> None:
        self.rows, self.level = rows, level
        self.name = level_names(run)[level]
        self.expanded = run.table(run.measurement(run.plan["queries"][level]), ["expanded"])[
            "expanded"
        ].to_numpy(zero_copy_only=False)
        nodes = estimated(run, level)
        self.counts = np.zeros(rows.keys.size, dtype=np.int64)
        place = places(node_keys(run, level, nodes), rows.keys)
        self.counts[place[place >= 0]] = nodes["count"][place >= 0]
        self.is_last = level == len(run.plan["levels"]) - 1
        self.seed = (int(run.identity["tie_seed"]) + level) % 2**63
        noise = run.plan["queries"][level]["noise"]
        self.variance = 0.0 if noise is None else noise_variance(noise)
        numbers = np.bincount(rows.parent, minlength=1 if above is None else above.keys.size)
        self.parents = np.flatnonzero(numbers)
        self.start = np.concatenate([[0], np.cumsum(numbers[self.parents])])

    def families(self, x: np.ndarray, sums: np.ndarray) -> Families:
        """With ranks by the position of a row on its level."""
        return Families(x, self.start, sums, ranks(self.seed, np.arange(x.size)))


def flow_descent(run: RunFiles) -> Iterator[str]:
    """Flows were measured below the pairs that the fit of the measurements left, and no others."""
    levels = _levels(run)
    if levels is None:
        return
    method = run.plan["method"]
    own = "chebyshev" if method.startswith("gls_") else method
    rules = dict.fromkeys([own, "chebyshev", "chebyshev_descending", "l2"])
    if any(_descends(run, levels, rule) for rule in rules):
        return
    if all(_keeps_largest(level) for level in levels[1:]):
        # As with a sparse descent whose penalty is not known, once estimated by another method.
        run.notes.append("below which pairs flows were measured was not recomputed")
    else:
        yield "flows were measured below other pairs than a fit of the measurements leaves"


def flow_counts(run: RunFiles) -> Iterator[str]:
    """Counts of the children of every pair are those of the method, given the pair's own count."""
    levels = _levels(run)
    if levels is None:
        return
    looks_below = run.plan["method"].startswith("gls_")
    if looks_below:
        upwards([level.rows for level in levels])
    for above, level in pairwise(levels):
        if not level.parents.size:
            continue
        sums = above.counts[level.parents]
        wrong = _wrong_below(run, level, sums) if looks_below else _wrong(run, level, sums)
        if wrong:
            yield f"counts of level {level.name} are not those of {run.plan['method']}"


def _levels(run: RunFiles) -> list[_Measured] | None:
    if run.plan.get("format", 1) < OLDEST:
        run.leave_out("counts of this older format were not recomputed")
        return None
    rows = measured(run)
    if sum(level.keys.size for level in rows) > MOST_ROWS:
        run.notes.append("counts were not recomputed: the release is too large")
        return None
    found = [
        _Measured(run, level, here, rows[level - 1] if level else None)
        for level, here in enumerate(rows)
    ]
    return found


def _rule(run: RunFiles, name: str, level: _Measured, price: np.ndarray | None = None) -> Rule:
    if name == "sparse":
        if price is None:
            price = np.full(level.parents.size, _penalty(run) ** 2 * level.variance)
        return lambda families: sparse(families, price)
    if name == "l2":
        return least_squares
    return lambda families: chebyshev(families, descending=name == "chebyshev_descending")


def _penalty(run: RunFiles) -> float:
    return float(Fraction(run.plan.get("penalty", 0)))


def _descends(run: RunFiles, levels: list[_Measured], rule: str) -> bool:
    counts = np.maximum(levels[0].rows.value, 0).astype(np.int64)
    if not np.array_equal(levels[0].expanded, counts > 0):
        return False
    for level in levels[1:]:
        x = level.rows.value.astype(np.int64)
        counts = _rule(run, rule, level)(level.families(x, counts[level.parents]))
        if not np.array_equal(level.expanded, counts > 0):
            return False
    return True


def _keeps_largest(level: _Measured) -> bool:
    """Whether pairs that were left are the largest of their family, one at least."""
    if not level.parents.size:
        return True
    families = level.families(level.rows.value, np.zeros(level.parents.size))
    x = level.rows.value
    least = -families.greatest(np.where(level.expanded, -x, -np.inf))
    most = families.greatest(np.where(level.expanded, -np.inf, x))
    return bool((least >= most).all() and np.isfinite(least).all())


def _wrong(run: RunFiles, level: _Measured, sums: np.ndarray) -> bool:
    """Each level by itself; a family that would fill pairs without anything below is fitted again.

    Then it is fitted in the other pairs alone, whose ranks are by their position among these.
    """
    method, x = run.plan["method"], level.rows.value.astype(np.int64)
    families = level.families(x, sums)
    expected = _rule(run, method, level)(families)
    stray = (expected > 0) & ~level.expanded
    if not level.is_last and stray.any():
        chosen = level.expanded
        before = np.cumsum(chosen) - chosen
        first = np.repeat(level.start[:-1], families.sizes)
        position = (first + before - before[first])[chosen]
        again = families.only(chosen, ranks(level.seed, position))
        plain = "chebyshev" if method == "sparse" else method
        refitted = np.zeros_like(expected)
        refitted[chosen] = _rule(run, plain, level)(again)
        is_stray = families.greatest(stray.astype(np.int64))[families.of] > 0
        expected = np.where(is_stray, refitted, expected)
    return not np.array_equal(expected, level.counts)


def _wrong_below(run: RunFiles, level: _Measured, sums: np.ndarray) -> bool:
    """From the estimates of subtrees; pairs without anything below stay at 0."""
    allowed = np.ones(level.counts.size, dtype=bool) if level.is_last else level.expanded
    if level.counts[~allowed].any():
        return True
    every = level.families(level.rows.value, sums)
    families = every.only(allowed, ranks(level.seed, np.arange(int(allowed.sum()))))
    u, v, y = families.x, level.rows.variance[allowed], level.counts[allowed]
    rule = run.plan["method"].removeprefix("gls_")
    if rule == "l2":
        return not is_least_squares(families, u, 1 / v, y).all()
    price = None
    if rule == "sparse":
        price = _penalty(run) ** 2 * families.total(v) / np.maximum(families.sizes, 1)
    whole = Families(_rounded(u), families.start, families.sums, families.rank)
    wrong = np.unique(families.of[_rule(run, rule, level, price)(whole) != y])
    return any(not _other_rounding(run, rule, level, price, families, y, f) for f in wrong)


def _rounded(u: np.ndarray) -> np.ndarray:
    """To whole numbers, halves to even ones, whatever floating point makes of halves."""
    return np.rint(np.where(_is_doubtful(u), np.rint(2 * u) / 2, u)).astype(np.int64)


def _is_doubtful(u: np.ndarray) -> np.ndarray:
    return np.abs(u - np.floor(u) - 0.5) < _NEAR_HALF * (1 + 1e-6 * np.abs(u))


def _other_rounding(
    run: RunFiles,
    rule: str,
    level: _Measured,
    price: np.ndarray | None,
    families: Families,
    y: np.ndarray,
    family: int,
) -> bool:
    """Whether the counts of a family follow if some halves are rounded to the other side."""
    cut = slice(families.start[family], families.start[family + 1])
    u = families.x[cut]
    doubtful = np.flatnonzero(_is_doubtful(u))
    one = None if price is None else price[family : family + 1]
    start = np.array([0, u.size])
    if doubtful.size > MOST_DOUBTFUL:
        # Too many ways to round: the farthest count is no farther than in one of them, by a unit.
        some = Families(_rounded(u), start, families.sums[family : family + 1], families.rank[cut])
        fitted = _rule(run, rule, level, one)(some)
        is_sum = y[cut].sum() == fitted.sum()
        return bool(is_sum and np.abs(y[cut] - u).max() <= np.abs(fitted - u).max() + 1)
    if not doubtful.size:
        return False
    for sides in product((0, 1), repeat=doubtful.size):
        x = np.rint(u).astype(np.int64)
        x[doubtful] = np.floor(u[doubtful]).astype(np.int64) + sides
        alone = Families(x, start, families.sums[family : family + 1], families.rank[cut])
        if np.array_equal(_rule(run, rule, level, one)(alone), y[cut]):
            return True
    return False
