"""`trellis init`: from columns, never from values; nothing that matters is guessed."""

import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from typer.testing import CliRunner

from trellis.cli.app import app
from trellis.errors import SpecError
from trellis.ingest.headers import is_header
from trellis.spec import Spec
from trellis.spec.reading.gaps import GAP
from worlds import SPEC, changed, write_world

PRIVACY = ("unit", "neighbours", "max_contribution", "mechanism", "budget")


def invoke(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def write_records(path, seed=0, **more):
    draw = random.Random(seed)
    columns = {
        "block": [f"canary-{draw.random()}" for _ in range(9)],
        "people": [draw.randrange(10**9) for _ in range(9)],
        "weight": [draw.random() for _ in range(9)],
        **more,
    }
    pq.write_table(pa.table(columns), path)
    return columns


def started(folder, *more):
    result = invoke("init", folder / "records.parquet", "--out", folder / "spec.yaml", *more)
    assert result.exit_code == 0, result.output
    return (folder / "spec.yaml").read_text(encoding="utf-8")


def test_the_spec_names_columns_and_types(tmp_path):
    write_records(tmp_path / "records.parquet", day=pa.array([0] * 9, pa.date32()))
    text = started(tmp_path)
    for name, kind in (("block", "text"), ("people", "whole numbers"), ("weight", "numbers"),
                       ("day", "dates and times")):  # fmt: skip
        assert any(line.split() == ["#", name, *kind.split()] for line in text.splitlines())
    assert yaml.safe_load(text)["data"]["source"] == "records.parquet"


def test_values_make_no_difference(tmp_path):
    columns = write_records(tmp_path / "records.parquet")
    text = started(tmp_path)
    assert not [v for values in columns.values() for v in values if str(v) in text]
    (tmp_path / "spec.yaml").unlink()
    write_records(tmp_path / "records.parquet", seed=1)
    assert started(tmp_path) == text


def test_no_privacy_setting_and_no_level_is_guessed(tmp_path):
    write_records(tmp_path / "records.parquet")
    content = yaml.safe_load(started(tmp_path))
    assert content["privacy"] == dict.fromkeys(PRIVACY, GAP)
    assert content["hierarchy"] == {"source": GAP, "columns": [GAP]}
    assert content["data"]["area"] == GAP
    assert set(content) == {"release", "kind", "dataset", "data", "hierarchy", "privacy"}


def test_the_starter_is_refused_until_it_is_filled_in(tmp_path):
    write_records(tmp_path / "records.parquet")
    text = started(tmp_path)
    result = invoke("check", tmp_path / "spec.yaml")
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    for key in ("dataset", "data.area", "hierarchy.columns", *(f"privacy.{k}" for k in PRIVACY)):
        assert key in result.stderr
    areas = "nation,town\nn,a\nn,b\n"
    filled = {
        "release": "towns", "dataset": "towns", "area": "town", "source": "areas.csv",
        "columns": "[nation, town]", "unit": "person", "neighbours": "replace",
        "max_contribution": 1, "mechanism": "discrete_gaussian", "budget": "{rho: 1}",
    }  # fmt: skip
    (tmp_path / "areas.csv").write_text(areas)
    pq.write_table(pa.table({"town": ["a", "a", "b"]}), tmp_path / "records.parquet")
    for key, value in filled.items():
        for gap in (GAP, f"[{GAP}]"):
            text = text.replace(f"  {key}: {gap}", f"  {key}: {value}")
            text = text.replace(f"\n{key}: {gap}", f"\n{key}: {value}")
        (tmp_path / "spec.yaml").write_text(text)
        if GAP in "".join(line.partition("#")[0] for line in text.splitlines()):
            assert invoke("check", tmp_path / "spec.yaml").exit_code == 2
    assert invoke("check", tmp_path / "spec.yaml").exit_code == 0


FILLED = {
    "release: FILL_IN": "release: x",
    "dataset: FILL_IN": "dataset: x",
    "  source: FILL_IN": "  source: public.csv",
    "columns: [FILL_IN]": "columns: [nation, town]",
    "unit: FILL_IN": "unit: person",
    "neighbours: FILL_IN": "neighbours: add_remove",
    "max_contribution: FILL_IN": "max_contribution: 1",
    "mechanism: FILL_IN": "mechanism: discrete_laplace",
    "budget: FILL_IN": "budget: {epsilon: 1}",
    "shares: FILL_IN": "shares: uniform",
    "area: FILL_IN": "area: town",
    "origin: FILL_IN": "origin: town",
    "destination: FILL_IN": "destination: work",
    "group: FILL_IN": "group: home",
    "schema: FILL_IN": "schema: {sex: [f, m]}",
    "cap: FILL_IN": "cap: 4",
    "groups: FILL_IN": "groups: true",
}


@pytest.mark.parametrize("kind", ["counts", "histograms", "group_sizes", "flows"])
def test_every_kind_has_a_starter_that_works_once_it_is_filled_in(tmp_path, kind):
    records = {
        "town": ["a", "a", "b"],
        "work": ["a", "b", "b"],
        "home": [1, 1, 2],
        "sex": ["f", "m", "f"],
    }
    pq.write_table(pa.table(records), tmp_path / "records.parquet")
    (tmp_path / "public.csv").write_text("nation,town,home\nn,a,1\nn,b,2\n")
    text = started(tmp_path, "--kind", kind)
    assert yaml.safe_load(text)["kind"] == kind
    with pytest.raises(SpecError, match="is still at") as refused:
        Spec.load(tmp_path / "spec.yaml")
    assert "privacy.budget" in str(refused.value)
    for gap, value in FILLED.items():
        text = text.replace(gap, value)
    (tmp_path / "spec.yaml").write_text(text)
    assert invoke("check", tmp_path / "spec.yaml").exit_code == 0
    assert ("schema" in text) == (kind in ("histograms", "flows"))


def test_help_names_every_kind():
    words = " ".join(invoke("init", "--help").stdout.split())
    assert "counts|histograms|group_sizes|flows" in words
    assert invoke("init", "x.csv", "--kind", "orbits").exit_code == 2


@pytest.mark.parametrize("key", ["privacy__unit", "data__area", "release", "privacy__budget__rho"])
def test_every_gap_is_refused_by_name(key):
    with pytest.raises(SpecError, match=key.replace("__", r"\.")):
        Spec.parse(changed(SPEC, **{key: f" {GAP} "}))


def test_gaps_in_lists_and_keys_are_found():
    with pytest.raises(SpecError, match=r"hierarchy\.columns"):
        Spec.parse(changed(SPEC, hierarchy__columns=["nation", GAP]))
    with pytest.raises(SpecError, match=r"hierarchy\.root"):
        Spec.parse(changed(SPEC, hierarchy__root={GAP: "x"}))


def test_an_existing_spec_is_kept(tmp_path):
    write_records(tmp_path / "records.parquet")
    (tmp_path / "spec.yaml").write_text("mine")
    result = invoke("init", tmp_path / "records.parquet", "--out", tmp_path / "spec.yaml")
    assert result.exit_code == 2
    assert "exists already" in result.stderr
    assert (tmp_path / "spec.yaml").read_text() == "mine"


def test_csv_columns_are_text(tmp_path, monkeypatch):
    (tmp_path / "people.csv").write_text("town,age\ncanary,41\n")
    monkeypatch.chdir(tmp_path)
    assert invoke("init", "people.csv").exit_code == 0
    text = (tmp_path / "spec.yaml").read_text()
    assert any(line.split() == ["#", "age", "text"] for line in text.splitlines())
    assert "canary" not in text


WITHOUT_HEADER = {
    "a number": "4711,canary\n4712,other\n",
    "a fraction": "1.5,canary\n2.5,canary\n",
    "a value again": "canary,f\nother,m\nthird,f\n",
    "codes": "canary1,f4711\nother2,m4711\n",
    "names": "canary,berlin\nbob,paris\neve,rome\n",
    "one line": "canary,f4711\n",
    "an empty name": "canary,\nbob,x\n",
}


@pytest.mark.parametrize("case", WITHOUT_HEADER)
def test_a_first_line_that_may_be_a_record_is_refused_and_not_quoted(tmp_path, case):
    (tmp_path / "people.csv").write_text(WITHOUT_HEADER[case])
    result = invoke("init", tmp_path / "people.csv", "--out", tmp_path / "spec.yaml")
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert "canary" not in result.output
    assert "471" not in result.output
    assert not (tmp_path / "spec.yaml").exists()


def test_somebody_who_knows_may_say_that_the_first_line_names_columns(tmp_path):
    (tmp_path / "people.csv").write_text("name,city\nbob,paris\neve,rome\n")
    arguments = ("init", tmp_path / "people.csv", "--out", tmp_path / "spec.yaml")
    assert "say so with --header" in invoke(*arguments).stderr
    assert invoke(*arguments, "--header").exit_code == 0
    assert "paris" not in (tmp_path / "spec.yaml").read_text()
    (tmp_path / "people.csv").write_text("4711,city\n1,paris\n")
    (tmp_path / "spec.yaml").unlink()
    assert invoke(*arguments, "--header").exit_code == 2  # whoever says so


SEX, CODES = ["f", "m"] * 15, [f"{i:05d}" for i in range(30)]
HEADERS = {
    "numbers below": (["age"], [["41", "7"]], True),
    "digits below": (["town"], [["a1", "b7"]], True),
    "few categories": (["sex"], [SEX], True),
    "one length": (["code"], [["abcde"] * 30], True),
    "another column tells": (["name", "age"], [["bob", "eve"], ["41", "7"]], True),
    "texts": (["name"], [["bob", "eve"]], None),
    "no rows": (["name"], [[]], None),
    "empty rows": (["name"], [[None, ""]], None),
    "few rows": (["name"], [["f", "m"]], None),
    "a number": (["17"], [["18"]], False),
    "nothing": ([" "], [["18"]], False),
    "a value again": (["f", "41"], [SEX, CODES], False),
}


@pytest.mark.parametrize("case", HEADERS)
def test_what_tells_a_header_from_a_record(case):
    names, columns, expected = HEADERS[case]
    assert is_header(names, columns) is expected


HOSTILE = [
    "a\nprivacy: {unit: nobody}",
    "a\x85kind: flows",
    "a\u2028x: y",
    "# {x}",
    "'quoted' \"x\": {}",
    "東京",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_column_names_stay_in_their_comment(tmp_path, name):
    write_records(tmp_path / "records.parquet", **{name: ["x"] * 9})
    content = yaml.safe_load(started(tmp_path))
    assert content["privacy"]["unit"] == GAP
    assert content["kind"] == "counts"
    assert "x" not in content


@pytest.mark.parametrize(
    "name", ["we ird: #.parquet", "'q\".parquet", "[x].parquet", "東京.parquet"]
)
def test_odd_file_names_are_kept(tmp_path, name):
    write_records(tmp_path / name)
    assert invoke("init", tmp_path / name, "--out", tmp_path / "s.yaml").exit_code == 0
    content = yaml.safe_load((tmp_path / "s.yaml").read_text(encoding="utf-8"))
    assert content["data"]["source"] == name


def test_the_source_is_named_from_the_folder_of_the_spec(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "specs").mkdir()
    write_records(tmp_path / "data" / "r.parquet")
    spec = tmp_path / "specs" / "s.yaml"
    assert invoke("init", tmp_path / "data" / "r.parquet", "--out", spec).exit_code == 0
    assert yaml.safe_load(spec.read_text())["data"]["source"] == "../data/r.parquet"


UNREADABLE = {
    "nowhere.parquet": "There is no file",
    "spec.yaml": "file type",
    "bad.parquet": "could not",
}


@pytest.mark.parametrize(("file", "words"), UNREADABLE.items())
def test_files_that_cannot_be_read_are_reported(tmp_path, file, words):
    write_world(tmp_path)
    (tmp_path / "bad.parquet").write_text("canary")
    result = invoke("init", tmp_path / file, "--out", tmp_path / "new.yaml")
    assert result.exit_code == 2
    assert words in result.stderr
    assert result.stderr.count("\n") == 1
    result = invoke("init", tmp_path / "people.csv", "--out", tmp_path / "no" / "new.yaml")
    assert "There is no folder" in result.stderr
