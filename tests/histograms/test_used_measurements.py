"""Releases that measure only what is used: fewer rows, the same results, the same promises."""

import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
import yaml
from typer.testing import CliRunner

import trellis
from histogram_release_worlds import SCHEMA, histogram_plan, write_histogram_world
from measuring import reestimate
from seeded_bits import SeededBits
from trellis.cli.app import app
from trellis.confidential.histograms import TrueHistograms
from trellis.errors import Infeasible, LedgerError, RunFolderError, StructureError
from trellis.estimate.histograms.descent import Descent
from trellis.estimate.histograms.estimators import estimate_topdown
from trellis.measure import histograms as measuring
from trellis.measure.charged_noise import ChargedNoise
from trellis.measure.histograms import measure_histograms
from trellis.model import Hierarchy
from trellis.model.tables.constraints import Constraints, LinearConstraint, Sense
from trellis.model.tables.queries import parse_query
from trellis.model.tables.sparse_counts import SparseCounts
from trellis.privacy.budget import Budget
from trellis.privacy.ledger import Claim, Ledger
from trellis.storage import histograms as storage
from trellis.storage.histograms import MeasuredHistograms
from trellis.storage.plans import plan_from_json, plan_to_json
from trellis.verify import verify_run
from trellis.workflow.confidential.histogram_descent import measure_used_histograms
from trellis.workflow.progress import Silent
from trellis.workflow.public.run_folder import RunFolder

TREE = Hierarchy.from_paths(
    [("r", f"s{i}", f"s{i}c{j}", f"s{i}c{j}t{k}")
     for i in range(3) for j in range(1 + i) for k in range(4)],
    ["nation", "state", "county", "town"],
)  # fmt: skip
"""States of one, two and three counties."""

USED = {"estimate": {"method": "topdown"}, "output__measurements": "used"}


def used_plan(tree=TREE, **changes):
    wish = {"method": "topdown", "measurements": "used", "budget": Budget(rho=2)} | changes
    return histogram_plan(tree, **wish)


def truth(rng, tree=TREE, share=0.3):
    shape = tree.sizes[-1], SCHEMA.n_cells
    leaves = rng.integers(1, 9, shape) * (rng.random(shape) < share)
    return TrueHistograms(SparseCounts.from_dense(leaves))


def measure_used(folder, plan, counts, tree=TREE, constraints=None, seed=0):
    claim = Claim("run", "token", plan.privacy)
    bits = SeededBits(seed)
    measure_used_histograms(
        folder, plan, tree, counts, constraints, ChargedNoise(plan, claim, bits), 5, workers=1
    )
    return MeasuredHistograms(folder, plan, tree)


def test_only_rows_that_are_used_are_measured(tmp_path, monkeypatch):
    """With tiny row groups and parts, so that reads cross every boundary."""
    monkeypatch.setattr(storage, "ROWS_PER_GROUP", 8)
    monkeypatch.setattr(storage, "GROUPS_PER_PART", 2)
    plan = used_plan()
    measured = measure_used(tmp_path, plan, truth(np.random.default_rng(1)))
    counties = measured.decisive_counts()[2]
    table = storage.load_measurement(tmp_path, plan.query("town", "detailed"))
    assert 0 < len(table) < TREE.sizes[-1] * SCHEMA.n_cells
    codes, cells = TREE.codes("town").tolist(), SCHEMA.cells()
    rows = {
        (codes.index(row["geocode"]), cells.index((row["age"], row["sex"]))): row["value"]
        for row in table.to_pylist()
    }
    held = counties.dense() > 0
    assert set(rows) == {
        (town, cell)
        for town, county in enumerate(TREE.parents(3))
        for cell in np.flatnonzero(held[county]).tolist()
    }
    whole = measured.read("town", "detailed", 0, TREE.sizes[-1])
    for town, cell in np.ndindex(whole.shape):
        assert whole[town, cell] == rows.get((town, cell), 0)
    for first in range(0, TREE.sizes[-1], 5):
        part = measured.read("town", "detailed", first, first + 4)
        np.testing.assert_array_equal(part, whole[first : first + 4])


