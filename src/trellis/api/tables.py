"""A table that any data frame library can read."""

from __future__ import annotations

from typing import Any

import pyarrow as pa


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
