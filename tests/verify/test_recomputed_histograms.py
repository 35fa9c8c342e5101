"""Verification makes histograms again from their measurements: honest ones hold, others do not."""

from __future__ import annotations

import json
import random
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from forged_files import dense_counts, read_column, remake_tables, write_column, write_counts
from random_histograms import bounded_release, random_release
from scipy import linalg, optimize

import trellis
from forging import broken, few, fit_manifest, publish_again
from histogram_worlds import NAMES, SCHEMA, TREE, evidence
from oracles.histogram_family import dense_optimum
from oracles.histogram_gls import dense_histogram_gls, dense_marginal_variances
from trellis.model.tables.queries import parse_query
from trellis.model.tables.rules import edit_rule_cells, rule_cells
from trellis.verify import verify_run
from trellis.verify.histograms import rules
from trellis.verify.histograms.linear.components import Asked, Components
from trellis.verify.histograms.linear.tree_gls import Measured, Shapes, downwards, upwards
from trellis.verify.histograms.whole import best_fit, drawn_families

QUERIES = ["total", "a", "detailed"]
ROWS = [("r", s, s + t) for s, ts in (("x", "123"), ("y", "12")) for t in ts]
SPEC = {
    "release": "towns",
    "kind": "histograms",
    "dataset": "towns",
    "data": {"area": "town", "count": "people"},
    "hierarchy": {"columns": ["nation", "state", "town"]},
    "schema": {"a": ["p", "q", "r"], "b": ["f", "m"]},
    "strategy": {"default": {"total": "1/4", "a": "1/4", "detailed": "1/2"}},
    "privacy": {
        "unit": "person",
        "neighbours": "add_remove",
        "max_contribution": 1,
        "mechanism": "discrete_gaussian",
        "budget": {"rho": 10},
    },
    "output": {"tables": {"default": QUERIES}, "csv": False},
}


def release(folder, **changes):
    areas = pa.table(
        dict(zip(["nation", "state", "town"], map(list, zip(*ROWS, strict=True)), strict=True))
    )
    rng = random.Random(3)
    people = [
        (town, a, b, rng.randint(20, 200)) for _, _, town in ROWS for a in "pqr" for b in "fm"
    ]
    names = ["town", "a", "b", "people"]
    records = pa.table(dict(zip(names, map(list, zip(*people, strict=True)), strict=True)))
    spec = trellis.Spec.parse(SPEC | changes, folder)
    trellis.run(spec, folder / "run", data=records, hierarchy=areas)
    return folder / "run"


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    return release(tmp_path_factory.mktemp("towns"))


@pytest.fixture
def run(finished, tmp_path):
    return shutil.copytree(finished, tmp_path / "run")


# -- honest releases ------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", few(range(14)))
def test_an_honest_release_holds(tmp_path, seed):
    made = random_release(tmp_path, random.Random(seed))
    assert [finding for finding in verify_run(made) if finding.problems] == []


@pytest.mark.parametrize("method", ["topdown", "gls", "gls_topdown"])
def test_without_a_note_every_number_was_recomputed(tmp_path, method):
    made = release(tmp_path, estimate={"method": method})
    assert [note for finding in verify_run(made) for note in finding.notes] == []


@pytest.mark.parametrize("seed", few(range(20, 32)))
def test_an_honest_release_under_bounds_holds(tmp_path, seed):
    made = bounded_release(tmp_path, random.Random(seed))
    assert [finding for finding in verify_run(made) if finding.problems] == []


def test_what_was_not_recomputed_is_said(run, monkeypatch):
    monkeypatch.setattr(drawn_families, "MOST_WORK", drawn_families.LEAST_WORK)
    findings = {finding.check: finding for finding in verify_run(run)}
    assert findings["whole_counts"].holds
    [note] = findings["whole_counts"].notes
    assert note.endswith("nation 1 of 1, state 1 of 1, town 1 of 2")


# -- forgeries ------------------------------------------------------------------------------------


def margin(run, name, level="town"):
    return run / f"estimates/margins/level={level}/query={name}.parquet"


def test_tables_made_again_are_no_forgery(run):
    remake_tables(run)
    assert broken(run) == set()


def test_swapped_siblings_are_found(run):
    order = [1, 0, 2, 3, 4]
    write_counts(run, "town", dense_counts(run, "town")[order])
    for name in QUERIES:
        centre = read_column(margin(run, name), "centre").reshape(5, -1)
        write_column(margin(run, name), "centre", centre[order].ravel())
    remake_tables(run)
    assert broken(run) - {"report"} == {"histogram_estimates", "whole_counts"}


