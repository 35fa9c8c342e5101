"""What was measured of histograms: every row, or those that are used, and nothing else."""

from __future__ import annotations

from collections.abc import Generator, Iterator

import numpy as np
import pyarrow as pa

from trellis.verify.files.histogram_files import (
    Marginal,
    kept,
    marginal,
    names_in_order,
    row_groups,
)
from trellis.verify.files.run_files import Level, RunFiles
from trellis.verify.plan.price import noise_variance

DECISIVE = "measurements/_counts"


def measured_histograms(run: RunFiles) -> Iterator[str]:
    """Each cell of each planned query, or each that is used, is measured once, as planned."""
    position = {level.name: i for i, level in enumerate(run.levels)}
    decisive = yield from _decisive_levels(run)
    folders = {DECISIVE} if decisive else set()
    for q in run.plan["queries"]:
        exact = ",exact" if q["noise"] is None else ""
        place = f"measurements/level={q['level']}/query={q['query'].replace(' * ', ',')}{exact}"
        folders.add(place)
        index, query = position[q["level"]], marginal(run.plan, q["query"])
        variance = 0.0 if q["noise"] is None else noise_variance(q["noise"])
        level = run.levels[index]
        if 0 < index <= decisive and not exact:
            rows = used_rows(run, index, query)
        else:
            rows = _every_row(level, query)
        yield from _measured(run, place, level, query, variance, rows)
    there = {
        f"measurements/{p.parent.relative_to(run.path / 'measurements').as_posix()}"
        for p in (run.path / "measurements").rglob("*.parquet")
    }
    for place in sorted(there ^ folders):
        yield f"{place} is not both planned and there"


def _decisive_levels(run: RunFiles) -> Generator[str, None, int]:
    """How many levels, from the root, decided what was measured below: by published counts."""
    choice = run.plan["histogram"]["measurements"]
    if choice != run.spec.get("output", {}).get("measurements", "complete"):
        yield "plan.json and spec.yaml differ in output.measurements"
    if choice == "complete":
        return 0
    if run.plan["method"] != "topdown":
        yield f"plan.json leaves out measurements that {run.plan['method']} reads"
    names = [level.name for level in run.levels]
    decisive, there = decisive_levels(run), _decisive_files(run)
    for name in sorted(there - set(names[:decisive])):
        yield f"{DECISIVE} has counts of level {name} that decide nothing"
    for level in run.levels[:decisive]:
        found, published = kept(run, level, DECISIVE), kept(run, level)
        if not all(
            np.array_equal(getattr(found, column), getattr(published, column))
            for column in ("area", "cell", "count")
        ):
            yield f"{DECISIVE} and the estimates differ on level {level.name}"
    return decisive


def decisive_levels(run: RunFiles) -> int:
    """How many levels, from the root, decided what was measured below them."""
    if run.plan["histogram"]["measurements"] == "complete":
        return 0
    names, there = [level.name for level in run.levels[:-1]], _decisive_files(run)
    return next((i for i, name in enumerate(names) if name not in there), len(names))


def _decisive_files(run: RunFiles) -> set[str]:
    return {p.stem.removeprefix("level=") for p in (run.path / DECISIVE).glob("*.parquet")}


class Rows:
    """Rows in order: area by area, each with the cells of its group of areas."""

    def __init__(self, group: np.ndarray, group_of: np.ndarray, cell: np.ndarray) -> None:
        """The group of each area; pairs of a group and a cell, ascending."""
        sizes = np.bincount(group_of, minlength=int(group.max()) + 1)
        self.before = np.concatenate([[0], np.cumsum(sizes[group])])
        self._first = (np.cumsum(sizes) - sizes)[group]
        self._cell = cell

    @property
    def number(self) -> int:
        return int(self.before[-1])

    def between(self, first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
        """Area and cell of some rows."""
        begin = np.searchsorted(self.before, first, side="right") - 1
        end = max(begin, np.searchsorted(self.before, last))
        lengths = np.diff(np.clip(self.before[begin : end + 1], first, last))
        area = np.repeat(np.arange(begin, end), lengths)
        within = np.arange(first, last) - self.before[area]
        return area, self._cell[self._first[area] + within]


def _every_row(level: Level, query: Marginal) -> Rows:
    cells = np.arange(query.width)
    return Rows(np.zeros(len(level), dtype=np.int64), np.zeros_like(cells), cells)


def used_rows(run: RunFiles, index: int, query: Marginal) -> Rows:
    """Of children with siblings, the cells of the query with a cell in which the parent counts."""
    level, above = run.levels[index], run.levels[index - 1]
    counts = kept(run, above, DECISIVE)
    used = np.zeros((len(above), query.width), dtype=bool)
    used[counts.area, query.cell_of[counts.cell]] = True
    used[np.bincount(level.parent, minlength=len(above)) == 1] = False
    return Rows(level.parent, *np.nonzero(used))


def _measured(
    run: RunFiles, place: str, level: Level, query: Marginal, variance: float, rows: Rows
) -> Iterator[str]:
    """Parts in order: areas of the level, cells fastest."""
    parts = sorted((run.path / place).glob("*.parquet"), key=lambda p: int(p.stem.split("-")[1]))
    columns = ["geocode", *query.names, "value", "variance"]
    codes, position = level.codes, 0
    for part in parts:
        name = f"{place}/{part.name}"
        for table in row_groups(run, name):
            if table.column_names != columns or position + len(table) > rows.number:
                yield f"{name} has other columns or rows than promised"
                return
            area, cell = rows.between(position, position + len(table))
            if not names_in_order(table["geocode"], codes, area):
                yield f"{name} does not list the areas of its level in order"
                return
            at = np.unravel_index(cell, [len(x) for x in query.labels]) if query.labels else ()
            for factor, labels, expected in zip(query.names, query.labels, at, strict=True):
                if not names_in_order(table[factor], labels, expected):
                    yield f"{name} does not name the cells in order"
                    return
            if table.schema.field("value").type != pa.int64() or table["value"].null_count:
                yield f"{name} holds values that are not whole numbers"
            if not np.allclose(table["variance"].to_numpy(), variance, rtol=1e-9, atol=0):
                yield f"{name} states another variance than its noise has"
            position += len(table)
    if position != rows.number:
        yield f"{place} does not have all rows of its level"
