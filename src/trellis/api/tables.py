"""A table that any data frame library can read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from trellis.storage.atomic import write_text
from trellis.storage.spreadsheets import csv_text


class Table:
    """A published table; it speaks the Arrow protocol, so frames are made without copies.

    >>> table = tr.Table(pa.table({"geocode": ["a", "b"], "count": [1, 2]}))
    >>> len(table), table.columns
    (2, ['geocode', 'count'])
    """

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return self._table.column_names

    def to_arrow(self) -> pa.Table:
        """The Arrow table itself."""
        return self._table

    def to_pandas(self) -> Any:
        """A pandas frame; codes and categories are text."""
        return self._table.to_pandas()

    def to_polars(self) -> Any:
        """A Polars frame."""
        import polars

        return polars.from_arrow(self._table)

    def to_pylist(self) -> list[dict[str, Any]]:
        """One dictionary per row."""
        return self._table.to_pylist()

    def to_csv(self, path: str | Path) -> Path:
        """Write a CSV file; text that a spreadsheet would take for a formula gets an apostrophe.

        >>> table = tr.Table(pa.table({"geocode": ["=1+1"], "count": [1]}))
        >>> table.to_csv("table.csv").read_text().splitlines()
        ['geocode,count', "'=1+1,1"]
        """
        write_text(Path(path), csv_text(self._table))
        return Path(path)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return self._table.num_rows

    def __getitem__(self, column: str) -> pa.ChunkedArray:
        return self._table[column]

    def __repr__(self) -> str:
        return f"Table({len(self):,} rows: {', '.join(self.columns)})"

    def _repr_html_(self) -> str:
        from trellis.api.pages import table_block

        return table_block(self.columns, self._table)
