"""`trellis ledger`: what it says, and what it changes."""

from __future__ import annotations

import json
import os
import shutil
from fractions import Fraction
from pathlib import Path

import pytest

from command_line import invoke, refused, succeed
from trellis.privacy.ledger import Ledger
from worlds import write_world

HOUSEHOLD = {"privacy__unit": "household", "privacy__neighbours": "add_remove"}
PERSON = {"privacy__unit": "person", "privacy__neighbours": "add_remove"}


def measure(world: Path, release: str, **changes) -> Path:
    """Charge one more release to the ledger of a world; returns its run folder."""
    succeed("measure", write_world(world, release=release, **changes))
    return world / "runs" / release


def on(world: Path) -> list:
    return ["--ledger", world / "ledger.sqlite"]


def in_json(world: Path, dataset: str = "towns") -> dict:
    return json.loads(succeed("ledger", dataset, *on(world), "--json"))


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A finished release and a limit; copied before it is changed."""
    world = tmp_path_factory.mktemp("made") / "w"
    spec = write_world(world, ledger__limit={"rho": 4}, unprotected__totals=["state"])
    succeed("run", spec)
    return world


@pytest.fixture
def done(made, tmp_path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "w"))


# -- showing ---------------------------------------------------------------------------------------


def test_alone_it_lists_what_is_spent_and_allowed(made):
    said = succeed("ledger", *on(made))
    assert "Restricted: not every change is protected." in said
    row = next(line for line in said.splitlines() if "towns" in line)
    cells = [cell.strip() for cell in row.strip("│").split("│")]
    assert cells == ["towns", "person", "replace, within state", "1", "1", "rho = 4"]
    [only] = json.loads(succeed("ledger", *on(made), "--json"))["datasets"]
    assert only == in_json(made)


def test_every_figure_names_its_restrictions(made):
    said = succeed("ledger", "towns", *on(made))
    assert "Together, for a person and neighbours replace, within state: rho = 1" in said
    assert "(replace, within state), if no noise was chosen after" in said
    assert "only changes that stay inside the same area of that level" in said
    assert "Adds up: towns (as charged)" in said
    assert "Limit: rho = 4 for a person" in said
    assert "drawn" in said


def test_json_states_each_unit_with_its_conditions(made):
    person = in_json(made)["units"]["person"]
    assert person["rho"] == "1"
    assert person["neighbours"] == "replace"
    assert person["within"] == "state"
    assert "'state'" in " ".join(person["restrictions"])
    assert person["limit"] == {"rho": "4", "epsilon": None}
    assert person["complete"]
    privacy = json.loads((made / "runs" / "towns" / "privacy.json").read_text())
    assert person["epsilon_at_delta"]["1e-10"] == privacy["epsilon_at_delta"]["1e-10"]
    [charge] = person["charges"]
    assert (charge["release"], charge["rho"], charge["drawn"]) == ("towns", "1", True)


def test_several_levels_are_all_named(tmp_path):
    areas = "nation,state,county,town\nr,a,x,a1\nr,a,y,a2\nr,b,z,b1\n"
    columns = ["nation", "state", "county", "town"]
    for level in ("state", "county"):
        exact = {"unprotected__totals": [level], "hierarchy__columns": columns}
        measure(tmp_path, f"by-{level}", areas=areas, **exact)
    assert in_json(tmp_path)["units"]["person"]["within"] == ["county", "state"]


def test_sums_say_what_they_add_and_what_they_leave_out(tmp_path):
    """Two releases of rho 1, one per unit: 9.5332 was stated for a person, the truth is more."""
    measure(tmp_path, "homes", **HOUSEHOLD, ledger__units={"person": 2})
    measure(tmp_path, "people", **PERSON)
    units = in_json(tmp_path)["units"]
    assert (units["household"]["rho"], units["household"]["complete"]) == ("5", True)
    assert (units["person"]["rho"], units["person"]["complete"]) == ("1", False)
    [left_out] = units["person"]["not_counted"]
    assert (left_out["release"], left_out["unit"], left_out["rho"]) == ("homes", "household", "1")
    said = succeed("ledger", "towns", *on(tmp_path))
    assert "Together, for a household and neighbours add_remove: rho = 5" in said
    assert "one household is made up of at most 2 person(s)" in said
    assert "In part, for a person and neighbours add_remove: rho = 1" in said
    assert "Left out: homes (for a household)" in said
    assert "The true cost for a person is higher." in said
    assert "Together, for a person" not in said
    succeed("ledger", "towns", *on(tmp_path), "--part-of", "person:household=1")
    assert in_json(tmp_path)["units"]["person"]["rho"] == "3"
    assert in_json(tmp_path)["units"]["person"]["epsilon_at_delta"]["1e-10"] > 14.314


# -- the findings, by command ----------------------------------------------------------------------


@pytest.mark.parametrize("first", ["household", "person"])
def test_the_order_of_releases_does_not_decide(tmp_path, first):
    limit = {"ledger__limit": {"rho": 5}}
    specs = {
        "household": HOUSEHOLD | limit | {
            "privacy__budget": {"rho": 4}, "privacy__max_contribution": 3,
            "ledger__units": {"person": 3}},
        "person": PERSON | limit | {"ledger__units": {"household": 1}},
    }  # fmt: skip
    second = "person" if first == "household" else "household"
    measure(tmp_path, first, **specs[first])
    spec = write_world(tmp_path, release=second, **specs[second])
    for command in ("check", "run"):
        assert "of its limit 5 left, all counted for a " in refused(command, spec)
    assert not (tmp_path / "runs" / second).exists()
    assert list(in_json(tmp_path)["units"]) == [first]


def test_contributions_that_contradict_each_other(tmp_path):
    for i, m in enumerate((1, 3, 1, 3)):
        measure(tmp_path, f"r{i}", privacy__budget={"rho": "1/100"}, privacy__max_contribution=m)
    person = in_json(tmp_path)["units"]["person"]
    assert Fraction(person["rho"]) == Fraction(9 + 1 + 9 + 1, 100)
    assert [charge["rho"] for charge in person["charges"]] == ["9/100", "1/100"] * 2
    assert {charge["rho_as_charged"] for charge in person["charges"]} == {"1/100"}
    assert "counted for 3 record(s)" in succeed("ledger", "towns", *on(tmp_path))


def test_a_limit_names_its_unit(tmp_path):
    limit = {"rho": 7, "unit": "household"}
    measure(tmp_path, "homes", **HOUSEHOLD, ledger__units={"person": 2}, ledger__limit=limit)
    measure(tmp_path, "people", **PERSON, ledger__limit=limit)
    assert in_json(tmp_path)["units"]["household"]["limit"] == {"rho": "7", "epsilon": None}
    assert in_json(tmp_path)["units"]["person"]["limit"] is None
    spec = write_world(tmp_path, release="more", **PERSON, ledger__limit=limit)
    assert "costs rho = 4, but data set 'towns' has only 2 of its limit 7" in refused("run", spec)


# -- limits and bounds -----------------------------------------------------------------------------


def test_the_limit_is_changed_on_request(done):
    line = refused("ledger", "towns", *on(done), "--set-limit", "rho=1/2")
    assert "has spent rho = 1 for a person" in line
    assert "--below-spent" in line
    said = succeed("ledger", "towns", *on(done), "--set-limit", "rho=1/2", "--below-spent")
    assert "Limit: rho = 1/2 for a person" in said
    spec = write_world(done, release="second", ledger__limit={"rho": "1/2"})
    assert "has only 0 of its limit 1/2 left" in refused("run", spec)


def test_a_limit_for_one_of_several_units_names_it(tmp_path):
    measure(tmp_path, "homes", **HOUSEHOLD, ledger__units={"person": 2})
    measure(tmp_path, "people", **PERSON)
    set_limit = ["ledger", "towns", *on(tmp_path), "--set-limit", "rho=5"]
    assert "with --unit: one of household, person" in refused(*set_limit)
    assert "cannot be counted for 'person'" in refused(*set_limit, "--unit", "person")
    assert "Limit: rho = 5 for a household" in succeed(*set_limit, "--unit", "household")


def test_what_is_not_known_or_not_of_the_form_is_refused(made):
    assert "There is no ledger at" in refused("ledger", "x", "--ledger", made / "none.sqlite")
    assert "no data set 'x'; it has towns" in refused("ledger", "x", *on(made))
    assert "go with --withdraw" in refused("ledger", "towns", *on(made), "--reason", "x")
    assert "go with --set-limit" in refused("ledger", "towns", *on(made), "--unit", "person")
    assert "Name the data set" in refused("ledger", *on(made), "--set-limit", "rho=1")
    for limit in ("rho", "rho=", "rho=much", "rho=1/0", "joule=3", "delta=1/2", "rho=-1", "=3",
                  "rho=1e999999999"):  # fmt: skip
        refused("ledger", "towns", *on(made), "--set-limit", limit)
    for bound in ("person=1", "person:=1", ":person=1", "a:b", "a:b=0", "a:b=-1", "a:b=x", "a:a=2"):
        assert "of the form household" in refused("ledger", "towns", *on(made), "--units", bound)
        assert "of the form person" in refused("ledger", "towns", *on(made), "--part-of", bound)
    assert in_json(made)["bounds"] == []
    assert "Limit: rho = 4" in succeed("ledger", "towns", *on(made))


def test_limits_and_bounds_can_be_stated_before_the_first_release(tmp_path):
    limit = {"rho": 4, "unit": "household"}
    spec = write_world(tmp_path, **PERSON, ledger__limit=limit)
    assert "--units household:person=6" in refused("run", spec)
    succeed("ledger", "towns", *on(tmp_path), "--units", "household:person=3")
    assert "costs rho = 9, but" in refused("run", spec)
    succeed("ledger", "towns", *on(tmp_path), "--set-limit", "rho=9", "--unit", "household")
    succeed("measure", write_world(tmp_path, **PERSON))
    assert in_json(tmp_path)["units"]["household"]["rho"] == "9"


# -- the same records under another name -----------------------------------------------------------


def test_a_misspelt_data_set_is_noticed(done):
    spec = write_world(done, release="second", dataset="twons")
    for command in ("check", "run", "measure"):
        line = refused(command, spec)
        assert "as data set 'towns', but this spec says 'twons'" in line
        assert "--same-records" in line
    assert "twons" not in succeed("ledger", *on(done))
    succeed("check", spec, "--same-records")
    succeed("run", spec, "--same-records")
    assert "twons" in succeed("ledger", *on(done))


# -- copies ----------------------------------------------------------------------------------------


def test_a_copy_is_made_and_put_back(done, tmp_path):
    copy = tmp_path / "copy.sqlite"
    assert "as confidential as the ledger" in succeed("ledger", *on(done), "--backup", copy)
    assert copy.stat().st_mode & 0o077 == 0
    assert "exists, and is kept" in refused("ledger", *on(done), "--backup", copy)
    later = measure(done, "later")
    assert "0 charge(s)" in succeed("ledger", *on(done), "--restore", copy)
    assert in_json(done)["units"]["person"]["rho"] == "2"  # nothing forgotten
    (done / "ledger.sqlite").unlink()
    said = succeed("ledger", *on(done), "--restore", copy)
    assert "1 charge(s)" in said
    assert "enter each such run with --enter" in said
    assert "has been entered" in succeed("ledger", *on(done), "--enter", later)
    assert "in the ledger already" in succeed("ledger", *on(done), "--enter", later)
    assert in_json(done)["units"]["person"]["rho"] == "2"
    entries = Ledger(done / "ledger.sqlite").entries("towns")
    assert [entry.release for entry in entries] == ["towns", "later"]
    assert entries[1].digest not in (None, "not known")
    assert "There is no copy" in refused("ledger", *on(done), "--restore", tmp_path / "none")
    assert "is not a run folder" in refused("ledger", *on(done), "--enter", tmp_path)


def test_a_run_of_a_lost_ledger_does_not_draw_again(done, tmp_path):
    copy = tmp_path / "copy.sqlite"
    run = measure(done, "later")
    succeed("ledger", *on(done), "--backup", copy)
    (done / "ledger.sqlite").unlink()
    succeed("ledger", *on(done), "--restore", copy)
    shutil.rmtree(run / "measurements")
    spec = write_world(done, release="later")
    assert "begun with another ledger" in refused("run", spec)


# -- withdrawing -----------------------------------------------------------------------------------


def test_a_release_is_withdrawn_and_its_charge_stays(done):
    run, second = done / "runs" / "towns", done / "runs" / "second"
    succeed("run", write_world(done, release="second"))
    withdraw = ["ledger", "towns", *on(done), "--withdraw", run]
    said = succeed(*withdraw, "--reason", "Areas were <old>.", "--superseded-by", second)
    assert "was withdrawn on" in said
    assert "Use release second (run " in said.replace("\n", " ")
    notice = json.loads((run / "withdrawn.json").read_text())
    assert notice["reason"] == "Areas were <old>."
    assert notice["notice"] == said.strip()
    verified = succeed("verify", run)
    assert notice["notice"] in verified
    assert "BROKEN" not in verified
    page = (run / "report" / "index.html").read_text(encoding="utf-8")
    assert "Areas were &lt;old&gt;" in page
    assert "was withdrawn" not in succeed("verify", second)
    assert "withdrawn" in succeed("ledger", "towns", *on(done))
    person = in_json(done)["units"]["person"]
    assert person["rho"] == "2"
    assert [bool(charge["withdrawn"]) for charge in person["charges"]] == [True, False]
    succeed(*withdraw)  # said again, it stays as it is
    assert json.loads((run / "withdrawn.json").read_text()) == notice
    assert succeed("verify", run) == verified


def test_only_runs_of_the_data_set_are_withdrawn(done, tmp_path):
    other = tmp_path / "other"
    elsewhere = measure(other, "elsewhere")
    line = refused("ledger", "towns", *on(done), "--withdraw", elsewhere)
    assert "has no run" in line
    assert not (elsewhere / "withdrawn.json").exists()
    assert "not a run folder" in refused("ledger", "towns", *on(done), "--withdraw", done)


def test_a_notice_of_a_stranger_is_one_printable_line(done):
    run = done / "runs" / "towns"
    (run / "withdrawn.json").write_text(json.dumps({"run_id": "0", "notice": "a\x1b[2Jb\nc"}))
    said = invoke("verify", "-q", run).stdout
    assert "a\\x1b[2Jb c" in said
    (run / "withdrawn.json").unlink()
    os.mkfifo(run / "withdrawn.json")
    from trellis.verify.documents.withdrawn import notice

    assert notice(run) == "withdrawn.json cannot be read."


def test_a_notice_of_another_run_is_found_out(done):
    run = done / "runs" / "towns"
    succeed("ledger", "towns", *on(done), "--withdraw", run)
    notice = json.loads((run / "withdrawn.json").read_text())
    (run / "withdrawn.json").write_text(json.dumps(notice | {"run_id": "0"}))
    result = invoke("verify", run)
    assert result.exit_code == 1
    assert "withdrawn.json speaks of another run" in result.stdout
    assert "withdrawn.json has changed since" in result.stdout
