"""The promises about the published tables. Each check yields what is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import log, sqrt
from statistics import NormalDist
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from trellis.verify.counts.facts import Ends, level_facts
from trellis.verify.files.run_files import Level, RunFiles
from trellis.verify.files.trees import no_tree, tree_digest

pc: Any = pyarrow.compute  # made at import, so the type checker does not know its functions

TOLERANCE = 1e-6
"""For real-valued methods only; whole numbers must agree exactly."""

WHOLE = 1e-9
"""Counts this near to a whole number are taken for it where an interval must contain them."""


def hierarchy(run: RunFiles) -> Iterator[str]:
    """The tree is the planned one: sizes, unique codes, parents in range, no area left out."""
    for level, planned in zip(run.levels, run.plan["levels"], strict=True):
        if (len(level), level.shown.size) != (planned["nodes"], planned["areas"]):
            yield f"level {level.name} has another number of areas than planned"
    problems = list(no_tree(run.levels))
    yield from problems
    if not problems and tree_digest(run.levels) != run.plan["hierarchy_sha256"]:
        yield "hierarchy.parquet is not the tree of plan.json"


def columns(run: RunFiles) -> Iterator[str]:
    """Each table lists the areas and cells of its level, in order and completely."""
    names = ["geocode", "level", *run.plan["schema"], "count", "std_error", "lower", "upper"]
    for level in run.levels:
        table, name = run.released(level.name), f"release/{level.name}.parquet"
        if table.column_names != names:
            yield f"{name} has other columns than promised"
            continue
        if not level.lists(table["geocode"], level.shown, len(run.cells)):
            yield f"{name} does not list the areas of its level in order"
        if table["level"].null_count or not pc.all(pc.equal(table["level"], level.name)).as_py():
            yield f"{name} names another level"
        if not run.names_cells(table, run.cells, level.shown.size):
            yield f"{name} does not name the cells in order"


def signs(run: RunFiles) -> Iterator[str]:
    """Counts are there, and whole and non-negative where the method promises it."""
    for level in run.levels:
        name = f"release/{level.name}.parquet"
        column = run.released(level.name, "count")["count"]
        if column.null_count:
            yield f"{name} has empty counts"
        elif run.is_whole and not pa.types.is_integer(column.type):
            yield f"{name} has counts that are not whole numbers"
        elif run.is_whole and (column.to_numpy() < 0).any():
            yield f"{name} has negative counts"


def sums(run: RunFiles) -> Iterator[str]:
    """Counts of areas add up to the count of the area above, in every cell."""
    if not run.adds_up:
        return
    for above, below in zip(run.levels, run.levels[1:], strict=False):
        upper, lower = run.counts(above), run.counts(below)
        total = np.zeros((len(above), len(run.cells)), dtype=lower.dtype)
        parents = below.parent[below.shown]
        np.add.at(total, parents, lower)
        # An area whose only child is padding has nothing below it to compare with.
        has_children = np.isin(above.shown, parents)
        gap = np.abs(total[above.shown] - upper)[has_children]
        if gap.size and gap.max() > (0 if run.is_whole else TOLERANCE):
            yield f"counts of level {below.name} do not add up to level {above.name}"


def intervals(run: RunFiles) -> Iterator[str]:
    """Margins of error are complete or absent, of the stated confidence, and contain the counts."""
    for level, ends in zip(run.levels, level_facts(run), strict=True):
        name = f"release/{level.name}.parquet"
        table = run.released(level.name, "count", "std_error", "lower", "upper")
        yield from margins(run, name, table)
        if not table["std_error"].null_count:
            estimated = run.table(f"estimates/level={level.name}.parquet", ["centre"])["centre"]
            centre = estimated.to_numpy()[_rows(run, level)]
            allowed = _by_cell((ends[0][level.shown], ends[1][level.shown]), centre.size)
            yield from stated_confidence(run, name, table, centre, allowed)


def margins(run: RunFiles, name: str, table: pa.Table) -> Iterator[str]:
    """What is wrong with the margins of error of one table."""
    columns = [table[key] for key in ("std_error", "lower", "upper")]
    empty = {column.null_count for column in columns}
    if empty == {len(table)} and not run.has_centres:
        return
    if empty != {0}:
        yield f"{name} has incomplete margins of error"
        return
    std_error, lower, upper = (column.to_numpy() for column in columns)
    counts = table["count"].to_numpy()
    if not (std_error >= 0).all():
        yield f"{name} has a negative standard error"
    if not ((lower <= counts + TOLERANCE) & (counts <= upper + TOLERANCE)).all():
        yield f"{name} has counts outside their interval"


def stated_confidence(
    run: RunFiles, name: str, table: pa.Table, centre: np.ndarray, allowed: Ends
) -> Iterator[str]:
    """The ends are those of an interval around the centre that the estimates have.

    `allowed` are the least and the greatest counts that the facts about the records leave. Runs of
    format 1 may not have used them.
    """
    counts, std_error, lower, upper = (column.to_numpy() for column in table.columns)
    reach = interval_factor(run.plan) * std_error + 0.5
    least, most = np.floor(counts + WHOLE), np.ceil(counts - WHOLE)
    is_old = run.plan.get("format", 1) == 1
    known = [allowed, (np.zeros(1), np.full(1, np.inf))] if is_old else [allowed]
    if not (
        _is_end(lower, centre - reach, np.ceil, known, np.minimum, least).all()
        and _is_end(upper, centre + reach, np.floor, known, np.maximum, most).all()
    ):
        yield f"{name} has intervals that do not have the stated confidence"
    if is_old:
        return
    is_known = (allowed[0] == allowed[1]) & (counts == allowed[0])
    if (std_error[is_known] != 0).any():
        yield f"{name} has a standard error where the exact facts leave one number"


def _by_cell(ends: Ends, size: int) -> Ends:
    """One number per row of a table, from areas x cells or areas x 1."""
    areas = max(1, len(ends[0]))
    least, most = (np.broadcast_to(end, (areas, size // areas)).ravel() for end in ends)
    return least, most


def interval_factor(plan: dict[str, Any]) -> float:
    """Half the width of an interval in standard errors; a Laplace variable has heavier tails."""
    confidence = float(Fraction(plan["confidence"]))
    laws = {q["noise"]["law"] for q in plan["queries"] if q["noise"] is not None}
    normal = NormalDist().inv_cdf((1 + confidence) / 2)
    return max(normal, -log(1 - confidence) / sqrt(2)) if "discrete_laplace" in laws else normal


def _is_end(
    end: np.ndarray,
    edge: np.ndarray,
    inwards: np.ufunc,
    allowed: Sequence[Ends],
    wider: np.ufunc,
    count: np.ndarray,
) -> np.ndarray:
    """The last whole number inside, moved to what is allowed; the count if that is further out."""
    close = (
        wider(np.minimum(np.maximum(inwards(edge + t), least), most), count)
        for t in (-TOLERANCE, TOLERANCE)
        for least, most in allowed
    )
    return np.logical_or.reduce([end == found for found in close])


def invariants(run: RunFiles) -> Iterator[str]:
    """What was to be published exactly is published exactly."""
    levels = {level.name: level for level in run.levels}
    for name in run.exact_totals:
        level = levels[name]
        exact = run.table(f"measurements/level={name}/query=total.parquet")
        promised = exact["value"].to_numpy()[level.shown]
        gap = np.abs(run.counts(level).sum(axis=1) - promised)
        if gap.max() > (0 if run.is_whole else TOLERANCE):
            yield f"totals of level {level.name} are not the exact ones"
    exact_levels = {q["level"] for q in run.plan["queries"] if q["noise"] is None}
    if exact_levels != set(run.plan["unprotected_totals"]):
        yield "plan.json measures other exact totals than it lists as unprotected"


def estimates(run: RunFiles) -> Iterator[str]:
    """The tables publish the estimates, and intervals lie around centres that add up."""
    above = None
    for level in run.levels:
        kept = run.table(f"estimates/level={level.name}.parquet")
        rows = _rows(run, level)
        for column in kept.column_names:
            if column == "centre":
                continue
            published = run.released(level.name, column)[column]
            if len(kept) != len(level) * len(run.cells) or not np.array_equal(
                kept[column].to_numpy()[rows], published.to_numpy()
            ):
                yield f"release/{level.name}.parquet differs from the estimates in {column}"
        if "centre" not in kept.column_names:
            continue
        centre = kept["centre"].to_numpy().reshape(len(level), len(run.cells))
        if above is not None and not add_up(centre, level.parent, above):
            yield f"estimates of level {level.name} lie around centres that do not add up"
        above = centre


def add_up(values: np.ndarray, group: np.ndarray, expected: np.ndarray) -> bool:
    """Whether real numbers, row by row, add up to those of their groups."""
    total = np.zeros_like(expected)
    np.add.at(total, group, values)
    return bool(np.allclose(total, expected, rtol=1e-11, atol=TOLERANCE))


def _rows(run: RunFiles, level: Level) -> np.ndarray:
    """Rows of the shown areas in a table of all nodes, cells fastest."""
    n_cells = len(run.cells)
    return (level.shown[:, np.newaxis] * n_cells + np.arange(n_cells)).ravel()
