"""Schemas too large for any machine are refused before their cells are listed."""

from resource import RUSAGE_SELF, getrusage

import pytest
from typer.testing import CliRunner

from histogram_release_worlds import histogram_plan, write_histogram_world
from trellis.cli.app import app
from trellis.errors import SpecError
from trellis.model import Schema
from trellis.spec.histograms import wide_cells
from worlds import REMOVE

HUGE = {name: {"range": [0, 999]} for name in "abcd"}
DATA = {
    "long": {"source": "people.csv", "area": "town", "count": "people"},
    "wide": {"source": "people.csv", "area": "town", "cells": {"0, 0, 0, 7": "people"}},
}


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("strategy", [{"default": {"total": 1, "detailed": 1}}, "optimal"])
def test_a_million_million_cells_are_refused_in_one_line(tmp_path, data, strategy):
    spec = write_histogram_world(
        tmp_path,
        schema=HUGE,
        recodes=REMOVE,
        strategy=strategy,
        data=DATA[data],
        output={"tables": {"default": ["total"]}},
        structural_zeros=["a = 1 and b = 1"],
    )
    result = CliRunner().invoke(app, ["check", str(spec)])
    assert result.exit_code == 2
    said = next(line for line in result.stderr.splitlines() if line.startswith("error: "))
    assert "schema: 1,000,000,000,000 cells are more than the 2,147,483,647" in said
    assert said.endswith("Take out or coarsen an attribute.")


def test_memory_is_looked_at_before_shares_are_computed(tmp_path, monkeypatch):
    from trellis import plan
    from trellis.spec import Spec
    from trellis.workflow.outlook import choose_strategy

    monkeypatch.setattr(choose_strategy, "machine_memory", lambda: 100)
    monkeypatch.setattr(choose_strategy, "choose", lambda *_: pytest.fail("chose"))
    with pytest.raises(SpecError, match="8 cells for each of 3 children of one area"):
        plan(Spec.load(write_histogram_world(tmp_path, strategy="optimal")))


def test_the_size_is_refused_also_where_memory_is_not_known():
    schema = Schema({"a": [str(i) for i in range(50_000)], "b": [str(i) for i in range(50_000)]})
    with pytest.raises(SpecError, match="2,500,000,000 cells are more"):
        histogram_plan(schema=schema, strategy=None, ordered=(), memory=None)


def test_cells_of_a_wide_table_are_placed_as_in_the_product():
    schema = Schema({"age": ["0", "1", "2"], "sex": ["f", "m"], "at": ["x", "y"]})
    names = [", ".join(cell) for cell in schema.cells()]
    assert wide_cells(schema, dict.fromkeys(names, "n")) == dict(enumerate(names))
    for bad in ("0", "0, f", "0, f, x, y", "3, f, x", "f, 0, x", ""):
        with pytest.raises(SpecError, match="not a cell; write one category of each attribute"):
            wide_cells(schema, {bad: "n"})
    with pytest.raises(SpecError, match="twice"):
        wide_cells(schema, {"0, f, x": "n", "0,f,x": "m"})


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({f"a{i}": {"range": [0, 99_999]} for i in range(6000)},
         "the attributes have more than 1,000,000 categories together; take out or coarsen some"),
        ({f"a{i}": ["x", "y"] for i in range(5000)},
         "10^30 and more cells are more than the 2,147,483,647 that an area may have"),
    ],
    ids=["600 million categories", "5000 attributes"],
)  # fmt: skip
def test_schemas_that_would_fill_the_memory_are_refused_at_once(tmp_path, schema, message):
    spec = write_histogram_world(
        tmp_path, schema=schema, recodes=REMOVE, strategy=REMOVE, output={}
    )
    before = getrusage(RUSAGE_SELF).ru_maxrss
    result = CliRunner().invoke(app, ["check", str(spec)])
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())
    first, *more = result.stderr.splitlines()
    assert len(first) < 1000
    assert len(more) <= 100  # columns that the records do not have
    assert getrusage(RUSAGE_SELF).ru_maxrss - before < 300_000  # kilobytes; 4.6 GB were needed


def test_groups_of_a_recode_are_not_written_out_without_end(tmp_path):
    groups = {f"g{i}": {"range": [0, 99_999]} for i in range(6000)}
    spec = write_histogram_world(tmp_path, recodes={"adult": {"of": "age", "groups": groups}})
    result = CliRunner().invoke(app, ["check", str(spec)])
    assert result.exit_code == 2
    assert "the groups have more than 100,000 categories together" in result.output
