"""Whole releases of histograms: what is published holds, and a broken promise is found."""

import json
import re
import shutil
from html import unescape

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from typer.testing import CliRunner

import trellis
from histogram_release_worlds import (
    assert_resumes,
    bumped,
    problems,
    rewrite,
    write_histogram_world,
)
from measuring import reestimate
from trellis.cli.app import app
from trellis.errors import RunFolderError
from trellis.estimate.histograms.estimators import estimate_gls_topdown, estimate_topdown
from trellis.model import Schema
from trellis.model.tables.codebook import factors_in_words
from trellis.storage.histogram_estimates import read_histogram_estimates
from trellis.storage.histograms import MeasuredHistograms
from trellis.verify import verify_run
from trellis.workflow.progress import Silent
from trellis.workflow.public.run_folder import RunFolder
from worlds import REMOVE

FACILITIES = {
    "name": "homes", "source": "facilities.csv", "area": "town", "query": "age",
    "facilities": "homes", "open_to_all": ["1", "2"],
}  # fmt: skip
RULES = {
    "structural_zeros": ["age = 0 and sex = f"],
    "edit_rules": ["age < 1 requires age >= 1"],
    "constraints": [FACILITIES],
    "unprotected": {"totals": ["state"]},
}
TABLES = {"default": ["total", "adult * sex", "detailed"], "town": ["sex"]}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("towns")
    spec = write_histogram_world(folder, output__tables=TABLES, output__csv=True, **RULES)
    return trellis.run(trellis.Spec.load(spec)).path


@pytest.fixture
def run_copy(finished, tmp_path):
    return shutil.copytree(finished, tmp_path / "run")


def test_a_finished_release_keeps_its_promises(finished):
    assert problems(finished) == {}
    assert all(finding.holds for finding in verify_run(finished))


def test_tables_add_up_to_coarser_ones(finished):
    release = trellis.Release(finished)
    detailed = release.table("state", "detailed")
    assert detailed.column_names == [
        "geocode", "level", "age", "sex", "count", "std_error", "lower", "upper",
    ]  # fmt: skip
    coarse = release.table("state", "adult*sex").to_pylist()
    for row in coarse:
        parts = [
            d["count"]
            for d in detailed.to_pylist()
            if (d["geocode"], d["sex"], d["age"] != "0")
            == (row["geocode"], row["sex"], row["adult"] == "yes")
        ]
        assert sum(parts) == row["count"]
    totals = {r["geocode"]: r["count"] for r in release.table("state", "total").to_pylist()}
    assert totals == {"a": 28, "b": 25, "c": 5}  # exact


def test_margins_come_with_gls_and_not_with_topdown(finished, tmp_path):
    rows = trellis.Release(finished).table("town").to_pylist()  # the only one of its level
    assert all(row["lower"] <= row["count"] <= row["upper"] for row in rows)
    assert all(row["std_error"] > 0 for row in rows)
    other = reestimate(RunFolder(finished), "topdown", tmp_path / "topdown", Silent())
    assert other.table("town", "sex")["std_error"].null_count == len(rows)
    guides = [(path / "release" / "README.md").read_text() for path in (finished, other.path)]
    assert ["The confidence is" in guide for guide in guides] == [True, False]
    assert problems(other.path) == {}


def test_passes_are_carried_out_and_kept(tmp_path):
    spec = write_histogram_world(
        tmp_path, estimate={"passes": ["sex"]}, privacy__budget={"rho": "1/1000"}
    )
    run = trellis.run(trellis.Spec.load(spec)).path
    other = reestimate(RunFolder(run), "topdown", tmp_path / "topdown", Silent()).path
    for path, method in ((run, estimate_gls_topdown), (other, estimate_topdown)):
        folder = RunFolder(path)
        plan, hierarchy = folder.plan(), folder.hierarchy()
        assert plan.design.passes == ("sex",)
        evidence = MeasuredHistograms(folder.measurements, plan, hierarchy)
        expected = method(evidence, folder.identity().tie_seed, passes=("sex",)).counts
        kept = read_histogram_estimates(folder.estimates, plan, hierarchy).counts
        for ours, theirs in zip(kept, expected, strict=True):
            assert ours.dense().tolist() == theirs.dense().tolist()
        assert problems(path) == {}


