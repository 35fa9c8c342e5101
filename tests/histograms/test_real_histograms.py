"""Releases of histograms by `gls`: unbiased estimates as tables, and their promises."""

import json
import shutil

import numpy as np
import pyarrow.parquet as pq
import pytest
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
from oracles.histogram_gls import dense_histogram_gls, dense_marginal_variances
from trellis.cli.app import app
from trellis.errors import RunFolderError
from trellis.model.tables.queries import parse_query
from trellis.storage.histograms import MeasuredHistograms
from trellis.workflow.evaluation.evaluate import evaluate_run
from trellis.workflow.progress import Silent
from trellis.workflow.public.run_folder import RunFolder

TABLES = {"default": ["total", "adult * sex", "detailed"], "town": ["sex", "detailed"]}
GLS = {
    "estimate": {"method": "gls"},
    "output": {"tables": TABLES, "csv": True},
    "unprotected": {"totals": ["state"]},
}
RULES = {
    "structural_zeros": ["age = 0 and sex = f"],
    "edit_rules": ["age < 1 requires age >= 1"],
    "constraints": [
        {"name": "homes", "source": "facilities.csv", "area": "town", "query": "age",
         "facilities": "homes", "open_to_all": ["1", "2"]}
    ],
    "estimate": {"passes": ["sex"]},
}  # fmt: skip


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    return write_histogram_world(tmp_path_factory.mktemp("real"), **GLS)


@pytest.fixture(scope="module")
def finished(world):
    return trellis.run(trellis.Spec.load(world)).path


@pytest.fixture
def run_copy(finished, tmp_path):
    return shutil.copytree(finished, tmp_path / "run")


def invoke(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments])


def test_a_finished_release_keeps_its_promises(finished):
    assert problems(finished) == {}


def test_tables_are_the_dense_estimates(finished):
    folder, release = RunFolder(finished), trellis.Release(finished)
    plan, tree = folder.plan(), folder.hierarchy()
    evidence = MeasuredHistograms(folder.measurements, plan, tree)
    measured = evidence.measured
    answers = [
        {name: evidence.read(i, name, 0, tree.sizes[i]) for name in queries}
        for i, queries in enumerate(measured)
    ]
    cells, covariance = dense_histogram_gls(tree, plan.schema, measured, answers)
    for level, name in plan.design.tables:
        table, index = release.table(level, name), tree.index(level)
        shown = ~tree.passes_through[index]
        expected = parse_query(plan.schema, name).answer(cells[index])[shown]
        variances = dense_marginal_variances(tree, plan.schema, covariance, index, name)[shown]
        found = np.array([table["count"].to_numpy(), table["std_error"].to_numpy() ** 2])
        wanted = np.array([expected.ravel(), variances.ravel()])
        np.testing.assert_allclose(found, wanted, rtol=1e-8, atol=1e-8)


def test_exact_totals_are_whole_and_have_no_margin(finished):
    rows = trellis.Release(finished).table("state", "total").to_pylist()
    found = [(r["geocode"], r["count"], r["std_error"], r["lower"], r["upper"]) for r in rows]
    assert found == [("a", 28.0, 0.0, 28, 28), ("b", 25.0, 0.0, 25, 25), ("c", 5.0, 0.0, 5, 5)]


def test_guide_and_report_say_what_the_counts_are(finished):
    guide = (finished / "release" / "README.md").read_text()
    assert "a real number that may be negative" in guide
    assert "No rule or bound is imposed" in guide
    page = (finished / "report" / "index.html").read_text()
    assert "a real number, which may be negative" in page
    assert "whole and not negative" not in page


def test_the_run_resumes_after_every_stage(world, run_copy):
    assert_resumes(world, run_copy)


def test_estimates_are_compared_with_the_truth(world, finished, tmp_path):
    evaluate_run(finished, world, tmp_path / "evaluation")
    text = next((tmp_path / "evaluation").glob("*.json")).read_text()
    levels = {(e["level"], e["what"]): e for e in json.loads(text)["levels"]}
    assert levels["state", "total"]["largest_error"] == 0
    assert levels["town", "detailed"]["coverage"] > 0.5


@pytest.mark.parametrize(
    "changes",
    [
        {"privacy__budget": {"epsilon": 1}, "privacy__mechanism": "discrete_laplace"},
        {"privacy__neighbours": "add_remove", "unprotected": {}},
        {"privacy__shares": {"state": "1/3", "town": "2/3"}},
        {"unprotected": {"totals": ["town"]}},
        {"output": {}},
    ],
    ids=lambda c: " ".join(c),
)
def test_odd_worlds_are_released(tmp_path, changes):
    spec = write_histogram_world(tmp_path, **{**GLS, **changes})
    assert problems(trellis.run(trellis.Spec.load(spec)).path) == {}


