"""Arrow tables on disk."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from trellis.errors import RunFolderError, StructureError


def write_table(path: Path, table: pa.Table) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, compression="zstd", write_statistics=True)


def read_table(path: Path, columns: list[str] | None = None) -> pa.Table:
    """A table by its path alone; folder names such as level=county add no columns."""
    try:
        with pq.ParquetFile(path) as file:
            return file.read(columns=columns)
    except FileNotFoundError:
        raise RunFolderError(f"{path} is missing.") from None
    except (OSError, pa.ArrowException):
        raise RunFolderError(f"{path} is damaged: it holds no readable Parquet.") from None


def table_shape(path: Path) -> tuple[int, list[str]]:
    """Number of rows and names of columns, without reading the rows."""
    try:
        with pq.ParquetFile(path) as file:
            return file.metadata.num_rows, file.schema_arrow.names
    except FileNotFoundError:
        raise RunFolderError(f"{path} is missing.") from None
    except (OSError, pa.ArrowException):
        raise RunFolderError(f"{path} is damaged: it holds no readable Parquet.") from None


@contextmanager
def refusing_damage(path: Path) -> Iterator[None]:
    """Turns what is wrong with the content of a readable file into one kind of error."""
    try:
        yield
    except (KeyError, TypeError, ValueError, pa.ArrowException, StructureError):
        raise RunFolderError(f"{path} is damaged: it does not hold what it should.") from None


def repeated(value: Any, size: int, type_: pa.DataType) -> pa.Array:
    """A column that holds one value, stored as runs on disk."""
    return pa.repeat(pa.scalar(value, type=type_), size)