def test_microdata_count_to_the_tables(finished):
    release = trellis.Release(finished)
    people = release.microdata().to_pylist()
    assert list(people[0]) == ["nation", "state", "town", "age", "sex"]
    men = {}
    for person in people:
        if person["sex"] == "m" and person["town"] is not None:
            men[person["town"]] = men.get(person["town"], 0) + 1
    table = release.table("town", "sex").to_pylist()
    assert men == {r["geocode"]: r["count"] for r in table if r["sex"] == "m" and r["count"]}
    # An area that ends early has records without a town.
    assert sum(person["town"] is None for person in people) == 5


def test_the_guide_and_the_report_explain_attributes_and_rules(finished):
    guide = (finished / "release" / "README.md").read_text()
    page = unescape((finished / "report" / "index.html").read_text())
    for words in (
        "age on level town: at least what a public table states (homes: at least one each).",
        "a coarser age: no (0); yes (1, 2, 3)",
        "age = 0 and sex = f",
        "age < 1 requires age >= 1",
    ):
        assert words in guide
        assert words in page
    assert "| state | 3 | `state/adult,sex.parquet` | 4 |" in guide
    assert re.search(r"For example, nation r \((no|yes), [fm]\): published", page)
    assert "Edit rules hold where sums and bounds allow" in page
    assert "../release/microdata.parquet" in page
    assert 'id="tree-data"' in page


def test_many_categories_are_told_by_their_ends():
    years = [str(i) for i in range(120)]
    schema = Schema({"age": years, "sex": ["f", "m"]})
    assert factors_in_words(schema) == {"age": "120 categories from 0 to 119", "sex": "f, m"}


def test_what_is_not_there_is_said(finished):
    release = trellis.Release(finished)
    with pytest.raises(RunFolderError, match="has tables of total, adult"):
        release.table("state", "age")
    with pytest.raises(RunFolderError, match="has tables of total"):
        release.table("state")
    with pytest.raises(RunFolderError, match="has measurements of sex, detailed"):
        release.measurement("town", "total")
    assert release.measurement("state", "adult*sex").num_rows == 12
    assert release.measurement("state", "total")["variance"].to_pylist() == [0.0] * 3


def test_the_run_resumes_after_every_stage(finished, run_copy):
    assert_resumes(finished.parents[1] / "spec.yaml", run_copy)


# -- broken promises ------------------------------------------------------------------------------


def moved(values):
    return values[1:] + values[:1]


DAMAGE = {
    "table count": ("release/state/total.parquet", {"count": bumped}, "histogram_counts"),
    "table cells": ("release/town/sex.parquet", {"sex": moved}, "histogram_columns"),
    "table areas": ("release/town/sex.parquet", {"geocode": moved}, "histogram_columns"),
    "interval": ("release/town/sex.parquet", {"upper": lambda v: [-1, *v[1:]]},
                 "histogram_margins"),
    "std_error": ("release/town/sex.parquet", {"std_error": lambda v: [-1.0, *v[1:]]},
                  "histogram_margins"),
    "centre": ("estimates/margins/level=state/query=total.parquet",
               {"centre": lambda v: [v[0] - 1e-3, *v[1:]]}, "histogram_centres"),
    "estimate": ("estimates/level=town.parquet", {"count": bumped}, "histogram_counts"),
    "estimate zero": ("estimates/level=town.parquet", {"count": lambda v: [0, *v[1:]]},
                      "histogram_counts"),
    "exact total": ("measurements/level=state/query=total,exact/part-0.parquet",
                    {"value": bumped}, "exact_totals"),
    "measured cells": ("measurements/level=town/query=sex/part-0.parquet", {"sex": moved},
                       "measured_histograms"),
    "measured areas": ("measurements/level=town/query=sex/part-0.parquet", {"geocode": moved},
                       "measured_histograms"),
    "variance": ("measurements/level=town/query=sex/part-0.parquet",
                 {"variance": lambda v: [0.5 * x for x in v]}, "measured_histograms"),
    "bound": ("constraints.parquet", {"bound": lambda v: [x + 10**6 for x in v]}, "constraints"),
    "microdata": ("release/microdata.parquet", {"sex": lambda v: ["f"] * len(v)}, "microdata"),
    "microdata areas": ("release/microdata.parquet", {"town": moved}, "microdata"),
}  # fmt: skip


@pytest.mark.parametrize("case", DAMAGE)
def test_damage_is_found(run_copy, case):
    name, change, check = DAMAGE[case]
    rewrite(run_copy / name, **change)
    found = problems(run_copy)
    assert check in found
    assert "hashes" in found


