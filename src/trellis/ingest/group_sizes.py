"""Tabulates confidential records into true numbers of groups by size, for every leaf.

Which groups exist, and where, comes from the public register: a group without records has size 0.
Errors name the source and the column, never a value, a group or an area of a record, or how many
rows are at fault: all of that is confidential.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trellis.confidential.counts import TrueCounts
from trellis.errors import InputError
from trellis.ingest.duckdb import Reader, Source, open_source, quoted
from trellis.ingest.rows import (
    JOINED,
    any_row,
    check_column,
    check_type,
    join_leaves,
    leaf_table,
)
from trellis.model.hierarchy import Hierarchy


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes run from 0 to `cap`; larger ones count as the cap if `top_code` says so."""

    cap: int
    top_code: bool


@dataclass(frozen=True, slots=True)
class RecordColumns:
    """Where a record names its group, and perhaps its area and what it adds to the size."""

    group: str
    area: str | None = None
    quantity: str | None = None
    max_quantity: int = 1
    width: int | None = None


@dataclass(frozen=True, slots=True)
class TableColumns:
    """Where a row has its area, a size, and how many groups of the area have it."""

    area: str
    size: str
    groups: str
    width: int | None = None


def sizes_from_records(
    source: Source, hierarchy: Hierarchy, units: pa.Table, columns: RecordColumns, sizes: Sizes
) -> TrueCounts:
    """Add up the records of every group of the register, then count groups by size and leaf."""
    with open_source(source, confidential=True) as reader:
        _join_units(reader, hierarchy, units, columns)
        size = "count(r.unit)"
        if columns.quantity is not None:
            _check_quantities(reader, columns.quantity, columns.max_quantity)
            size = "coalesce(sum(TRY_CAST(r.quantity AS HUGEINT)), 0)"
        reader.view(
            "sized",
            f"SELECT u.leaf, {size} AS size, 1 AS groups FROM units u LEFT JOIN {JOINED} r "
            "ON u.unit = r.unit GROUP BY u.unit, u.leaf",
        )
        return _by_size(reader, "sized", hierarchy, sizes)


def sizes_from_table(
    source: Source,
    hierarchy: Hierarchy,
    numbers: NDArray[np.int64],
    columns: TableColumns,
    sizes: Sizes,
) -> TrueCounts:
    """Add up rows of (area, size, groups); each area must have its declared number of groups."""
    with open_source(source, confidential=True) as reader:
        for column in (columns.size, columns.groups):
            check_type(reader, column)
        names = {columns.size: "size", columns.groups: "groups"}
        join_leaves(reader, hierarchy, reader.code(columns.area, columns.width), names)
        check_column(reader, columns.size, "size", "sizes")
        check_column(reader, columns.groups, "groups")
        reader.view(
            "sized",
            "SELECT leaf, TRY_CAST(size AS HUGEINT) AS size, TRY_CAST(groups AS HUGEINT) AS groups "
            f"FROM {JOINED}",
        )
        counts = _by_size(reader, "sized", hierarchy, sizes)
        if (counts.leaves.sum(axis=1) != numbers).any():
            raise InputError(
                f"In some area the groups of all sizes in {reader.name} do not sum to the number "
                "of groups that the register declares. Count groups of size 0 too, and correct "
                "the one or the other."
            )
        return counts


def _join_units(
    reader: Reader, hierarchy: Hierarchy, units: pa.Table, columns: RecordColumns
) -> None:
    """Find the group of every record in the register."""
    reader.register("units", units)
    selected, joins = [f"{reader.code(columns.group)} AS unit"], "LEFT JOIN units u USING (unit)"
    place = "u.leaf"
    if columns.area is not None:
        reader.register("leaves", leaf_table(hierarchy))
        selected.append(f"{reader.code(columns.area, columns.width)} AS code")
        joins += " LEFT JOIN leaves l USING (code)"
        place += ", l.leaf AS stated"
    if columns.quantity is not None:
        check_type(reader, columns.quantity)
        selected.append(f"{quoted(columns.quantity)} AS quantity")
    reader.view(
        JOINED,
        f"SELECT s.*, {place} FROM (SELECT {', '.join(selected)} FROM {reader.rows}) s {joins}",
    )
    if any_row(reader, "leaf IS NULL"):
        raise InputError(
            f"{reader.name} has records whose group is missing or is not in the register. "
            "Complete the register from a public source, never from the records."
        )
    if columns.area is not None and any_row(reader, "leaf IS DISTINCT FROM stated"):
        raise InputError(
            f"{reader.name} has records whose area is not the area of their group in the "
            "register. A group is in one area."
        )


def _check_quantities(reader: Reader, column: str, most: int) -> None:
    check_column(reader, column, "quantity", "quantities")
    if any_row(reader, f"TRY_CAST(quantity AS HUGEINT) > {most}"):
        raise InputError(
            f"Column {column!r} of {reader.name} has quantities above data.max_quantity, for "
            "which the noise is made. Declare a larger one, or bound the quantities."
        )


def _by_size(reader: Reader, view: str, hierarchy: Hierarchy, sizes: Sizes) -> TrueCounts:
    found = reader.query(
        f"SELECT leaf, CAST(least(size, {sizes.cap}) AS BIGINT) AS size, "
        f"CAST(sum(groups) AS DOUBLE) AS groups, CAST(max(size) > {sizes.cap} AS BOOLEAN) AS above "
        f"FROM {view} WHERE groups > 0 GROUP BY ALL"
    )
    if not sizes.top_code and any(found["above"].to_pylist()):
        raise InputError(
            f"{reader.name} has groups above the declared largest size. Raise sizes.cap, or allow "
            "to count them as that size: sizes: {top_code: true}."
        )
    leaves = np.zeros((hierarchy.size(hierarchy.leaf_level), sizes.cap + 1), dtype=np.int64)
    leaves[found["leaf"].to_numpy(), found["size"].to_numpy()] = found["groups"].to_numpy()
    return TrueCounts(leaves)
