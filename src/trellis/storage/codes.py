"""Codes of areas as Arrow text and back.

Read from Arrow, codes of one length in ASCII, such as those of a census, are copied as one block
of bytes; others one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trellis.model.trees.codes import CODE, Codes
from trellis.model.trees.hierarchy import Hierarchy

_known: WeakKeyDictionary[Hierarchy, dict[int, pa.Array]] = WeakKeyDictionary()


def level_codes(hierarchy: Hierarchy, level: int | str) -> pa.Array:
    """Codes of a level in node order, converted once for each hierarchy."""
    levels = _known.setdefault(hierarchy, {})
    index = hierarchy.index(level)
    if index not in levels:
        levels[index] = codes_to_arrow(hierarchy.codes(index))
    return levels[index]


def keep_level_codes(hierarchy: Hierarchy, levels: Sequence[pa.Array]) -> None:
    """Keep what the hierarchy was read from, so that it need not be converted back."""
    _known[hierarchy] = dict(enumerate(levels))


def codes_to_arrow(codes: Codes) -> pa.Array:
    return pa.array(codes.astype(object), type=pa.string())


def codes_from_arrow(column: pa.Array | pa.ChunkedArray) -> Codes:
    if column.null_count:
        raise ValueError("a code is missing")  # as text it would become None
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if isinstance(column, pa.StringArray) and (block := _equal_lengths(column)) is not None:
        return block.astype(CODE)
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=object).astype(CODE)


def text_parts(column: pa.StringArray) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    """Where codes end in the bytes of their source, the first entry where they begin; the bytes."""
    _, ends_buffer, text = column.buffers()
    first = column.offset
    if not len(column) or ends_buffer is None:
        return np.zeros(1, dtype=np.int32), np.empty(0, dtype=np.uint8)
    ends = np.frombuffer(ends_buffer, dtype=np.int32, count=first + len(column) + 1)[first:]
    characters = np.frombuffer(text or b"", dtype=np.uint8)
    return ends, characters[ends[0] : ends[-1]]


def _equal_lengths(column: pa.StringArray) -> np.ndarray | None:
    """The bytes of ASCII codes of one length, uncopied; a NUL is left to the slow way."""
    ends, characters = text_parts(column)
    lengths = np.diff(ends)
    if not lengths.size or not lengths[0] or (lengths != lengths[0]).any():
        return None
    if characters.min() == 0 or characters.max() > 127:
        return None
    return characters.view(f"S{lengths[0]}")
