"""What stands beside the tables: types of columns, digits of CSV files, how to read codes."""

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import flow_worlds
import size_worlds
import spine_worlds
import trellis
from histogram_release_worlds import write_histogram_world
from trellis.cli.app import app
from trellis.release.documents.markdown import code, plain
from trellis.release.tables.counts import significant
from trellis.verify import verify_run
from worlds import REMOVE, write_world

AREAS = "nation,state,town\n1,01,010\n1,01,012\n1,02,NA\n"
PEOPLE = "town,people\n010,10\n012,0\nNA,25\n"


@pytest.fixture(scope="module")
def codes(tmp_path_factory) -> Path:
    """Codes that look like numbers, and one that looks like nothing."""
    folder = tmp_path_factory.mktemp("codes")
    spec = write_world(folder, areas=AREAS, people=PEOPLE)
    return trellis.run(trellis.Spec.load(spec), folder / "run").path


@pytest.fixture(scope="module")
def releases(tmp_path_factory, codes) -> dict[str, Path]:
    folders = {name: tmp_path_factory.mktemp(name) for name in ("sizes", "flows", "areas", "cells")}
    size_worlds.release_into(folders["sizes"])
    flow_worlds.release_into(folders["flows"])
    spine_worlds.release(folders["areas"], spine_worlds.blocks(40))
    cells = write_histogram_world(folders["cells"])
    trellis.run(trellis.Spec.load(cells), folders["cells"] / "run")
    return {"counts": codes, **{name: folder / "run" for name, folder in folders.items()}}


def package(run: Path) -> dict:
    return json.loads((run / "release" / "datapackage.json").read_text())


@pytest.mark.parametrize("kind", ["counts", "sizes", "flows", "areas", "cells"])
def test_every_table_is_described_with_types_and_units(releases, kind):
    run = releases[kind]
    content = package(run)
    paths = {
        p.relative_to(run / "release").as_posix()
        for p in (run / "release").rglob("*")
        if p.suffix in (".csv", ".parquet")
    }
    assert {item["path"] for item in content["resources"]} == paths
    assert len({item["name"] for item in content["resources"]}) == len(paths)
    assert content["confidence"] == "9/10"
    for item in content["resources"]:
        path = run / "release" / item["path"]
        schema = pq.read_schema(path.with_suffix(".parquet"))
        assert [field["name"] for field in item["schema"]["fields"]] == schema.names
        assert item["format"] == path.suffix[1:]
        assert ("confidence" in item) == ("lower" in schema.names)
        for field, column in zip(item["schema"]["fields"], schema, strict=True):
            is_text = not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type))
            assert (field["type"] == "string") == is_text
            assert field["description"]
            if field["name"] == "count":
                assert field["unit"] == {"sizes": "groups", "flows": "trips"}.get(kind, "records")
            if field["name"] == "lower":
                assert "90 % interval" in field["description"]
    assert [f.problems for f in verify_run(run) if f.problems] == []


def test_a_reader_that_follows_the_types_keeps_the_codes(codes):
    kinds = {"string": str, "integer": "Int64", "number": float}
    (item,) = [i for i in package(codes)["resources"] if i["path"] == "town.csv"]
    types = {field["name"]: kinds[field["type"]] for field in item["schema"]["fields"]}
    missing = item["schema"]["missingValues"]
    read = {"keep_default_na": False, "na_values": missing}
    table = pd.read_csv(codes / "release" / "town.csv", dtype=types, **read)
    assert table["geocode"].tolist() == ["010", "012", "NA"]
    careless = pd.read_csv(codes / "release" / "state.csv")
    assert careless["geocode"].tolist() == [1, 2]  # what the package is there to prevent


def test_the_example_of_the_guide_keeps_the_codes(codes):
    guide = (codes / "release" / "README.md").read_text()
    (line,) = [line for line in guide.splitlines() if line.startswith("pandas ")]
    assert line.split(None, 1)[1].startswith('pd.read_csv("town.csv", ')
    read = line.split(None, 1)[1].replace('"town.csv"', "path")
    table = eval(read, {"pd": pd, "str": str, "path": codes / "release" / "town.csv"})
    assert table["geocode"].tolist() == ["010", "012", "NA"]
    assert table["std_error"].dtype == float
    assert 'read.csv("town.csv", colClasses = c("geocode" = "character", ' in guide


def test_methods_without_variances_say_so(tmp_path):
    spec = write_world(tmp_path, estimate={"method": "topdown"})
    run = trellis.run(trellis.Spec.load(spec), tmp_path / "run").path
    content = package(run)
    assert "confidence" not in content
    fields = {f["name"]: f for f in content["resources"][0]["schema"]["fields"]}
    assert fields["lower"]["description"].startswith("Empty")
    assert [f.problems for f in verify_run(run) if f.problems] == []


def other_types(content: dict) -> None:
    content["resources"][0]["schema"]["fields"][0]["type"] = "integer"


