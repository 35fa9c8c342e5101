"""Reads public counts of an earlier or assumed state of the areas: a prior.

A prior may belong to an older list of areas. A crosswalk then splits each old area over the new
ones, in parts that are scaled to sum to one. Everything here is public, so errors quote codes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
from numpy.typing import NDArray

from trellis.errors import InputError
from trellis.ingest.checks import MOST
from trellis.ingest.columns import check_number, code
from trellis.ingest.engines import open_source
from trellis.ingest.reader import Reader, Source
from trellis.ingest.terms import Field, Real
from trellis.model.trees.hierarchy import Hierarchy

pc: Any = pyarrow.compute  # made at import, so the type checker does not know its functions

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
        check_number(reader, column)
    fields: dict[str, Field] = {"code": code(reader, prior.area, width)}
    fields |= {f"number_{i}": Real(column) for i, column in enumerate(columns)}
    rows = reader.rows(fields)
    values = {column: _numbers(rows, f"number_{i}") for i, column in enumerate(columns)}
    nothing = np.zeros(len(rows))
    cells = [sum((s * values[c] for c, s in form.items()), nothing) for form in prior.cells]
    for cell in cells:
        if not (np.isfinite(cell) & (cell >= 0) & (cell <= MOST)).all():
            raise InputError(
                f"{reader.name} has counts that are missing, negative, unreadable or impossibly "
                f"large in {', '.join(map(repr, columns))}. A prior holds numbers of at least zero."
            )
    return _added_up(rows["code"], cells)


def _numbers(rows: pa.Table, name: str) -> NDArray[np.float64]:
    """NaN where there is none."""
    return rows[name].to_numpy(zero_copy_only=False).astype(np.float64)


def _added_up(codes: pa.ChunkedArray, cells: Sequence[NDArray[np.float64]]) -> pa.Table:
    """Sums by code, in the order of codes. One thread adds: the order decides on the last digit."""
    rows = pa.table({"code": codes, **{f"cell_{i}": cell for i, cell in enumerate(cells)}})
    names = rows.column_names
    sums = rows.group_by("code", use_threads=False).aggregate([(n, "sum") for n in names[1:]])
    return sums.rename_columns(names).sort_by("code")


def _carried_over(
    reader: Reader, crosswalk: Crosswalk, table: pa.Table, width: int | None, prior: str
) -> pa.Table:
    """Counts of the new areas; old areas that count nothing need not be listed."""
    fields: dict[str, Field] = {}
    if crosswalk.share is not None:
        check_number(reader, crosswalk.share)
        fields["share"] = Real(crosswalk.share)
    fields["old"] = code(reader, crosswalk.old, width)
    fields["new"] = code(reader, crosswalk.new, width)
    rows = reader.rows(fields)
    share = np.ones(len(rows)) if crosswalk.share is None else _numbers(rows, "share")
    if not (np.isfinite(share) & (share >= 0)).all():
        raise InputError(
            f"Column {crosswalk.share!r} of {reader.name} has parts that are missing, "
            "negative or unreadable. Every row needs a number of at least zero."
        )
    cells = [table[name].to_numpy() for name in table.column_names[1:]]
    absent = pc.invert(pc.is_in(table["code"], rows["old"].combine_chunks())).to_numpy()
    lost = table["code"].filter(pa.array(absent & (sum(cells) > 0))).drop_null()
    if len(lost):
        raise InputError(
            f"{_listed(lost.to_pylist())} of {prior} have counts and are not in column "
            f"{crosswalk.old!r} of {reader.name}. Complete the crosswalk."
        )
    place = pc.index_in(rows["old"], table["code"].combine_chunks(), skip_nulls=True)
    known = place.is_valid()
    old = place.drop_null().to_numpy()
    part = _parts(old, share[known.to_numpy()], len(table))
    return _added_up(rows["new"].filter(known), [cell[old] * part for cell in cells])


def _parts(old: NDArray[np.int32], share: NDArray[np.float64], n_areas: int) -> NDArray[np.float64]:
    """Parts that sum to one for each old area.

    Those of an area that are all zero, such as parts of land in a lake, are made equal.
    """
    whole = np.bincount(old, share, n_areas)[old]
    rows = np.bincount(old, minlength=n_areas)[old]
    return np.where(whole > 0, share / np.where(whole > 0, whole, 1.0), 1.0 / rows)


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
        raise InputError(f"{_listed(unknown)} of {name} are not areas of level {level!r}. {remedy}")
    if not prior.missing_is_zero and len(given) < codes.size:
        absent = sorted(position.keys() - set(given))
        raise InputError(
            f"{_listed(absent)} of level {level!r} are missing in {name}. Complete it, carry it "
            "over with a crosswalk, or write missing: zero if they are empty."
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
