"""What has been spent on each data set, in one small SQLite file.

Order of events, each a transaction that is on disk before the next begins:

    charge   the cost is entered under a run id, before a bit of noise is drawn
    claim    one process takes the right to draw noise for that charge, under a new token
    settle   the measurements are complete on disk; their digest is entered, the claim is closed

A charge is drawn on once. A run that dies before `settle` may claim again, after destroying what
was half written; a run that has settled never draws again, and a run goes on only with the ledger
that it began with. So copying or emptying a run folder yields no second set of noise for a charge.
Files that a run has not yet published are not for reading; no program can enforce that.

The file holds a secret key per data set for the fingerprint of its records. Keep it as
confidential as the records; nothing in it is needed to use a release.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

from trellis.errors import LedgerError, PrivacyError
from trellis.privacy.budget import Budget
from trellis.privacy.guarantee import Guarantee
from trellis.privacy.ledger.entries import Claim, Entry, guarantee_from_json, guarantee_to_json
from trellis.privacy.ledger.rules import Terms, check_cost

_TABLES = """
CREATE TABLE IF NOT EXISTS ledger (id TEXT PRIMARY KEY);
CREATE TABLE IF NOT EXISTS dataset (
    name TEXT PRIMARY KEY, key BLOB NOT NULL, limit_json TEXT);
CREATE TABLE IF NOT EXISTS edition (
    dataset TEXT NOT NULL REFERENCES dataset, number INTEGER NOT NULL,
    fingerprint TEXT NOT NULL, PRIMARY KEY (dataset, number), UNIQUE (dataset, fingerprint));
CREATE TABLE IF NOT EXISTS charge (
    run_id TEXT PRIMARY KEY, dataset TEXT NOT NULL REFERENCES dataset, edition INTEGER NOT NULL,
    release TEXT NOT NULL, guarantee_json TEXT NOT NULL, made TEXT NOT NULL,
    token TEXT, digest TEXT);