def test_missing_files_are_found(run_copy):
    for name in ("release/microdata.parquet", "release/edit_rules.json", "constraints.parquet",
                 "measurements/level=town/query=sex/part-0.parquet"):  # fmt: skip
        (run_copy / name).unlink()
    found = problems(run_copy)
    assert {"microdata", "edit_rules", "constraints", "measured_histograms"} <= set(found)


def test_a_wrong_audit_is_found(run_copy):
    path = run_copy / "release" / "edit_rules.json"
    lines = json.loads(path.read_text())
    lines[-1]["broken_in"] += 1
    path.write_text(json.dumps(lines))
    assert "edit_rules" in problems(run_copy)


def test_rules_hold_where_nothing_binds_and_an_area_that_breaks_one_is_found(tmp_path):
    rules = {"edit_rules": ["age < 1 requires age >= 1", "age > 0 requires age = 0"]}
    people = "town,age,sex,people\na1,0,m,1\na2,1,f,1\nb1,0,f,1\nc,3,m,1\n"
    exact = {"totals": ["nation"]}
    spec = write_histogram_world(tmp_path, people=people, unprotected=exact, **rules)
    run = trellis.run(trellis.Spec.load(spec)).path
    assert problems(run) == {}
    audit = json.loads((run / "release" / "edit_rules.json").read_text())
    assert [line["broken_in"] for line in audit] == [0] * 6
    assert "were exchanged" in (run / "release" / "README.md").read_text()
    for level, areas in (("state", [0, 0]), ("town", [0, 1])):  # a child here, an adult there
        path = run / "estimates" / f"level={level}.parquet"
        schema = pq.read_schema(path)
        forged = pa.table({"area": areas, "cell": [0, 2], "count": [1, 1]}).cast(schema)
        pq.write_table(forged, path)
    assert any("its area of state none" in problem for problem in problems(run)["edit_rules"])


def test_rules_are_only_audited_if_the_spec_says_so(tmp_path):
    spec = write_histogram_world(tmp_path, estimate={"edit_rules": "audit"}, **RULES)
    run = trellis.run(trellis.Spec.load(spec)).path
    assert problems(run) == {}
    assert "checked and not enforced" in (run / "release" / "README.md").read_text()
    assert "Audited: age < 1" in invoke("plan", spec).stdout
    plan = json.loads((run / "plan.json").read_text())
    plan["histogram"]["enforce_edit_rules"] = True
    (run / "plan.json").write_text(json.dumps(plan))
    assert any("differ" in problem for problem in problems(run)["edit_rules"])


def test_a_person_in_an_impossible_cell_is_found(run_copy):
    plan = json.loads((run_copy / "plan.json").read_text())
    plan["histogram"]["structural_zeros"] = ["sex = m"]
    (run_copy / "plan.json").write_text(json.dumps(plan))
    found = problems(run_copy)["structural_zeros"]
    assert any("counts someone" in problem for problem in found)
    assert any("differ" in problem for problem in found)


def test_passes_that_the_spec_does_not_state_are_found(run_copy):
    plan = json.loads((run_copy / "plan.json").read_text())
    plan["histogram"]["passes"] = ["sex"]
    (run_copy / "plan.json").write_text(json.dumps(plan))
    assert "plan.json and spec.yaml differ in passes" in problems(run_copy)["identity"]


def test_csv_that_differs_is_found(run_copy):
    path = run_copy / "release" / "town" / "sex.csv"
    text = path.read_text()
    path.write_text(text.replace('\n"a1"', '\n"a9"', 1))
    assert "csv" in problems(run_copy)


# -- odd worlds -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {"privacy__budget": {"epsilon": 1}, "privacy__mechanism": "discrete_laplace"},
        {"privacy__neighbours": "add_remove"},
        {"privacy__budget": {"epsilon": 2, "delta": "1e-9"}},
        {"privacy__max_contribution": 2},
        {"schema": {"sex": ["f", "m"]}, "recodes": None, "strategy": None,
         "output": {"tables": {"default": ["sex"]}}},
        {"schema": {"sex": ["f", "m"]}, "recodes": None, "strategy": None, "output": {}},
        {"privacy__shares": {"state": "1/3", "town": "2/3"}},
        {"output__tables": {"town": []}},
        {"unprotected": {"totals": ["town"]}},
        {"estimate": {"method": "topdown"}, "constraints": [FACILITIES]},
    ],
    ids=lambda c: " ".join(c),
)  # fmt: skip
def test_odd_worlds_are_released(tmp_path, changes):
    spec = write_histogram_world(tmp_path, **changes)
    release = trellis.run(trellis.Spec.load(spec))
    assert problems(release.path) == {}


