"""Whether constraints.parquet has the rows that spec.yaml describes. Yields what is wrong.

The bounds themselves come from tables of the office, which a run folder does not hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from trellis.verify.files.histogram_files import marginal
from trellis.verify.files.run_files import RunFiles
from trellis.verify.files.safe_files import FORMAT
from trellis.verify.plan.kinds.histograms import canonical

NAME, GROUPS = "constraints.parquet", "constraint_groups.parquet"
_SENSES = {"equal": "=", "at_most": "<=", "at_least": ">="}
_EACH, _NONE = "{name}: at least one each", "{name}: none without"


@dataclass(frozen=True, slots=True)
class Stated:
    """What all rows of one label have in common."""

    label: str
    level: str
    query: str
    sense: str
    binds: str

    def part_of(self, table: pa.Table) -> pa.Table:
        return table.filter(pa.array([text == self.label for text in table["label"].to_pylist()]))


def constraint_rows(run: RunFiles) -> Iterator[str]:
    """Constraints are those of spec.yaml: levels, queries, senses, and each cell once, in order."""
    if run.plan.get("format", 1) < FORMAT or not run.spec.get("constraints"):
        return
    table = run.table(NAME)
    stated = {line.label: line for entry in run.spec["constraints"] for line in _stated(run, entry)}
    if list(dict.fromkeys(table["label"].to_pylist())) != list(stated):
        yield f"{NAME} has other constraints than spec.yaml, or another order"
        return
    grouped = _grouped(run)
    for label, line in stated.items():
        part = line.part_of(table)
        words = {(row["level"], row["query"], row["sense"], row["binds"]) for row in _rows(part)}
        if words != {(line.level, line.query, line.sense, line.binds)}:
            yield f"{NAME} and spec.yaml differ in {label}"
        elif not _is_in_order(run, line, part, grouped.get(label)):
            yield f"{NAME} does not list the cells of {label} in order"
    for entry in run.spec["constraints"]:
        if "facilities" in entry and not _is_facilities(run, entry, table):
            yield f"{NAME} has bounds of {entry['name']} that facilities cannot have"
    if set(grouped) != {entry["name"] for entry in run.spec["constraints"] if "group" in entry}:
        yield f"{GROUPS} has other groups than spec.yaml"


def _rows(table: pa.Table) -> list[dict[str, Any]]:
    return table.select(["level", "query", "sense", "binds"]).to_pylist()


def _stated(run: RunFiles, entry: dict[str, Any]) -> list[Stated]:
    name = entry["name"]
    if "facilities" in entry:
        labels = {_EACH.format(name=name): ">=", _NONE.format(name=name): "<="}
    else:
        labels = {name: next(sense for key, sense in _SENSES.items() if key in entry)}
    level, binds = entry.get("level") or run.levels[-1].name, entry.get("binds") or "records"
    query = canonical(run.spec, entry.get("query", "total"))
    return [Stated(label, level, query, sense, binds) for label, sense in labels.items()]


def _grouped(run: RunFiles) -> dict[str, np.ndarray]:
    """For each label with groups of areas, the group of each area that has one."""
    if GROUPS not in run.sizes:
        return {}
    table = run.table(GROUPS)
    labels = np.array(table["label"].to_pylist())
    return {
        str(label): table.filter(pa.array(labels == label))["unit"].to_numpy()
        for label in dict.fromkeys(labels)
    }


def _is_in_order(run: RunFiles, line: Stated, part: pa.Table, group_of: np.ndarray | None) -> bool:
    unit, cell, bound = (part[key].to_numpy() for key in ("unit", "cell", "bound"))
    units = next(len(level) for level in run.levels if level.name == line.level)
    if group_of is not None:
        units = int(group_of.max()) + 1
    width = marginal(run.plan, line.query).width
    key = unit.astype(np.int64) * width + cell
    in_range = unit.min() >= 0 and unit.max() < units and cell.min() >= 0 and cell.max() < width
    return bool(in_range and (np.diff(key) > 0).all() and bound.min() >= 0)


def _is_facilities(run: RunFiles, entry: dict[str, Any], table: pa.Table) -> bool:
    """Every cell has a least number; where it is none, and not open to all, none are allowed."""
    each, none = (line.part_of(table) for line in _stated(run, entry))
    query = marginal(run.plan, canonical(run.spec, entry["query"]))
    open_ = np.isin(query.labels[0], entry.get("open_to_all", []))
    least = each["bound"].to_numpy().reshape(-1, query.width)
    closed = np.flatnonzero((least == 0) & ~open_)
    places = none["unit"].to_numpy() * query.width + none["cell"].to_numpy()
    return (
        not least[:, open_].any()
        and np.array_equal(places, closed)
        and not none["bound"].to_numpy().any()
        and set(entry.get("open_to_all", [])) <= set(query.labels[0])
    )
