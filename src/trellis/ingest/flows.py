"""Reads confidential trips, or pairs with counts, into true flows between leaves.

Errors name the source and the column, never a value, an area of a record, or how many rows are
at fault: all of that is confidential.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from trellis.confidential.flows import TrueFlows
from trellis.errors import InputError
from trellis.ingest.duckdb import Reader, Source, open_source, quoted
from trellis.ingest.rows import JOINED, MOST, check_column, check_type
from trellis.model.codes import Codes
from trellis.model.flows import FlowTree
from trellis.model.hierarchy import Hierarchy


@dataclass(frozen=True, slots=True)
class TripColumns:
    """Where a row says what: without `count`, a row is one trip."""

    origin: str
    destination: str
    count: str | None = None
    unit: str | None = None
    attributes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    origin_width: int | None = None
    destination_width: int | None = None


@dataclass(frozen=True, slots=True)
class TripRules:
    """What is known of the trips of one unit; checked where rows tell whose a trip is."""

    most: int
    exactly: bool = False
    distinct: bool = False
    cap: bool = False


def read_flows(source: Source, tree: FlowTree, columns: TripColumns, rules: TripRules) -> TrueFlows:
    """Add up the trips of every pair of leaves, and of every cell of the attributes."""
    with open_source(source, confidential=True) as reader:
        _join(reader, tree, columns)
        trips = f"SELECT o, d, cell, n FROM {JOINED}"
        if columns.unit is not None:
            trips = _bounded(reader, columns.unit, rules)
        total = reader.query(f"SELECT CAST(sum(n) AS DOUBLE) AS total FROM ({trips})")
        if (total["total"][0].as_py() or 0) > MOST:
            raise InputError(f"{reader.name} holds impossibly large counts.")
        found = reader.query(
            f"SELECT o, d, cell, CAST(sum(n) AS BIGINT) AS n FROM ({trips}) "
            "WHERE n > 0 GROUP BY o, d, cell"
        )
    positions = [found[name].to_numpy().astype(np.int32) for name in ("o", "d", "cell")]
    cells = positions[2] if columns.attributes else None
    return TrueFlows(positions[0], positions[1], found["n"].to_numpy().astype(np.int64), cells)


def _join(reader: Reader, tree: FlowTree, columns: TripColumns) -> None:
    """Put positions of leaves and cells in place of codes; a row without them is an error."""
    if columns.count is not None:
        check_type(reader, columns.count)
    selected = [
        f"{reader.code(columns.origin, columns.origin_width)} AS origin",
        f"{reader.code(columns.destination, columns.destination_width)} AS destination",
        "1 AS n" if columns.count is None else f"{quoted(columns.count)} AS given",
    ]
    if columns.unit is not None:
        selected.append(f"{reader.code(columns.unit)} AS unit")
    joins, cell = "", []
    for i, (name, categories) in enumerate(columns.attributes.items()):
        reader.register(f"categories_{i}", _positions(categories))
        selected.append(f"{reader.code(name)} AS attribute_{i}")
        joins += f" LEFT JOIN categories_{i} ON attribute_{i} = categories_{i}.code"
        cell = [*(f"{part} * {len(categories)}" for part in cell), f"categories_{i}.position"]
    for side, hierarchy in (("origins", tree.origins), ("destinations", tree.destinations)):
        reader.register(side, _positions(_leaf_codes(hierarchy)))
    number = "n" if columns.count is None else "TRY_CAST(given AS HUGEINT) AS n, given"
    unit = ", unit" if columns.unit is not None else ""
    reader.view(
        JOINED,
        f"SELECT origins.position AS o, destinations.position AS d, {' + '.join(cell) or 0} AS "
        f"cell, {number}{unit} FROM (SELECT {', '.join(selected)} FROM {reader.rows}) s "
        "LEFT JOIN origins ON origin = origins.code "
        f"LEFT JOIN destinations ON destination = destinations.code{joins}",
    )
    _refuse_faults(reader, columns)


def _refuse_faults(reader: Reader, columns: TripColumns) -> None:
    where = "Compare its area codes (spelling, leading zeros) with the public list of areas."
    faults = {
        "o IS NULL": f"rows whose origin is missing or is no leaf of the hierarchy. {where}",
        "d IS NULL": "rows whose destination is missing or is no leaf of the hierarchy. Trips "
        f"without a destination must be completed or left out of the source. {where}",
        "cell IS NULL": "rows with a category that is missing or not declared in attributes.",
    }
    if columns.unit is not None:
        faults["unit IS NULL"] = f"rows without a unit in column {columns.unit!r}."
    found = reader.query(
        "SELECT " + ", ".join(f"coalesce(bool_or({test}), false)" for test in faults)
        + f" FROM {JOINED}"
    )  # fmt: skip
    for column, words in zip(found.columns, faults.values(), strict=True):
        if column[0].as_py():
            raise InputError(f"{reader.name} has {words}")
    if columns.count is not None:
        check_column(reader, columns.count, "given")


def _bounded(reader: Reader, column: str, rules: TripRules) -> str:
    """Trips as a query, after checking or capping those of each unit.

    Which trips of a unit are kept depends on its own trips alone, so a change of one unit moves
    no other: first come those of least hash.
    """
    if rules.cap:
        numbers = "min(cell) AS cell, 1 AS n" if rules.distinct else "cell, sum(n) AS n"
        pairs = f"SELECT unit, o, d, {numbers} FROM {JOINED} WHERE n > 0 GROUP BY ALL"
        return (
            f"SELECT o, d, cell, least(n, greatest(0, {rules.most} - before)) AS n FROM (SELECT *, "
            "sum(n) OVER (PARTITION BY unit ORDER BY hash(unit, o, d, cell), o, d, cell "
            f"ROWS UNBOUNDED PRECEDING) - n AS before FROM ({pairs}))"
        )
    wrong, words = f"> {rules.most}", "more trips"
    if rules.exactly:
        wrong, words = f"<> {rules.most}", "more or fewer trips"
    if reader.query(f"SELECT 1 FROM {JOINED} GROUP BY unit HAVING sum(n) {wrong} LIMIT 1").num_rows:
        raise InputError(
            f"Some unit in column {column!r} of {reader.name} has {words} than "
            f"privacy.max_contribution, {rules.most}, for which noise is made. Declare another "
            "number, or drop trips by a rule of the program: trips: {number: at_most, above: cap}."
        )
    if (
        rules.distinct
        and reader.query(
            f"SELECT 1 FROM {JOINED} GROUP BY unit, o, d HAVING sum(n) > 1 LIMIT 1"
        ).num_rows
    ):
        raise InputError(
            f"Some unit in column {column!r} of {reader.name} has a pair of areas twice, although "
            "trips.distinct is declared. Take it back, or count such trips once: "
            "trips: {number: at_most, above: cap}."
        )
    return f"SELECT o, d, cell, n FROM {JOINED}"


def _leaf_codes(hierarchy: Hierarchy) -> Codes:
    return hierarchy.codes(hierarchy.leaf_level)


def _positions(codes: Sequence[str] | Codes) -> pa.Table:
    text = pa.array(np.asarray(codes, dtype=object), pa.string())
    return pa.table({"code": text, "position": np.arange(len(text), dtype=np.int32)})
