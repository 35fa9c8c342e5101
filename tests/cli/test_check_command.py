"""`trellis check` tells everything that is wrong, a line each, and no value of a record."""

import errno
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import trellis
from trellis.cli.app import app
from trellis.errors import InputError, SourceError
from trellis.ingest.engines import open_source
from worlds import AREAS, REMOVE, write_world


def faults(spec, *more):
    done = CliRunner().invoke(app, ["check", str(spec), *more])
    assert done.exit_code == 2, done.output
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert all(line.startswith("error: ") for line in lines)
    return [line.removeprefix("error: ") for line in lines]


# -- every fault at once ---------------------------------------------------------------------------


def test_all_faults_of_a_spec(tmp_path):
    spec = write_world(tmp_path, data__arae="x", privacy__unit=REMOVE, output={"csv": "perhaps"})
    first, *more = faults(spec)
    assert "Unknown key 'data.arae'; did you mean 'area'?" in first
    assert len(more) == 2
    done = CliRunner().invoke(app, ["run", str(spec)])
    assert done.stderr == f"error: {first} (2 more to put right)\n"


def test_all_faults_of_keys_that_do_not_go_together(tmp_path):
    spec = write_world(tmp_path, sizes={"cap": 2}, tree="origin", hierarchy__source="people.csv")
    keys = ["`sizes` is not", "`tree` is not", "comes from the confidential file"]
    assert [key in line for key, line in zip(keys, faults(spec), strict=True)] == [True] * 3


def test_faults_of_areas_records_and_ledger_are_told_together(tmp_path):
    spec = write_world(
        tmp_path,
        areas=AREAS + "r,a,a1\nr,b,b1\n",
        people="town,people\na1,-1\na2,4711\nb1,2.5\n",
    )
    lines = faults(spec)
    assert "Leaf 'a1' occurs twice" in lines[0]
    assert "Leaf 'b1' occurs twice" in lines[1]
    assert "negative counts" in lines[2]
    assert "fractional counts" in lines[3]
    assert not [line for line in lines if "4711" in line]


def test_faults_of_records_and_ledger_are_told_together(tmp_path):
    spec = write_world(tmp_path, people="town,people\nzz,1\na1,x\n", ledger__limit={"rho": "1/2"})
    lines = faults(spec)
    assert len(lines) == 3
    assert "not a leaf of the hierarchy" in lines[0]
    assert "missing or unreadable" in lines[1]
    assert "1/2" in lines[2]
    assert not (tmp_path / "ledger.sqlite").exists()


def test_all_missing_columns(tmp_path):
    spec = write_world(tmp_path, data__area="place", data__count="persons")
    assert ["no column" in line for line in faults(spec)] == [True, True]
    spec = write_world(
        tmp_path, areas="nation,state,town\n", data__area="twon", data__count="people"
    )
    assert ["hierarchy is empty" in faults(spec)[0], "'twon'" in faults(spec)[1]] == [True, True]


def test_all_codes_of_a_wrong_length_and_all_areas_with_two_parents(tmp_path):
    layout = {"source": "areas.csv", "code": {"column": "town"}, "prefixes": {"s": 1, "town": 2}}
    spec = write_world(tmp_path, areas="town\na1\na\nb\n", hierarchy=layout)
    assert [line.partition(" in ")[0] for line in faults(spec)] == ["Code 'a'", "Code 'b'"]
    tree = {"parent_child": "areas.csv"}
    spec = write_world(tmp_path, areas="child,parent\na,r\na,r\nb,r\nb,a\n,x\n", hierarchy=tree)
    assert [line.partition(". ")[0] for line in faults(spec)] == [
        "Area 'a' is listed twice",
        "Area 'b' has two parents",
        "A row of the parent-child file has no child code.",
    ]


def test_python_gets_the_same_faults(tmp_path):
    spec = write_world(tmp_path, people="town,people\nzz,1\na1,x\n")
    with pytest.raises(InputError, match=r"\(1 more to put right\)") as refused:
        trellis.check(trellis.Spec.load(spec))
    assert len(refused.value.faults) == 2


# -- columns and files -----------------------------------------------------------------------------