def test_noise_is_added_to_the_true_rows(tmp_path, monkeypatch):
    """One world and another with the same bits and the same counts above differ by the truth."""
    plan = used_plan()
    one, other = (truth(np.random.default_rng(seed)) for seed in (1, 2))
    first = measure_used(tmp_path / "one", plan, one)
    levels = iter([*first.decisive_counts(), None])
    monkeypatch.setattr(
        "trellis.workflow.confidential.histogram_descent._fitted_levels", lambda *_args: levels
    )
    then = measure_used(tmp_path / "other", plan, other)
    exact = [dict(zip(TREE.level_names, w.by_level(TREE), strict=True)) for w in (one, other)]
    for planned in plan.queries:
        query = parse_query(plan.schema, planned.query)
        n = TREE.size(planned.level)
        a, b = (m.read(planned.level, planned.query, 0, n) for m in (first, then))
        before, after = (e[planned.level].marginal(query.cell_of, query.n_cells) for e in exact)
        was_measured = (a != 0) | (b != 0)
        np.testing.assert_array_equal((b - a)[was_measured], (after - before)[was_measured])
        assert planned.query != "detailed" or (a - before)[was_measured].any()


def constrained(counts):
    """Rules that the true counts keep."""
    towns = counts.leaves.marginal(parse_query(SCHEMA, "sex").cell_of, 2)
    most = LinearConstraint("most", "town", "sex", Sense.AT_MOST, towns + 2)
    counties = counts.by_level(TREE)[2]
    least = LinearConstraint("least", "county", "total", Sense.AT_LEAST,
                             counties.marginal(np.zeros(8, np.int32), 1) // 2)  # fmt: skip
    return Constraints((most, least), ~(counts.leaves.dense().any(axis=0)))


@pytest.mark.parametrize("passes", [(), ("sex",), ("adult * sex", "age")])
@pytest.mark.parametrize("with_rules", [False, True])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_same_noise_gives_the_same_results(tmp_path, monkeypatch, seed, with_rules, passes):
    """Noise that is left out changes nothing: fitted on all of it, the counts are the same."""
    rng = np.random.default_rng(seed)
    counts = truth(rng, share=0.1)
    wish = {"unprotected_totals": ("state",) if with_rules else (), "passes": passes}
    given = {"constraints": constrained(counts) if with_rules else None, "passes": passes}
    plan, every = used_plan(**wish), used_plan(**wish, measurements="complete")
    claim = Claim("run", "token", plan.privacy)
    measure_histograms(
        tmp_path / "all",
        every,
        TREE,
        counts,
        ChargedNoise(every, claim, SeededBits(seed)),
        workers=1,
    )
    complete = MeasuredHistograms(tmp_path / "all", every, TREE)
    expected = estimate_topdown(complete, 5, **given, workers=1)
    assert complete.decisive_counts() == []

    def same_answer(planned, query, cells, first, last, bits):
        return complete.read(planned.level, planned.query, first, last)

    def same_rows(planned, query, cells, area, cell, bits):
        n_areas = TREE.size(planned.level)
        return complete.read(planned.level, planned.query, 0, n_areas)[area, cell]

    monkeypatch.setattr(measuring, "noisy_answer", same_answer)
    monkeypatch.setattr(measuring, "noisy_rows", same_rows)
    used = measure_used(tmp_path / "used", plan, counts, constraints=given["constraints"])
    known = used.decisive_counts()
    assert len(known) == 3
    again = estimate_topdown(used, 5, **given, workers=1)
    found = estimate_topdown(used, 5, **given, known=known, workers=1)
    for one, other, third in zip(expected.counts, found.counts, again.counts, strict=True):
        np.testing.assert_array_equal(one.dense(), other.dense())
        np.testing.assert_array_equal(one.dense(), third.dense())
    sizes = [
        sum(len(storage.load_measurement(tmp_path / name, q)) for q in plan.queries)
        for name in ("used", "all")
    ]
    assert sizes[0] < sizes[1]


# -- whole releases -------------------------------------------------------------------------------


RULES = {
    "structural_zeros": ["age = 0 and sex = f"],
    "edit_rules": ["age < 1 requires age >= 1"],
    "unprotected": {"totals": ["state"]},
    "constraints": [
        {"name": "homes", "source": "facilities.csv", "area": "town", "query": "age",
         "facilities": "homes", "open_to_all": ["1", "2"]}
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("towns")
    return trellis.run(trellis.Spec.load(write_histogram_world(folder, **USED, **RULES))).path


@pytest.fixture
def run_copy(finished, tmp_path):
    return shutil.copytree(finished, tmp_path / "run")


def problems(path):
    return {finding.check: finding.problems for finding in verify_run(path) if finding.problems}


def test_a_release_keeps_its_promises(finished):
    assert problems(finished) == {}
    release = trellis.Release(finished)
    assert release.measurement("nation", "detailed").num_rows == SCHEMA.n_cells
    assert release.measurement("state", "total")["variance"].to_pylist() == [0.0] * 3
    towns = release.measurement("town", "detailed")
    assert towns.column_names == ["geocode", "age", "sex", "value", "variance"]
    assert set(towns["geocode"].to_pylist()) <= {"a1", "a2"}  # the others are only children
    words = json.loads((finished / "privacy.json").read_text())["guarantee"]
    assert any("were not measured" in sentence for sentence in words)


def test_readers_of_data_sets_pass_over_the_counts(finished):
    whole = ds.dataset(finished / "measurements", partitioning="hive", format="parquet")
    assert not [name for name in whole.files if "_counts" in name]
    rows = whole.to_table(filter=ds.field("level") == "nation")
    assert "count" not in rows.column_names


def test_estimates_are_made_again_from_the_counts_that_decided(finished, run_copy):
    for gone in ("manifest.json", "release", "report", "estimates"):
        path = run_copy / gone
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    spec = finished.parents[1] / "spec.yaml"
    trellis.run(trellis.Spec.load(spec), run_copy)
    assert problems(run_copy) == {}
    fit = Path("estimates", "fit.json")
    assert (run_copy / fit).read_text() == (finished / fit).read_text()
    for path in (finished / "estimates").glob("*.parquet"):
        assert (
            pq.ParquetFile(run_copy / "estimates" / path.name)
            .read()
            .equals(pq.ParquetFile(path).read())
        )


def test_another_method_is_refused_and_the_same_one_is_not(finished, tmp_path):
    folder = RunFolder(finished)
    with pytest.raises(RunFolderError, match="only what topdown reads was measured"):
        reestimate(folder, "gls_topdown", tmp_path / "gls", Silent())
    assert not (tmp_path / "gls").exists()
    other = reestimate(folder, "topdown", tmp_path / "again", Silent())
    assert other.table("town", "total").equals(trellis.Release(finished).table("town", "total"))
    assert problems(tmp_path / "again") == {}


@pytest.mark.parametrize(
    "changes",
    [
        {"privacy__budget": {"epsilon": 1}, "privacy__mechanism": "discrete_laplace"},
        {"privacy__neighbours": "add_remove"},
        {"people": "town,age,sex,people\na1,0,m,0\n"},
        {"schema": {"sex": ["f", "m"]}, "recodes": None, "strategy": None,
         "output": {"measurements": "used"}},
    ],
    ids=lambda c: " ".join(c),
)  # fmt: skip
def test_odd_worlds_are_released(tmp_path, changes):
    spec = write_histogram_world(tmp_path, **{**USED, **changes})
    assert problems(trellis.run(trellis.Spec.load(spec)).path) == {}


def test_no_room_for_constraints_is_said_after_measuring_and_not_before(tmp_path, monkeypatch):
    """An error in the middle of a descent would show something of noise that is drawn again."""
    spec = trellis.Spec.load(write_histogram_world(tmp_path, **USED))
    run = tmp_path / "runs" / "towns"

    def clash(self, level, *_rest):
        raise Infeasible("its constraints clash")

    with monkeypatch.context() as patch:
        patch.setattr(Descent, "_level", clash)
        with pytest.raises(Infeasible):
            trellis.run(spec)
    (entry,) = Ledger(tmp_path / "ledger.sqlite").entries("towns")
    assert entry.is_settled
    assert [p.name for p in (run / "measurements" / "_counts").iterdir()] == [
        "level=nation.parquet"
    ]
    # Nothing decided below the states: the towns were measured completely, and serve any day.
    release = trellis.run(spec)
    assert release.measurement("town", "detailed").num_rows == 4 * SCHEMA.n_cells
    assert problems(run) == {}


# -- broken promises ------------------------------------------------------------------------------


def rewritten(path, change):
    table = change(pq.ParquetFile(path).read())
    pq.write_table(table, path)


def with_value(table, name, change):
    index = table.column_names.index(name)
    values = change(table[name].to_pylist())
    return table.set_column(index, name, pa.array(values, table.schema.field(name).type))


TOWNS = "measurements/level=town/query=detailed/part-0.parquet"
STATES = "measurements/_counts/level=state.parquet"
DAMAGE = {
    "a row too few": (TOWNS, lambda t: t.slice(0, len(t) - 1), "all rows"),
    "a row too many": (TOWNS, lambda t: pa.concat_tables([t, t.slice(0, 1)]), "other columns"),
    "another area": (
        TOWNS, lambda t: with_value(t, "geocode", lambda v: ["b1", *v[1:]]), "areas"),
    "another cell": (
        TOWNS, lambda t: with_value(t, "age", lambda v: [v[-1], *v[1:-1], v[0]]), "cells"),
    "another variance": (
        TOWNS, lambda t: with_value(t, "variance", lambda v: [2 * x for x in v]), "variance"),
    "no whole value": (
        TOWNS, lambda t: t.set_column(
            t.column_names.index("value"), "value", t["value"].cast(pa.float64())), "whole"),
    "other counts": (
        STATES, lambda t: with_value(t, "count", lambda v: [v[0] + 1, *v[1:]]), "differ"),
    "fewer counts": (STATES, lambda t: t.slice(1), "differ"),
}  # fmt: skip


@pytest.mark.parametrize("case", DAMAGE)
def test_damage_is_found(run_copy, case):
    name, change, message = DAMAGE[case]
    rewritten(run_copy / name, change)
    found = problems(run_copy)["measured_histograms"]
    assert any(message in problem for problem in found), found


def test_counts_that_decide_nothing_are_found(run_copy):
    counts = run_copy / "measurements" / "_counts"
    shutil.copy(run_copy / "estimates" / "level=town.parquet", counts / "level=town.parquet")
    assert any("decide nothing" in p for p in problems(run_copy)["measured_histograms"])
    (counts / "level=nation.parquet").unlink()
    found = problems(run_copy)["measured_histograms"]
    assert any("level state that decide nothing" in problem for problem in found)
    shutil.rmtree(counts)
    found = problems(run_copy)["measured_histograms"]
    assert any("all rows" in problem for problem in found)


def test_a_plan_that_says_something_else_is_found(run_copy):
    plan = json.loads((run_copy / "plan.json").read_text())
    plan["method"] = "gls_topdown"
    (run_copy / "plan.json").write_text(json.dumps(plan))
    assert any("gls_topdown reads" in p for p in problems(run_copy)["measured_histograms"])
    plan["histogram"]["measurements"] = "complete"
    (run_copy / "plan.json").write_text(json.dumps(plan))
    found = problems(run_copy)["measured_histograms"]
    assert any("differ in output.measurements" in problem for problem in found)
    assert any("_counts is not both planned and there" in problem for problem in found)


# -- guards ---------------------------------------------------------------------------------------


def test_noise_that_was_not_charged_is_not_drawn(tmp_path):
    plan, other = used_plan(), used_plan(max_contribution=2)
    claim = Claim("run", "token", other.privacy)
    counts = truth(np.random.default_rng(0))
    with pytest.raises(LedgerError, match="another plan"):
        measure_used_histograms(
            tmp_path, plan, TREE, counts, None, ChargedNoise(plan, claim, SeededBits(0)), 0
        )
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"measurements": "few"}, "cannot be 'few'"), ({"method": "gls_topdown"}, "topdown only")],
)
def test_a_plan_that_cannot_be_is_refused(changes, message):
    with pytest.raises(StructureError, match=message):
        used_plan(**changes)


