"""Reads the public register of groups: which exist, and where; or how many there are by area.

The register is public input. Errors may name its areas and groups.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
from numpy.typing import NDArray

from trellis.errors import InputError
from trellis.ingest.checks import leaf_of, number_faults, refuse, unknown_area
from trellis.ingest.columns import check_number, code
from trellis.ingest.engines import open_source
from trellis.ingest.reader import Source
from trellis.ingest.terms import Number, Real, Rows
from trellis.model.trees.hierarchy import Hierarchy
from trellis.storage.codes import level_codes

pc: Any = pyarrow.compute  # made at import, so the type checker does not know its functions


def read_units(
    source: Source, hierarchy: Hierarchy, group: str, area: str, width: int | None = None
) -> pa.Table:
    """Columns `unit` (text) and `leaf` (its position), one row per group."""
    with open_source(source) as reader:
        listed = reader.rows({"unit": code(reader, group), "area": code(reader, area, width)})
        leaf = _leaves(listed["area"], hierarchy)
        if leaf.null_count:
            raise InputError(unknown_area(reader).words)
    if listed["unit"].null_count:
        raise InputError(f"Column {group!r} of the register {reader.name} has empty rows.")
    units = pa.table({"unit": listed["unit"], "leaf": leaf})
    _check_listed_once(units, reader.name)
    return units


def _leaves(codes: pa.ChunkedArray, hierarchy: Hierarchy) -> pa.ChunkedArray:
    return pc.index_in(codes, level_codes(hierarchy, hierarchy.leaf_level), skip_nulls=True)


def _check_listed_once(units: pa.Table, name: str) -> None:
    """A group is in one area, and is listed there once."""
    if pc.count_distinct(units["unit"]).as_py() == len(units):
        return
    groups = units.group_by("unit").aggregate([("leaf", "min"), ("leaf", "max"), ([], "count_all")])
    groups = groups.filter(pc.greater(groups["count_all"], 1))
    moves = pc.not_equal(groups["leaf_min"], groups["leaf_max"])
    row = pc.index(moves, True).as_py()
    trouble = "is listed twice" if row < 0 else "is in two areas"
    unit = groups["unit"][max(row, 0)].as_py()
    raise InputError(
        f"Group {unit[:80]!r} {trouble} in the register {name}. "
        "List each group once, in the one area where it is."
    )


def read_group_numbers(
    source: Source, hierarchy: Hierarchy, area: str, groups: str, width: int | None = None
) -> NDArray[np.int64]:
    """The declared number of groups of every leaf, in order."""
    with open_source(source) as reader:
        check_number(reader, groups)
        place = code(reader, area, width)
        rows = Rows({"area": place, "number": Number(groups)}, {"leaf": leaf_of("area", hierarchy)})
        faults = number_faults(reader, groups, "number", "numbers of groups")
        refuse(reader, [unknown_area(reader), *faults], rows)
        listed = reader.rows({"area": place, "number": Real(groups)})
    leaf = _leaves(listed["area"], hierarchy).to_numpy()
    times = np.bincount(leaf, minlength=hierarchy.size(hierarchy.leaf_level))
    if (wrong := np.flatnonzero(times != 1)).size:
        name = str(hierarchy.codes(hierarchy.leaf_level)[wrong[0]])
        trouble = "is missing" if times[wrong[0]] == 0 else "is listed twice"
        raise InputError(
            f"Area {name!r} {trouble} in the register {reader.name}. Declare the number of groups "
            "of each area of the last level once; zero where there is none."
        )
    numbers = np.empty(times.size, dtype=np.int64)
    numbers[leaf] = listed["number"].to_numpy()
    return numbers