"""

_REASONS = {
    "SQLITE_FULL": "no space left",
    "SQLITE_IOERR_WRITE": "no space left, or the disk fails",
    "SQLITE_READONLY": "no permission to write",
    "SQLITE_READONLY_DIRECTORY": "no permission to write",
    "SQLITE_CANTOPEN": "no permission to write",
    "SQLITE_BUSY": "another process holds it",
    "SQLITE_NOTADB": "it is something else",
}


class Ledger:
    """The ledger file at `path`; made on first use."""

    def __init__(self, path: Path) -> None:
        self.path = path

    # -- reading --------------------------------------------------------------------------------

    def entries(self, dataset: str) -> list[Entry]:
        """All charges on a data set, oldest first; none if there is no ledger yet."""
        with self._reading() as db:
            return _entries(db, dataset)

    def limit(self, dataset: str) -> Budget | None:
        """The limit that was set for a data set, if any."""
        with self._reading() as db:
            return _limit(db, dataset)

    def datasets(self) -> list[str]:
        with self._reading() as db:
            return [name for (name,) in db.execute("SELECT name FROM dataset ORDER BY name")]

    def id(self) -> str:
        """A random name for this ledger, kept by the runs it pays for; made on first use."""
        with self._writing() as db:
            if (known := _id(db)) is None:
                known = secrets.token_hex(16)
                db.execute("INSERT INTO ledger VALUES (?)", (known,))
            return known

    def is_named(self, name: str) -> bool:
        with self._reading() as db:
            return _id(db) == name

    def key(self, dataset: str) -> bytes:
        """The secret key for fingerprints of this data set; made on first use."""
        with self._writing() as db:
            return _make_key(db, dataset)

    def known_key(self, dataset: str) -> bytes | None:
        """The same, or None where it has not been made."""
        with self._reading() as db:
            return _key(db, dataset)

    def edition(self, dataset: str, fingerprint: str) -> int | None:
        """The number of the edition with this fingerprint, if it has been charged."""
        with self._reading() as db:
            known = "SELECT number FROM edition WHERE dataset = ? AND fingerprint = ?"
            row = db.execute(known, (dataset, fingerprint)).fetchone()
            return None if row is None else row[0]

    # -- writing --------------------------------------------------------------------------------

    def set_limit(self, dataset: str, limit: Budget) -> None:
        """Set or change the limit of a data set, whatever has been spent."""
        with self._writing() as db:
            _make_key(db, dataset)
            _write_limit(db, dataset, limit)

    def check(
        self,
        dataset: str,
        run_id: str,
        guarantee: Guarantee,
        terms: Terms,
        fingerprint: str | None = None,
    ) -> None:
        """Raise what `charge` would raise, as far as known without a fingerprint; write nothing."""
        with self._reading() as db:
            if _entry(db, run_id) is not None:
                return
            _check_cost(db, dataset, guarantee, terms)
            if fingerprint is not None:
                _edition(db, dataset, fingerprint, terms)

    def charge(
        self,
        dataset: str,
        run_id: str,
        release: str,
        guarantee: Guarantee,
        terms: Terms,
        fingerprint: str,
    ) -> None:
        """Enter the cost of a run; a run that has been charged is not charged again."""
        with self._writing() as db:
            if (old := _entry(db, run_id)) is not None:
                edition = _edition(db, dataset, fingerprint, terms)
                same_input = (old.dataset, old.edition) == (dataset, edition)
                if old.guarantee != guarantee or not same_input:
                    raise LedgerError(
                        "This run was charged for another plan or another input. "
                        "Start in a new run folder, which is charged anew."
                    )
                return
            _check_cost(db, dataset, guarantee, terms)
            edition = _edition(db, dataset, fingerprint, terms)
            _make_key(db, dataset)
            if terms.limit is not None:
                _write_limit(db, dataset, terms.limit)
            db.execute(
                "INSERT OR IGNORE INTO edition VALUES (?, ?, ?)", (dataset, edition, fingerprint)
            )
            db.execute(
                "INSERT INTO charge VALUES (?, ?, ?, ?, ?, ?, NULL, NULL)",
                (run_id, dataset, edition, release, guarantee_to_json(guarantee), _now()),
            )

    def claim(self, run_id: str) -> Claim:
        """Take the right to draw noise; any earlier claim on this charge becomes void."""
        token = secrets.token_hex(8)
        with self._writing() as db:
            entry = _charged(db, run_id)
            if entry.is_settled:
                raise LedgerError(
                    "The noise of this run has been drawn, and its measurements are not here. "
                    "Put them back, or start in a new run folder, which is charged anew."
                )
            db.execute("UPDATE charge SET token = ? WHERE run_id = ?", (token, run_id))
        return Claim(run_id, token, entry.guarantee)

    def settle(self, claim: Claim, digest: str) -> None:
        """Close a claim: the measurements with this digest are complete on disk."""
        with self._writing() as db:
            entry = _charged(db, claim.run_id)
            if entry.is_settled or entry.token != claim.token:
                raise LedgerError(
                    "Another process took over this run. Its measurements count; "
                    "these are discarded."
                )
            db.execute("UPDATE charge SET digest = ? WHERE run_id = ?", (digest, claim.run_id))

    def entry(self, run_id: str) -> Entry | None:
        with self._reading() as db:
            return _entry(db, run_id)

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        """A read transaction; an absent file reads as an empty ledger and is not made."""
        if not self.path.parent.is_dir():
            raise self._no_place()
        is_there = self.path.exists() and self.path.stat().st_size > 0
        with self._open(self.path if is_there else ":memory:") as db:
            db.execute("BEGIN")
            if not is_there:
                _make_tables(db)
            yield db

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """A write transaction that no other process enters; on disk when the block ends."""
        with self._open(self.path, make=True) as db:
            db.execute("PRAGMA synchronous = FULL")
            db.execute("BEGIN IMMEDIATE")
            _make_tables(db)
            yield db
            db.execute("COMMIT")

    @contextmanager
    def _open(self, where: Path | str, *, make: bool = False) -> Iterator[sqlite3.Connection]:
        try:
            if make:
                self.path.touch(mode=0o600)  # it holds keys
            db = sqlite3.connect(where, timeout=30, isolation_level=None)
        except (OSError, sqlite3.Error):
            raise self._no_place() from None
        try:
            yield db
        except sqlite3.Error as error:
            why = _REASONS.get(getattr(error, "sqlite_errorname", ""), type(error).__name__)
            raise LedgerError(
                f"The ledger {self.path} cannot be used ({why}). "
                "Check that it is a ledger, writable, and not held by another process."
            ) from None
        finally:
            db.close()

    def _no_place(self) -> LedgerError:
        return LedgerError(
            f"The ledger {self.path} cannot be opened. Check that its folder exists."
        )


def _make_tables(db: sqlite3.Connection) -> None:
    # Statement by statement: executescript would commit the transaction it runs in.
    for statement in filter(str.strip, _TABLES.split(";")):
        db.execute(statement)


def _check_cost(db: sqlite3.Connection, dataset: str, new: Guarantee, terms: Terms) -> None:
    before = [entry.guarantee for entry in _entries(db, dataset)]
    check_cost(dataset, before, new, _limit(db, dataset), terms)


def _edition(db: sqlite3.Connection, dataset: str, fingerprint: str, terms: Terms) -> int:
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
    return len(known) + 1


def _entries(db: sqlite3.Connection, dataset: str) -> list[Entry]:
    rows = db.execute(f"{_SELECT_ENTRY} WHERE dataset = ? ORDER BY rowid", (dataset,))
    return [_to_entry(row) for row in rows]


def _entry(db: sqlite3.Connection, run_id: str) -> Entry | None:
    row = db.execute(f"{_SELECT_ENTRY} WHERE run_id = ?", (run_id,)).fetchone()
    return None if row is None else _to_entry(row)


_SELECT_ENTRY = """
SELECT run_id, dataset, release, edition, guarantee_json, made, token, digest FROM charge"""


def _charged(db: sqlite3.Connection, run_id: str) -> Entry:
    entry = _entry(db, run_id)
    if entry is None:
        raise LedgerError("This run is not in the ledger: charge it before drawing noise.")
    return entry


def _to_entry(row: tuple) -> Entry:
    run_id, dataset, release, edition, guarantee, made, token, digest = row
    with _refusing_damage():
        return Entry(
            run_id, dataset, release, edition, guarantee_from_json(guarantee), made, token, digest
        )


def _limit(db: sqlite3.Connection, dataset: str) -> Budget | None:
    row = db.execute("SELECT limit_json FROM dataset WHERE name = ?", (dataset,)).fetchone()
    if row is None or row[0] is None:
        return None
    with _refusing_damage():
        return Budget(**{name: Fraction(value) for name, value in json.loads(row[0]).items()})


def _write_limit(db: sqlite3.Connection, dataset: str, limit: Budget) -> None:
    named = {"rho": limit.rho, "epsilon": limit.epsilon}
    text = json.dumps({name: str(value) for name, value in named.items() if value is not None})
    db.execute("UPDATE dataset SET limit_json = ? WHERE name = ?", (text, dataset))


def _id(db: sqlite3.Connection) -> str | None:
    row = db.execute("SELECT id FROM ledger").fetchone()
    return None if row is None else row[0]


def _key(db: sqlite3.Connection, dataset: str) -> bytes | None:
    row = db.execute("SELECT key FROM dataset WHERE name = ?", (dataset,)).fetchone()
    return None if row is None else row[0]


def _make_key(db: sqlite3.Connection, dataset: str) -> bytes:
    if (key := _key(db, dataset)) is None:
        key = secrets.token_bytes(32)
        db.execute("INSERT INTO dataset VALUES (?, ?, NULL)", (dataset, key))
    return key


@contextmanager
def _refusing_damage() -> Iterator[None]:
    try:
        yield
    except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError, PrivacyError):
        raise LedgerError(
            "The ledger is damaged: an entry in it cannot be read. Put back a copy that is whole."
        ) from None


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
