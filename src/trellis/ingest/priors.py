"""Reads public counts of an earlier or assumed state of the areas: a prior.

A prior may belong to an older list of areas. A crosswalk then splits each old area over the new
ones, in parts that are scaled to sum to one. Everything here is public, so errors quote codes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trellis.errors import InputError
from trellis.ingest.duckdb import Reader, Source, open_source
from trellis.ingest.histograms import tabulate_long
from trellis.ingest.rows import MOST, check_type
from trellis.model.tables.schema import Schema
from trellis.model.tables.sparse_counts import SparseCounts
from trellis.model.trees.hierarchy import Hierarchy

Form = Mapping[str, int]
"""A cell as columns with the factor +1 or -1."""

_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Crosswalk:
    """Columns of a file that says which new areas an old area became, and in which parts."""

    source: Source
    old: str
    new: str
    share: str | None


@dataclass(frozen=True, slots=True)
class Prior:
    """A file of counts by area; `missing_is_zero` for areas that it leaves out."""

    source: Source
    area: str
    cells: Sequence[Form]
    crosswalk: Crosswalk | None = None
    missing_is_zero: bool = False


def read_prior(prior: Prior, hierarchy: Hierarchy, width: int | None) -> NDArray[np.int64]:
    """Counts of all leaves by cell, as whole numbers that keep the totals of all areas nearly."""
    with open_source(prior.source) as reader:
        table, name = _sums_by_area(reader, prior, width), reader.name
    if prior.crosswalk is not None:
        with open_source(prior.crosswalk.source) as reader:
            table = _carried_over(reader, prior.crosswalk, table, width, name)
    return _whole(_by_leaf(table, hierarchy, prior, name))


def _sums_by_area(reader: Reader, prior: Prior, width: int | None) -> pa.Table:
    columns = sorted({column for form in prior.cells for column in form})
    for column in columns:
        check_type(reader, column)
    values = {column: f"TRY_CAST({reader.require(column)} AS DOUBLE)" for column in columns}
    cells = [
        " ".join(f"{'+' if sign > 0 else '-'} {values[column]}" for column, sign in form.items())
        for form in prior.cells
    ]
    for cell in cells:
        bad = f"coalesce(NOT isfinite({cell}) OR {cell} < 0 OR {cell} > {MOST}, true)"
        if _any_row(reader, bad):
            raise InputError(
                f"{reader.name} has counts that are missing, negative, unreadable or impossibly "
                f"large in {', '.join(map(repr, columns))}. A prior holds numbers of at least zero."
            )
    sums = ", ".join(f"sum({cell}) AS cell_{i}" for i, cell in enumerate(cells))
    return reader.query(
        f"SELECT {reader.code(prior.area, width)} AS code, {sums} FROM {reader.rows} "
        "GROUP BY code ORDER BY code"
    )


def _any_row(reader: Reader, test: str) -> bool:
    # As a filter, the test could be answered by the statistics of a Parquet file, which omit NaN.
    found = reader.query(f"SELECT coalesce(bool_or({test}), false) AS found FROM {reader.rows}")
    return found["found"][0].as_py()


def _carried_over(
    reader: Reader, crosswalk: Crosswalk, table: pa.Table, width: int | None, prior: str
) -> pa.Table:
    """Counts of the new areas; old areas that count nothing need not be listed."""
    share = "1.0"
    if crosswalk.share is not None:
        check_type(reader, crosswalk.share)
        share = f"TRY_CAST({reader.require(crosswalk.share)} AS DOUBLE)"
        bad = f"coalesce(NOT isfinite({share}) OR {share} < 0, true)"
        if _any_row(reader, bad):
            raise InputError(
                f"Column {crosswalk.share!r} of {reader.name} has parts that are missing, "
                "negative or unreadable. Every row needs a number of at least zero."
            )
    old, new = reader.code(crosswalk.old, width), reader.code(crosswalk.new, width)
    reader.register("prior", table)
    # Parts of an area that are all zero, such as those of land in a lake, are made equal.
    reader.view(
        "parts",
        f"SELECT old, new, CASE WHEN whole > 0 THEN part / whole ELSE 1.0 / rows END AS part FROM "
        f"(SELECT *, sum(part) OVER (PARTITION BY old) AS whole, count(*) OVER (PARTITION BY old) "
        f"AS rows FROM (SELECT {old} AS old, {new} AS new, {share} AS part FROM {reader.rows}))",
    )
    cells = [name for name in table.column_names if name != "code"]
    counts = " + ".join(cells)
    lost = reader.query(
        f"SELECT code FROM prior WHERE {counts} > 0 AND code NOT IN "
        "(SELECT old FROM parts WHERE old IS NOT NULL) ORDER BY code"
    )
    if lost.num_rows:
        raise InputError(
            f"{_listed(lost['code'].to_pylist())} of {prior} have counts and are not in column "
            f"{crosswalk.old!r} of {reader.name}. Complete the crosswalk."
        )
    sums = ", ".join(f"sum({name} * part) AS {name}" for name in cells)
    return reader.query(
        f"SELECT new AS code, {sums} FROM prior JOIN parts ON code = old GROUP BY new ORDER BY new"
    )


def _by_leaf(table: pa.Table, hierarchy: Hierarchy, prior: Prior, name: str) -> NDArray[np.float64]:
    codes = hierarchy.codes(hierarchy.leaf_level)
    level = hierarchy.level_names[-1]
    position = {code: i for i, code in enumerate(codes.tolist())}
    given = table["code"].to_pylist()
    if unknown := [code for code in given if code not in position]:
        remedy = (
            "Name the file that carries them over under prior.crosswalk."
            if prior.crosswalk is None
            else "Use the crosswalk to this hierarchy."
        )
        raise InputError(f"{_listed(unknown)} of {name} are no areas of level {level!r}. {remedy}")
    if not prior.missing_is_zero and len(given) < codes.size:
        absent = sorted(position.keys() - set(given))
        raise InputError(
            f"{_listed(absent)} of level {level!r} are missing in {name}. Complete it, carry it "
            "over by a crosswalk, or write missing: zero if nobody is there."
        )
    leaves = np.zeros((codes.size, len(prior.cells)))
    rows = [position[code] for code in given]
    for cell in range(len(prior.cells)):
        leaves[rows, cell] = table[f"cell_{cell}"].to_numpy()
    return leaves


def _listed(codes: Sequence[object]) -> str:
    """How many areas, and the first of them."""
    shown = ", ".join(repr(code) for code in codes[:_SHOWN])
    more = ", .." if len(codes) > _SHOWN else ""
    return f"{len(codes):,} areas ({shown}{more})"


def _whole(leaves: NDArray[np.float64]) -> NDArray[np.int64]:
    """Whole numbers whose sums over runs of leaves, such as areas above them, move by at most 1."""
    ends = np.rint(np.cumsum(leaves, axis=0)).astype(np.int64)
    return np.diff(ends, axis=0, prepend=0)


def public_histograms(
    source: Source,
    hierarchy: Hierarchy,
    schema: Schema,
    area: str,
    columns: Mapping[str, str],
    count: str | None,
    width: int | None = None,
) -> SparseCounts:
    """Public counts by cell from a table that is laid out like records of histograms."""
    return tabulate_long(source, hierarchy, schema, area, columns, count, width).leaves
