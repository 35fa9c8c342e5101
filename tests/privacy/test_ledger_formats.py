"""Ledgers of an older or newer format, and copies of a ledger: room is lost, never regained."""

from __future__ import annotations

import json
import logging
import os
import sqlite3
from contextlib import closing
from fractions import Fraction

import pytest

from trellis.errors import BudgetExceeded, LedgerError
from trellis.privacy.budget import Budget
from trellis.privacy.guarantee import Charge, Guarantee
from trellis.privacy.ledger import Cost, Ledger, Terms
from trellis.privacy.ledger import file as ledger_file
from trellis.privacy.ledger.units import Tie, UnitBound
from trellis.privacy.mechanisms import DiscreteGaussian
from trellis.privacy.neighbours import Neighbours
from trellis.privacy.protection import Protection

OLD_TABLES = """
CREATE TABLE ledger (id TEXT PRIMARY KEY);
CREATE TABLE dataset (
    name TEXT PRIMARY KEY, key BLOB NOT NULL, limit_json TEXT);
CREATE TABLE edition (
    dataset TEXT NOT NULL REFERENCES dataset, number INTEGER NOT NULL,
    fingerprint TEXT NOT NULL, PRIMARY KEY (dataset, number), UNIQUE (dataset, fingerprint));
CREATE TABLE charge (
    run_id TEXT PRIMARY KEY, dataset TEXT NOT NULL REFERENCES dataset, edition INTEGER NOT NULL,
    release TEXT NOT NULL, guarantee_json TEXT NOT NULL, made TEXT NOT NULL,
    token TEXT, digest TEXT);
"""
"""As the code of commit 32a87e7 made them."""


def old_guarantee(unit: str, neighbours: str = "add_remove") -> str:
    """What that code wrote for rho = 1 and one record under add_remove."""
    noise = ["town: total", "discrete_gaussian", "1/2"]
    protection = {"unit": unit, "neighbours": neighbours, "max_contribution": 1, "within": None}
    return json.dumps({**protection, "charges": [noise]})


