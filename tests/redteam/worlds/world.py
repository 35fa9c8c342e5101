"""A random world, and the pairs of neighbouring data sets that its spec claims to protect."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from io import StringIO
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import yaml

Row = tuple[Any, ...]
"""One record: a value for each column."""
Rows = tuple[Row, ...]
Broken = Callable[[Rows], frozenset[str]]


def keeps_all(_: Rows) -> frozenset[str]:
    return frozenset()


@dataclass(frozen=True)
class RandomWorld:
    """`spec` as in a file, `files` the public ones, `others` the records of everyone else.

    `record` draws one record that a unit may have. `area_of(row, level)` is where it lies.
    `number_known` says whether the number of records of a unit is outside the protection.
    `broken` names the requirements that records break, as the statement of privacy words them,
    found without the package. `fixed` are columns that do not belong to the content (whose it is).
    """

    kind: str
    spec: dict[str, Any]
    files: Mapping[str, str]
    columns: tuple[str, ...]
    others: Rows
    record: Callable[[Random], Row]
    area_of: Callable[[Row, str], str]
    attributes: Mapping[str, tuple[int, tuple[str, ...]]] = field(default_factory=dict)
    """By attribute: its column, and its categories."""
    number_known: bool = True
    exactly: int | None = None
    """Every unit has exactly so many records."""
    most: int | None = None
    """Records that a unit may have in the file, if not `max_contribution`."""
    broken: Broken = keeps_all

    @property
    def privacy(self) -> dict[str, Any]:
        return self.spec["privacy"]

    @property
    def bound(self) -> int:
        return self.privacy["max_contribution"]

    @property
    def is_replace(self) -> bool:
        return self.privacy["neighbours"] == "replace"

    @property
    def complete(self) -> RandomWorld:
        """The same with every row measured, also those that noise would leave out."""
        output = {k: v for k, v in self.spec.get("output", {}).items() if k != "measurements"}
        return replace(self, spec={**self.spec, "output": output})

    def write(self, folder: Path, rows: Rows | None = None) -> Path:
        """The spec with all its files; returns its path."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in self.files.items():
            (folder / name).write_text(text, encoding="utf-8")
        (folder / "records.csv").write_text(self.csv(self.others if rows is None else rows))
        path = folder / "spec.yaml"
        path.write_text(self.spec_text, encoding="utf-8")
        return path

    @property
    def spec_text(self) -> str:
        return yaml.safe_dump(self.spec, sort_keys=False)

    def csv(self, rows: Rows) -> str:
        text = StringIO()
        csv.writer(text, lineterminator="\n").writerows([self.columns, *rows])
        return text.getvalue()

    def table(self, rows: Rows) -> pa.Table:
        """The same records in memory."""
        seen = (*self.others, *rows)
        whole = [all(isinstance(row[i], int) for row in seen) and bool(seen)
                 for i in range(len(self.columns))]  # fmt: skip
        return pa.table({
            name: pa.array([row[i] for row in rows], pa.int64() if whole[i] else pa.string())
            for i, name in enumerate(self.columns)
        })  # fmt: skip

    # -- neighbours -----------------------------------------------------------------------------

    def pairs(self, chance: Random, within: str | None, number: int) -> Iterator[tuple[Rows, Rows]]:
        """Pairs of data sets that differ in one unit, as the statement of privacy words it.

        Half of them put all records of the unit in one place: there a table moves farthest.
        """
        for _ in range(number):
            others = self.others if chance.random() < 0.7 else ()
            if not self.is_replace:
                yield others, (*others, *self.content(chance, self._size(chance)))
                continue
            size = self._size(chance)
            before = self.content(chance, size)
            after = self._replaced(chance, before, within)
            yield (*others, *before), (*others, *after)

    def _size(self, chance: Random) -> int:
        most = self.most or self.bound
        if self.exactly is not None:
            return self.exactly
        return most if chance.random() < 0.6 else chance.randint(1, most)

    def content(self, chance: Random, size: int) -> Rows:
        if chance.random() < 0.5:
            return (self.record(chance),) * size
        return tuple(self.record(chance) for _ in range(size))

    def _replaced(self, chance: Random, before: Rows, within: str | None) -> Rows:
        """As many records, each in its area of the level with exact totals; or any others."""
        if within is None:
            size = len(before) if self.number_known else self._size(chance)
            return self.content(chance, size)
        seen: dict[str, Row] = {}
        after = []
        for row in before:
            area = self.area_of(row, within)
            if area not in seen or chance.random() < 0.3:
                seen[area] = self.record_in(chance, area, within)
            after.append(seen[area])
        return tuple(after)

    def record_in(self, chance: Random, area: str, level: str) -> Row:
        while self.area_of(row := self.record(chance), level) != area:
            pass
        return row
