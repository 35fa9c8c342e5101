"""Adds what one ledger knows to another, so that room can only be lost.

Nothing that either of them has is forgotten: charges, editions, bounds (the larger), limits (the
smaller), withdrawals. A charge that comes in never yields noise: whether it was drawn after the
copy was made, no one can tell, so it counts as drawn.
"""

from __future__ import annotations

import sqlite3

from trellis.privacy.ledger.limits import lower_limit, place_limit

DRAWN_ELSEWHERE = "not known"
"""The digest of measurements that this ledger did not see settled."""


def merge(theirs: sqlite3.Connection, db: sqlite3.Connection) -> int:
    """Add all that `theirs` has to `db`; returns how many charges were added."""
    for name, key in theirs.execute("SELECT name, key FROM dataset"):
        db.execute("INSERT OR IGNORE INTO dataset (name, key) VALUES (?, ?)", (name, key))
    numbers = _merge_editions(theirs, db)
    _merge_records(theirs, db)
    for row in theirs.execute("SELECT dataset, unit, limit_json FROM unit_limit"):
        lower_limit(db, *row)
    for row in theirs.execute("SELECT dataset, unit, other, tie, most FROM unit_bound"):
        write_bound(db, row)
    added = _merge_charges(theirs, db, numbers)
    for (name,) in db.execute("SELECT name FROM dataset").fetchall():
        place_limit(db, name)
    for row in theirs.execute("SELECT run_id, made, reason, superseded_by FROM withdrawal"):
        db.execute("INSERT OR IGNORE INTO withdrawal VALUES (?, ?, ?, ?)", row)
    return added


def write_bound(db: sqlite3.Connection, row: tuple[str, str, str, str, int]) -> None:
    """Of two bounds for the same pair, the larger counts."""
    db.execute(
        "INSERT INTO unit_bound VALUES (?, ?, ?, ?, ?) ON CONFLICT (dataset, unit, other, tie) "
        "DO UPDATE SET most = max(most, excluded.most)",
        row,
    )


def _merge_editions(
    theirs: sqlite3.Connection, db: sqlite3.Connection
) -> dict[tuple[str, int], int]:
    """The numbers that their editions have here.

    Fingerprints under another key match nothing: such editions are appended.
    """
    numbers = {}
    for dataset, number, print_ in theirs.execute("SELECT * FROM edition ORDER BY number"):
        known = db.execute(
            "SELECT number FROM edition WHERE dataset = ? AND fingerprint = ?", (dataset, print_)
        ).fetchone()
        if known is None:
            last = "SELECT coalesce(max(number), 0) + 1 FROM edition WHERE dataset = ?"
            known = db.execute(last, (dataset,)).fetchone()
            db.execute("INSERT INTO edition VALUES (?, ?, ?)", (dataset, *known, print_))
        numbers[dataset, number] = known[0]
    return numbers


def _merge_records(theirs: sqlite3.Connection, db: sqlite3.Connection) -> None:
    """Fingerprints across data sets, if they were made with the same key."""
    key = theirs.execute("SELECT key FROM records_key").fetchone()
    if key is not None and db.execute("SELECT key FROM records_key").fetchone() is None:
        db.execute("INSERT INTO records_key VALUES (?)", key)
    if key == db.execute("SELECT key FROM records_key").fetchone():
        for row in theirs.execute("SELECT dataset, fingerprint FROM records"):
            db.execute("INSERT OR IGNORE INTO records VALUES (?, ?)", row)


def _merge_charges(
    theirs: sqlite3.Connection, db: sqlite3.Connection, numbers: dict[tuple[str, int], int]
) -> int:
    added = 0
    for row in theirs.execute("SELECT * FROM charge ORDER BY rowid"):
        run_id, dataset, edition, *rest = row
        *what, token, digest, caps = rest
        known = db.execute("SELECT digest FROM charge WHERE run_id = ?", (run_id,)).fetchone()
        if known is None:
            number = numbers.get((dataset, edition), edition)
            new = run_id, dataset, number, *what, token, digest or DRAWN_ELSEWHERE, caps
            db.execute("INSERT INTO charge VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", new)
            added += 1
        elif known[0] is None and digest is not None:
            db.execute(
                "UPDATE charge SET token = ?, digest = ? WHERE run_id = ?", (token, digest, run_id)
            )
    return added
