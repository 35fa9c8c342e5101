from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles.histogram_family import dense_optimum, weighted_rows
from trellis.errors import Infeasible, StructureError
from trellis.estimate import solve_family
from trellis.estimate.histograms.family.bounds import FamilyBound
from trellis.model import Schema
from trellis.model.tables.queries import parse_query
from trellis.model.tables.schema import Recode
from trellis.numerics.histograms.least_squares import accelerated, solver, stiff_rows

SCHEMA = Schema(
    {"a": ["1", "2", "3"], "b": ["x", "y"]}, {"pair": Recode("a", {"low": ["1", "2"], "3": ["3"]})}
)
QUERIES = ["total", "a", "pair * b", "b * a", "detailed"]


def noisy(rng, queries, n_children, spread=10.0):
    widths = {name: parse_query(SCHEMA, name).n_cells for name in queries}
    values = {name: rng.normal(4, spread, (n_children, k)).round(1) for name, k in widths.items()}
    variances = {name: rng.uniform(0.5, 50, (n_children, k)) for name, k in widths.items()}
    return values, variances


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_children=st.integers(1, 4),
    chosen=st.sets(st.sampled_from(QUERIES[:3])),
    detailed=st.sampled_from(QUERIES[3:]),
)
def test_small_families_match_a_dense_program(seed, n_children, chosen, detailed):
    rng = np.random.default_rng(seed)
    queries = [*sorted(chosen), detailed]
    parent = rng.integers(0, 12, SCHEMA.n_cells)
    values, variances = noisy(rng, queries, n_children)
    found = solve_family(SCHEMA, parent, queries, values, variances)
    best = dense_optimum(SCHEMA, parent, queries, values, variances)
    np.testing.assert_allclose(found.children.ravel(), best, atol=1e-6)
    np.testing.assert_allclose(found.children.sum(axis=0), parent, atol=1e-9)
    assert found.children.min() >= 0
    assert found.distance <= 1e-7


ONE_CELL = Schema({"a": ["1"]})


@pytest.mark.parametrize(
    ("schema", "queries"),
    [
        (ONE_CELL, ["total"]),
        (ONE_CELL, ["total", "detailed"]),
        (SCHEMA, ["detailed", "detailed"]),
        (SCHEMA, ["total", "total", "b * a"]),
        (SCHEMA, ["a * b", "pair", "detailed"]),
    ],
)
@pytest.mark.parametrize("n_children", [1, 3])
def test_one_cell_and_queries_listed_twice(schema, queries, n_children):
    rng = np.random.default_rng(n_children)
    parent = rng.integers(0, 20, schema.n_cells)
    shapes = {name: (n_children, parse_query(schema, name).n_cells) for name in queries}
    values = {name: rng.normal(4, 6, shape) for name, shape in shapes.items()}
    variances = {name: rng.uniform(0.3, 30, shape) for name, shape in shapes.items()}
    found = solve_family(schema, parent, queries, values, variances)
    best = dense_optimum(schema, parent, queries, values, variances)
    np.testing.assert_allclose(found.children.ravel(), best, atol=1e-6)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n_children=st.integers(2, 4))
def test_without_a_separating_query_the_objective_is_least(seed, n_children):
    rng = np.random.default_rng(seed)
    queries = ["total", "a", "b"]
    parent = rng.integers(1, 12, SCHEMA.n_cells)
    values, variances = noisy(rng, queries, n_children)
    found = solve_family(SCHEMA, parent, queries, values, variances)
    a, t, _, _ = weighted_rows(SCHEMA, queries, values, variances)
    best = dense_optimum(SCHEMA, parent, queries, values, variances)
    reached, least = (np.sum((a @ x - t) ** 2) for x in (found.children.ravel(), best))
    assert reached <= least + 1e-6 * (1 + least)


def test_the_certificate_bounds_the_distance():
    rng = np.random.default_rng(5)
    parent = rng.integers(0, 40, SCHEMA.n_cells)
    values, variances = noisy(rng, QUERIES, 9)
    exact = solve_family(SCHEMA, parent, QUERIES, values, variances, tolerance=1e-9).children
    held = parent > 0
    for tolerance in (3.0, 0.3, 0.03, 0.003):
        found = solve_family(SCHEMA, parent, QUERIES, values, variances, tolerance=tolerance)
        error = np.sqrt(np.mean((found.children - exact)[:, held] ** 2))
        assert error <= found.distance + 1e-8 <= tolerance + 2e-8


def stiff_family(rng, precise, variance, n_children=4):
    """A family in which some queries are far more precise than the detailed one."""
    parent = rng.integers(0, 40, SCHEMA.n_cells)
    queries = [*precise, "detailed"]
    values, _ = noisy(rng, queries, n_children)
    return parent, queries, values, {**dict.fromkeys(precise, variance), "detailed": 1.0}


