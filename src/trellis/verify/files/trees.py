"""A tree of areas as its file has it, and the digest that a plan knows it by."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from itertools import pairwise
from json import dumps, loads
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from trellis.verify.files.run_files import Level, RunFiles
from trellis.verify.files.safe_files import Unreadable

pc: Any = pyarrow.compute  # made at import, so the type checker does not know its functions


def read_tree(run: RunFiles, name: str) -> list[Level]:
    """The levels of a file, root first, with the names that it gives them."""
    table = run.table(name)
    names = loads((table.schema.metadata or {}).get(b"trellis.levels", b"null"))
    if not isinstance(names, list):
        raise Unreadable(f"{name} does not name its levels")
    position = table["level"].to_numpy()
    levels = []
    for index, level in enumerate(names):
        part = table.filter(pa.array(position == index))
        padding = part["passes_through"].to_numpy(zero_copy_only=False)
        codes = part["code"].combine_chunks()
        levels.append(Level(level, codes, part["parent"].to_numpy(), padding))
    return levels


def no_tree(levels: list[Level]) -> Iterator[str]:
    """What keeps the levels from being a tree with its areas in order."""
    if levels[0].parent.tolist() != [-1]:
        yield "the root has a parent"
    for above, level in pairwise(levels):
        if not np.array_equal(np.unique(level.parent), np.arange(len(above))):
            yield f"level {level.name} has areas without a parent, or leaves one without children"
        elif (np.diff(level.parent) < 0).any():
            yield f"level {level.name} does not list its areas by their parents"
    for level in levels:
        if not _are_unique(level.geocodes):
            yield f"level {level.name} has a code twice"


def _are_unique(codes: pa.Array) -> bool:
    """Codes that only grow are, and looking at neighbours is quick."""
    grow = pc.all(pc.greater(codes[1:], codes[:-1])).as_py()
    return not codes.null_count and (grow or len(pc.unique(codes)) == len(codes))


def tree_digest(levels: list[Level]) -> str:
    """SHA-256 over names, and per level over codes, where families begin, and padding.

    Where families begin says all about parents that stand in order, and the root has none.
    """
    digest = sha256(dumps([level.name for level in levels]).encode())
    for index, level in enumerate(levels):
        if np.any(np.diff(level.parent) < 0) or (index == 0 and level.parent.tolist() != [-1]):
            raise Unreadable("the areas of a tree do not stand in the order of their parents")
        lengths = pc.binary_length(level.geocodes).to_numpy()
        digest.update(np.concatenate([[0], np.cumsum(lengths)]).astype("<i4").tobytes())
        for start in range(0, len(level), 1 << 16):
            text = level.geocodes[start : start + (1 << 16)]
            digest.update("".join(text.to_pylist()).encode())
        if index + 1 < len(levels):
            begins = np.searchsorted(levels[index + 1].parent, np.arange(len(level) + 1))
            digest.update(begins.astype("<i8").tobytes())
        digest.update(np.packbits(level.padding).tobytes())
    return digest.hexdigest()