def test_standard_errors_that_flatter_are_found(run):
    for path in sorted((run / "estimates/margins").rglob("*,errors.parquet")):
        write_column(path, "std_error", 0.001 * read_column(path, "std_error"))
    remake_tables(run)
    assert broken(run) - {"report"} == {"histogram_estimates"}


def test_estimates_that_move_consistently_are_found(run):
    """From a town to its sibling, in one cell and in all sums over it."""
    for name, cell in (("total", 0), ("a", 1), ("detailed", 3)):
        centre = read_column(margin(run, name), "centre").reshape(5, -1)
        centre[:2, cell] += [0.01, -0.01]
        write_column(margin(run, name), "centre", centre.ravel())
    remake_tables(run)
    assert broken(run) - {"report"} == {"histogram_estimates"}


@pytest.mark.parametrize("cell", [0, 5])
def test_people_that_move_to_a_sibling_are_found(run, cell):
    counts = dense_counts(run, "town")
    counts[[3, 4], cell] += [-4, 4]
    write_counts(run, "town", counts)
    remake_tables(run)
    assert broken(run) - {"report"} == {"whole_counts"}


def test_people_that_move_between_states_are_found(run):
    for level, places in (("state", [0, 1]), ("town", [0, 3])):
        counts = dense_counts(run, level)
        counts[places, 2] += [-4, 4]
        write_counts(run, level, counts)
    remake_tables(run)
    assert broken(run) - {"report"} == {"whole_counts"}


@pytest.mark.parametrize("query", ["total", "detailed"])
def test_a_changed_measurement_is_found(run, query):
    path = next((run / f"measurements/level=state/query={query}").glob("*.parquet"))
    values = read_column(path, "value")
    values[0] += 1
    write_column(path, "value", values)
    fit_manifest(run)
    assert "histogram_estimates" in broken(run)


def test_people_that_move_in_a_release_without_margins_are_found(tmp_path):
    made = release(tmp_path, estimate={"method": "topdown"})
    counts = dense_counts(made, "town")
    counts[[0, 1], 0] += [-4, 4]
    write_counts(made, "town", counts)
    for name, cells in (("detailed", [0, 6]), ("a", [0, 3]), ("total", [0, 1])):
        path = made / f"release/town/{name}.parquet"
        values = read_column(path, "count")
        values[cells] += [-4, 4]
        write_column(path, "count", values)
    fit_manifest(made)
    assert broken(made) - {"report"} == {"whole_counts"}


# -- forgeries under bounds, passes and rules -----------------------------------------------------


def bounded(folder):
    """At least 30 of each `a` in every town: some have hardly more, others many."""
    rows = [(town, a, 30) for *_, town in ROWS for a in "pqr"]
    columns = dict(zip(["town", "a", "bound"], map(list, zip(*rows, strict=True)), strict=True))
    pq.write_table(pa.table(columns), folder / "bounds.parquet")
    least = {"name": "least", "source": "bounds.parquet", "area": "town", "query": "a"}
    return {"constraints": [least | {"at_least": "bound"}]}


def with_totals(_folder):
    privacy = SPEC["privacy"] | {"neighbours": "replace"}
    return {"unprotected": {"totals": ["nation", "state", "town"]}, "privacy": privacy}


def with_passes(_folder):
    return {"estimate": {"method": "gls_topdown", "passes": ["total", "a"]}}


def with_rules(_folder):
    return {"edit_rules": ["a = r requires a = p"]}


def with_all(folder):
    return bounded(folder) | with_totals(folder) | with_passes(folder) | with_rules(folder)


