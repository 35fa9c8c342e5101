"""The published tables as CSV: the same values as Parquet, and nothing between them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv as pa_csv

from trellis.verify.files.histogram_files import tables as published
from trellis.verify.files.run_files import RunFiles

pc: Any = pyarrow.compute  # made at import, so the type checker does not know its functions

_BLOCK = 1 << 24
"""Bytes of a file that are read at once."""


def csv(run: RunFiles) -> Iterator[str]:
    """A CSV table says the same as the Parquet table."""
    levels = [level["level"] for level in run.plan["levels"]]
    names = [f"release/{level}" for level in levels]
    names += [f"release/areas/{area['name']}" for area in run.plan.get("areas", [])]
    if "histogram" in run.plan:
        names = [stem for _, _, stem in published(run)]
    elif run.has_sizes:
        names += [f"release/statistics/{level}" for level in levels]
    for stem in names:
        name, path = f"{stem}.csv", run.path / f"{stem}.csv"
        if not path.exists():
            continue
        table = run.table(f"{stem}.parquet")
        wrong = list(_compared(name, path, table))
        if not wrong and not _is_plain(path, table.schema):
            wrong = [f"{name} has blank space, or a form, that no run writes"]
        yield from wrong


def _compared(name: str, path: Path, table: pa.Table) -> Iterator[str]:
    """Piece by piece, since a stranger's file may have any length."""
    as_text, at, wrong = dict.fromkeys(table.column_names, pa.string()), 0, set()
    try:
        with pa_csv.open_csv(
            path,
            read_options=pa_csv.ReadOptions(block_size=_BLOCK),
            parse_options=pa_csv.ParseOptions(newlines_in_values=True),
            convert_options=pa_csv.ConvertOptions(column_types=as_text),
        ) as file:
            has_columns = file.schema.names == table.column_names
            for piece in file if has_columns else ():
                part = table.slice(at, piece.num_rows)
                at += piece.num_rows
                if at > len(table):
                    break
                wrong |= {c for c in as_text if not _same(piece[c], part[c], c, table)}
    except pa.ArrowException:
        yield f"{name} is damaged"
        return
    if not has_columns or at != len(table):
        yield f"{name} has another shape than the Parquet table"
    for column in sorted(wrong):
        yield f"{name} differs from the Parquet table in {column}"


def _same(text: pa.Array, values: pa.ChunkedArray, name: str, table: pa.Table) -> bool:
    column = values.combine_chunks()
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_string(column.type):
        # A spreadsheet would carry out what begins like a formula; an apostrophe prevents it.
        formula = pc.match_substring_regex(column, r"\A[=+@\t\r\n-]")
        guard = pc.if_else(formula, "'", "")
        return text.equals(pc.binary_join_element_wise(guard, column, ""))
    try:
        numbers = pc.if_else(pc.equal(text, ""), None, text).cast(pa.float64())
    except pa.ArrowInvalid:
        return False
    full = column.cast(pa.float64(), safe=False)
    if numbers.equals(full):
        return True
    if not numbers.is_null().equals(full.is_null()):
        return False
    return _is_rounded(numbers.drop_null().to_numpy(), full.drop_null().to_numpy(), name, table)


def _is_rounded(short: np.ndarray, full: np.ndarray, name: str, table: pa.Table) -> bool:
    """Standard errors to four significant digits, statistics to six decimals; nothing else."""
    if name == "std_error":
        pairs = np.unique(np.column_stack([short, full]), axis=0).tolist()
        return all(float(f"{s:.4g}") == s and abs(s - f) <= 5.001e-4 * f for s, f in pairs)
    if "statistic" in table.column_names:
        is_finite = np.isfinite(full)
        if not np.array_equal(short[~is_finite], full[~is_finite]):
            return False
        short, full = short[is_finite], full[is_finite]
        near = np.abs(short - full) <= 5.001e-7 + 1e-15 * np.abs(full)
        return bool(near.all()) and all(round(x, 6) == x for x in short.tolist())
    return False


class _SameBytes:
    """Stands in for a file: what is written must be what another file holds next."""

    closed = False

    def __init__(self, other: BinaryIO) -> None:
        self._other = other
        self.is_same = True

    def write(self, text: bytes) -> int:
        self.is_same = self.is_same and self._other.read(len(text)) == bytes(text)
        return len(text)

    def flush(self) -> None:
        """Nothing is kept back."""


def _is_plain(path: Path, schema: pa.Schema) -> bool:
    """Whether the values, read and written again, are the file byte for byte."""
    types = [
        (column.name, pa.string() if _is_text(column.type) else column.type) for column in schema
    ]
    reading = {
        "read_options": pa_csv.ReadOptions(block_size=_BLOCK),
        "parse_options": pa_csv.ParseOptions(newlines_in_values=True),
        "convert_options": pa_csv.ConvertOptions(
            column_types=dict(types), strings_can_be_null=False, null_values=[""]
        ),
    }
    with path.open("rb") as there:
        sink = _SameBytes(there)
        try:
            with (
                pa_csv.open_csv(path, **reading) as file,
                pa_csv.CSVWriter(pa.PythonFile(sink, "w"), pa.schema(types)) as again,
            ):
                for piece in file:
                    again.write(piece)
        except pa.ArrowException:
            return False
        return sink.is_same and not there.read(1)


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_dictionary(kind) or pa.types.is_string(kind)