def write_old(path, units=("person",), limit='{"rho": "4"}') -> Ledger:
    """A ledger with one charge for each unit."""
    with closing(sqlite3.connect(path)) as db:
        db.executescript(OLD_TABLES)
        db.execute("INSERT INTO ledger VALUES ('cafe')")
        db.execute("INSERT INTO dataset VALUES ('data', ?, ?)", (b"k" * 32, limit))
        db.execute("INSERT INTO edition VALUES ('data', 1, 'print')")
        for i, unit in enumerate(units):
            row = (
                f"run {i}",
                "data",
                1,
                f"old {unit}",
                old_guarantee(unit),
                "2026-11-01",
                "t",
                "d",
            )
            db.execute("INSERT INTO charge VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
        db.commit()
    return Ledger(path)


def charging(rho, unit="person") -> Guarantee:
    noise = DiscreteGaussian(1 / (2 * Fraction(rho)))
    return Guarantee(Protection(unit, Neighbours.ADD_REMOVE, 1), (Charge("town", noise),))


def rho(value) -> Budget:
    return Budget(rho=Fraction(value))


def charge(ledger, run, guarantee, print_="print", **terms) -> None:
    ledger.charge("data", run, run, guarantee, Terms(**terms), print_)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.sqlite"


# -- formats ---------------------------------------------------------------------------------------


def test_an_old_ledger_is_read_as_it_is_and_not_written(path):
    ledger = write_old(path)
    before = path.read_bytes()
    [entry] = ledger.entries("data")
    assert (entry.guarantee.rho, entry.caps, entry.withdrawal) == (1, False, None)
    assert ledger.account("data").limits == {"person": rho(4)}
    assert ledger.is_named("cafe")
    assert ledger.known_key("data") == b"k" * 32
    assert ledger.datasets() == ["data"]
    with pytest.raises(BudgetExceeded, match="has only 3 of its limit 4"):
        ledger.check("data", "new", charging("7/2"), Terms(), "print")
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_an_old_ledger_is_brought_up_to_date_when_written_and_a_copy_is_kept(path, caplog):
    ledger = write_old(path)
    before = path.read_bytes()
    with caplog.at_level(logging.WARNING):
        charge(ledger, "new", charging(1), limit=rho(4))
        charge(ledger, "newer", charging(1), limit=rho(4))
    [said] = caplog.messages
    assert "brought to format 2; ledger.sqlite.before-format-2 is a copy" in said
    copy = path.with_name("ledger.sqlite.before-format-2")
    assert copy.stat().st_mode & 0o077 == 0
    with closing(sqlite3.connect(copy)) as db, closing(sqlite3.connect(":memory:")) as old:
        old.deserialize(before)
        assert list(db.iterdump()) == list(old.iterdump())
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (2,)
    assert [entry.run_id for entry in ledger.entries("data")] == ["run 0", "new", "newer"]
    assert ledger.account("data").total("person").rho == 3
    with pytest.raises(LedgerError, match="has been drawn"):
        ledger.claim("run 0")


def test_a_migration_that_breaks_off_leaves_the_old_ledger(path, monkeypatch):
    ledger = write_old(path)
    with monkeypatch.context() as patch:
        patch.setattr(ledger_file, "migrate", lambda _: 1 / 0)
        with pytest.raises(LedgerError, match="damaged"):
            ledger.id()
    assert ledger.id() == "cafe"  # the second attempt keeps a copy of its own
    names = {file.name for file in path.parent.glob("*before*")}
    assert names == {"ledger.sqlite.before-format-2", "ledger.sqlite.before-format-2-2"}


def test_the_limit_of_an_old_ledger_holds_for_each_of_its_units_and_bounds_are_asked_for(path):
    ledger = write_old(path, units=("person", "household"))
    assert ledger.account("data").limits == {"person": rho(4), "household": rho(4)}
    with pytest.raises(LedgerError, match="cannot be counted for 'person'"):
        charge(ledger, "new", charging("1/100"))
    bounds = {"part_of": {"household": 1}}
    with pytest.raises(LedgerError, match="cannot be counted for 'household'"):
        charge(ledger, "new", charging("1/100"), **bounds)
    ledger.declare("data", UnitBound("household", "person", Tie.MADE_OF, 2))
    with pytest.raises(BudgetExceeded, match="all counted for a household"):
        charge(ledger, "new", charging("1/100"), **bounds)
    ledger.set_limit("data", "household", rho(6))
    charge(ledger, "new", charging("1/100"), **bounds)
    account = ledger.account("data")
    assert account.total("person").rho == 1 + 2 + Fraction(1, 100)
    assert account.total("household").rho == 4 + 1 + Fraction(4, 100)


def test_the_limit_of_an_old_ledger_without_charges_holds_for_whoever_comes_first(path):
    ledger = write_old(path, units=())
    with pytest.raises(BudgetExceeded, match="has only 4 of its limit 4 left, all counted for a f"):
        charge(ledger, "new", charging(5, "firm"))
    charge(ledger, "new", charging(3, "firm"))
    assert ledger.account("data").limits == {"firm": rho(4)}


def test_a_limit_that_is_for_nobody_yet_finds_its_unit_in_a_charge_that_comes_in(path, tmp_path):
    ledger = write_old(path, units=())
    lost = Ledger(tmp_path / "lost.sqlite")
    charge(lost, "a", charging(1, "firm"), limit=rho(9))
    assert ledger.restore(lost.path) == 1
    assert ledger.account("data").limits == {"firm": rho(4)}
    other = write_old(tmp_path / "other.sqlite", units=())
    other.enter("data", "b", Cost("b", charging(1, "home")), None)
    assert other.account("data").limits == {"home": rho(4)}
    stated = write_old(tmp_path / "stated.sqlite", units=())
    stated.set_limit("data", "home", rho(7))
    assert stated.account("data").limits == {"home": rho(7)}


def test_a_newer_format_is_refused(path):
    ledger = Ledger(path)
    charge(ledger, "run", charging(1))
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 3")
    for use in (lambda: ledger.entries("data"), lambda: charge(ledger, "next", charging(1))):
        with pytest.raises(LedgerError, match=r"has format 3, but .* only knows formats up to 2"):
            use()


def test_another_database_is_not_made_a_ledger(path):
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE photos (name TEXT)")
    before = path.read_bytes()
    with pytest.raises(LedgerError, match="it is not a ledger"):
        charge(Ledger(path), "run", charging(1))
    assert path.read_bytes() == before


# -- places that cannot be written -----------------------------------------------------------------


def test_a_place_that_may_not_be_written_is_said_to_be_so(path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(os, "access", lambda *_: False)
        with pytest.raises(LedgerError, match=r"cannot be written: permission denied"):
            Ledger(path).check("data", "run", charging(1), Terms())

    def denied(*_args, **_options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(type(path), "touch", denied)
    with pytest.raises(LedgerError, match=r"cannot be written: permission denied") as refused:
        charge(Ledger(path), "run", charging(1))
    assert "folder exists" not in str(refused.value)


# -- copies ----------------------------------------------------------------------------------------


def test_a_copy_is_whole_private_and_never_replaces_a_file(path, tmp_path):
    ledger, copy = Ledger(path), tmp_path / "copy.sqlite"
    charge(ledger, "a", charging(1), limit=rho(3))
    ledger.backup(copy)
    assert copy.stat().st_mode & 0o077 == 0
    assert Ledger(copy).entries("data") == ledger.entries("data")
    assert Ledger(copy).account("data") == ledger.account("data")
    with pytest.raises(LedgerError, match="exists, and is kept"):
        ledger.backup(copy)
    with pytest.raises(LedgerError, match="could not be written"):
        ledger.backup(tmp_path / "nowhere" / "copy.sqlite")


def test_an_old_copy_forgets_nothing_that_was_charged_since(path, tmp_path):
    ledger, copy = Ledger(path), tmp_path / "copy.sqlite"
    charge(ledger, "a", charging(1), limit=rho(3))
    ledger.backup(copy)
    ledger.settle(ledger.claim("a"), "digest")
    charge(ledger, "b", charging(1), print_="changed", new_edition=True)
    ledger.set_limit("data", "person", rho(2))
    before = ledger.entries("data"), ledger.account("data")
    assert ledger.restore(copy) == 0
    assert (ledger.entries("data"), ledger.account("data")) == before


def test_what_a_copy_has_comes_back_and_never_yields_noise(path, tmp_path):
    """The ledger was replaced by an older copy of itself; a later copy is put in."""
    ledger, older, later = Ledger(path), tmp_path / "older.sqlite", tmp_path / "later.sqlite"
    name = ledger.id()
    charge(ledger, "a", charging(1), limit=rho(9))
    ledger.backup(older)
    ledger.settle(ledger.claim("a"), "digest")
    charge(ledger, "b", charging(1), print_="changed", new_edition=True)
    ledger.declare("data", UnitBound("home", "person", Tie.MADE_OF, 3))
    ledger.set_limit("data", "person", rho(5))
    ledger.withdraw("data", "a", "wrong areas", "b")
    ledger.backup(later)
    path.unlink()
    older.rename(path)
    assert ledger.restore(later) == 1
    assert ledger.id() == name
    assert [(e.run_id, e.edition) for e in ledger.entries("data")] == [("a", 1), ("b", 2)]
    assert ledger.entry("a").withdrawal.superseded_by == "b"
    assert ledger.account("data").limits == {"person": rho(5)}
    assert [bound.most for bound in ledger.account("data").bounds] == [3]
    for run in ("a", "b"):  # b may have been drawn after the copy was made
        with pytest.raises(LedgerError, match="has been drawn"):
            ledger.claim(run)


def test_a_lost_ledger_comes_back_under_another_name(path, tmp_path):
    """So that no run which it began draws a second time."""
    ledger, copy = Ledger(path), tmp_path / "copy.sqlite"
    name, key = ledger.id(), ledger.key("data")
    charge(ledger, "a", charging(1), limit=rho(2))
    ledger.backup(copy)
    path.unlink()
    assert ledger.restore(copy) == 1
    assert ledger.id() != name
    assert ledger.key("data") == key
    assert ledger.account("data").limits == {"person": rho(2)}
    assert ledger.restore(copy) == 0


def test_a_copy_joins_a_ledger_that_was_begun_meanwhile(path, tmp_path):
    """Its fingerprints are under another key: its editions are appended."""
    lost = Ledger(tmp_path / "lost.sqlite")
    charge(lost, "a", charging(1), print_="under the lost key", limit=rho(8))
    lost.key("other")
    ledger = Ledger(path)
    name, key = ledger.id(), ledger.key("data")
    charge(ledger, "b", charging(1), print_="under the new key", limit=rho(9))
    assert ledger.restore(lost.path) == 1
    assert (ledger.id(), ledger.key("data")) == (name, key)
    assert {e.run_id: e.edition for e in ledger.entries("data")} == {"b": 1, "a": 2}
    assert ledger.account("data").limits == {"person": rho(8)}
    charge(ledger, "c", charging(1), print_="under the new key")


def test_a_charge_can_be_entered_from_elsewhere_once_and_yields_no_noise(path):
    ledger = Ledger(path)
    charge(ledger, "a", charging(1), limit=rho(2))
    assert ledger.enter("data", "lost", Cost("lost", charging(5)), None)
    assert not ledger.enter("data", "lost", Cost("lost", charging(5)), "digest")
    assert ledger.account("data").total("person").rho == 6  # past the limit: spent is spent
    with pytest.raises(LedgerError, match="has been drawn"):
        ledger.claim("lost")
    with pytest.raises(BudgetExceeded, match="has only 0 of its limit"):
        charge(ledger, "b", charging("1/100"))


# -- withdrawn releases ----------------------------------------------------------------------------


def test_a_withdrawn_release_stays_paid_for(path):
    ledger = Ledger(path)
    charge(ledger, "a", charging(1), limit=rho(2))
    charge(ledger, "b", charging(1))
    ledger.withdraw("data", "a", "wrong areas", None)
    ledger.withdraw("data", "a", None, "b")
    kept = ledger.entry("a").withdrawal
    assert (kept.reason, kept.superseded_by) == ("wrong areas", "b")
    assert ledger.account("data").total("person").rho == 2
    with pytest.raises(BudgetExceeded):
        charge(ledger, "c", charging("1/100"))
    for dataset, run, by in (("data", "x", None), ("data", "a", "x"), ("other", "a", None)):
        with pytest.raises(LedgerError, match="has no run"):
            ledger.withdraw(dataset, run, None, by)


# -- the same records under another name -----------------------------------------------------------


def test_equal_records_under_another_name_must_be_confirmed_once(path):
    ledger = Ledger(path)

    def use(method, dataset, run, **terms):
        given = charging(1), Terms(**terms), "print", "equal records"
        if method == "check":
            return ledger.check(dataset, run, *given)
        return ledger.charge(dataset, run, run, *given)

    use("charge", "census", "a")
    use("charge", "census", "b")
    for method in ("check", "charge"):
        with pytest.raises(LedgerError, match=r"as data set 'census', .*'cenus'.* same_records"):
            use(method, "cenus", "c")
    assert ledger.datasets() == ["census"]
    use("charge", "cenus", "c", same_records=True)
    use("charge", "cenus", "d")
    use("charge", "census", "e")


def test_the_key_for_all_data_sets_is_made_once(path):
    ledger = Ledger(path)
    assert ledger.known_records_key() is None
    assert not path.exists()
    key = ledger.records_key()
    assert len(key) == 32
    assert ledger.records_key() == ledger.known_records_key() == key != ledger.key("data")


def test_a_price_that_a_name_decided_is_put_right_and_requirements_are_not_known(path):
    """An attribute called grand_total was charged as a flow's total: half of what it cost."""
    ledger = write_old(path)
    charges = [
        ["nation: grand_total", "discrete_gaussian", "1", "grand_total", 1],
        ["nation: detailed", "discrete_gaussian", "1"],
    ]
    flows = [["nation: grand_total", "discrete_gaussian", "1", "grand_total", 1],
             ["state: pairs", "discrete_gaussian", "1", "pairs", 1]]  # fmt: skip
    with closing(sqlite3.connect(path)) as db, db:
        for run, priced in (("histogram", charges), ("flows", flows)):
            text = json.dumps({"unit": "person", "neighbours": "replace", "max_contribution": 1,
                               "within": None, "charges": priced})  # fmt: skip
            row = run, "data", 1, run, text, "2026-01-01", None, None
            db.execute("INSERT INTO charge VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
    histogram, flow = ledger.entry("histogram"), ledger.entry("flows")
    assert histogram.guarantee.rho == 2
    assert flow.guarantee.rho == Fraction(3, 2)
    for entry in (histogram, flow):
        assert "not recorded here" in " ".join(entry.guarantee.protection.restrictions)


def test_a_limit_in_another_measure_is_never_lost(path, tmp_path):
    ledger = Ledger(path)
    ledger.set_limit("data", "person", rho(1))
    copy = tmp_path / "copy.sqlite"
    ledger.backup(copy)
    path.unlink()
    ledger.set_limit("data", "person", Budget(epsilon=Fraction(1000)))
    with pytest.raises(LedgerError, match="would be lost"):
        ledger.restore(copy)