def test_a_misspelt_column_of_the_records_gets_a_suggestion(tmp_path):
    spec = write_world(tmp_path, data__count="Peopel")
    assert faults(spec) == ["people.csv has no column 'Peopel'. Did you mean 'people'?"]
    pq.write_table(pa.table({"town": ["a1"], "MB": ["x"]}), tmp_path / "p.parquet")
    spec = write_world(tmp_path, data__source="p.parquet", data__count="mb")
    assert faults(spec) == ["p.parquet has no column 'mb'. Did you mean 'MB'?"]
    spec = write_world(tmp_path, data__count="zzz")
    assert faults(spec) == ["people.csv has no column 'zzz'. Compare the names of its columns."]


@pytest.mark.parametrize(
    "text", ["town1,peopel\na1,3\n", "canary,people1\ncanary,people2\n", "x,peoples\nx,3\n"]
)
def test_a_first_record_is_never_suggested(tmp_path, text):
    """Without a header, the first record takes the place of the names."""
    spec = write_world(tmp_path, people=text.replace("town1,peopel\n", "17,peopel\n"))
    assert all("Its first line must name the columns." in line for line in faults(spec))


RAGGED = {
    "long": "town,people\na1,1\ncanary,2,3\nb1,4\n",
    "short": "town,people\na1,1\ncanary\nb1,4\n",
    "all": "town,people\ncanary,1,9\na2,2,9\nb1,3,9\n",
    "semicolons": "town;people\na1;1\ncanary;2;3\n",
    "late": "town,people\n" + "a1,1\n" * 60_000 + "canary,3,4\n",
}


@pytest.mark.parametrize("case", RAGGED)
def test_a_ragged_file_is_called_ragged(tmp_path, case):
    spec, log = write_world(tmp_path, people=RAGGED[case]), tmp_path / "log.txt"
    [line] = faults(spec, "--confidential-log", str(log))
    assert "people.csv could not be read: a line has more or fewer columns than the first" in line
    assert "canary" not in line
    number = next(i for i, x in enumerate(RAGGED[case].splitlines(), 1) if "canary" in x)
    assert f"people.csv, line {number}: " in log.read_text()
    with (
        pytest.raises(SourceError, match=f"Look at line {number}"),
        open_source(tmp_path / "people.csv") as reader,
    ):
        reader.query("SELECT * FROM source")


def test_texts_with_commas_in_one_column_are_no_ragged_file(tmp_path):
    (tmp_path / "one.csv").write_text("name\nSmith, Anna\nSmith, Bob and Eve\nKim\n")
    with open_source(tmp_path / "one.csv") as reader:
        assert reader.query("SELECT count(*) AS n FROM source")["n"][0].as_py() == 3


def test_text_that_is_not_utf_8(tmp_path):
    spec = write_world(tmp_path)
    (tmp_path / "people.csv").write_bytes("town,people\nä1,3\n".encode("latin-1"))
    assert faults(spec) == ["people.csv could not be read: it is not text in UTF-8."]


@pytest.mark.parametrize("name", ["people.csv", "people.parquet", "people.csv.gz"])
def test_a_file_without_permission_says_so(tmp_path, monkeypatch, name):
    spec = write_world(tmp_path, data__source=name)
    (tmp_path / name).write_bytes(b"")

    opened = Path.open

    def closed(path, *args, **options):  # root may read everything
        if path.name != name:
            return opened(path, *args, **options)
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(Path, "open", closed)
    monkeypatch.setattr("trellis.ingest.duckdb.files.gzip.open", closed)
    done = CliRunner().invoke(app, ["check", str(spec)])
    assert f"{name} could not be read: Permission denied." in done.stderr
    assert "damaged" not in done.stderr


@pytest.mark.parametrize(("name", "words"), [("p.parquet", "damaged"), ("p.csv.gz", "not a gzip")])
def test_a_damaged_file_says_so(tmp_path, name, words):
    spec = write_world(tmp_path, data__source=name)
    (tmp_path / name).write_bytes(b"\x1f\x8bcanary" * 9 if words == "damaged" else b"canary\n")
    [line] = faults(spec)
    assert words in line
    assert "canary" not in line
