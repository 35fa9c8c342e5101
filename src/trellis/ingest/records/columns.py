"""Checks the columns of confidential records before anything else is read."""

from __future__ import annotations

from collections.abc import Sequence

from trellis.errors import InputError
from trellis.ingest.checks import number_faults, refuse
from trellis.ingest.columns import check_number, require
from trellis.ingest.engines import open_source
from trellis.ingest.reader import Source
from trellis.ingest.terms import Number, Rows


def check_columns(
    source: Source, texts: Sequence[str], numbers: Sequence[str], *, rows_too: bool
) -> None:
    """All columns that are missing or of another type; and numbers, where areas are not known."""
    faults = []
    with open_source(source, confidential=True) as reader:
        for column in dict.fromkeys([*texts, *numbers]):
            try:
                require(reader, column)
                if column in numbers:
                    check_number(reader, column)
            except InputError as error:
                faults += error.faults
        if faults:
            raise InputError(*faults)
        if rows_too:
            named = {column: f"number_{i}" for i, column in enumerate(dict.fromkeys(numbers))}
            rows = Rows({name: Number(column) for column, name in named.items()})
            refuse(reader, [f for c, n in named.items() for f in number_faults(reader, c, n)], rows)
