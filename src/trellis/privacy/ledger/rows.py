"""Reads and writes the rows of a ledger, within a transaction that is open."""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction

from trellis.errors import LedgerError, PrivacyError
from trellis.privacy.budget import Budget
from trellis.privacy.ledger.account import Account, Cost
from trellis.privacy.ledger.entries import Entry, Withdrawal, guarantee_from_json, guarantee_to_json
from trellis.privacy.ledger.limits import place_limit
from trellis.privacy.ledger.merge import write_bound
from trellis.privacy.ledger.rules import Terms, check_cost
from trellis.privacy.ledger.units import Tie, UnitBound


def check_charge(db: sqlite3.Connection, dataset: str, new: Cost, terms: Terms) -> None:
    before = account(db, dataset)
    limits = {unit or new.unit: limit for unit, limit in before.limits.items()}
    check_cost(dataset, replace(before, limits=limits), new, terms)


def edition(db: sqlite3.Connection, dataset: str, fingerprint: str, terms: Terms) -> int:
    """The number of the edition with this fingerprint; a changed input must be declared."""
    known = db.execute(
        "SELECT number, fingerprint FROM edition WHERE dataset = ? ORDER BY number", (dataset,)
    ).fetchall()
    for number, print_ in known:
        if print_ == fingerprint:
            return number
    if known and not terms.new_edition:
        raise LedgerError(
            f"The input of data set {dataset!r} has changed since its last release. If this is "
            "intended, add --new-edition (spending still adds up); otherwise restore the input."
        )
    return max((number for number, _ in known), default=0) + 1


def check_records(db: sqlite3.Connection, dataset: str, print_: str, terms: Terms) -> None:
    """Equal records under another name would be spent twice without adding up."""
    names = db.execute(
        "SELECT dataset FROM records WHERE fingerprint = ? ORDER BY dataset", (print_,)
    )
    known = [name for (name,) in names]
    if known and dataset not in known and not terms.same_records:
        raise LedgerError(
            f"The same records are in the ledger as data set {known[0]!r}, but this spec says "
            f"{dataset!r}, so spending would not add up. Use dataset: {known[0]}; if two accounts "
            "for the same records are intended, add --same-records."
        )


def entries(db: sqlite3.Connection, dataset: str) -> list[Entry]:
    rows = db.execute(f"{_SELECT_ENTRY} WHERE dataset = ? ORDER BY charge.rowid", (dataset,))
    return [_to_entry(row) for row in rows]


def entry(db: sqlite3.Connection, run_id: str) -> Entry | None:
    row = db.execute(f"{_SELECT_ENTRY} WHERE charge.run_id = ?", (run_id,)).fetchone()
    return None if row is None else _to_entry(row)


_SELECT_ENTRY = """
SELECT charge.run_id, dataset, release, edition, guarantee_json, charge.made, token, digest, caps,
withdrawal.made, reason, superseded_by FROM charge LEFT JOIN withdrawal USING (run_id)"""


def charged(db: sqlite3.Connection, run_id: str) -> Entry:
    if (found := entry(db, run_id)) is None:
        raise LedgerError("This run is not in the ledger: charge it before drawing noise.")
    return found


def _to_entry(row: tuple) -> Entry:
    run_id, dataset, release, edition, guarantee, made, token, digest, caps, *withdrawn = row
    withdrawal = None if withdrawn[0] is None else Withdrawal(*withdrawn)
    with refusing_damage():
        cost = guarantee_from_json(guarantee)
    state = token, digest, bool(caps), withdrawal
    return Entry(run_id, dataset, release, edition, cost, made, *state)


def insert_charge(
    db: sqlite3.Connection, run_id: str, dataset: str, edition: int, cost: Cost
) -> None:
    db.execute(
        "INSERT INTO charge VALUES (?, ?, ?, ?, ?, ?, NULL, NULL, ?)",
        (run_id, dataset, edition, cost.release, guarantee_to_json(cost.guarantee), now(),
         cost.caps),
    )  # fmt: skip
    place_limit(db, dataset)


def account(db: sqlite3.Connection, dataset: str) -> Account:
    limits = db.execute("SELECT unit, limit_json FROM unit_limit WHERE dataset = ?", (dataset,))
    bounds = db.execute(
        "SELECT unit, other, tie, most FROM unit_bound WHERE dataset = ?", (dataset,)
    )
    with refusing_damage():
        return Account(
            tuple(entry.cost for entry in entries(db, dataset)),
            tuple(UnitBound(unit, other, Tie(tie), most) for unit, other, tie, most in bounds),
            {unit: _budget(text) for unit, text in limits},
        )


def _budget(text: str) -> Budget:
    return Budget(**{name: Fraction(value) for name, value in json.loads(text).items()})


def write_terms(db: sqlite3.Connection, dataset: str, unit: str, terms: Terms) -> None:
    """Limits and bounds that a release declares."""
    for limit_unit, limit in terms.limits(unit).items():
        write_limit(db, dataset, limit_unit, limit)
    write_bounds(db, dataset, terms.bounds(unit))


def write_limit(db: sqlite3.Connection, dataset: str, unit: str, limit: Budget) -> None:
    named = {"rho": limit.rho, "epsilon": limit.epsilon}
    text = json.dumps({name: str(value) for name, value in named.items() if value is not None})
    db.execute("INSERT OR REPLACE INTO unit_limit VALUES (?, ?, ?)", (dataset, unit, text))


def write_bounds(db: sqlite3.Connection, dataset: str, bounds: tuple[UnitBound, ...]) -> None:
    for bound in bounds:
        write_bound(db, (dataset, bound.unit, bound.other, bound.tie, bound.most))


def ledger_id(db: sqlite3.Connection) -> str | None:
    row = db.execute("SELECT id FROM ledger").fetchone()
    return None if row is None else row[0]


def key(db: sqlite3.Connection, dataset: str) -> bytes | None:
    row = db.execute("SELECT key FROM dataset WHERE name = ?", (dataset,)).fetchone()
    return None if row is None else row[0]


def make_key(db: sqlite3.Connection, dataset: str) -> bytes:
    if (known := key(db, dataset)) is None:
        known = secrets.token_bytes(32)
        db.execute("INSERT INTO dataset (name, key) VALUES (?, ?)", (dataset, known))
    return known


def records_key(db: sqlite3.Connection) -> bytes | None:
    row = db.execute("SELECT key FROM records_key").fetchone()
    return None if row is None else row[0]


@contextmanager
def refusing_damage() -> Iterator[None]:
    try:
        yield
    except LedgerError:
        raise
    except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError, PrivacyError):
        raise LedgerError(
            "The ledger is damaged: an entry in it cannot be read. Restore an intact copy."
        ) from None


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