def test_categories_that_look_like_formulas(tmp_path):
    people = "town,age,sex,people\na1,0,=f,10\na1,3,-m,13\n"
    changes = {"schema__sex": ["=f", "-m"], "output__tables": {"state": ["sex"]}}
    spec = write_histogram_world(tmp_path, people=people, output__csv=True, **changes)
    release = trellis.run(trellis.Spec.load(spec))
    assert problems(release.path) == {}
    text = (release.path / "release" / "state" / "sex.csv").read_text()
    assert '"\'=f"' in text
    assert set(release.table("state", "sex")["sex"].to_pylist()) == {"=f", "-m"}


def test_nobody_at_all(tmp_path):
    spec = write_histogram_world(tmp_path, people="town,age,sex,people\na1,0,m,0\n")
    release = trellis.run(trellis.Spec.load(spec))
    assert problems(release.path) == {}
    assert release.table("nation", "total")["count"].to_pylist() == [0]
    assert release.microdata().num_rows == 0


def test_a_wide_table_and_frames(tmp_path):
    wide = pa.table({"town": ["a1", "a2", "b1", "c"], "women": [5, 6, 7, 8], "all": [9, 9, 9, 9]})
    spec = yaml.safe_load(write_histogram_world(tmp_path).read_text())
    spec["schema"] = {"sex": ["f", "m"]}
    spec["data"] = {"area": "town", "cells": {"f": "women", "m": "all - women"}}
    for key in ("recodes", "strategy", "output"):
        del spec[key]
    parsed = trellis.Spec.parse(spec, tmp_path)
    release = trellis.run(parsed, tmp_path / "run", data=wide)
    assert problems(release.path) == {}
    assert release.table("nation", "total")["count"].to_pylist() == [36]


# -- commands -------------------------------------------------------------------------------------


def invoke(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments])


def test_plan_shows_queries_and_rules(tmp_path):
    spec = write_histogram_world(tmp_path, **RULES)
    shown = invoke("plan", spec)
    assert shown.exit_code == 0
    for words in ("adult * sex", "1/12", "Impossible: age = 0 and sex = f", "Enforced: age < 1",
                  "Tables: nation: total", "spends a share on totals"):  # fmt: skip
        assert words in shown.stdout
    assert json.loads(invoke("plan", spec, "--json").stdout)["histogram"]["microdata"] is True


def test_plan_names_passes_and_where_they_may_do_harm(tmp_path):
    spec = write_histogram_world(tmp_path, estimate={"passes": ["total", "adult * sex", "sex"]})
    shown = " ".join(invoke("plan", spec).stdout.split())
    assert "family: total. It has less than 1/50 of town, and may" in shown
    assert "family: adult * sex. It has less than 1/50 of town, and may" in shown
    assert "family: sex. It has less than 1/50 of nation, state, and may" in shown
    strategy = {"default": {"sex": "1/50", "detailed": "49/50"}}
    spec = write_histogram_world(tmp_path, estimate={"passes": ["sex"]}, strategy=strategy)
    assert "may do harm" not in invoke("plan", spec).stdout


