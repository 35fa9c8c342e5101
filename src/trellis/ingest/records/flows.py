"""Reads confidential trips, or pairs with counts, into true flows between leaves.

Errors name the source and the column, never a value, an area of a record, or how many rows are
at fault: all of that is confidential.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np
import pyarrow as pa

from trellis.confidential.flows import TrueFlows
from trellis.ingest.checks import (
    MOST,
    Fault,
    leaf_of,
    number_faults,
    refuse,
    refuse_groups,
    too_large,
)
from trellis.ingest.columns import check_number, code
from trellis.ingest.engines import open_source
from trellis.ingest.reader import Reader, Source
from trellis.ingest.terms import (
    EACH,
    KEPT,
    ROWS,
    Above,
    Below,
    Capped,
    Either,
    Field,
    Groups,
    Linear,
    Lookup,
    Missing,
    Number,
    Relation,
    Rows,
    Test,
)
from trellis.model.trees.flows import FlowTree

_KEYS = ("o", "d", "cell")
"""Positions of the leaves that a trip joins, and of its cell."""


@dataclass(frozen=True, slots=True)
class TripColumns:
    """Which column says what: without `count`, a row is one trip."""

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
    number = EACH if columns.count is None else "n"
    with open_source(source, confidential=True) as reader:
        rows = _rows(reader, tree, columns)
        refuse(reader, list(_faults(reader, columns)), rows)
        trips, counted = rows, number
        if columns.unit is not None and rules.cap:
            trips, counted = _capped(rows, number, rules), KEPT
        elif columns.unit is not None:
            _check_units(reader, rows, number, columns, rules)
        found, _ = reader.sums(trips, _KEYS, [counted])
        sums = found[counted]
        if sums.null_count or float(sums.to_numpy().sum(dtype=np.float64)) > MOST:
            raise too_large(reader, rows, number)
    count = sums.to_numpy().astype(np.int64)
    some = count > 0
    origin, destination, cell = (found[k].to_numpy().astype(np.int32)[some] for k in _KEYS)
    return TrueFlows(origin, destination, count[some], cell if columns.attributes else None)


def _rows(reader: Reader, tree: FlowTree, columns: TripColumns) -> Rows:
    """Rows with positions of leaves and cells in place of codes."""
    if columns.count is not None:
        check_number(reader, columns.count)
    fields: dict[str, Field] = {
        "origin": code(reader, columns.origin, columns.origin_width),
        "destination": code(reader, columns.destination, columns.destination_width),
    }
    lookups = {
        "o": leaf_of("origin", tree.origins),
        "d": leaf_of("destination", tree.destinations),
    }
    numbers = {}
    if columns.count is not None:
        fields["given"] = Number(columns.count)
        numbers["n"] = Linear((("given", 1),))
    if columns.unit is not None:
        fields["unit"] = code(reader, columns.unit)
    factors, stride = [], prod(map(len, columns.attributes.values()))
    for i, (name, categories) in enumerate(columns.attributes.items()):
        stride //= len(categories)
        fields[f"attribute_{i}"] = code(reader, name)
        lookups[f"place_{i}"] = Lookup(f"attribute_{i}", pa.array(categories, pa.string()))
        factors.append((f"place_{i}", stride))
    numbers["cell"] = Linear(tuple(factors))
    return Rows(fields, lookups, numbers)


def _faults(reader: Reader, columns: TripColumns) -> Iterator[Fault]:
    where = "Compare its area codes (spelling, leading zeros) with the public list of areas."
    yield Fault(
        f"{reader.name} has rows whose origin is missing or is not a leaf of the hierarchy. "
        + where,
        Missing("o"),
        {"origin": columns.origin},
    )
    yield Fault(
        f"{reader.name} has rows whose destination is missing or is not a leaf of the hierarchy. "
        f"Trips without a destination must be completed or left out of the source. {where}",
        Missing("d"),
        {"destination": columns.destination},
    )
    yield Fault(
        f"{reader.name} has rows with a category that is missing or not declared in attributes.",
        Missing("cell"),
        {f"attribute_{i}": name for i, name in enumerate(columns.attributes)},
    )
    if columns.unit is not None:
        words = f"{reader.name} has rows without a unit in column {columns.unit!r}."
        yield Fault(words, Missing("unit"))
    if columns.count is not None:
        yield from number_faults(reader, columns.count, "given")


def _capped(rows: Rows, number: str, rules: TripRules) -> Relation:
    """Trips of each unit up to its bound; which of them are kept depends on its own trips alone."""
    some = None if number == EACH else Above(number, 0)
    if rules.distinct:
        pairs = Groups(rows, ("unit", "o", "d"), least={"cell": "cell"}, where=some)
        return Capped(pairs, "unit", _KEYS, EACH, rules.most)
    pairs = Groups(rows, ("unit", *_KEYS), {"n": number}, where=some)
    return Capped(pairs, "unit", _KEYS, "n", rules.most)


def _check_units(
    reader: Reader, rows: Rows, number: str, columns: TripColumns, rules: TripRules
) -> None:
    """Raise if the trips of a unit, or those of a unit between two areas, are at fault."""
    test: Test = Above("trips", rules.most)
    words = "more trips"
    if rules.exactly:
        test, words = Either(test, Below("trips", rules.most)), "more or fewer trips"
    where = f"Some unit in column {columns.unit!r} of {reader.name}"
    unit = {"unit": columns.unit or ""}
    shown = {"trips": "trips", ROWS: ROWS}
    refuse_groups(
        reader,
        Groups(rows, ("unit",), {"trips": number}),
        Fault(
            f"{where} has {words} than privacy.max_contribution, {rules.most}, allows. Declare "
            "another number, or drop trips by a rule of the program: trips: {number: at_most, "
            "above: cap}.",
            test,
            {**unit, **shown},
        ),
    )
    if rules.distinct:
        pair = {**unit, "origin": columns.origin, "destination": columns.destination}
        refuse_groups(
            reader,
            Groups(rows, tuple(pair), {"trips": number}),
            Fault(
                f"{where} has a pair of areas twice, although trips.distinct is declared. Take "
                "trips.distinct out, or count such trips once: "
                "trips: {number: at_most, above: cap}.",
                Above("trips", 1),
                {**pair, **shown},
            ),
        )
