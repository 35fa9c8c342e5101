"""How objects look in a notebook."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import pyarrow as pa

MOST_ROWS = 10
"""Rows of a table that a notebook shows."""


def text_block(title: str, text: str) -> str:
    """Text as it is, under a title."""
    return f"<b>{escape(title)}</b><pre>{escape(text)}</pre>"


def table_block(columns: Sequence[str], table: pa.Table) -> str:
    """The first rows of a table, and how many more there are."""
    rows = [tuple(row.values()) for row in table.slice(0, MOST_ROWS).to_pylist()]
    left = table.num_rows - len(rows)
    more = f"<p>{left:,} more rows</p>" if left else ""
    return rows_block(columns, rows) + more


def rows_block(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Rows under the names of their columns."""
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: Any) -> str:
    text = f"{value:.4g}" if isinstance(value, float) else "" if value is None else str(value)
    return f"<td>{escape(text)}</td>"


def list_block(title: str, lines: Iterable[str]) -> str:
    """Lines as a list, under a title."""
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return f"<b>{escape(title)}</b><ul>{items}</ul>"