def test_passes_go_with_schema(tmp_path):
    without = ("schema", "recodes", "strategy", "output")
    changes = dict.fromkeys(without, REMOVE) | {"estimate": {"passes": ["total"]}}
    done = invoke("run", write_histogram_world(tmp_path, **changes))
    assert done.exit_code == 2
    assert "`estimate.passes` is not a key of `kind: counts`, only of histograms" in done.stderr
    assert not (tmp_path / "ledger.sqlite").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"schema": None}, "is not a key of `kind: counts`, only of histograms"),
        ({"schema": {"age": ["0", "0"]}}, "twice"),
        ({"schema": {"age": {"range": [3, 1]}}}, "must grow"),
        ({"schema": {"age": [True]}}, "quote"),
        ({"recodes": {"adult": {"of": "age", "groups": {"no": [0]}}}}, "leaves out"),
        ({"recodes": {"adult": {"of": "age", "groups": {"no": [0, 1], "yes": [1, 2, 3]}}}},
         "two groups"),
        ({"recodes": {"adult": {"of": "height", "groups": {"no": [0]}}}}, "unknown attribute"),
        ({"recodes": {"variance": {"of": "age", "groups": {"no": [0], "yes": [1, 2, 3]}}}},
         "'variance' is the name of a column"),
        ({"schema": {"age": {"range": [0, 3]}, "count": ["f", "m"]}, "recodes": REMOVE},
         "'count' is the name"),
        ({"schema": {"age": {"range": [0, 3]}, "state": ["f", "m"]}, "recodes": REMOVE,
          "data__attributes": {"state": "sex"}, "strategy": REMOVE, "output": {"microdata": True}},
         "'state' is a level and an attribute"),
        ({"strategy": {"default": {"height": 1}}}, "'height'"),
        ({"strategy": {"default": {"detailed": "2/3", "total": "2/3"}}}, "sum to 4/3"),
        ({"structural_zeros": ["age < 1 or"]}, "expected"),
        ({"structural_zeros": [{"age < 1": "rare"}]}, "impossible"),
        ({"edit_rules": ["age < 1"]}, "requires"),
        ({"estimate": {"edit_rules": "enforce"}}, "goes with edit_rules"),
        ({"estimate": {"edit_rules": "relax"}}, "audit"),
        ({"data__attributes": {"height": "h"}}, "names 'height'"),
        ({"data__cells": {"f": "women"}, "data__count": None}, "is not a cell"),
        ({"output__tables": {"state": ["height"]}}, "'height'"),
        ({"estimate": {"passes": ["height"]}}, "'height'"),
        ({"estimate": {"passes": ["sex", "sex"]}}, "again"),
        ({"constraints": [{"name": "x", "area": "town"}]}, "exactly one of"),
        ({"constraints": [{**FACILITIES, "source": "people.csv"}]}, "confidential file"),
        ({"constraints": [{**FACILITIES, "level": "village"}]}, "names level 'village'"),
        ({"constraints": [{**FACILITIES, "source": None}]}, "name the public file"),
        ({"constraints": [{**FACILITIES, "query": "height"}]}, "'height'"),
        ({"constraints": [FACILITIES, {**FACILITIES, "open_to_all": []}]}, "same name"),
    ],
)  # fmt: skip
def test_bad_specs_are_refused_in_one_line_and_nothing_is_spent(tmp_path, changes, message):
    spec = write_histogram_world(tmp_path, **changes)
    done = invoke("run", spec)
    assert done.exit_code == 2, done.output
    assert message in done.stderr
    assert done.stderr.strip().count("\n") <= 1  # the stage, and the error
    assert not (tmp_path / "runs").exists()
    assert not (tmp_path / "ledger.sqlite").exists()


def test_a_table_without_bounds_is_refused(tmp_path):
    (tmp_path / "none.csv").write_text("town,n\n")
    bounds = {"name": "none", "source": "none.csv", "area": "town", "at_most": "n"}
    done = invoke("check", write_histogram_world(tmp_path, constraints=[bounds]))
    assert done.exit_code == 2
    assert "none: the table lists no bound" in done.stderr


def test_bounds_that_clash_are_refused_by_name(tmp_path):
    bounds = "town,sex,n\na1,f,3\na2,f,4\n"
    (tmp_path / "least.csv").write_text(bounds)
    (tmp_path / "most.csv").write_text("state,sex,n\na,f,6\n")
    constraints = [
        {"name": "least", "source": "least.csv", "area": "town", "query": "sex", "at_least": "n"},
        {"name": "most", "source": "most.csv", "area": "state", "level": "state", "query": "sex",
         "at_most": "n"},
    ]  # fmt: skip
    spec = write_histogram_world(tmp_path, constraints=constraints)
    done = invoke("check", spec)
    assert done.exit_code == 2
    assert "These 3 clash" in done.stderr
    assert "most (f in 'a' <= 6)" in done.stderr


def test_demo_and_its_example_agree(tmp_path):
    from pathlib import Path

    from trellis.samples.redistricting import spec_text

    example = Path(__file__).parents[2] / "examples" / "redistricting" / "spec.yaml"
    assert example.read_text(encoding="utf-8") == spec_text()


def test_group_totals_are_kept(tmp_path):
    (tmp_path / "parts.csv").write_text("town,part,n\na1,coast,20\na2,coast,20\n")
    least = {"name": "coast", "source": "parts.csv", "area": "town", "at_least": "n",
             "group": "part"}  # fmt: skip
    spec = write_histogram_world(tmp_path, constraints=[least], privacy__budget={"rho": "1/100"})
    release = trellis.run(trellis.Spec.load(spec))
    assert problems(release.path) == {}
    towns = {r["geocode"]: r["count"] for r in release.table("town", "total").to_pylist()}
    assert towns["a1"] + towns["a2"] >= 20
    guide = (release.path / "release" / "README.md").read_text()
    assert "total on level town, summed over groups of areas: at least" in guide
    assert np.all(np.array(list(towns.values())) >= 0)
