"""Text in CSV files that a spreadsheet would carry out as a formula gets an apostrophe in front."""

from __future__ import annotations

import csv
from io import StringIO
from typing import Any

import pyarrow as pa
import pyarrow.compute

pc: Any = pyarrow.compute  # made at import, so the type checker does not know its functions

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")


def safe_text(text: str) -> str:
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text


def spreadsheet_safe(table: pa.Table) -> pa.Table:
    """The same for all columns of text."""
    starts = pa.array(FORMULA_STARTS)
    for at, field in enumerate(table.schema):
        is_listed = pa.types.is_dictionary(field.type)
        if is_listed or pa.types.is_string(field.type):
            text = table[field.name].cast(pa.string())
            begins = pc.is_in(pc.utf8_slice_codeunits(text, 0, 1), starts)
            if pc.any(begins).as_py():
                safe = pc.if_else(begins, pc.binary_join_element_wise("'", text, ""), text)
                table = table.set_column(at, field.name, safe)
    return table


def csv_text(table: pa.Table) -> str:
    """A table as CSV that is safe to open in a spreadsheet."""
    text = StringIO()
    writer = csv.writer(text)
    writer.writerow(table.column_names)
    for batch in spreadsheet_safe(table).to_batches():
        writer.writerows(zip(*(column.to_pylist() for column in batch.columns), strict=True))
    return text.getvalue()
