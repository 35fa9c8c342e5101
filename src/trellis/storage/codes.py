"""Codes of areas as Arrow text and back.

Read from Arrow, codes of one length in ASCII, such as those of a census, are copied as one block
of bytes; others one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa

from trellis.model.hierarchy import CODE, Codes, Hierarchy

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


def _equal_lengths(column: pa.StringArray) -> np.ndarray | None:
    """The bytes of ASCII codes of one length, uncopied; a NUL is left to the slow way."""
    _, ends_buffer, text = column.buffers()
    if not len(column) or ends_buffer is None or text is None:
        return None
    first = column.offset
    ends = np.frombuffer(ends_buffer, dtype=np.int32, count=first + len(column) + 1)[first:]
    lengths = np.diff(ends)
    if not lengths[0] or (lengths != lengths[0]).any():
        return None
    characters = np.frombuffer(text, dtype=np.uint8, count=ends[-1])[ends[0] :]
    if characters.min() == 0 or characters.max() > 127:
        return None
    return characters.view(f"S{lengths[0]}")
