"""What has been spent on each data set, in one small SQLite file.

Order of events, each a transaction that is on disk before the next begins:

    charge   the cost is entered under a run id, before a bit of noise is drawn
    claim    one process takes the right to draw noise for that charge, under a new token
    settle   the measurements are complete on disk; their digest is entered, the claim is closed

A charge is drawn on once. A run that dies before `settle` may claim again, after destroying what
was half written; a run that has settled never draws again, and a run goes on only with the ledger
that it began with. So copying or emptying a run folder yields no second set of noise for a charge.
Files that a run has not yet published are not for reading; no program can enforce that.

On disk means: it survives loss of power, also where the system then forgets what folders held. A
transaction ends when SQLite removes its journal. If that were forgotten, the journal would come
back, undo `settle`, and one charge would give two draws. So folders are synchronised too.

The file holds a secret key per data set for the fingerprint of its records, and one for all data
sets, which shows equal records under two names. Keep it as confidential as the records;
nothing in it is needed to use a release.
"""

from __future__ import annotations

import logging
import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from trellis.errors import LedgerError
from trellis.privacy.budget import Budget
from trellis.privacy.guarantee import Guarantee
from trellis.privacy.ledger import rows
from trellis.privacy.ledger.account import Account, Cost
from trellis.privacy.ledger.entries import Claim, Entry, Withdrawal
from trellis.privacy.ledger.limits import forget_placeless
from trellis.privacy.ledger.merge import DRAWN_ELSEWHERE, merge
from trellis.privacy.ledger.rules import Terms, check_new_limit
from trellis.privacy.ledger.schema import FORMAT, format_of, make_tables, migrate
from trellis.privacy.ledger.units import UnitBound

