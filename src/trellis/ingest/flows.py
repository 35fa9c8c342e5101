"""Reads confidential trips, or pairs with counts, into true flows between leaves.

Errors name the source and the column, never a value, an area of a record, or how many rows are
at fault: all of that is confidential.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from trellis.confidential.flows import TrueFlows
from trellis.errors import InputError
from trellis.ingest.duckdb import Reader, Source, open_source, quoted
from trellis.ingest.rows import (
    JOINED,
    MOST,
    ROW,
    Fault,
    check_type,
    logged,
    number_faults,
    refuse,
    renamed,
    too_large,
)
from trellis.model.trees.codes import Codes
from trellis.model.trees.flows import FlowTree
from trellis.model.trees.hierarchy import Hierarchy


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
            trips = _bounded(reader, columns, rules)
        total = reader.query(f"SELECT CAST(sum(n) AS DOUBLE) AS total FROM ({trips})")
        if (total["total"][0].as_py() or 0) > MOST:
            raise too_large(reader, "n")
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
        ROW,
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
    number = "" if columns.count is None else ", TRY_CAST(given AS HUGEINT) AS n"
    places = f"origins.position AS o, destinations.position AS d, {' + '.join(cell) or 0} AS cell"
    reader.view(
        JOINED,
        f"SELECT s.*, {places}{number} FROM (SELECT {', '.join(selected)} FROM {reader.rows}) s "
        "LEFT JOIN origins ON origin = origins.code "
        f"LEFT JOIN destinations ON destination = destinations.code{joins}",
    )
    refuse(reader, list(_faults(reader, columns)))


def _faults(reader: Reader, columns: TripColumns) -> Iterator[Fault]:
    where = "Compare its area codes (spelling, leading zeros) with the public list of areas."
    yield Fault(
        f"{reader.name} has rows whose origin is missing or is not a leaf of the hierarchy. "
        + where,
        "o IS NULL",
        {"origin": columns.origin},
    )
    yield Fault(
        f"{reader.name} has rows whose destination is missing or is not a leaf of the hierarchy. "
        f"Trips without a destination must be completed or left out of the source. {where}",
        "d IS NULL",
        {"destination": columns.destination},
    )
    yield Fault(
        f"{reader.name} has rows with a category that is missing or not declared in attributes.",
        "cell IS NULL",
        {f"attribute_{i}": name for i, name in enumerate(columns.attributes)},
    )
    if columns.unit is not None:
        words = f"{reader.name} has rows without a unit in column {columns.unit!r}."
        yield Fault(words, "unit IS NULL")
    if columns.count is not None:
        yield from number_faults(reader, columns.count, "given")


def _bounded(reader: Reader, columns: TripColumns, rules: TripRules) -> str:
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
    where = f"Some unit in column {columns.unit!r} of {reader.name}"
    unit = {"unit": columns.unit or ""}
    _refuse_units(
        reader,
        f"{where} has {words} than privacy.max_contribution, {rules.most}, for which noise is "
        "made. Declare another number, or drop trips by a rule of the program: "
        "trips: {number: at_most, above: cap}.",
        f"sum(n) {wrong}",
        unit,
    )
    if rules.distinct:
        _refuse_units(
            reader,
            f"{where} has a pair of areas twice, although trips.distinct is declared. Take it "
            "back, or count such trips once: trips: {number: at_most, above: cap}.",
            "sum(n) > 1",
            {**unit, "origin": columns.origin, "destination": columns.destination},
        )
    return f"SELECT o, d, cell, n FROM {JOINED}"


def _refuse_units(reader: Reader, words: str, test: str, keys: Mapping[str, str]) -> None:
    """Raise if the trips of a unit, or those of a unit between two areas, are at fault."""
    grouped = f"FROM {JOINED} GROUP BY {', '.join(keys)} HAVING {test}"
    if reader.query(f"SELECT 1 {grouped} LIMIT 1").num_rows:
        shown = ", ".join([*renamed(keys), "sum(n) AS trips", "min(row, 100) AS rows"])
        raise InputError(logged(reader, words, f"SELECT {shown} {grouped} ORDER BY rows"))


def _leaf_codes(hierarchy: Hierarchy) -> Codes:
    return hierarchy.codes(hierarchy.leaf_level)


def _positions(codes: Sequence[str] | Codes) -> pa.Table:
    text = pa.array(np.asarray(codes, dtype=object), pa.string())
    return pa.table({"code": text, "position": np.arange(len(text), dtype=np.int32)})