@pytest.mark.parametrize("precise", [["total"], ["total", "pair * b"]])
def test_precise_queries_are_fitted_as_by_plain_steps(precise, monkeypatch):
    family = stiff_family(np.random.default_rng(3), precise, 2e-5)
    found = solve_family(SCHEMA, *family)
    monkeypatch.setattr(stiff_rows, "STIFF", inf)
    plain = solve_family(SCHEMA, *family)
    assert max(found.distance, plain.distance) <= 2e-8
    assert found.iterations < plain.iterations
    np.testing.assert_allclose(found.children, plain.children, atol=1e-6)


@pytest.mark.parametrize("variance", [1e-6, 1e-9, 1e-15, 5e-324])
@pytest.mark.parametrize("precise", [["total"], ["total", "a"]])
def test_next_to_exact_answers_share_evenly_what_does_not_add_up(variance, precise):
    parent, queries, values, variances = stiff_family(np.random.default_rng(2), precise, variance)
    values = {name: np.abs(table) + 5 for name, table in values.items()}
    if "a" in values:  # which does not contradict the total
        values["total"] = values["a"].sum(axis=1, keepdims=True)
    found = solve_family(SCHEMA, parent, queries, values, variances)
    assert found.distance <= 1e-4
    for name in precise:
        query = parse_query(SCHEMA, name)
        missing = query.answer(parent) - values[name].sum(axis=0)
        shared = values[name] + missing / len(values[name])
        assert shared.min() >= 0
        np.testing.assert_allclose(query.answer(found.children), shared, atol=1e-3)


def test_the_certificate_holds_with_precise_queries():
    family = stiff_family(np.random.default_rng(8), ["total", "pair * b"], 1e-7, 9)
    exact = solve_family(SCHEMA, *family, tolerance=1e-9).children
    held = family[0] > 0
    for tolerance in (3.0, 0.3, 0.03, 0.003):
        found = solve_family(SCHEMA, *family, tolerance=tolerance)
        error = np.sqrt(np.mean((found.children - exact)[:, held] ** 2))
        assert error <= found.distance + 1e-8 <= tolerance + 2e-8


def test_where_rounds_of_multipliers_fail_plain_steps_go_on(monkeypatch):
    family = stiff_family(np.random.default_rng(3), ["total", "pair * b"], 2e-5)
    best = solve_family(SCHEMA, *family).children
    monkeypatch.setattr(solver, "MOST_ROUNDS", 1)
    found = solve_family(SCHEMA, *family)
    assert found.distance <= 2e-8
    np.testing.assert_allclose(found.children, best, atol=1e-6)


def test_no_distance_is_greater_than_the_parent_allows(monkeypatch):
    stalled = (accelerated.STALLED, 1e12, 0.0, -1, 0)
    monkeypatch.setattr(solver, "minimise_from", lambda *_: stalled)
    parent = np.array([1, 0, 2, 0, 0, 1])
    values = {"detailed": np.outer([0.5, 0.25, 0.25], parent)}
    found = solve_family(SCHEMA, parent, ["detailed"], values, {"detailed": 1.0})
    np.testing.assert_array_equal(found.children, values["detailed"])
    corners = [np.outer(child, parent) for child in np.eye(3)]
    farthest = max(np.sum((found.children - corner) ** 2) for corner in corners)
    assert found.distance == pytest.approx(np.sqrt(farthest / 9))


def test_exact_and_ignored_answers():
    rng = np.random.default_rng(6)
    truth = rng.integers(0, 9, (4, SCHEMA.n_cells))
    values, variances = noisy(rng, QUERIES, 4)
    values["total"] = truth.sum(axis=1, keepdims=True)
    variances["total"] = 0
    values["a"][:] = np.nan
    variances["a"] = np.full((4, 1), inf)
    found = solve_family(SCHEMA, truth.sum(axis=0), QUERIES, values, variances)
    np.testing.assert_allclose(found.children.sum(axis=1), truth.sum(axis=1), atol=1e-6)
    best = dense_optimum(SCHEMA, truth.sum(axis=0), QUERIES, values, variances)
    np.testing.assert_allclose(found.children.ravel(), best, atol=1e-6)


def test_values_may_come_in_order_and_variances_by_child():
    rng = np.random.default_rng(7)
    parent = np.array([3, 0, 2, 5, 1, 1])
    values, _ = noisy(rng, QUERIES, 2)
    by_name = solve_family(SCHEMA, parent, QUERIES, values, dict.fromkeys(QUERIES, 2.0))
    in_order = solve_family(
        SCHEMA, parent, QUERIES, list(values.values()), [np.array([2.0, 2.0])] * len(QUERIES)
    )
    np.testing.assert_array_equal(by_name.children, in_order.children)


