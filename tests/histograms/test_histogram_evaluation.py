"""`trellis evaluate` on histograms: errors of every table, by size, by cell and by category."""

import csv
import json
import stat

import numpy as np
import pytest
from typer.testing import CliRunner

import trellis
from histogram_release_worlds import PEOPLE, write_histogram_world
from oracles.metrics import plain_errors
from trellis.cli.app import app
from trellis.model import Schema
from trellis.model.tables.queries import parse_query
from trellis.workflow.evaluation.evaluate import evaluate_run
from trellis.workflow.evaluation.histograms import group_errors

TABLES = {"default": ["total", "adult * sex"], "town": ["sex", "detailed"]}
AREAS_OF = {"a1": ("r", "a"), "a2": ("r", "a"), "b1": ("r", "b"), "c": ("r", "c")}


def invoke(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A released world with large noise; never changed by a test."""
    folder = tmp_path_factory.mktemp("towns")
    spec = write_histogram_world(
        folder, output__tables=TABLES, privacy__budget={"rho": "1/20"},
        structural_zeros=["age = 0 and sex = f"],
    )  # fmt: skip
    trellis.run(trellis.Spec.load(spec))
    return folder


def evaluate(world, out, *more, truth="people.csv"):
    return invoke(
        "evaluate", world / "runs/towns", "--truth", world / truth, "--confidential-out", out, *more
    )


def refused(result, words):
    assert result.exit_code == 2, result.output
    assert words in result.stderr.splitlines()[-1]


def true_counts():
    """Numbers of people by town, age and sex, from the text of the file."""
    found = {}
    for line in PEOPLE.splitlines()[1:]:
        town, age, sex, people = line.split(",")
        found[town, age, sex] = found.get((town, age, sex), 0) + int(people)
    return found


def true_count(level, row):
    def inside(town, age, sex):
        area = {"nation": "r", "state": AREAS_OF[town][1], "town": town}[level]
        adult = "no" if age == "0" else "yes"
        person = {"geocode": area, "age": age, "sex": sex, "adult": adult}
        return all(row[key] == value for key, value in person.items() if key in row)

    return sum(people for where, people in true_counts().items() if inside(*where))


@pytest.mark.parametrize("truth", ["people.csv", "spec.yaml"])
def test_every_table_has_the_errors_of_its_rows(world, tmp_path, truth):
    result = evaluate(world, tmp_path / "out", "--json", truth=truth)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["confidential"] is True
    release = trellis.Release(world / "runs/towns")
    tables = [(level["level"], level["what"]) for level in found["levels"]]
    assert tables == list(release.plan.design.tables)
    for level in found["levels"]:
        rows = release.table(level["level"], level["what"]).to_pylist()
        truth_of = [true_count(level["level"], row) for row in rows]
        slow = plain_errors(
            truth_of, [r["count"] for r in rows], [(r["lower"], r["upper"]) for r in rows]
        )
        for name, value in slow.items():
            assert level[name] == pytest.approx(value, abs=1e-12)
        zeros = [row for row, true in zip(rows, truth_of, strict=True) if true == 0]
        assert level["true_zeros"] == len(zeros)
        assert level["false_positives"] == sum(row["count"] > 0 for row in zeros)
        assert sum(size["counts"] for size in level["by_size"]) == level["counts"] == len(rows)


def test_small_queries_have_the_errors_of_each_cell(world, tmp_path):
    found = evaluate_run(world / "runs/towns", world / "people.csv", tmp_path / "out")
    sexes = next(x for x in found.levels if (x.level, x.what) == ("town", "sex"))
    rows = trellis.Release(world / "runs/towns").table("town", "sex").to_pylist()
    assert [dict(group.group) for group in sexes.by_group] == [{"sex": "f"}, {"sex": "m"}]
    for group in sexes.by_group:
        mine = [row for row in rows if row["sex"] == group.group["sex"]]
        truth = [true_count("town", row) for row in mine]
        assert group.true_total == sum(truth)
        ends = [(row["lower"], row["upper"]) for row in mine]
        slow = plain_errors(truth, [row["count"] for row in mine], ends)
        assert group.errors.bias == pytest.approx(slow["bias"], abs=1e-12)
        assert group.errors.largest_error == slow["largest_error"]
    totals = next(x for x in found.levels if x.what == "total")
    assert totals.by_group == ()


def test_large_queries_have_the_errors_of_each_category():
    schema = Schema({"a": [str(i) for i in range(33)], "b": ["x", "y"]})
    truth = np.arange(3 * 66).reshape(3, 66)
    published = truth + np.tile([1, -2], 33)  # b is the last attribute
    found = group_errors(parse_query(schema, "detailed"), truth, published, None)
    assert len(found) == 35
    by_name = {tuple(g.group.items()): g for g in found}
    x, y = by_name[(("b", "x"),)], by_name[(("b", "y"),)]
    assert (x.errors.bias, y.errors.bias) == (1, -2)
    assert x.errors.counts == 99
    assert x.true_total + y.true_total == truth.sum()
    assert by_name[(("a", "7"),)].errors.bias == -0.5


def test_everything_written_is_marked_and_private(world, tmp_path):
    out = tmp_path / "deep" / "out"
    result = evaluate(world, out)
    assert result.exit_code == 0
    assert "CONFIDENTIAL" in result.stdout
    assert stat.S_IMODE(out.stat().st_mode) == 0o700
    files = {path.suffix: path for path in out.iterdir()}
    assert set(files) == {".csv", ".html", ".json"}
    for path in files.values():
        assert "CONFIDENTIAL" in path.name
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    page = files[".html"].read_text(encoding="utf-8")
    assert '<p class="banner">CONFIDENTIAL' in page
    assert page.count("<svg") == page.count('aria-label="CONFIDENTIAL') > 4
    assert "Root mean squared error (records), adult * sex" in page
    rows = list(csv.DictReader(files[".csv"].read_text(encoding="utf-8").splitlines()))
    assert {row["confidential"] for row in rows} == {"yes"}
    groups = [row["group"] for row in rows if (row["level"], row["compared"]) == ("town", "sex")]
    assert groups[-2:] == ["sex = f", "sex = m"]


@pytest.mark.parametrize("inside", ["", "truth", "release/town"])
def test_a_run_folder_is_refused_and_stays_as_it_was(world, inside):
    run = world / "runs/towns"
    before = sorted(run.rglob("*"))
    refused(evaluate(world, run / inside), "may be published")
    assert sorted(run.rglob("*")) == before


def test_other_records_are_refused(world, tmp_path):
    (tmp_path / "fewer.csv").write_text(PEOPLE.replace("25", "24"), encoding="utf-8")
    refused(evaluate(world, tmp_path / "out", truth=tmp_path / "fewer.csv"), "another edition")
    assert not (tmp_path / "out").exists()


def test_records_that_do_not_fit_quote_nothing(world, tmp_path):
    (tmp_path / "odd.csv").write_text("town,age,sex,people\na1,secret,m,58\n", encoding="utf-8")
    result = evaluate(world, tmp_path / "out", truth=tmp_path / "odd.csv")
    refused(result, "categor")
    assert "secret" not in result.output
    impossible = PEOPLE.replace("a1,0,m", "a1,0,f")
    (tmp_path / "impossible.csv").write_text(impossible, encoding="utf-8")
    refused(evaluate(world, tmp_path / "out", truth=tmp_path / "impossible.csv"), "structural zero")


def test_a_spec_with_other_categories_is_refused(world, tmp_path):
    other = write_histogram_world(tmp_path, schema__sex=["f", "m", "x"])
    refused(evaluate(world, tmp_path / "out", truth=other), "in a different way")


def test_a_release_without_intervals_or_without_tables(tmp_path):
    spec = write_histogram_world(tmp_path, estimate={"method": "topdown"})
    run = trellis.run(trellis.Spec.load(spec)).path
    found = evaluate_run(run, spec, tmp_path / "o")
    assert {level.errors.coverage for level in found.levels} == {None}
    spec = write_histogram_world(tmp_path / "none", output__tables={"town": []})
    run = trellis.run(trellis.Spec.load(spec)).path
    result = invoke("evaluate", run, "--truth", spec, "--confidential-out", tmp_path / "o")
    refused(result, "publishes no table")