# -- what does not go with it ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"output__microdata": True}, "output.microdata: cannot go with estimate.method gls"),
        ({"estimate__passes": ["sex"]}, "estimate.passes: cannot go with"),
        ({"structural_zeros": RULES["structural_zeros"], "edit_rules": RULES["edit_rules"]},
         "structural_zeros, edit_rules: cannot go with"),
        ({"constraints": RULES["constraints"]}, "constraints: cannot go with"),
        ({"output__tables": {"town": []}}, "publishes only tables"),
        ({"estimate": {"method": "bottomup"}}, "use 'gls_topdown', 'topdown' or 'gls'"),
    ],
)  # fmt: skip
def test_rules_and_microdata_are_refused_and_nothing_is_spent(tmp_path, changes, message):
    done = invoke("run", write_histogram_world(tmp_path, **{**GLS, **changes}))
    assert done.exit_code == 2
    assert message in done.stderr
    assert not (tmp_path / "runs").exists()
    assert not (tmp_path / "ledger.sqlite").exists()


def test_another_method_leaves_the_rules_out_and_says_so(tmp_path):
    spec = write_histogram_world(tmp_path / "w", **RULES)
    whole = trellis.run(trellis.Spec.load(spec)).path
    done = invoke("estimate", whole, "--method", "gls", "--out", tmp_path / "real")
    assert done.exit_code == 0
    keys = "structural_zeros, edit_rules, constraints, estimate.passes, output.microdata"
    assert f"Left out, since gls keeps no rules: {keys}." in done.stdout
    assert problems(tmp_path / "real") == {}
    real = trellis.Release(tmp_path / "real")
    assert real.plan.privacy.rho == trellis.Release(whole).plan.privacy.rho
    back = reestimate(RunFolder(real.path), "gls_topdown", tmp_path / "back", Silent())
    assert problems(back.path) == {}
    assert invoke("estimate", whole, "--method", "topdown", "--out", tmp_path / "o").exit_code == 0


def test_a_run_without_tables_has_nothing_to_publish(tmp_path):
    spec = write_histogram_world(tmp_path / "w", output__tables={"town": []})
    run = RunFolder(trellis.run(trellis.Spec.load(spec)).path)
    with pytest.raises(RunFolderError, match="publishes no table"):
        reestimate(run, "gls", tmp_path / "real", Silent())
    assert not (tmp_path / "real").exists()


# -- broken promises ------------------------------------------------------------------------------

CENTRE = "estimates/margins/level={}/query={}.parquet"


def both(run, level, query, change):
    """The same change to a published table and to the estimates beside it."""
    rewrite(run / "release" / level / f"{query}.parquet", count=change)
    path = run / CENTRE.format(level, query)
    padding = pq.read_table(path).num_rows  # a town that ends early is in the estimates only
    rewrite(path, centre=lambda values: change(values)[:padding])


@pytest.mark.parametrize(
    ("level", "query", "message"),
    [
        ("state", "adult,sex", "adult * sex of level state does not add up to level nation"),
        ("town", "sex", "detailed of level town does not add up to sex"),
        ("town", "detailed", "detailed of level town does not add up to level state"),
    ],
)
def test_estimates_that_do_not_add_up_are_found(run_copy, level, query, message):
    both(run_copy, level, query, lambda values: bumped(values, 1e-3))
    assert message in problems(run_copy)["histogram_centres"]


def test_sums_that_miss_exact_totals_are_found(run_copy):
    both(run_copy, "state", "total", lambda values: bumped(values, 1e-3))
    found = problems(run_copy)
    assert (
        "release/state/total.parquet does not add up to the exact totals of state"
        in (found["real_totals"])
    )


DAMAGE = {
    "count": ("release/town/sex.parquet", {"count": bumped}, "real_counts"),
    "std_error": ("release/town/sex.parquet", {"std_error": bumped}, "histogram_margins"),
    "upper": ("release/town/sex.parquet", {"upper": bumped}, "histogram_margins"),
    "centre": (CENTRE.format("town", "sex"), {"centre": bumped}, "real_counts"),
    "value": ("measurements/level=state/query=total,exact/part-0.parquet", {"value": bumped},
              "real_totals"),
}  # fmt: skip


@pytest.mark.parametrize("case", DAMAGE)
def test_damage_is_found(run_copy, case):
    name, change, check = DAMAGE[case]
    rewrite(run_copy / name, **change)
    assert {check, "hashes"} <= set(problems(run_copy))


def test_whole_counts_in_place_of_real_ones_are_found(run_copy):
    path = run_copy / "release" / "state" / "total.parquet"
    table = pq.read_table(path)
    at = table.column_names.index("count")
    pq.write_table(table.set_column(at, "count", table["count"].cast("int64")), path)
    assert "not real numbers" in problems(run_copy)["real_counts"][0]


def test_estimates_that_are_missing_are_found(run_copy):
    (run_copy / CENTRE.format("town", "sex")).unlink()
    assert {"real_counts", "histogram_margins"} <= set(problems(run_copy))


def test_rules_that_were_slipped_in_are_found(run_copy):
    plan = json.loads((run_copy / "plan.json").read_text())
    plan["histogram"]["structural_zeros"] = ["sex = m"]
    (run_copy / "plan.json").write_text(json.dumps(plan))
    slipped = "release/microdata.parquet", "constraints.parquet", "estimates/level=town.parquet"
    for name in slipped:
        (run_copy / name).touch()
    found = problems(run_copy)["no_rules"]
    assert len(found) == 4


def test_rules_of_the_spec_are_found(run_copy):
    with (run_copy / "spec.yaml").open("a") as spec:
        spec.write("constraints: [{name: homes}]\n")
    assert "constraints are stated" in problems(run_copy)["no_rules"][0]
