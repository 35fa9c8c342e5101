"""Limits in a ledger, and the one that was set before limits had a unit."""

from __future__ import annotations

import json
import sqlite3
from fractions import Fraction

from trellis.errors import LedgerError

ANY_UNIT = ""
"""The unit of a limit that was set before a limit had one, and before anything was charged."""


def place_limit(db: sqlite3.Connection, dataset: str) -> None:
    """A limit without a unit is for every unit that has charges, as soon as one has."""
    charges = db.execute("SELECT guarantee_json FROM charge WHERE dataset = ?", (dataset,))
    units = {json.loads(text)["unit"] for (text,) in charges}
    limit = _limit(db, dataset, ANY_UNIT)
    if limit is None or not units:
        return
    forget_placeless(db, dataset)
    for unit in sorted(units):
        lower_limit(db, dataset, unit, limit)


def forget_placeless(db: sqlite3.Connection, dataset: str) -> None:
    db.execute("DELETE FROM unit_limit WHERE dataset = ? AND unit = ?", (dataset, ANY_UNIT))


def lower_limit(db: sqlite3.Connection, dataset: str, unit: str, limit: str) -> None:
    """Of two limits the smaller counts; between rho and epsilon, no one can tell which is."""
    known = _limit(db, dataset, unit)
    if known is not None and json.loads(known).keys() != json.loads(limit).keys():
        raise LedgerError(
            f"Data set {dataset!r} has one limit in rho and one in epsilon for a {unit}, and one "
            "would be lost. Set the limit of the ledger in the same measure first: trellis ledger "
            f"{dataset} --unit {unit} --set-limit."
        )
    if known is None or _is_smaller(json.loads(limit), json.loads(known)):
        db.execute("INSERT OR REPLACE INTO unit_limit VALUES (?, ?, ?)", (dataset, unit, limit))


def _limit(db: sqlite3.Connection, dataset: str, unit: str) -> str | None:
    known = "SELECT limit_json FROM unit_limit WHERE dataset = ? AND unit = ?"
    row = db.execute(known, (dataset, unit)).fetchone()
    return None if row is None else row[0]


def _is_smaller(one: dict[str, str], other: dict[str, str]) -> bool:
    return one.keys() == other.keys() and all(Fraction(one[k]) < Fraction(other[k]) for k in one)
