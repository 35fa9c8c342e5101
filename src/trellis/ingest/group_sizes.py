"""Tabulates confidential records into true numbers of groups by size, for every leaf.

Which groups exist, and where, comes from the public register: a group without records has size 0.
Errors name the source and the column, never a value, a group or an area of a record, or how many
rows are at fault: all of that is confidential.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trellis.confidential.counts import TrueCounts
from trellis.errors import InputError
from trellis.ingest.duckdb import Reader, Source, open_source, quoted
from trellis.ingest.rows import (
    JOINED,
    ROW,
    Fault,
    check_type,
    join_leaves,
    leaf_table,
    logged,
    number_faults,
    refuse,
    unknown_area,
)
from trellis.model.trees.hierarchy import Hierarchy


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
        refuse(reader, list(_record_faults(reader, columns)))
        size = "count(r.unit)"
        if columns.quantity is not None:
            size = "coalesce(sum(TRY_CAST(r.quantity AS HUGEINT)), 0)"
        reader.view(
            "sized",
            f'SELECT u.leaf, {size} AS size, 1 AS groups, u.unit AS "group", '
            f"min(r.row, 100) AS rows FROM units u LEFT JOIN {JOINED} r "
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
        faults = number_faults(reader, columns.size, "size", "sizes")
        faults += number_faults(reader, columns.groups, "groups")
        refuse(reader, [unknown_area(reader), *faults])
        reader.view(
            "sized",
            "SELECT leaf, TRY_CAST(size AS HUGEINT) AS size, TRY_CAST(groups AS HUGEINT) AS "
            f"groups, area, row AS rows FROM {JOINED}",
        )
        counts = _by_size(reader, "sized", hierarchy, sizes)
        _check_numbers(reader, hierarchy, counts.leaves.sum(axis=1), numbers)
        return counts


def _check_numbers(
    reader: Reader, hierarchy: Hierarchy, found: NDArray[np.int64], declared: NDArray[np.int64]
) -> None:
    wrong = np.flatnonzero(found != declared)
    if wrong.size:
        codes = pa.array(hierarchy.codes(hierarchy.leaf_level)[wrong].tolist(), pa.string())
        sums = {"area": codes, "groups": found[wrong], "declared": declared[wrong]}
        reader.register("wrong_sums", pa.table(sums))
        words = (
            f"In some area the groups of all sizes in {reader.name} do not sum to the number "
            "of groups that the register declares. Count groups of size 0 too, and correct "
            "the one or the other."
        )
        raise InputError(logged(reader, words, "SELECT * FROM wrong_sums"))


def _join_units(
    reader: Reader, hierarchy: Hierarchy, units: pa.Table, columns: RecordColumns
) -> None:
    """Find the group of every record in the register."""
    reader.register("units", units)
    selected = [f"{reader.code(columns.group)} AS unit", ROW]
    joins = "LEFT JOIN units u USING (unit)"
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


def _record_faults(reader: Reader, columns: RecordColumns) -> Iterator[Fault]:
    unit = {"unit": columns.group}
    yield Fault(
        f"{reader.name} has records whose group is missing or is not in the register. "
        "Complete the register from a public source, never from the records.",
        "leaf IS NULL",
        unit,
    )
    if columns.area is not None:
        yield Fault(
            f"{reader.name} has records whose area is not the area of their group in the "
            "register. A group is in one area.",
            "leaf IS NOT NULL AND leaf IS DISTINCT FROM stated",
            {**unit, "code": columns.area},
        )
    if columns.quantity is not None:
        yield from number_faults(reader, columns.quantity, "quantity", "quantities")
        yield Fault(
            f"Column {columns.quantity!r} of {reader.name} has quantities above "
            "data.max_quantity, for which the noise is made. Declare a larger one, or bound the "
            "quantities.",
            f"TRY_CAST(quantity AS HUGEINT) > {columns.max_quantity}",
            {**unit, "quantity": columns.quantity},
        )


def _by_size(reader: Reader, view: str, hierarchy: Hierarchy, sizes: Sizes) -> TrueCounts:
    found = reader.query(
        f"SELECT leaf, CAST(least(size, {sizes.cap}) AS BIGINT) AS size, "
        f"CAST(sum(groups) AS DOUBLE) AS groups, CAST(max(size) > {sizes.cap} AS BOOLEAN) AS above "
        f"FROM {view} WHERE groups > 0 GROUP BY ALL"
    )
    if not sizes.top_code and any(found["above"].to_pylist()):
        words = (
            f"{reader.name} has groups above the declared largest size. Raise sizes.cap, or allow "
            "to count them as that size: sizes: {top_code: true}."
        )
        above = f"SELECT * EXCLUDE (leaf) FROM {view} WHERE groups > 0 AND size > {sizes.cap}"
        raise InputError(logged(reader, words, f"{above} ORDER BY rows"))
    leaves = np.zeros((hierarchy.size(hierarchy.leaf_level), sizes.cap + 1), dtype=np.int64)
    leaves[found["leaf"].to_numpy(), found["size"].to_numpy()] = found["groups"].to_numpy()
    return TrueCounts(leaves)
