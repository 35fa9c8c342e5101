"""Whether a Parquet file has the form that the inventory gives it, by its footer alone."""

from __future__ import annotations

import json
import os
import re
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

TEXT, WHOLE, REAL = "text", "whole numbers", "real numbers"
NUMBER, FLAG = "numbers", "true or false"
"""Kinds of values; numbers are whole or real, as the method has it."""

MOST_FOOTER_BYTES = 16_000_000
ROWS_PER_BYTE = 64
"""Areas have distinct codes, so that a tree takes some room: in order, about a byte for each."""

_MOST_PIECE = 1 << 26
"""Rows that are read at once of a file that is read in pieces."""

_FILE_KEYS = {b"ARROW:schema"}
_LEVELS = b"trellis.levels"
_TAIL = struct.Struct("<I4s")
_MAGIC = b"PAR1"
_WRITER = re.compile(r"parquet-cpp-arrow version \d{1,4}\.\d{1,4}\.\d{1,4}")


@dataclass(frozen=True, slots=True)
class Form:
    """A Parquet file: its columns, how many rows it may have, and levels in its metadata."""

    columns: Mapping[str, str]
    most: int
    least: int = 0
    levels: tuple[str, ...] = ()
    in_pieces: bool = False


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind.value_type if pa.types.is_dictionary(kind) else kind)


_IS: dict[str, Callable[[pa.DataType], bool]] = {
    TEXT: _is_text,
    WHOLE: pa.types.is_integer,
    REAL: pa.types.is_float64,
    NUMBER: lambda kind: pa.types.is_integer(kind) or pa.types.is_float64(kind),
    FLAG: pa.types.is_boolean,
}


def misfits(folder: Path, name: str, size: int, form: Form) -> Iterator[str]:
    """What is wrong with one file; no value is read."""
    try:
        if not _has_small_footer(folder / name, size):
            yield f"{name} is damaged, or has more metadata than a run writes"
            return
        with pq.ParquetFile(folder / name) as file:
            about, schema = file.metadata, file.schema_arrow
    except (OSError, pa.ArrowException):
        yield f"{name} is missing or damaged"
        return
    yield from _columns(name, schema, form)
    yield from _metadata(name, about, schema, form)
    if not form.least <= about.num_rows <= form.most:
        yield f"{name} has another number of rows than planned"
    elif form.levels and about.num_rows > ROWS_PER_BYTE * size:
        yield f"{name} has more rows than areas with codes of their own can have in its size"
    elif not _fits(about, form):
        yield f"{name} has more rows than this machine can hold at once"


def _has_small_footer(path: Path, size: int) -> bool:
    with path.open("rb") as file:
        file.seek(max(0, size - _TAIL.size))
        tail = file.read(_TAIL.size)
    if len(tail) < _TAIL.size:
        return False
    length, magic = _TAIL.unpack(tail)
    return magic == _MAGIC and length <= min(size, MOST_FOOTER_BYTES)


def has_nothing_between(path: Path, size: int) -> bool:
    """Whether values fill the file up to a footer that is as the installed Arrow writes it."""
    end, about = len(_MAGIC), pq.read_metadata(path)
    for group in map(about.row_group, range(about.num_row_groups)):
        for column in map(group.column, range(group.num_columns)):
            first = (
                column.dictionary_page_offset
                if column.has_dictionary_page
                else column.data_page_offset
            )
            is_there = column.total_compressed_size > 0
            if (is_there and first != end) or column.metadata or column.file_path:
                return False
            end += column.total_compressed_size
    again = BytesIO()
    about.write_metadata_file(again)
    footer = again.getvalue()[len(_MAGIC) :]
    with path.open("rb") as file:
        file.seek(end)
        return file.read(size) == footer and _WRITER.fullmatch(about.created_by) is not None


def _columns(name: str, schema: pa.Schema, form: Form) -> Iterator[str]:
    for column in schema:
        kind = form.columns.get(column.name)
        if kind is None:
            yield f"{name} has a column {column.name[:80]!r} that was not promised"
        elif not _IS[kind](column.type):
            yield f"{name} has values of {column.name} that are not {kind}"
    if len(set(schema.names)) != len(schema.names):
        yield f"{name} has two columns of one name"


def _metadata(name: str, about: pq.FileMetaData, schema: pa.Schema, form: Form) -> Iterator[str]:
    """Keys with text: Arrow's form of the columns, the levels of a tree, and nothing else."""
    stated = about.metadata or {}
    known = _FILE_KEYS | ({_LEVELS} if form.levels else set())
    inner = set(schema.metadata or {}) - known
    fields = {key for column in schema for key in column.metadata or {}} - {b"PARQUET:field_id"}
    if set(stated) - known or inner or fields:
        yield f"{name} has metadata that no run writes"
    # Arrow repeats the levels in its own form; as base64, and with room for other versions.
    if len(stated.get(b"ARROW:schema", b"")) > 2 * len(schema.serialize()) + 1000:
        yield f"{name} has metadata that no run writes"
    if form.levels and _levels(stated.get(_LEVELS, b"")) != list(form.levels):
        yield f"{name} names other levels than plan.json"


def _levels(text: bytes) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _fits(about: pq.FileMetaData, form: Form) -> bool:
    if form.in_pieces:
        rows = (about.row_group(i).num_rows for i in range(about.num_row_groups))
        return max(rows, default=0) <= _MOST_PIECE
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return 8 * about.num_rows * len(form.columns) <= memory
