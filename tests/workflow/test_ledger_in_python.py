"""What the owner of a ledger does from Python, and that the rest of the program sees it."""

from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest

import trellis as tr
from trellis.errors import BudgetExceeded, RunFolderError

AREAS = pa.table({"region": ["all", "all"], "town": ["ash", "elm"]})
PEOPLE = pa.table({"town": ["ash"] * 30 + ["elm"] * 50})


def towns(**changes):
    keys = {
        "name": "towns",
        "dataset": "people",
        "records": tr.Records(PEOPLE, area="town"),
        "hierarchy": tr.Hierarchy.from_columns(AREAS, ["region", "town"]),
        "protects": tr.Unit("person", neighbours="add_remove", max_contribution=1),
        "noise": tr.Gaussian(rho=1),
    }
    return tr.Counts(**{**keys, **changes})


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_a_limit_binds_the_next_release():
    ledger = tr.Ledger()
    ledger.limit("people", "person", rho="3/2")
    towns().run("first")
    with pytest.raises(BudgetExceeded):
        towns(name="again").run("second")
    assert ledger.account("people").total("person").rho == Fraction(1)


def test_bounds_between_units_count_charges_of_other_units():
    towns().run("first")
    ledger = tr.Ledger()
    assert ledger.account("people").total("household").left_out
    ledger.made_of("people", "household", {"person": 3})
    total = ledger.account("people").total("household")
    assert not total.left_out
    assert total.rho == 9  # three records move a cell by three


def test_part_of_is_the_other_tie():
    ledger = tr.Ledger()
    ledger.part_of("people", "person", {"household": 1})
    (bound,) = ledger.account("people").bounds
    assert (bound.unit, bound.other, bound.most) == ("person", "household", 1)


def test_a_withdrawn_release_says_so():
    release = towns().run("first")
    newer = towns(name="again").run("second")
    notice = tr.Ledger().withdraw_run(release, reason="old areas", superseded_by=newer)
    found = tr.verify_run("first", "ledger.sqlite")
    assert found.holds
    assert "old areas" in notice == found.notice
    assert not newer.verify().notice


def test_a_lost_charge_is_entered_once():
    run = towns().measure("first")
    ledger = tr.Ledger("new.sqlite")
    assert ledger.enter_run(run)
    assert not ledger.enter_run("first")
    assert [entry.release for entry in ledger.entries("people")] == ["towns"]


def test_a_confidential_log_stays_outside_of_run_folders():
    towns().run("first")
    with pytest.raises(RunFolderError), tr.confidential_log(Path("first/faults.txt")):
        pass


def test_a_starter_spec_is_of_its_kind():
    Path("people.csv").write_text("home,work\n" + "ash,elm\n" * 3)
    path = tr.starter("people.csv", "starter.yaml", kind="flows", has_header=True)
    assert "kind: flows" in path.read_text()


def test_the_demo_is_not_written_over():
    Path("here").mkdir()
    Path("here/spec.yaml").write_text("mine")
    assert tr.demo("here").read_text() == "mine"