def test_the_choice_is_kept_with_the_plan():
    plan = used_plan()
    assert plan_from_json(plan_to_json(plan)) == plan
    assert plan.privacy == used_plan(measurements="complete").privacy


def test_damaged_counts_are_refused(run_copy):
    path = run_copy / STATES
    rewritten(path, lambda t: with_value(t, "count", lambda v: [0, *v[1:]]))
    plan, tree = RunFolder(run_copy).plan(), RunFolder(run_copy).hierarchy()
    with pytest.raises(RunFolderError, match="damaged"):
        MeasuredHistograms(run_copy / "measurements", plan, tree)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"output__measurements": "used"}, "gls_topdown reads all of them"),
        ({**USED, "output__measurements": "few"}, "output.measurements"),
        ({**USED, "schema": None, "recodes": None, "strategy": None,
          "output": {"measurements": "used"}}, "`output.measurements` is not a key"),
        ({**USED, "strategy": {"default": {"total": 1}, "town": {"detailed": 1}}}, "first level"),
    ],
)  # fmt: skip
def test_bad_specs_are_refused_and_nothing_is_spent(tmp_path, changes, message):
    spec = write_histogram_world(tmp_path, **changes)
    done = CliRunner().invoke(app, ["run", str(spec)])
    assert done.exit_code == 2, done.output
    assert message in done.stderr
    assert not (tmp_path / "runs").exists()
    assert not (tmp_path / "ledger.sqlite").exists()


def test_the_plan_says_that_the_whole_budget_is_charged(tmp_path):
    spec = write_histogram_world(tmp_path, **USED)
    assert "the whole budget is charged" in CliRunner().invoke(app, ["plan", str(spec)]).stdout
    assert yaml.safe_load(spec.read_text())["output"]["measurements"] == "used"
