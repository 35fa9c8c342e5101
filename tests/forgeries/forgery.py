"""A forgery, and the tools that several need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from forging import edit_json, edit_spec, publish_again

REDUCED = "reduced"
"""In the place of a check: verification says loudly that it checked less."""


@dataclass(frozen=True)
class Forgery:
    """What is done, to which worlds, and the check that notices."""

    name: str
    check: str
    worlds: tuple[str, ...]
    forge: Callable[[Path], object]


@dataclass(frozen=True)
class Unnoticed:
    """What passes; `finder` is the option of `trellis verify` that finds it, if one does."""

    name: str
    world: str
    forge: Callable[[Path], object]
    finder: str = ""


def edited(name: str, change: Callable[[Any], object]) -> Callable[[Path], None]:
    """A JSON file of the folder with a change."""
    return lambda run: edit_json(run / name, change)


def respecified(change: Callable[[Any], object]) -> Callable[[Path], None]:
    """Another spec, and nothing else."""
    return lambda run: edit_spec(run, change)


def retold(
    spec: Callable[[Any], object], plan: Callable[[Any], object], *stages: str
) -> Callable[[Path], None]:
    """Another spec and another plan; the package itself makes every document fit."""

    def forge(run: Path) -> None:
        edit_spec(run, spec)
        edit_json(run / "plan.json", plan)
        publish_again(run, *stages)

    return forge


def replaced(name: str, old: str, new: str) -> Callable[[Path], None]:
    """Other text in a file."""

    def forge(run: Path) -> None:
        text = (run / name).read_text(encoding="utf-8")
        assert old in text
        (run / name).write_text(text.replace(old, new, 1), encoding="utf-8")

    return forge


def appended(name: str, more: bytes) -> Callable[[Path], None]:
    def forge(run: Path) -> None:
        with (run / name).open("ab") as file:
            file.write(more)

    return forge


def tables(run: Path, part: str) -> list[Path]:
    """Parquet files with rows."""
    found = sorted((run / part).rglob("*.parquet"))
    return [path for path in found if pq.read_metadata(path).num_rows]


def rewritten(path: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    """A Parquet file with a change, compressed as a run does it."""
    pq.write_table(change(pq.ParquetFile(path).read()), path, compression="zstd")


def with_values(path: Path, column: str, change: Callable[[list], list]) -> None:
    """A column, given and returned as a list."""

    def edit(table: pa.Table) -> pa.Table:
        field = table.schema.field(column)
        text = pa.types.is_dictionary(field.type)
        values = pa.array(change(table[column].to_pylist()), pa.string() if text else field.type)
        values = values.dictionary_encode().cast(field.type) if text else values
        return table.set_column(table.column_names.index(column), field, values)

    rewritten(path, edit)


def first(change: Callable[[Any], Any]) -> Callable[[list], list]:
    return lambda values: [change(values[0]), *values[1:]]


def largest_noisy(run: Path) -> Path:
    """The noisy measurements with the most rows."""
    noisy = [p for p in tables(run, "measurements") if pq.read_table(p)["variance"][-1].as_py()]
    return max(noisy, key=lambda path: (pq.read_metadata(path).num_rows, path))


def shift(by: float) -> Callable[[list], list]:
    """Numbers at random places moved, the same up and down, so that sums stay."""

    def change(values: list) -> list:
        moved = np.array(values)
        moved[0] += by
        moved[-1] -= by
        return moved.tolist()

    return change
