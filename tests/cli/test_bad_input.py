"""Bad input gets one clear line and exit code 2; nothing is spent and no folder is left."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from trellis.cli.app import app
from trellis.privacy.ledger import Ledger
from worlds import AREAS, PEOPLE, REMOVE, write_world

# -- cases: each makes a world and returns the arguments of the command ---------------------------


def spec_with(message: str, **world):
    """A world whose spec or files are wrong from the start."""

    def make(folder: Path) -> list[str]:
        return ["run", str(write_world(folder, **world))]

    return make, message


def after_a_release(message: str, *, people: str = PEOPLE, **changes):
    """A world that has released once, changed since, and is released again elsewhere."""

    def make(folder: Path) -> list[str]:
        limit = {"ledger__limit": {"rho": "3/2"}}
        first = write_world(folder, **limit)
        assert CliRunner().invoke(app, ["measure", str(first)]).exit_code == 0
        spec = write_world(folder, people=people, **limit | changes)
        return ["run", str(spec), "--out", str(folder / "second")]

    return make, message


def by_hand(message: str):
    def decorate(make):
        return make, message

    return decorate


@by_hand("There is no spec at")
def no_spec(folder):
    return ["run", str(folder / "missing.yaml")]


@by_hand("file type must be one of")
def unknown_file_type(folder):
    spec = write_world(folder, data__source="people.xlsx")
    (folder / "people.xlsx").write_bytes(b"")
    return ["run", str(spec)]


@by_hand("could not be read")
def damaged_parquet(folder):
    spec = write_world(folder, data__source="people.parquet")
    (folder / "people.parquet").write_bytes(b"PAR1 and then nothing of use PAR1")
    return ["run", str(spec)]


@by_hand("cannot be used")
def ledger_that_is_none(folder):
    spec = write_world(folder, ledger__path="notes.txt")
    (folder / "notes.txt").write_text("These are notes. " * 100)
    return ["run", str(spec)]


@by_hand("exists and is not a run folder")
def folder_with_something_else(folder):
    spec = write_world(folder)
    (folder / "photos").mkdir()
    (folder / "photos" / "a.jpg").write_bytes(b"")
    return ["run", str(spec), "--out", str(folder / "photos")]


@by_hand("exists and is not a run folder")
def file_as_run_folder(folder):
    return ["run", str(write_world(folder)), "--out", str(folder / "people.csv")]


@by_hand("could not be written")
def run_folder_below_a_file(folder):
    return ["run", str(write_world(folder)), "--out", str(folder / "people.csv" / "run")]


@by_hand("holds a run of another spec")
def another_spec_into_the_same_folder(folder):
    assert CliRunner().invoke(app, ["measure", str(write_world(folder))]).exit_code == 0
    return ["run", str(write_world(folder, privacy__budget={"rho": 2}))]


def tree(rows: str, **changes) -> dict:
    """A hierarchy in a parent-child file."""
    layout = {"parent_child": "areas.csv", "levels": ["nation", "state", "town"]}
    return {"areas": f"child,parent\n{rows}", "hierarchy": layout, **changes}


def prefixes(codes: str, **changes) -> dict:
    layout = {
        "source": "areas.csv",
        "code": {"column": "town"},
        "prefixes": {"state": 1, "town": 2},
    }
    return {"areas": "town\n" + codes, "hierarchy": layout, **changes}


def counts(first: str) -> dict:
    return {"people": f"town,people\na1,{first}\na2,5\nb1,7\n"}


def wide(people: str, **cells) -> dict:
    return {"people": people, "data__count": REMOVE, "data__cells": cells}


LAPLACE = {"privacy__mechanism": "discrete_laplace"}
CASES = {
    "no spec": no_spec,
    "unknown key": spec_with("Unknown key 'privacy.neighbors'", privacy__neighbors="replace"),
    "missing key": spec_with("Missing key 'privacy.unit'", privacy__unit=REMOVE),
    "name of a run outside its folder": spec_with("release: use letters", release="../../x"),
    # files and columns
    "missing data": spec_with("There is no file", data__source="missing.csv"),
    "missing hierarchy": spec_with("There is no file", hierarchy__source="missing.csv"),
    "no data named": spec_with("data.source is missing", data__source=REMOVE),
    "unknown file type": unknown_file_type,
    "damaged file": damaged_parquet,
    "wrong area column": spec_with("no column 'place'", data__area="place"),
    "wrong count column": spec_with("no column 'persons'", data__count="persons"),
    "wrong level column": spec_with(
        "no column 'states'. Did you mean", hierarchy__columns=["nation", "states", "town"]
    ),
    "hierarchy from the confidential file": spec_with(
        "comes from the confidential file", hierarchy__source="people.csv"
    ),
    # hierarchies
    "empty hierarchy": spec_with("hierarchy is empty", areas="nation,state,town\n"),
    "area twice": spec_with("'a1' occurs twice", areas=AREAS + "r,a,a1\n"),
    "area with two parents": spec_with("'b1' occurs twice on level", areas=AREAS + "r,a,b1\n"),
    "two roots": spec_with("2 roots on level 'nation'", areas=AREAS + "s,d,d1\n"),
    "gap in a row": spec_with("has no code on level 'state'", areas=AREAS + "r,,d1\n"),
    "child twice": spec_with("'a' is listed twice", **tree("a,r\na,r\na1,a\n")),
    "child with two parents": spec_with("'a1' has two parents", **tree("a,r\nb,r\na1,a\na1,b\n")),
    "cycle": spec_with("is its own ancestor", **tree("a,b\nb,a1\na1,a\n")),
    "code shorter than its prefix": spec_with("Code 'c' .* 2 characters", **prefixes("a1\nc\n")),
    "empty code": spec_with("An empty code", **prefixes('a1\n""\n')),
    # records
    "area that is not listed": spec_with("not a leaf of the hierarchy", people=PEOPLE + "zz,1\n"),
    "record without area": spec_with("area is missing", people=PEOPLE + ",1\n"),
    "negative count": spec_with("has negative counts", **counts("-4")),
    "fractional count": spec_with("has fractional counts", **counts("4.5")),
    "missing count": spec_with("has missing or unreadable counts", **counts("")),
    "count in words": spec_with("has missing or unreadable counts", **counts("four")),
    "impossible count": spec_with("has impossibly large counts", **counts("9" * 17)),
    "negative cell": spec_with(
        "Cell 'old' is negative", **wide("town,pop,u5\na1,3,4\n", young="u5", old="pop - u5")
    ),
    "cells that overlap": spec_with("2 times", **wide("town,x\na1,3\n", one="x", two="x")),
    # budgets and shares
    "zero budget": spec_with("makes no sense", privacy__budget={"rho": 0}),
    "negative budget": spec_with("makes no sense", privacy__budget={"rho": -1}),
    "absurd budget": spec_with("makes no sense", privacy__budget={"rho": "1e9"}),
    "budget in words": spec_with("is not a number", privacy__budget={"rho": "much"}),
    "rho for Laplace": spec_with("takes a budget of epsilon alone", **LAPLACE),
    "epsilon for Gaussian": spec_with("takes a budget of rho", privacy__budget={"epsilon": 1}),
    "shares below one": spec_with("not to 1", privacy__shares={"state": "1/3", "town": "1/3"}),
    "share of an exact level": spec_with(
        "'nation' is wasted", privacy__shares={"nation": "1/3", "town": "2/3"}
    ),
    "share of an unknown level": spec_with("names level 'county'", privacy__shares={"county": 1}),
    "negative share": spec_with("must be positive", privacy__shares={"state": -1, "town": 2}),
    "leaves not measured": spec_with("must be measured", privacy__shares={"state": 1}),
    "topdown without a level": spec_with(
        "has no share", privacy__shares={"town": 1}, estimate__method="topdown"
    ),
    "no contribution": spec_with("privacy.max_contribution", privacy__max_contribution=0),
    # exact totals
    "exact totals under add_remove": spec_with(
        "would show whether a record was added",
        privacy__neighbours="add_remove", unprotected__totals=["state"],
    ),
    "exact totals of an unknown level": spec_with("names level 'x'", unprotected__totals=["x"]),
    "exact totals of all levels": spec_with("nothing is left", unprotected__totals=["town"]),
    "confidence of one": spec_with("confidence must lie above 0", output__confidence=1),
    # ledger
    "release beyond the limit": spec_with("only 1/2 of its limit", ledger__limit={"rho": "1/2"}),
    "limit in another currency": spec_with("limit in pure epsilon", ledger__limit={"epsilon": 9}),
    "limit that is used up": after_a_release("has only 1/2 of its limit 3/2 left"),
    "input changed": after_a_release(
        "has changed since its last release",
        people=PEOPLE + "a1,1\n", privacy__budget={"rho": "1/2"},
    ),
    "limit that differs": after_a_release("holds a limit of rho = 3/2", ledger__limit={"rho": 9}),
    "unit that differs": after_a_release("charges for the unit 'person'", privacy__unit="firm"),
    "ledger that is none": ledger_that_is_none,
    "ledger in no folder": spec_with("cannot be opened", ledger__path="nowhere/ledger.sqlite"),
    # run folders
    "folder with something else": folder_with_something_else,
    "file as run folder": file_as_run_folder,
    "run folder below a file": run_folder_below_a_file,
    "another spec into the same folder": another_spec_into_the_same_folder,
}  # fmt: skip


# -- what they get --------------------------------------------------------------------------------


def state(folder: Path) -> tuple[dict[str, bytes], list]:
    """All files but the ledger, and all charges."""
    files = {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b""
        for path in folder.rglob("*")
        if not path.name.startswith("ledger.sqlite")
    }
    return files, Ledger(folder / "ledger.sqlite").entries("towns")


@pytest.mark.parametrize("case", CASES)
def test_bad_input_gets_one_line_and_costs_nothing(tmp_path, case):
    make, message = CASES[case]
    arguments = make(tmp_path)
    before = state(tmp_path)
    result = CliRunner().invoke(app, ["--quiet", *arguments])
    assert result.exit_code == 2
    assert isinstance(result.exception, SystemExit)  # no traceback
    assert result.stdout == ""
    [line] = result.stderr.splitlines()
    assert line.startswith("error: ")
    assert len(line) < 600
    assert re.search(message, line)
    assert state(tmp_path) == before


ABOUT_RUN_FOLDERS = (
    "folder with something else",
    "file as run folder",
    "run folder below a file",
    "another spec into the same folder",
)


@pytest.mark.parametrize("case", [case for case in CASES if case not in ABOUT_RUN_FOLDERS])
def test_check_finds_it_too(tmp_path, case):
    make, message = CASES[case]
    spec = make(tmp_path)[1]
    before = state(tmp_path)
    result = CliRunner().invoke(app, ["check", spec])
    assert result.exit_code == 2
    [line] = result.stderr.splitlines()
    assert re.search(message, line)
    assert state(tmp_path) == before


def test_progress_comes_before_the_line_and_says_nothing_else(tmp_path):
    spec = write_world(tmp_path, **counts("-4"))
    result = CliRunner().invoke(app, ["run", str(spec)])
    *progress, line = result.stderr.splitlines()
    assert line.startswith("error: ")
    assert progress == ["plan ...", "tabulate ..."]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [([], "Usage"), (["run"], "Missing argument"), (["walk"], "No such command"),
     (["run", "x", "--fast"], "No such option"), (["check"], "Missing argument")],
)  # fmt: skip
def test_wrong_usage_is_explained(arguments, words):
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert words in result.output + result.stderr


@pytest.mark.parametrize("case", ["negative count", "unknown key", "limit that is used up"])
def test_the_real_process_does_the_same(tmp_path, case):
    make, message = CASES[case]
    arguments = make(tmp_path)
    before = state(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", "from trellis.cli import main; main()", "-q", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONWARNINGS": "error"},
    )
    assert done.returncode == 2
    assert done.stdout == ""
    [line] = done.stderr.splitlines()
    assert line.startswith("error: ")
    assert re.search(message, line)
    assert state(tmp_path) == before


def test_the_good_world_is_good(tmp_path):
    """The cases above differ from it in what they are named after."""
    result = CliRunner().invoke(app, ["run", str(write_world(tmp_path))])
    assert result.exit_code == 0
    assert len(Ledger(tmp_path / "ledger.sqlite").entries("towns")) == 1
