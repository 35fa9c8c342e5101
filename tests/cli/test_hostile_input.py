"""Malformed and malicious input: one line and nothing done, or a correct release. Never more."""

from __future__ import annotations

import tempfile
from io import BytesIO
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from cli.hostile_cases import CASES, PLAIN, SPEC_CASES, TOWNS, data_file, text, world
from trellis.cli.app import app
from trellis.privacy.ledger import Ledger
from trellis.verify import verify_run
from worlds import PEOPLE, write_world


def things_in(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def assert_good_answer(folder: Path, arguments: list[str]) -> tuple[int, str]:
    """Carry out a command; returns its exit code, 0 or 2, and the line."""
    before = things_in(folder)
    result = CliRunner().invoke(app, ["--quiet", *arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception  # a traceback, which users would see
    made = {name for name in things_in(folder) - before if "ledger.sqlite" not in name}
    if result.exit_code == 0:
        [manifest] = [name for name in made if name.endswith("manifest.json")]
        assert all(finding.holds for finding in verify_run((folder / manifest).parent))
        return 0, ""
    assert result.exit_code == 2
    assert result.stdout == ""
    [line] = result.stderr.splitlines()
    assert line.startswith("error: ")
    assert line.isprintable()
    assert len(line) < 900
    assert made == set()
    ledger = folder / "ledger.sqlite"
    if ledger.is_file():
        assert all(Ledger(ledger).entries(name) == [] for name in Ledger(ledger).datasets())
    return 2, line


@pytest.fixture
def inside(tmp_path, monkeypatch):
    """A folder to be in, so that what escapes from a world is seen."""
    (tmp_path / "world").mkdir()
    monkeypatch.chdir(tmp_path / "world")
    return tmp_path / "world"


REFUSED = {
    "yaml: billion laughs": "anchors and aliases are not used",
    "yaml: python object": "not readable YAML",
    "file: column twice": "two columns with the same name",
    "file: column twice but for case": "case does not matter",
    "tree: column twice": "two columns with the same name ('town')",
    "file: pipe": "There is no file",
    "file: link to the records": "comes from the confidential file",
    "file: second name of the records": "comes from the confidential file",
    "file: link to itself": "There is no file",
    "out '/'": "exists and is not a run folder",
    "data from '*.csv'": "There is no file",
}
"""What the line must say."""

RELEASED = [
    *(f"codes: {name}" for name in TOWNS),
    "tree: ragged", "tree: one node", "tree: wide", "tree: parent-child: good",
    "file: good gzip", "file: byte order mark", "file: windows line ends", "file: no rows",
    "file: decimals", "file: fields of one name inside columns", "yaml: windows line ends",
    "data from './people.csv'",
]  # fmt: skip
"""What is only unusual."""

# One in twelve of the strange values, chosen by place, is tried every time; all are when there is
# time.
OFTEN = [name for i, name in enumerate(CASES) if not name.startswith(SPEC_CASES) or i % 12 == 0]


def params():
    for name in CASES:
        yield pytest.param(name, marks=() if name in OFTEN else pytest.mark.slow)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", list(params()))
def test_hostile_input(inside, name):
    code, words = assert_good_answer(inside, CASES[name](inside))
    if not name.startswith("ledger at"):  # which may be anywhere
        assert [path.name for path in inside.parent.iterdir()] == ["world"]  # nothing escaped
    if name in REFUSED:
        assert code == 2
        assert REFUSED[name] in words
    if name in RELEASED:
        assert code == 0, words


def test_there_are_more_than_two_hundred_malformed_cases():
    assert set(REFUSED) | set(RELEASED) < set(CASES)
    assert len(CASES) - len(RELEASED) > 200


def test_formulas_are_defused_in_csv_and_only_there(inside):
    assert_good_answer(inside, CASES["codes: formulas"](inside))
    tables = inside / "runs" / "towns" / "release"
    codes = pq.read_table(tables / "town.parquet")["geocode"].to_pylist()
    assert sorted(codes) == sorted(TOWNS["formulas"])
    written = pa_csv.read_csv(tables / "town.csv")["geocode"].to_pylist()
    assert [code if code == "'quoted" else "'" + code for code in codes] == written
    csv = tables / "town.csv"
    csv.write_text(csv.read_text().replace("'=cmd", "=cmd"))
    found = [finding for finding in verify_run(inside / "runs" / "towns") if not finding.holds]
    assert {"csv", "hashes"} == {finding.check for finding in found}


def test_an_empty_folder_one_is_in_can_become_a_run(tmp_path, monkeypatch):
    spec = write_world(tmp_path / "world")
    (tmp_path / "run").mkdir()
    monkeypatch.chdir(tmp_path / "run")
    assert CliRunner().invoke(app, ["run", str(spec), "--out", "."]).exit_code == 0
    assert CliRunner().invoke(app, ["verify", str(tmp_path / "run")]).exit_code == 0


# -- at random ------------------------------------------------------------------------------------

characters = st.characters(exclude_categories=("Cs",))
cells = st.text(characters, max_size=6)
tables = st.lists(st.lists(cells, min_size=2, max_size=4), max_size=8)


def written(rows: list[list[str]], header: str) -> str:
    quoted = (",".join('"' + cell.replace('"', '""') + '"' for cell in row) for row in rows)
    return "\n".join([header, *quoted]) + "\n"


def tried(make, command: str = "check") -> None:
    """In a folder of its own: Hypothesis calls a test many times."""
    with tempfile.TemporaryDirectory() as folder:
        world = Path(folder) / "world"
        world.mkdir()
        arguments = [command, *make(world)[1:]]
        if command == "run":
            assert_good_answer(world, arguments)
            return
        before = things_in(world)
        result = CliRunner().invoke(app, ["--quiet", *arguments])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code in (0, 2)
        assert things_in(world) == before


def spoilt(content: bytes, edits: list[tuple[int, int, bytes]]) -> bytes:
    """Some pieces replaced by others."""
    for place, length, new in edits:
        at = place % (len(content) + 1)
        content = content[:at] + new + content[at + length :]
    return content


edits = st.lists(
    st.tuples(st.integers(0, 10_000), st.integers(0, 12), st.binary(max_size=8)),
    min_size=1, max_size=4,
)  # fmt: skip


def parquet_bytes() -> bytes:
    sink = BytesIO()
    pq.write_table(pa.table({"town": ["a1", "a2", "b1"], "people": [1, 2, 3]}), sink)
    return sink.getvalue()


def random_tables(rows, people, command="check"):
    areas = written([["r", *row][:3] for row in rows], "nation,state,town")
    tried(world(areas=areas, people=written([row[:2] for row in people], "town,people")), command)


def random_edits(changes, command="check"):
    tried(text(spoilt(PLAIN.encode(), changes)), command)
    tried(data_file("people.csv", spoilt(PEOPLE.encode(), changes)), command)
    tried(data_file("people.parquet", spoilt(parquet_bytes(), changes)), command)


@settings(max_examples=25)
@given(tables, tables)
def test_random_tables(rows, people):
    random_tables(rows, people)


@settings(max_examples=15)
@given(edits)
def test_random_edits_of_spec_and_records(changes):
    random_edits(changes)


@pytest.mark.slow
@settings(max_examples=400)
@given(tables, tables)
def test_many_random_tables(rows, people):
    random_tables(rows, people, "run")


@pytest.mark.slow
@settings(max_examples=400)
@given(edits)
def test_many_random_edits_of_spec_and_records(changes):
    random_edits(changes, "run")
