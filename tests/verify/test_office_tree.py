"""`verify --hierarchy`: the tree of a run against the office's own file, in every layout."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import trellis
from trellis.cli.app import app
from trellis.errors import SourceError
from trellis.verify import verify_run

RECORDS = "area\nA1\nA1\nA2\nB1\nC\n"
OUTLINE = "A\n@A1\n@A2\nB\n@B1\nC\n"
LAYOUTS = {
    "columns": ({"columns": ["region", "town"]}, "region,town\nA,A1\nA,A2\nB,B1\nC,\n"),
    "prefixes": (
        {"code": {"column": "area", "width": 2}, "prefixes": {"region": 1, "town": 2}},
        "area\nA1\nA2\nB1\nC \n",
    ),
    "parent_child": (
        {"parent_child": {"source": "areas.csv"}, "levels": ["region", "town"]},
        "child,parent\nA1,A\nA2,A\nB1,B\nC,\n",
    ),
    "hrc": ({"hrc": {"source": "areas.csv"}, "levels": ["region", "town"]}, OUTLINE),
}


def release(folder, layout):
    keys, text = LAYOUTS[layout]
    records, areas = RECORDS, text
    if layout == "prefixes":  # codes of one length
        records, areas = records.replace("C", "C1"), text.replace("C ", "C1")
    (folder / "people.csv").write_text(records)
    (folder / "areas.csv").write_text(areas)
    own = {} if layout in ("parent_child", "hrc") else {"source": "areas.csv"}
    spec = trellis.Spec.parse(
        {
            "release": "towns", "kind": "counts", "dataset": "towns",
            "data": {"source": "people.csv", "area": "area"},
            "hierarchy": {**keys, **own, "root": {"nation": "N"}},
            "privacy": {"unit": "person", "neighbours": "replace", "max_contribution": 1,
                        "mechanism": "discrete_gaussian", "budget": {"rho": 1}},
        },
        folder,
    )  # fmt: skip
    return trellis.run(spec, folder / "run").path, folder / "areas.csv"


def tree_problems(run, path):
    found = {f.check: f.problems for f in verify_run(run, hierarchy=path)}
    return found["office_tree"]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_file_that_the_run_was_made_with_agrees(tmp_path, layout):
    run, own = release(tmp_path, layout)
    assert not tree_problems(run, own)
    assert all(f.holds for f in verify_run(run, hierarchy=own))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_one_area_more_or_elsewhere_is_noticed(tmp_path, layout):
    run, own = release(tmp_path, layout)
    text = own.read_text()
    own.write_text(text + {"columns": "B,B2\n", "prefixes": "B2\n", "parent_child": "B2,B\n",
                           "hrc": "@C1\n"}[layout])  # fmt: skip
    assert tree_problems(run, own)
    moved = {"columns": ("A,A2", "B,A2"), "prefixes": ("A2", "B2"),
             "parent_child": ("A2,A", "A2,B"), "hrc": ("@A2\nB\n", "B\n@A2\n")}  # fmt: skip
    own.write_text(text.replace(*moved[layout]))
    assert tree_problems(run, own)


def test_parquet_with_other_columns(tmp_path):
    run, _ = release(tmp_path, "columns")
    table = pa.table(
        {"town": ["A1", "A2", "B1", None], "region": ["A", "A", "B", "C"], "x": [1] * 4}
    )
    pq.write_table(table, tmp_path / "own.parquet")
    assert not tree_problems(run, tmp_path / "own.parquet")


def test_a_file_that_cannot_be_read_is_one_line_and_exit_code_2(tmp_path):
    run, own = release(tmp_path, "columns")
    own.write_text("other,columns\n1,2\n")
    with pytest.raises(SourceError, match="could not be read with the columns 'region', 'town'"):
        verify_run(run, hierarchy=own)
    done = CliRunner().invoke(app, ["verify", str(run), "--hierarchy", str(tmp_path / "none.csv")])
    assert done.exit_code == 2


def test_json_says_what_holds(tmp_path):
    run, own = release(tmp_path, "columns")
    command = ["verify", str(run), "--hierarchy", str(own), "--json"]
    done = CliRunner().invoke(app, command)
    found = json.loads(done.stdout)
    assert (done.exit_code, found["holds"]) == (0, True)
    assert {"check", "promise", "holds", "problems", "notes"} == set(found["promises"][0])
    own.write_text("region,town\nA,A1\n")
    done = CliRunner().invoke(app, command)
    assert (done.exit_code, json.loads(done.stdout)["holds"]) == (1, False)