@pytest.fixture(
    scope="module", params=[bounded, with_totals, with_passes, with_rules, with_all]
)  # fmt: skip
def restricted(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("restricted")
    return release(folder, **request.param(folder))


@pytest.fixture
def restricted_run(restricted, tmp_path):
    return shutil.copytree(restricted, tmp_path / "run")


def test_every_family_is_recomputed_under_bounds_passes_and_rules(restricted):
    findings = {finding.check: finding for finding in verify_run(restricted)}
    assert findings["whole_counts"].holds
    assert findings["whole_counts"].notes == ()


@pytest.mark.parametrize("level", ["state", "town"])
def test_people_that_change_places_are_found(restricted_run, level):
    """So that all totals, and all of each `a`, stay as they are."""
    for name in ("state", "town"):
        if name == level or level == "state":
            counts = dense_counts(restricted_run, name)
            here = [0, 1] if name == level else [0, 3]
            counts[np.ix_(here, [0, 1])] += np.array([[-6, 6], [6, -6]])
            assert counts.min() >= 0
            write_counts(restricted_run, name, counts)
    publish_again(restricted_run)
    assert broken(restricted_run) - {"report"} == {"whole_counts"}


def test_a_marginal_that_was_not_fixed_like_that_is_found(tmp_path):
    made = release(tmp_path, **with_passes(tmp_path))
    counts = dense_counts(made, "town")
    counts[np.ix_([0, 1], [0, 2])] += np.array([[-6, 6], [6, -6]])
    write_counts(made, "town", counts)
    publish_again(made)
    assert broken(made) - {"report"} == {"whole_counts"}


def test_a_tolerance_of_ones_own_is_found(run):
    write_fit(run, tolerance=0.5)
    assert "whole_counts" in broken(run)


def test_a_great_distance_is_pointed_out(run):
    write_fit(run, distance=0.5)
    findings = {finding.check: finding for finding in verify_run(run)}
    assert any("distance" in note for note in findings["whole_counts"].notes)


def write_fit(run, **changes):
    path = run / "estimates/fit.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    fit_manifest(run)


# -- the slow twins -------------------------------------------------------------------------------


def as_asked(name):
    query = parse_query(SCHEMA, name)
    return Asked(
        {
            f.attribute: np.array(f.group_of) if f.is_recoded else None
            for f in query.factors
        }
    )  # fmt: skip


@pytest.mark.parametrize("exact", [False, True])
def test_components_match_dense_least_squares(exact):
    rng = np.random.default_rng(5)
    noisy = [
        {"detailed": 9.0, "two * b": 2.0}, {"three": 4.0, "total": 0.5},
        {"three * ends": 3.0}, {"detailed": 5.0, "a": 2.0},
    ]  # fmt: skip
    noise = [dict(level) for level in noisy]
    if exact:
        noise[1]["total"] = 0.0
    _, seen = evidence(TREE, noise, rng)
    expected, covariance = dense_histogram_gls(TREE, SCHEMA, noise, seen.answers)
    queries = {name: as_asked(name) for name in NAMES}
    components = Components.of([4, 3], list(queries.values()), None)
    sets = components.all_of(list(queries.values()))
    shapes = Shapes([TREE.parents(i) if i else np.zeros(1, int) for i in range(TREE.n_levels)])
    totals: list[np.ndarray | None] = [None] * TREE.n_levels
    if exact:
        known = seen.answers[1]["total"][:, 0].astype(float)
        totals[:2] = [known.sum(keepdims=True), known]
    found = {}
    for chosen in sets:
        levels = []
        for index, variances in enumerate(noise):
            rows, spread, values = [np.zeros((0, components.n_atoms(chosen)))], [np.zeros(0)], []
            for name, variance in variances.items():
                if variance and set(chosen) <= queries[name].kept:
                    matrix, numbers = components.rows(queries[name], chosen)
                    answers = seen.answers[index][name]
                    rows.append(matrix)
                    spread.append(variance * numbers)
                    values.append(components.split(queries[name], answers, [chosen])[chosen])
            width = int(np.prod([components.axes[i].contrasts.shape[1] for i in chosen]))
            values = [np.zeros((TREE.sizes[index], 0, width)), *values]
            total = None if chosen else totals[index]
            parts = np.concatenate(rows), np.concatenate(spread), np.concatenate(values, axis=1)
            levels.append(Measured(*parts, total))
        found[chosen] = downwards(shapes, levels, upwards(shapes, levels))
    for index in range(TREE.n_levels):
        cells = components.joined({chosen: final[index].value for chosen, final in found.items()})
        np.testing.assert_allclose(cells, expected[index], atol=1e-7)
        for name in NAMES:
            variance = np.zeros(())
            for chosen in sets:
                if set(chosen) <= queries[name].kept:
                    matrix, _ = components.rows(queries[name], chosen)
                    k = matrix @ found[chosen][index].covariance @ matrix.T
                    row, factor = components.cell_rows(queries[name], chosen)
                    variance = variance + np.diagonal(k, axis1=1, axis2=2)[:, row] * factor
            dense = dense_marginal_variances(TREE, SCHEMA, covariance, index, name)
            np.testing.assert_allclose(variance[shapes.final[index]], dense, atol=1e-7)


def test_a_family_matches_the_dense_optimum():
    rng = np.random.default_rng(1)
    queries, variances = (
        ["total", "three", "detailed"],
        {"total": 0.5, "three": 2.0, "detailed": 4.0},
    )
    parent = rng.poisson(3, SCHEMA.n_cells) + 1
    values = {n: rng.normal(3, 4, (3, parse_query(SCHEMA, n).n_cells)) for n in queries}
    expected = dense_optimum(SCHEMA, parent, queries, values, variances).reshape(3, -1)
    maps = {n: parse_query(SCHEMA, n).cell_of for n in queries}
    precision = sum((maps[n][:, None] == maps[n]) / variances[n] for n in queries)
    linear = np.sum([values[n][:, maps[n]] / variances[n] for n in queries], axis=0)
    shape = linear.shape
    family = best_fit.Family(
        np.array([precision] * 3),
        linear,
        parent.astype(float),
        best_fit.Bounded.none(shape),
        np.zeros(shape, dtype=bool),
    )
    fit = best_fit.best_fit(family, np.zeros(shape))
    assert fit is not None
    assert fit.gap < 1e-6
    np.testing.assert_allclose(fit.counts, expected, atol=1e-4)


@pytest.mark.parametrize("seed", range(6))
def test_a_family_under_bounds_matches_lawson_and_hanson(seed):
    rng = np.random.default_rng(seed)
    shape, parent = (3, 4), np.array([9.0, 4.0, 7.0, 12.0])
    roots, wanted = rng.normal(size=(3, 6, 4)), rng.normal(3, 4, shape)
    precision = roots.transpose(0, 2, 1) @ roots
    linear = np.einsum("cjk,ck->cj", precision, wanted)
    sums = (rng.random((3, *shape)) < 0.4).astype(float)
    inside = parent * rng.dirichlet(np.ones(3), 4).T
    answers = np.einsum("rcj,cj->r", sums, inside)
    bounds = best_fit.Bounded(sums, answers - np.array([0, 0.5, 0]), answers + np.array([0, 0, 1]))
    nowhere = np.zeros(shape, dtype=bool)
    family = best_fit.Family(precision, linear, parent, bounds, nowhere)
    fit = best_fit.best_fit(family, inside)
    assert fit is not None
    assert fit.gap < 1e-6

    # Lawson and Hanson, with what is left to each end of a bound as further variables.
    flat, none, left = sums.reshape(3, -1), np.zeros((3, 3)), np.eye(3)
    kept = np.block(
        [
            [np.tile(np.eye(4), 3), np.zeros((4, 6))],
            [flat, -left, none],
            [flat, none, left],
        ]
    )
    fitted = np.hstack([np.asarray(linalg.block_diag(*roots)), np.zeros((18, 6))])
    right = np.einsum("crk,ck->cr", roots, wanted).ravel()
    ends = 1e4 * np.concatenate([parent, bounds.least, bounds.most])
    slow = optimize.nnls(np.vstack([fitted, 1e4 * kept]), np.concatenate([right, ends]))[0]
    np.testing.assert_allclose(fit.counts.ravel(), slow[:12], atol=1e-4)


def test_blocked_cells_stay_empty_in_the_best_fit():
    linear = np.array([[5.0, 1.0], [3.0, 4.0]])
    blocked = np.array([[True, False], [False, False]])
    parent = np.array([6.0, 4.0])
    nothing = best_fit.Bounded.none(linear.shape)
    family = best_fit.Family(np.array([np.eye(2)] * 2), linear, parent, nothing, blocked)
    fit = best_fit.best_fit(family, np.zeros(linear.shape))
    assert fit is not None
    np.testing.assert_allclose(fit.counts, [[0, 0.5], [6, 3.5]], atol=1e-9)
    assert fit.gap < 1e-9


@pytest.mark.parametrize(
    "rule",
    [
        "a = 2 and b != x", "a < 3 or b in [x, 'z']", "not (a >= 2 and ends = outer)",
        "three = m and not b == y or a <= 1", "a > 2",
    ],
)  # fmt: skip
def test_rules_are_read_as_the_estimators_read_them(rule):
    recodes = {
        name: {
            "attribute": recode.attribute,
            "groups": dict(zip(recode.names, recode.groups, strict=True)),
        }
        for name, recode in SCHEMA.recodes
    }
    schema = {
        name: list(labels) for name, labels in zip(SCHEMA.names, SCHEMA.categories, strict=True)
    }
    plan = {"schema": schema, "recodes": recodes, "histogram": {"ordered": ["a"]}}
    np.testing.assert_array_equal(rules.rule_cells(plan, rule), rule_cells(SCHEMA, ["a"], rule))
    both = f"{rule} requires a = 1"
    ours, theirs = rules.edit_rule_cells(plan, both), edit_rule_cells(SCHEMA, ["a"], both)
    np.testing.assert_array_equal(ours, theirs)
