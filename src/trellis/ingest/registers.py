"""Reads the public register of groups: which exist, and where; or how many there are by area.

The register is public input. Errors may name its areas and groups.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trellis.errors import InputError
from trellis.ingest.duckdb import Reader, Source, open_source
from trellis.ingest.rows import JOINED, check_type, join_leaves, number_faults, refuse, unknown_area
from trellis.model.trees.hierarchy import Hierarchy


def read_units(
    source: Source, hierarchy: Hierarchy, group: str, area: str, width: int | None = None
) -> pa.Table:
    """Columns `unit` (text) and `leaf` (its position), one row per group."""
    with open_source(source) as reader:
        units = reader.query(f"SELECT {reader.code(group)} AS unit FROM {reader.rows}")["unit"]
        join_leaves(reader, hierarchy, reader.code(area, width), {group: "unit"})
        refuse(reader, [unknown_area(reader)])
        if units.null_count:
            raise InputError(f"Column {group!r} of the register {reader.name} has empty rows.")
        _check_listed_once(reader)
        return reader.query(f"SELECT CAST(unit AS VARCHAR) AS unit, leaf FROM {JOINED}")


def _check_listed_once(reader: Reader) -> None:
    """A group is in one area, and is listed there once."""
    twice = reader.query(
        f"SELECT CAST(unit AS VARCHAR) AS unit, min(leaf) <> max(leaf) AS moves FROM {JOINED} "
        "GROUP BY unit HAVING count(*) > 1 ORDER BY moves DESC LIMIT 1"
    ).to_pylist()
    for row in twice:
        trouble = "is in two areas" if row["moves"] else "is listed twice"
        raise InputError(
            f"Group {row['unit'][:80]!r} {trouble} in the register {reader.name}. "
            "List each group once, in the one area where it is."
        )


def read_group_numbers(
    source: Source, hierarchy: Hierarchy, area: str, groups: str, width: int | None = None
) -> NDArray[np.int64]:
    """The declared number of groups of every leaf, in order."""
    with open_source(source) as reader:
        check_type(reader, groups)
        join_leaves(reader, hierarchy, reader.code(area, width), {groups: "number"})
        faults = number_faults(reader, groups, "number", "numbers of groups")
        refuse(reader, [unknown_area(reader), *faults])
        rows = reader.query(f"SELECT leaf, TRY_CAST(number AS BIGINT) AS number FROM {JOINED}")
    times = np.bincount(rows["leaf"].to_numpy(), minlength=hierarchy.size(hierarchy.leaf_level))
    if (wrong := np.flatnonzero(times != 1)).size:
        code = str(hierarchy.codes(hierarchy.leaf_level)[wrong[0]])
        trouble = "is missing" if times[wrong[0]] == 0 else "is listed twice"
        raise InputError(
            f"Area {code!r} {trouble} in the register {reader.name}. Declare the number of groups "
            "of each area of the last level once; zero where there is none."
        )
    numbers = np.empty(times.size, dtype=np.int64)
    numbers[rows["leaf"].to_numpy()] = rows["number"].to_numpy()
    return numbers