_log = logging.getLogger(__name__)

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
            return rows.entries(db, dataset)

    def account(self, dataset: str) -> Account:
        """All charges on a data set, its limits, and the bounds between its units."""
        with self._reading() as db:
            return rows.account(db, dataset)

    def datasets(self) -> list[str]:
        """Data sets that have charges or a limit."""
        names = "SELECT dataset FROM charge UNION SELECT dataset FROM unit_limit ORDER BY 1"
        with self._reading() as db:
            return [name for (name,) in db.execute(names)]

    def id(self) -> str:
        """A random name for this ledger, kept by the runs it pays for; made on first use."""
        with self._writing() as db:
            if (known := rows.ledger_id(db)) is None:
                known = secrets.token_hex(16)
                db.execute("INSERT INTO ledger VALUES (?)", (known,))
            return known

    def is_named(self, name: str) -> bool:
        with self._reading() as db:
            return rows.ledger_id(db) == name

    def key(self, dataset: str) -> bytes:
        """The secret key for fingerprints of this data set; made on first use."""
        with self._writing() as db:
            return rows.make_key(db, dataset)

    def known_key(self, dataset: str) -> bytes | None:
        """The same, or None where it has not been made."""
        with self._reading() as db:
            return rows.key(db, dataset)

    def records_key(self) -> bytes:
        """The secret key for fingerprints that are compared between data sets."""
        with self._writing() as db:
            if (key := rows.records_key(db)) is None:
                key = secrets.token_bytes(32)
                db.execute("INSERT INTO records_key VALUES (?)", (key,))
            return key

    def known_records_key(self) -> bytes | None:
        with self._reading() as db:
            return rows.records_key(db)

    def edition(self, dataset: str, fingerprint: str) -> int | None:
        """The number of the edition with this fingerprint, if it has been charged."""
        with self._reading() as db:
            known = "SELECT number FROM edition WHERE dataset = ? AND fingerprint = ?"
            row = db.execute(known, (dataset, fingerprint)).fetchone()
            return None if row is None else row[0]

    # -- writing --------------------------------------------------------------------------------

    def set_limit(
        self, dataset: str, unit: str, limit: Budget, *, below_spent: bool = False
    ) -> None:
        """Set or change the limit of a unit; one that is exceeded already must be intended."""
        with self._writing() as db:
            rows.make_key(db, dataset)
            total = rows.account(db, dataset).total(unit)
            if not below_spent and (total.counted or total.left_out):
                check_new_limit(dataset, total, limit)
            forget_placeless(db, dataset)
            rows.write_limit(db, dataset, unit, limit)

    def declare(self, dataset: str, bound: UnitBound) -> None:
        """Store a bound between two units; of two for the same pair, the larger counts."""
        with self._writing() as db:
            rows.make_key(db, dataset)
            rows.write_bounds(db, dataset, (bound,))

    def check(
        self,
        dataset: str,
        run_id: str,
        guarantee: Guarantee,
        terms: Terms,
        fingerprint: str | None = None,
        records_print: str | None = None,
    ) -> None:
        """Raise what `charge` would raise, as far as known without fingerprints; write nothing."""
        self._folder_is_there()
        places = (self.path.parent, self.path)
        if not all(os.access(place, os.W_OK) for place in places if place.exists()):
            raise self._not_writable()
        with self._reading() as db:
            if rows.entry(db, run_id) is not None:
                return
            rows.check_charge(db, dataset, Cost("", guarantee, terms.caps), terms)
            if fingerprint is not None:
                rows.edition(db, dataset, fingerprint, terms)
            if records_print is not None:
                rows.check_records(db, dataset, records_print, terms)

    def charge(
        self,
        dataset: str,
        run_id: str,
        release: str,
        guarantee: Guarantee,
        terms: Terms,
        fingerprint: str,
        records_print: str | None = None,
    ) -> None:
        """Enter the cost of a run; a run that has been charged is not charged again."""
        with self._writing() as db:
            if (old := rows.entry(db, run_id)) is not None:
                edition = rows.edition(db, dataset, fingerprint, terms)
                same_input = (old.dataset, old.edition) == (dataset, edition)
                if old.guarantee != guarantee or not same_input:
                    raise LedgerError(
                        "This run was charged for another plan or another input. "
                        "Start in a new run folder, which is charged again."
                    )
                return
            cost = Cost(release, guarantee, terms.caps)
            rows.check_charge(db, dataset, cost, terms)
            edition = rows.edition(db, dataset, fingerprint, terms)
            rows.make_key(db, dataset)
            db.execute(
                "INSERT OR IGNORE INTO edition VALUES (?, ?, ?)", (dataset, edition, fingerprint)
            )
            if records_print is not None:
                rows.check_records(db, dataset, records_print, terms)
                db.execute("INSERT OR IGNORE INTO records VALUES (?, ?)", (dataset, records_print))
            rows.write_terms(db, dataset, cost.unit, terms)
            rows.insert_charge(db, run_id, dataset, edition, cost)

    def enter(self, dataset: str, run_id: str, cost: Cost, digest: str | None) -> bool:
        """Enter a charge that this ledger lacks, and which never yields noise; False if it is here.

        The limit is not checked: what is spent is spent.
        """
        with self._writing() as db:
            if rows.entry(db, run_id) is not None:
                return False
            rows.make_key(db, dataset)
            rows.insert_charge(db, run_id, dataset, 0, cost)
            digest = digest or DRAWN_ELSEWHERE
            db.execute("UPDATE charge SET digest = ? WHERE run_id = ?", (digest, run_id))
            return True

    def claim(self, run_id: str) -> Claim:
        """Take the right to draw noise; any earlier claim on this charge becomes void."""
        token = secrets.token_hex(8)
        with self._writing() as db:
            entry = rows.charged(db, run_id)
            if entry.is_settled:
                raise LedgerError(
                    "The noise of this run has been drawn, but its measurements are not here. Put "
                    "them back, or start in a new run folder, which is charged again."
                )
            db.execute("UPDATE charge SET token = ? WHERE run_id = ?", (token, run_id))
        return Claim(run_id, token, entry.guarantee)

    def settle(self, claim: Claim, digest: str) -> None:
        """Close a claim: the measurements with this digest are complete on disk."""
        with self._writing() as db:
            entry = rows.charged(db, claim.run_id)
            if entry.is_settled or entry.token != claim.token:
                raise LedgerError(
                    "Another process took over this run. Its measurements are kept; these are "
                    "discarded."
                )
            db.execute("UPDATE charge SET digest = ? WHERE run_id = ?", (digest, claim.run_id))

    def entry(self, run_id: str) -> Entry | None:
        with self._reading() as db:
            return rows.entry(db, run_id)

    def withdraw(
        self, dataset: str, run_id: str, reason: str | None, superseded_by: str | None
    ) -> Withdrawal:
        """Record that a release is withdrawn; its charge stays. A second call adds to the first."""
        with self._writing() as db:
            for run in filter(None, (run_id, superseded_by)):
                entry = rows.entry(db, run)
                if entry is None or entry.dataset != dataset:
                    raise LedgerError(f"The ledger has no run {run} of data set {dataset!r}.")
            db.execute(
                "INSERT INTO withdrawal VALUES (?, ?, ?, ?) ON CONFLICT (run_id) DO UPDATE SET "
                "reason = coalesce(excluded.reason, reason), "
                "superseded_by = coalesce(excluded.superseded_by, superseded_by)",
                (run_id, rows.now(), reason, superseded_by),
            )
            withdrawal = rows.charged(db, run_id).withdrawal
            assert withdrawal is not None
            return withdrawal

    # -- copies ---------------------------------------------------------------------------------

    def backup(self, path: Path) -> None:
        """A consistent copy in a new file, for its owner's eyes."""
        if not self.path.is_file():
            raise LedgerError(f"There is no ledger at {self.path}.")
        with self._reading_file() as db:
            _copy_into(db, path)

    def restore(self, path: Path) -> int:
        """Add all that a copy has and this ledger lacks; returns how many charges were added.

        A ledger that was lost gets another id, so that no run which began with it draws again.
        """
        if not path.is_file():
            raise LedgerError(f"There is no copy of a ledger at {path}.")
        with Ledger(path)._reading() as theirs, self._writing() as db:
            return merge(theirs, db)

    # -- the file -------------------------------------------------------------------------------

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        """A read transaction; an absent file reads as an empty ledger and is not made.

        A ledger of an older format is read as what it would become, and stays as it is.
        """
        self._folder_is_there()
        is_there = self.path.exists() and self.path.stat().st_size > 0
        if not is_there:
            with self._open(":memory:") as db:
                make_tables(db)
                yield db
            return
        with self._reading_file() as db:
            if (known := format_of(db, self.path)) == FORMAT:
                yield db
                return
            with closing(sqlite3.connect(":memory:", isolation_level=None)) as copy:
                db.backup(copy)
                _bring_up_to_date(copy, known)
                yield copy

    @contextmanager
    def _reading_file(self) -> Iterator[sqlite3.Connection]:
        with self._open(self.path) as db:
            db.execute("BEGIN")
            yield db

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """A write transaction that no other process enters; on disk when the block ends."""
        with self._open(self.path, make=True) as db:
            # EXTRA: the folder is synchronised after the journal is removed; see above.
            db.execute("PRAGMA synchronous = EXTRA")
            db.execute("BEGIN IMMEDIATE")
            if (known := format_of(db, self.path)) != FORMAT:
                said = self._keep_old(known)
                _bring_up_to_date(db, known)
            else:
                said = None
            yield db
            db.execute("COMMIT")
            if said is not None:
                _log.warning(said)

    def _keep_old(self, known: int) -> str | None:
        """Keep a copy of a ledger that is about to be changed, and print a line about it."""
        if known == 0:
            return None
        copy = self.path.with_name(f"{self.path.name}.before-format-{FORMAT}")
        number = 1
        while copy.exists():  # of an attempt that broke off, or of a ledger that was put back
            number += 1
            copy = copy.with_name(f"{self.path.name}.before-format-{FORMAT}-{number}")
        with self._reading_file() as before:
            _copy_into(before, copy)
        return (
            f"The ledger {self.path} was brought to format {FORMAT}; {copy.name} is a copy of what "
            "it was. Its limits now hold for each unit that has charges, no release is known to "
            "cap contributions, and bounds between units must be declared again."
        )

    @contextmanager
    def _open(self, where: Path | str, *, make: bool = False) -> Iterator[sqlite3.Connection]:
        try:
            if make:
                _make_file(self.path)
            db = sqlite3.connect(where, timeout=30, isolation_level=None)
        except PermissionError:
            raise self._not_writable() from None
        except (OSError, sqlite3.Error):
            self._folder_is_there()
            raise LedgerError(
                f"The ledger {self.path} cannot be opened. Check that it is a file."
            ) from None
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

    def _folder_is_there(self) -> None:
        if not self.path.parent.is_dir():
            raise LedgerError(
                f"The ledger {self.path} cannot be opened. Check that its folder exists."
            )

    def _not_writable(self) -> LedgerError:
        return LedgerError(
            f"The ledger {self.path} cannot be written: permission denied. Make the file and its "
            "folder writable; SQLite keeps a journal next to it."
        )


def _make_file(path: Path) -> None:
    is_new = not path.exists()
    path.touch(mode=0o600)  # it holds keys
    if is_new:
        _sync(path.parent)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _copy_into(db: sqlite3.Connection, path: Path) -> None:
    """A copy in a new file that only its owner may read, on disk when this returns."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        with closing(sqlite3.connect(path)) as copy:
            db.backup(copy)
        _sync(path)
        _sync(path.parent)
    except FileExistsError:
        raise LedgerError(f"{path} exists, and is kept. Choose another name.") from None
    except OSError as error:
        raise LedgerError(f"{path} could not be written ({error.strerror}).") from None


def _bring_up_to_date(db: sqlite3.Connection, known: int) -> None:
    with rows.refusing_damage():
        make_tables(db) if known == 0 else migrate(db)