def test_degenerate_families():
    one = solve_family(SCHEMA, [1, 2, 3, 4, 5, 6], ["total"], {"total": [[3.0]]}, {"total": 1})
    np.testing.assert_allclose(one.children, [[1, 2, 3, 4, 5, 6]])
    empty = solve_family(SCHEMA, np.zeros(6, int), ["total"], {"total": [[3.0], [1]]}, [1.0])
    assert not empty.children.any()
    assert empty.distance == 0
    single = Schema({"c": ["only"]})
    found = solve_family(single, [7], ["detailed"], [[[2.0], [3.0]]], [1.0])
    np.testing.assert_allclose(found.children, [[3.0], [4.0]])


def test_bounds_and_impossible_cells_are_kept():
    rng = np.random.default_rng(8)
    truth = rng.integers(0, 9, (5, SCHEMA.n_cells))
    truth[:, 2] = 0
    truth[3, 0] = 0
    values, variances = noisy(rng, QUERIES, 5)
    low = parse_query(SCHEMA, "a").answer(truth).astype(float) - 1
    impossible = np.zeros(truth.shape, dtype=bool)
    impossible[3, 0] = True
    groups = np.array([0, 0, 1, 1, -1])
    both = np.array([[truth[:2].sum()], [truth[2:4].sum()]], dtype=float)
    bounds = [FamilyBound("a", low, low + 2), FamilyBound("total", both, both, groups)]
    found = solve_family(
        SCHEMA,
        truth.sum(axis=0),
        QUERIES,
        values,
        variances,
        bounds=bounds,
        impossible=impossible,
    )
    answer = parse_query(SCHEMA, "a").answer(found.children)
    assert (answer >= low - 1e-6).all()
    assert (answer <= low + 2 + 1e-6).all()
    totals = found.children.sum(axis=1)
    np.testing.assert_allclose([totals[:2].sum(), totals[2:4].sum()], both.ravel(), atol=1e-6)
    assert found.children[3, 0] == 0


@pytest.mark.parametrize(
    ("lower", "upper", "message"),
    [(9.0, inf, "at least"), (0.0, 1.0, "at most"), (4.0, 3.0, "at least 4 and at most 3")],
)
def test_impossible_bounds_are_named(lower, upper, message):
    bounds = [FamilyBound("total", np.full((2, 1), lower), np.full((2, 1), upper))]
    with pytest.raises(Infeasible, match=message):
        solve_family(
            SCHEMA, [1, 1, 1, 1, 3, 1], ["detailed"], [np.zeros((2, 6))], [1], bounds=bounds
        )


def test_a_cell_that_fits_nowhere_is_named():
    with pytest.raises(Infeasible, match="1 x x"):
        solve_family(
            SCHEMA, [1, 0, 0, 0, 0, 0], ["total"], [[[1.0]]], [1], impossible=np.ones(6, dtype=bool)
        )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"parent": [1, 2]}, "6 cells"),
        ({"parent": [0.5] * 6}, "whole"),
        ({"parent": [-1] * 6}, "below 0"),
        ({"values": {"a": [[1, 2, 3]]}}, "total"),
        ({"values": [[[1.0]], [[1.0]]]}, "2 tables"),
        ({"values": {"total": [[1.0, 2.0]]}}, "1 cells"),
        ({"values": {"total": [[np.nan]]}}, "finite"),
        ({"variances": {"total": -1.0}}, "negative"),
        ({"variances": {"total": np.ones((3, 3))}}, "one number"),
        ({"queries": [], "values": []}, "at least one query"),
        ({"queries": ["nothing"]}, "nothing"),
        ({"values": {"total": np.zeros((0, 1))}}, "at least one child"),
        ({"values": {"total": [["many"]]}}, "Values of 'total' must be numbers"),
        ({"values": {"total": [[1.0], [1.0, 2.0]]}}, "rows of one length"),
        ({"values": {"total": [[1e300]]}}, "at most 2.50"),
        ({"variances": {"total": "small"}}, "Variances of 'total' must be numbers"),
        ({"variances": {"total": np.nan}}, "missing"),
        ({"parent": [[1], [1, 2]]}, "numbers"),
        ({"parent": [1e30] * 6}, "none above 2.50"),
        ({"parent": np.full(6, 2**63, dtype=np.uint64)}, "none above 2.50"),
        ({"impossible": np.zeros(5, dtype=bool)}, "marked for 6 cells, or 1 children x 6"),
        ({"tolerance": 0.0}, "positive number"),
        ({"tolerance": np.nan}, "positive number"),
    ],
)
def test_bad_arguments_are_refused(changes, message):
    arguments = {
        "parent": [1] * 6,
        "queries": ["total"],
        "values": {"total": [[6.0]]},
        "variances": {"total": 1.0},
    }
    with pytest.raises(StructureError, match=message):
        solve_family(SCHEMA, **{**arguments, **changes})
