"""The released tables as the report reads them: files, standard errors, numbers by area."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import pyarrow as pa

from trellis.verify.documents.histogram_guide import width
from trellis.verify.files.run_files import RunFiles
from trellis.verify.report.elements import decimals
from trellis.wording import report as words

MARGINS = ["count", "lower", "upper", "std_error"]


def tables_of(run: RunFiles, level: str) -> list[str]:
    """The tables of a level: one of its name, or those of a histogram, smallest first."""
    if "histogram" not in run.plan:
        return [level]
    queries = [query for of, query in run.plan["histogram"]["tables"] if of == level]
    names = {f"{level}/{query.replace(' * ', ',')}": width(run.plan, query) for query in queries}
    return sorted(names, key=lambda name: (names[name], name))


def files_of(run: RunFiles, table: str) -> list[str]:
    """Where the report finds a table."""
    names = [f"release/{table}.{ending}" for ending in ("csv", "parquet")]
    return [f"../{name}" for name in names if name in run.sizes]


def read(run: RunFiles, table: str, columns: list[str] | None = None) -> pa.Table:
    return run.table(f"release/{table}.parquet", columns)


@dataclass(frozen=True, slots=True)
class Spread:
    """The standard errors of a table, without those of exact counts; 0 if all are exact."""

    name: str
    rows: int
    least: float
    median: float
    most: float


def spreads(run: RunFiles) -> list[Spread]:
    """Of every table of counts that has standard errors: levels, then areas of interest."""
    named = [(name, name) for x in run.plan["levels"] for name in tables_of(run, x["level"])]
    interests = [area["name"] for area in run.plan.get("areas", [])]
    named += [(words.OF_AREAS.format(area=name), f"areas/{name}") for name in interests]
    found = []
    for name, table in named:
        errors = read(run, table, ["std_error"])["std_error"]
        known = errors.drop_null().to_numpy()
        if known.size:
            noisy = known[known > 0] if known.any() else known
            spread = float(noisy.min()), float(np.median(noisy)), float(noisy.max())
            found.append(Spread(name, len(errors), *spread))
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Measure:
    """One number for each area of a level, with its interval, and whether it is exact."""

    name: str
    value: np.ndarray
    lower: np.ndarray | None = None
    upper: np.ndarray | None = None
    exact: np.ndarray | None = None

    @property
    def ends(self) -> tuple[np.ndarray, np.ndarray] | None:
        return None if self.lower is None or self.upper is None else (self.lower, self.upper)

    @property
    def example(self) -> int | None:
        """The first area whose interval has two ends, or else the first with noise."""
        if self.ends is None or self.exact is None:
            return None
        lower, upper = self.ends
        wide, noisy = lower < upper, ~self.exact & np.isfinite(lower)
        found = np.flatnonzero(wide if wide.any() else noisy)
        return int(found[0]) if found.size else None

    @property
    def digits(self) -> int:
        """Enough for the narrowest interval."""
        if self.ends is None:
            return 3
        widths = (self.ends[1] - self.ends[0]).astype(np.float64)
        return decimals(float(widths[widths > 0].min(initial=np.inf)))


def measures(run: RunFiles, level: dict[str, Any]) -> list[Measure]:
    """Statistics of sizes, then all cells together, then the first cells of the first table."""
    found = list(statistics(run, level["level"])) if run.has_sizes else []
    tables = tables_of(run, level["level"])[:1]
    found += [m for table in tables for m in _cells(run, table, level["areas"])]
    return list({measure.name: measure for measure in found}.values())


def _cells(run: RunFiles, name: str, n_areas: int) -> Iterator[Measure]:
    table = read(run, name)
    n_cells = len(table) // n_areas
    value, lower, upper, error = (_by_area(table[c], n_cells) for c in MARGINS)
    exact = error == 0
    if n_cells == 1:
        yield Measure("count", value[:, 0], lower[:, 0], upper[:, 0], exact[:, 0])
        return
    yield Measure(words.ALL_CELLS, value.sum(axis=1))
    common = {"geocode", "level", *MARGINS}
    attributes = [column for column in table.column_names if column not in common]
    few = table.select(attributes).slice(0, min(n_cells, words.MOST_CELLS)).to_pylist()
    for i, row in enumerate(few):
        label = ", ".join(f"{key} {category}" for key, category in row.items())
        label = row["cell"] if attributes == ["cell"] else label
        yield Measure(label, value[:, i], lower[:, i], upper[:, i], exact[:, i])


def statistics(run: RunFiles, level: str) -> Iterator[Measure]:
    """What is published about the sizes of groups."""
    table = read(run, f"statistics/{level}")
    names = table["statistic"].to_pylist()
    each = len(set(names))
    value, lower, upper = (_by_area(table[c], each) for c in ("value", "lower", "upper"))
    for name, said in words.STATISTIC_NAMES.items():
        i = names.index(name)
        exact = np.full(len(value), name == "groups")
        yield Measure(said, value[:, i], lower[:, i], upper[:, i], exact)


def _by_area(column: pa.ChunkedArray, each: int) -> np.ndarray:
    return np.asarray(column.to_numpy()).reshape(-1, each)


def n_cells_of(plan: dict[str, Any]) -> int:
    return prod(len(categories) for categories in plan["schema"].values())