FORGERIES = {
    "a table less": lambda c: c["resources"].pop(),
    "a table twice": lambda c: c["resources"].append(c["resources"][0]),
    "codes as numbers": other_types,
    "another confidence": lambda c: c.update(confidence="99/100"),
    "another confidence of one table": lambda c: c["resources"][0].update(confidence="99/100"),
}


@pytest.mark.parametrize("name", [*FORGERIES, "no package"])
def test_verify_finds_a_package_that_says_something_else(codes, tmp_path, name):
    run = Path(shutil.copytree(codes, tmp_path / "run"))
    path = run / "release" / "datapackage.json"
    content = json.loads(path.read_text())
    if name == "no package":
        path.unlink()
    else:
        FORGERIES[name](content)
        path.write_text(json.dumps(content))
    assert "data_package" in {f.check for f in verify_run(run) if f.problems}


# -- digits ---------------------------------------------------------------------------------------


@given(st.lists(st.floats(1e-300, 1e300), min_size=1, max_size=50))
def test_significant_digits_are_those_of_the_text(values):
    found = significant(np.array(values), 4)
    for value, short in zip(values, found.tolist(), strict=True):
        assert abs(short - value) <= 0.5001e-3 * value
        assert float(f"{short:.4g}") == short


def test_odd_standard_errors_stay_what_they_are():
    found = significant(np.array([0.0, np.nan, 1000.0, 9.99996]), 4)
    assert np.array_equal(found, [0, np.nan, 1000, 10], equal_nan=True)


def test_csv_files_have_few_digits_and_parquet_all(releases):
    run = releases["areas"]
    text = pd.read_csv(run / "release" / "block.csv", dtype=str)["std_error"]
    assert max(len(number.replace(".", "").lstrip("0")) for number in text) <= 4
    full = pq.read_table(run / "release" / "block.parquet")["std_error"].to_numpy()
    assert not np.array_equal(text.astype(float), full)
    assert np.allclose(text.astype(float), full, rtol=5e-4)
    sizes = pd.read_csv(releases["sizes"] / "release" / "statistics" / "nation.csv", dtype=str)
    assert max(len(str(number).partition(".")[2]) for number in sizes["upper"]) <= 6


@pytest.mark.parametrize(
    ("kind", "file", "column"),
    [("areas", "county", "std_error"), ("sizes", "statistics/nation", "upper"),
     ("areas", "county", "count")],
)  # fmt: skip
def test_verify_finds_csv_numbers_that_are_not_rounded_ones(releases, tmp_path, kind, file, column):
    run = Path(shutil.copytree(releases[kind], tmp_path / "run"))
    path = run / "release" / f"{file}.csv"
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    at = next(i for i, value in enumerate(table[column]) if value)
    table.loc[at, column] = str(float(table.loc[at, column]) * 1.002 + 0.001)
    table.to_csv(path, index=False)
    found = {f.check: f.problems for f in verify_run(run)}["csv"]
    assert found == (f"release/{file}.csv differs from the Parquet table in {column}",)
    path.write_text(path.read_text() + path.read_text().splitlines()[-1] + "\n")
    found = {f.check: f.problems for f in verify_run(run)}["csv"]
    assert f"release/{file}.csv has another shape than the Parquet table" in found


# -- labels ---------------------------------------------------------------------------------------


def test_intervals_are_labelled_with_their_confidence(releases, tmp_path):
    for run in releases.values():
        assert "90 %" in (run / "release" / "README.md").read_text()
    out = CliRunner().invoke(app, ["demo", "--out", str(tmp_path / "demo")]).output
    assert "The first counties: records, with 90 % intervals" in out


HOSTILE = "<img src=x onerror=alert(1)>"


def test_categories_are_text_in_the_guide(tmp_path):
    people = f"town,age,sex,people\na1,0,m,10\na1,3,{HOSTILE},13\n"
    spec = write_histogram_world(
        tmp_path,
        people=people,
        schema={"age": {"range": [0, 3]}, "sex": [HOSTILE, "m", "[x](javascript:y)", "a|b", "`c"]},
        structural_zeros=[f"age = 0 and sex = '{HOSTILE}'", "age = 1 and sex = '`c'"],
        strategy=REMOVE,
    )
    run = trellis.run(trellis.Spec.load(spec), tmp_path / "run").path
    guide = (run / "release" / "README.md").read_text()
    assert "<img" not in guide
    assert "&lt;img src=x onerror=alert(1)>" in guide
    assert "\\[x\\](javascript:y)" in guide
    assert "a\\|b" in guide
    assert [f.problems for f in verify_run(run) if f.problems] == []


def test_markdown_shows_text_as_it_is():
    assert plain("a < b & c") == "a &lt; b &amp; c"
    assert code("age < 18") == "`age < 18`"
    assert code("x = '<b>'") == "x = '&lt;b>'"
    assert code("x = '`'") == "x = '\\`'"
