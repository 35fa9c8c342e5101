"""The search for planted values."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq

from kinds.world import PLANTED

Invoke = Callable[..., tuple[int, list[str]]]


def texts_in(folder: Path, leave_out: tuple[str, ...] = ()):
    """Everything in a folder as text, Parquet decoded and archives opened."""
    for path in folder.rglob("*"):
        yield path.name
        if not path.is_file() or path.name in leave_out:
            continue
        content = path.read_bytes()
        yield content.decode("latin-1")
        if path.suffix == ".parquet":
            table = pq.ParquetFile(path).read()
            yield f"{table.schema.metadata} " + " ".join(
                str(value) for column in table.columns for value in column.to_pylist()
            )
        if path.suffix == ".gz":
            yield gzip.decompress(content).decode("latin-1")


def found(texts) -> list[str]:
    return [planted for text in texts for planted in PLANTED if planted in text]


def found_beside(spec: Path) -> list[str]:
    """In the run, the ledger and all else beside the records."""
    return found(texts_in(spec.parent, leave_out=("records.parquet",)))


def crash(*_args: object, **_kwargs: object) -> None:
    raise RuntimeError("planned crash")
