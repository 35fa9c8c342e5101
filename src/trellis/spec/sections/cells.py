"""Cells of a wide table: columns that are added and subtracted.

More general expressions are refused on purpose. The noise is scaled for a record that counts once;
`2 * pop` or a window over other rows would break that, and no check could notice.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Mapping, Sequence

CellForm = Mapping[str, int]
"""Columns with the sign +1 or -1."""

SAFE_CELL = re.compile(r"\w[\w .,+-]{0,199}")
"""Cells of counts name columns; those of a histogram are named by their categories."""

_TERM = re.compile(r"\s*([+-])?\s*(?:\"([^\"]+)\"|([^\W\d]\w*))\s*")


def parse_cell(name: str, text: str) -> CellForm:
    """Read `a`, `a + b - c` or `"odd name" + b`."""
    form: dict[str, int] = {}
    position = 0
    while position < len(text):
        term = _TERM.match(text, position)
        if term is None or (position > 0 and term[1] is None):
            raise ValueError(
                f"cell {name!r}: {text!r} is not a column, or columns joined by + and - (quote "
                'odd names as "a b"); prepare anything else in the source, where it can be audited'
            )
        column = term[2] or term[3]
        if column in form:
            raise ValueError(f"cell {name!r} uses column {column!r} twice")
        form[column] = -1 if term[1] == "-" else 1
        position = term.end()
    if not form:
        raise ValueError(f"cell {name!r} names no column")
    return form


def check_cells(cells: Mapping[str, CellForm]) -> None:
    """A record must not count twice: in the sum of all cells each column has factor 0 or 1."""
    if not cells:
        raise ValueError("cells must name at least one cell, such as {total: pop}")
    factors: Counter[str] = Counter()
    for form in cells.values():
        factors.update(form)
    for column, factor in factors.items():
        if factor not in (0, 1):
            raise ValueError(
                f"the cells together count column {column!r} {factor} times; cells must be "
                "disjoint, so that a record falls into exactly one"
            )


def split_cell(name: str) -> list[str]:
    """The categories of a cell: `0-17, F`, with quotes as in a CSV file: `"Yes, both", F`."""
    return [part.strip() for part in next(csv.reader([name], skipinitialspace=True), [])]


def join_cell(categories: Sequence[str]) -> str:
    """The reverse."""
    return ", ".join(
        '"' + c.replace('"', '""') + '"' if "," in c or '"' in c else c for c in categories
    )
