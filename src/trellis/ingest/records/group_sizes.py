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
from trellis.ingest.checks import (
    Fault,
    group_error,
    leaf_of,
    logged,
    number_faults,
    refuse,
    unknown_area,
)
from trellis.ingest.columns import check_number, code
from trellis.ingest.engines import open_source
from trellis.ingest.reader import Reader, Source
from trellis.ingest.terms import (
    EACH,
    ROW,
    ROWS,
    Above,
    AtMost,
    Both,
    Differs,
    Field,
    Groups,
    Linear,
    Lookup,
    Missing,
    Number,
    Relation,
    Rows,
)
from trellis.model.trees.hierarchy import Hierarchy

_NO_NUMBER = 2**62


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
        rows = _record_rows(reader, hierarchy, units, columns)
        refuse(reader, list(_record_faults(reader, columns)), rows)
        size = EACH if columns.quantity is None else "added"
        groups = Groups(rows, ("leaf", "unit"), {"size": size})
        above = Fault(
            _above_words(reader),
            Above("size", sizes.cap),
            {"size": "size", EACH: "groups", "unit": "group", ROWS: ROWS},
        )
        leaves = _by_size(reader, groups, EACH, above, hierarchy, sizes)
    listed = np.bincount(units["leaf"].to_numpy(), minlength=leaves.shape[0])
    leaves[:, 0] += listed - leaves.sum(axis=1)  # groups of the register without records
    return TrueCounts(leaves)


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
            check_number(reader, column)
        rows = Rows(
            {
                "area": code(reader, columns.area, columns.width),
                "given_size": Number(columns.size),
                "given_groups": Number(columns.groups),
            },
            {"leaf": leaf_of("area", hierarchy)},
            {"size": Linear((("given_size", 1),)), "groups": Linear((("given_groups", 1),))},
        )
        faults = number_faults(reader, columns.size, "given_size", "sizes")
        faults += number_faults(reader, columns.groups, "given_groups")
        refuse(reader, [unknown_area(reader), *faults], rows)
        above = Fault(
            _above_words(reader),
            Both(Above("groups", 0), Above("size", sizes.cap)),
            {"size": "size", "groups": "groups", "area": "area", ROW: ROWS},
        )
        leaves = _by_size(reader, rows, "groups", above, hierarchy, sizes)
        _check_numbers(reader, hierarchy, leaves.sum(axis=1), numbers)
    return TrueCounts(leaves)


def _check_numbers(
    reader: Reader, hierarchy: Hierarchy, found: NDArray[np.int64], declared: NDArray[np.int64]
) -> None:
    wrong = np.flatnonzero(found != declared)
    if wrong.size:
        codes = pa.array(hierarchy.codes(hierarchy.leaf_level)[wrong].tolist(), pa.string())
        sums = pa.table({"area": codes, "groups": found[wrong], "declared": declared[wrong]})
        words = (
            f"In some area the groups of all sizes in {reader.name} do not sum to the number "
            "of groups that the register declares. Count groups of size 0 too, and correct the "
            "table or the register."
        )
        raise InputError(logged(reader, words, lambda: sums))


def _record_rows(
    reader: Reader, hierarchy: Hierarchy, units: pa.Table, columns: RecordColumns
) -> Rows:
    """Records with the leaf of their group in the register, and the leaf that they state."""
    fields: dict[str, Field] = {"unit": code(reader, columns.group)}
    lookups = {"leaf": Lookup("unit", units["unit"], units["leaf"])}
    numbers = {}
    if columns.area is not None:
        fields["code"] = code(reader, columns.area, columns.width)
        lookups["stated"] = leaf_of("code", hierarchy)
    if columns.quantity is not None:
        check_number(reader, columns.quantity)
        fields["quantity"] = Number(columns.quantity)
        numbers["added"] = Linear((("quantity", 1),))
    return Rows(fields, lookups, numbers)


def _record_faults(reader: Reader, columns: RecordColumns) -> Iterator[Fault]:
    unit = {"unit": columns.group}
    yield Fault(
        f"{reader.name} has records whose group is missing or is not in the register. "
        "Complete the register from a public source, never from the records.",
        Missing("leaf"),
        unit,
    )
    if columns.area is not None:
        yield Fault(
            f"{reader.name} has records whose area is not the area of their group in the "
            "register. A group is in one area.",
            Differs("leaf", "stated"),
            {**unit, "code": columns.area},
        )
    if columns.quantity is not None:
        yield from number_faults(reader, columns.quantity, "quantity", "quantities")
        yield Fault(
            f"Column {columns.quantity!r} of {reader.name} has quantities above "
            "data.max_quantity, for which the noise is made. Declare a larger one, or bound the "
            "quantities.",
            Above("added", columns.max_quantity),
            {**unit, "quantity": columns.quantity},
        )


def _above_words(reader: Reader) -> str:
    return (
        f"{reader.name} has groups above the declared largest size. Raise sizes.cap, or count them "
        "as that size: sizes: {top_code: true}."
    )


def _by_size(
    reader: Reader,
    sized: Relation,
    groups: str,
    above: Fault,
    hierarchy: Hierarchy,
    sizes: Sizes,
) -> NDArray[np.int64]:
    """How many groups each leaf has of each size; `above` is a size above the largest."""
    keys = ["leaf", AtMost("size", sizes.cap)]
    found, passed = reader.sums(sized, keys, [groups], [above.test])
    if passed[0] and not sizes.top_code:
        raise group_error(reader, sized, above)
    leaves = np.zeros((hierarchy.size(hierarchy.leaf_level), sizes.cap + 1), dtype=np.int64)
    # A sum beyond 64 bits is not a number of groups that a register declares either.
    numbers = found[groups].fill_null(_NO_NUMBER).to_numpy()
    leaves[found["leaf"].to_numpy(), found["size"].to_numpy()] = numbers
    return leaves
