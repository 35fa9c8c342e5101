"""The tables of a ledger, their format number, and how older ones become the present one.

Format 1 had no number, one limit for a data set, whatever the unit, and no bounds between units. It
becomes format 2 with what it does not say taken at its worst:

- its limit holds for every unit that has charges; with none, for the unit that is charged first;
- no release is known to cap contributions;
- bounds between units must be declared again; until then nothing is counted across units;
- equal records of its data sets are not known, so they are noticed from the next release on;
- what its releases required of the records is not known, and statements say so;
- a price that a name decided falsely is put right.
"""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

from trellis.errors import LedgerError
from trellis.privacy.flow_changes import FlowQuery
from trellis.privacy.ledger.limits import ANY_UNIT, lower_limit, place_limit
from trellis.privacy.protection import NOT_KNOWN

FORMAT = 2

_TABLES = """
CREATE TABLE IF NOT EXISTS ledger (id TEXT PRIMARY KEY);
CREATE TABLE IF NOT EXISTS records_key (key BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS dataset (name TEXT PRIMARY KEY, key BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS unit_limit (
    dataset TEXT NOT NULL REFERENCES dataset, unit TEXT NOT NULL, limit_json TEXT NOT NULL,
    PRIMARY KEY (dataset, unit));
CREATE TABLE IF NOT EXISTS unit_bound (
    dataset TEXT NOT NULL REFERENCES dataset, unit TEXT NOT NULL, other TEXT NOT NULL,
    tie TEXT NOT NULL, most INTEGER NOT NULL, PRIMARY KEY (dataset, unit, other, tie));
CREATE TABLE IF NOT EXISTS edition (
    dataset TEXT NOT NULL REFERENCES dataset, number INTEGER NOT NULL,
    fingerprint TEXT NOT NULL, PRIMARY KEY (dataset, number), UNIQUE (dataset, fingerprint));
CREATE TABLE IF NOT EXISTS records (
    dataset TEXT NOT NULL REFERENCES dataset, fingerprint TEXT NOT NULL,
    PRIMARY KEY (dataset, fingerprint));
CREATE TABLE IF NOT EXISTS charge (
    run_id TEXT PRIMARY KEY, dataset TEXT NOT NULL REFERENCES dataset, edition INTEGER NOT NULL,
    release TEXT NOT NULL, guarantee_json TEXT NOT NULL, made TEXT NOT NULL,
    token TEXT, digest TEXT, caps INTEGER NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS withdrawal (
    run_id TEXT PRIMARY KEY REFERENCES charge, made TEXT NOT NULL, reason TEXT,
    superseded_by TEXT);
"""


def format_of(db: sqlite3.Connection, path: Path) -> int:
    """The format of a ledger; 0 if there is nothing in the file yet."""
    tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master")}
    if not tables:
        return 0
    (number,) = db.execute("PRAGMA user_version").fetchone()
    if "charge" not in tables:
        raise LedgerError(f"{path} cannot be used: it is not a ledger. Name another file.")
    if number > FORMAT:
        raise LedgerError(
            f"The ledger {path} has format {number}, but this version of Trellis only knows "
            f"formats up to {FORMAT}. Use the version that wrote it, or a newer one."
        )
    return number or 1


def make_tables(db: sqlite3.Connection) -> None:
    # Statement by statement: executescript would commit the transaction it runs in.
    for statement in filter(str.strip, _TABLES.split(";")):
        db.execute(statement)
    db.execute(f"PRAGMA user_version = {FORMAT}")


def migrate(db: sqlite3.Connection) -> None:
    """From format 1 to 2, within the transaction that is open."""
    make_tables(db)
    db.execute("ALTER TABLE charge ADD COLUMN caps INTEGER NOT NULL DEFAULT 0")
    limits = "SELECT name, limit_json FROM dataset WHERE limit_json IS NOT NULL"
    for dataset, limit in db.execute(limits).fetchall():
        lower_limit(db, dataset, ANY_UNIT, limit)
        place_limit(db, dataset)
    db.execute("UPDATE dataset SET limit_json = NULL")
    for run_id, text in db.execute("SELECT run_id, guarantee_json FROM charge").fetchall():
        worst = (_at_its_worst(text), run_id)
        db.execute("UPDATE charge SET guarantee_json = ? WHERE run_id = ?", worst)


def _at_its_worst(text: str) -> str:
    """A charge of format 1 with what it does not say, or may say falsely, taken at its worst.

    A name decided the price: an attribute called grand_total was charged as a flow's total, which
    under `replace` moves half as far as a partition. A release of flows has no partition, so where
    there is one, the name was an attribute's. Pairs move as far as a partition does.
    """
    charge = json.loads(text)
    tables = [query[3] if len(query) > 3 else None for query in charge["charges"]]
    if None in tables:
        for query in charge["charges"]:
            if query[3:4] == [FlowQuery.GRAND_TOTAL]:
                query[3] = FlowQuery.PAIRS
    return json.dumps({"required": [NOT_KNOWN], **charge})
