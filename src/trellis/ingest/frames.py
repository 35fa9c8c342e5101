"""Frames that were handed over in Python: as tables, and whether two are the same.

A register or a list of areas must not be the records. Which frame a program hands over is its
owner's doing and tells nothing about the records, so frames that are one object, or lie in the same
memory, may be refused. Equal content must not be: if it were, a release would prove that the
records differ from the public frame, whatever the noise. In that case the operator is only warned.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.lib.array_utils import byte_bounds

from trellis.errors import SourceError

FRAME_NAME = b"trellis.source"
"""In the metadata of a frame: what messages call it, such as the table of a database."""


def as_table(frame: Any) -> pa.Table:
    """An Arrow table from an Arrow, Polars or pandas frame."""
    try:
        return frame if isinstance(frame, pa.Table) else pa.table(frame)
    except (TypeError, ValueError, pa.ArrowException):
        raise SourceError(
            f"A {type(frame).__name__} cannot be read as a table: pass an Arrow table, "
            "a Polars or a pandas frame."
        ) from None


def frame_name(frame: pa.Table) -> str:
    return (frame.schema.metadata or {}).get(FRAME_NAME, b"the frame").decode()


def is_named_frame(frame: pa.Table) -> bool:
    """Whether it comes from a database, which has names of its own."""
    return FRAME_NAME in (frame.schema.metadata or {})


def are_one(one: Any, other: Any) -> bool:
    """The same object, or views, columns or slices of the same memory under any wrapper."""
    if one is other:
        return True
    # Both tables live to the end: memory of one that is gone could be used again by the other.
    tables = as_table(one), as_table(other)
    a, b = (
        np.array([*_buffers(table), *_arrays(frame)], dtype=np.uint64).reshape(-1, 2)
        for table, frame in zip(tables, (one, other), strict=True)
    )
    return bool(((a[:, :1] < b[:, 1]) & (b[:, 0] < a[:, 1:])).any())


def _buffers(table: pa.Table) -> Iterator[tuple[int, int]]:
    """Most frames become Arrow tables without being copied."""
    for column in table.columns:
        for buffer in (buffer for chunk in column.chunks for buffer in chunk.buffers()):
            if buffer is not None and buffer.size:
                yield buffer.address, buffer.address + buffer.size


def _arrays(frame: Any) -> Iterator[tuple[int, int]]:
    """Columns of pandas that lie in NumPy arrays: objects and reversed views would be copied."""
    if hasattr(frame, "items") and hasattr(frame, "dtypes"):
        for _, column in frame.items():  # noqa: PERF102 (pandas has no values() of columns)
            if isinstance(column.dtype, np.dtype) and len(column):
                yield byte_bounds(column.to_numpy())


def is_copy(one: Any, other: Any) -> bool:
    """Whether `one` has rows of `other`, all of them in order, perhaps with fewer columns."""
    a, b = as_table(one), as_table(other)
    if not a.num_rows or a.num_rows != b.num_rows or not set(a.column_names) <= set(b.column_names):
        return False
    return all(_is_equal(a[name], b[name]) for name in a.column_names)


def _is_equal(one: pa.ChunkedArray, other: pa.ChunkedArray) -> bool:
    try:
        return one.cast(pa.string()).equals(other.cast(pa.string()))
    except pa.ArrowException:  # of a type that is not text, or of two types
        return one.equals(other)
