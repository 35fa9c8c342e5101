"""What facts about the records allow: never less than a linear program finds possible."""

from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import histogram_worlds as worlds
from oracles.facts_by_program import answers_by_program
from oracles.histogram_gls import dense_histogram_gls, dense_marginal_variances
from trellis.estimate.histograms.estimators import estimate_gls, estimate_gls_topdown
from trellis.estimate.histograms.evidence import EvidenceInMemory
from trellis.estimate.histograms.known import known_facts
from trellis.model import Hierarchy, Schema
from trellis.model.results import histogram_facts
from trellis.model.results.histogram_facts import HistogramFacts
from trellis.model.tables.constraints import NO_BOUND, Constraints, LinearConstraint, Sense
from trellis.model.tables.queries import parse_query
from trellis.model.tables.schema import Recode
from trellis.storage.constraints import write_constraints
from trellis.verify.files.histogram_files import marginal
from trellis.verify.files.run_files import Level
from trellis.verify.histograms.facts import HistogramFacts as VerifiedFacts

TREE = Hierarchy.from_paths(
    [("r", "a", "a1"), ("r", "a", "a2"), ("r", "a", "a3"), ("r", "b", "b1")],
    ["nation", "state", "town"],
)
SCHEMA = Schema(
    {"age": ["0", "1", "2"], "sex": ["f", "m"]},
    {"adult": Recode("age", {"no": ["0"], "yes": ["1", "2"]})},
)
NAMES = ["total", "age", "sex", "adult", "adult * sex", "detailed"]
NOTHING = np.zeros(SCHEMA.n_cells, dtype=bool)


def facts(exact=(), linear=(), impossible=NOTHING):
    """`exact` are pairs of a level and totals."""
    answers = [{} for _ in range(TREE.n_levels)]
    for level, totals in exact:
        answers[level]["total"] = np.array(totals)[:, np.newaxis]
    return HistogramFacts.of(TREE, SCHEMA, answers, Constraints(tuple(linear), impossible))


def bound(level, query, sense, values, group_of=None):
    groups = None if group_of is None else np.array(group_of)
    return LinearConstraint("c", level, query, Sense(sense), np.array(values), groups)


def allowed(known, level, query):
    found = known.allowed(level, parse_query(SCHEMA, query), 0, TREE.size(level))
    return np.stack([found.lower, found.upper], axis=-1).tolist()


# -- what must be found ---------------------------------------------------------------------------


def test_nobody_is_in_an_area_with_a_total_of_zero():
    known = facts([(2, [3, 0, 0, 0])])
    assert allowed(known, 2, "sex")[1:] == [[[0, 0], [0, 0]]] * 3
    assert allowed(known, 1, "detailed")[1] == [[0, 0]] * 6
    assert allowed(known, 2, "total")[0] == [[3, 3]]


def test_nor_below_it():
    known = facts([(1, [0, 5])])
    assert allowed(known, 2, "age")[:3] == [[[0, 0]] * 3] * 3
    assert allowed(known, 2, "total") == [[[0, 0]], [[0, 0]], [[0, 0]], [[5, 5]]]
    assert allowed(known, 2, "age")[3] == [[0, 5]] * 3


def test_the_only_possible_cell_holds_everyone():
    impossible = np.array([True, True, True, True, False, True])
    known = facts([(0, [7])], impossible=impossible)
    assert allowed(known, 0, "age") == [[[0, 0], [0, 0], [7, 7]]]
    assert allowed(known, 0, "adult * sex") == [[[0, 0], [0, 0], [7, 7], [0, 0]]]
    assert allowed(known, 2, "sex")[3] == [[0, 7], [0, 0]]


def test_sums_of_what_is_fixed_are_fixed():
    """Two ages are ruled out, by a zero and by a bound: the recode over both is empty."""
    impossible = np.array([False, False, True, True, False, False])
    most = bound("town", "age", "<=", [[-1, -1, 0]] * 4)
    known = facts(linear=[most], impossible=impossible)
    for level in range(3):
        assert all(row[1] == [0, 0] for row in allowed(known, level, "adult"))


def test_a_type_without_a_facility_and_a_zero_leave_nobody_of_a_crossing_query():
    """A town of prisons alone, where no prisoner is a child: ages follow from types."""
    impossible = np.array([True, False, False, False, False, False])  # girls
    only_girls_and_women = bound("town", "sex", "<=", [[-1, 0], [-1, -1], [-1, -1], [-1, -1]])
    known = facts([(2, [9, 1, 1, 1])], [only_girls_and_women], impossible)
    assert allowed(known, 2, "adult")[0] == [[0, 0], [9, 9]]


def test_what_the_others_hold_is_taken_off():
    least = bound("town", "total", ">=", [[2], [3], [0], [0]])
    known = facts([(1, [6, 0])], [least])
    assert allowed(known, 2, "total")[:3] == [[[2, 3]], [[3, 4]], [[0, 1]]]


def test_groups_of_siblings_bound_their_members():
    group = bound("town", "total", "=", [[4]], [0, 0, -1, -1])
    least = bound("town", "total", ">=", [[1], [0], [0], [0]])
    known = facts([(1, [6, 0])], [group, least])
    assert allowed(known, 2, "total")[:3] == [[[1, 4]], [[0, 3]], [[2, 2]]]
    nobody = bound("town", "sex", "<=", [[0, 0]], [0, 0, -1, -1])
    assert allowed(facts(linear=[nobody]), 2, "detailed")[:2] == [[[0, 0]] * 6] * 2


def test_a_run_of_areas_is_part_of_the_level(monkeypatch):
    known = facts([(1, [4, 6])], [bound("town", "sex", ">=", [[1, 0], [0, 2], [0, 0], [1, 1]])])
    query = parse_query(SCHEMA, "adult * sex")
    every = known.allowed(2, query, 0, 4)
    for first, last in ((0, 1), (1, 3), (2, 4), (3, 4)):
        part = known.allowed(2, query, first, last)
        assert part.same_as(every.rows(slice(first, last)))
    monkeypatch.setattr(histogram_facts, "CELLS_AT_ONCE", 1)
    assert known.allowed(2, query, 0, 4).same_as(every)


def test_bounds_on_the_output_are_no_facts():
    output = LinearConstraint(
        "c", "town", "sex", Sense.AT_MOST, np.zeros((4, 2), int), binds_records=False
    )
    stated = Constraints((output,), ~NOTHING)
    kept = stated.of_records(zeros=False)
    assert kept.linear == ()
    assert not kept.impossible.any()
    assert stated.of_records(zeros=True).impossible.all()


# -- never more than follows ----------------------------------------------------------------------


@st.composite
def worlds_with_facts(draw):
    """Facts that are true of some table: exact totals, bounds, groups, impossible cells."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    impossible = rng.random(SCHEMA.n_cells) < draw(st.sampled_from([0.0, 0.2, 0.5]))
    leaves = rng.poisson(draw(st.sampled_from([0.3, 1.5])), (4, SCHEMA.n_cells)) * ~impossible
    truth = TREE.sum_up(leaves)
    exact = [{} for _ in truth]
    for level in range(draw(st.integers(0, 3))):
        exact[level]["total"] = truth[level].sum(axis=1, keepdims=True)
    linear = []
    for number in range(draw(st.integers(0, 3))):
        level, query = draw(st.integers(0, 2)), parse_query(SCHEMA, draw(st.sampled_from(NAMES)))
        answer, groups = query.answer(truth[level]), None
        if level == 2 and draw(st.booleans()):
            groups = np.array([0, 0, -1, 1])
            answer = np.stack([answer[:2].sum(axis=0), answer[3]])
        sense = Sense(draw(st.sampled_from(list(Sense))))
        slack = 0 if sense is Sense.EQUAL else rng.integers(0, 3, answer.shape)
        value = np.maximum(answer + (slack if sense is Sense.AT_MOST else -slack), 0)
        value = np.where(rng.random(answer.shape) < 0.6, value, NO_BOUND).astype(np.int64)
        if (value != NO_BOUND).any():  # files do not hold others
            name = TREE.level_names[level]
            linear.append(LinearConstraint(f"c{number}", name, query.name, sense, value, groups))
    return exact, Constraints(tuple(linear), impossible)


@settings(max_examples=100, deadline=None)
@given(world=worlds_with_facts(), level=st.integers(0, 2), name=st.sampled_from(NAMES))
def test_no_range_is_narrower_than_the_facts_prove(world, level, name):
    exact, bounds = world
    found = HistogramFacts.of(TREE, SCHEMA, exact, bounds).allowed(
        level, parse_query(SCHEMA, name), 0, TREE.size(level)
    )
    ((lower, upper),) = answers_by_program(TREE, SCHEMA, exact, bounds, [(level, name)]).values()
    assert (found.lower <= lower + 1e-7).all()
    assert (found.upper >= upper - 1e-7).all()


@settings(max_examples=40, deadline=None)
@given(world=worlds_with_facts(), cells_at_once=st.sampled_from([1, 18, 1000]))
def test_the_verifier_finds_the_same(tmp_path_factory, world, cells_at_once):
    exact, bounds = world
    known = HistogramFacts.of(TREE, SCHEMA, exact, bounds)
    verified = VerifiedFacts(run_files(tmp_path_factory.mktemp("facts"), exact, bounds))
    for level in range(3):
        for name in NAMES:
            query = marginal(PLAN, name)
            mine = known.allowed(level, parse_query(SCHEMA, name), 0, TREE.size(level))
            with patch("trellis.verify.histograms.facts._CELLS_AT_ONCE", cells_at_once):
                lower, upper = verified.allowed(level, query)
            np.testing.assert_array_equal(mine.lower, lower)
            np.testing.assert_array_equal(mine.upper, upper)


PLAN = {
    "schema": {"age": ["0", "1", "2"], "sex": ["f", "m"]},
    "recodes": {"adult": {"attribute": "age", "groups": {"no": ["0"], "yes": ["1", "2"]}}},
}


def run_files(folder, exact, bounds):
    """Just what the verifier reads of a run."""
    write_constraints(folder, bounds)
    queries = []
    for name, answers in zip(TREE.level_names, exact, strict=True):
        for query, values in answers.items():
            place = folder / f"measurements/level={name}/query={query},exact/part-0.parquet"
            place.parent.mkdir(parents=True)
            pq.write_table(pa.table({"value": values.ravel()}), place)
            queries.append({"level": name, "query": query, "noise": None})
    cells = [f"age = {age} and sex = {sex}" for age in "012" for sex in "fm"]
    zeros = [cell for cell, marked in zip(cells, bounds.impossible, strict=True) if marked]
    levels = [
        Level(
            name,
            pa.array([str(code) for code in TREE.codes(i)]),
            TREE.parents(i) if i else np.array([-1]),
            TREE.passes_through[i],
        )
        for i, name in enumerate(TREE.level_names)
    ]
    rules = {"structural_zeros": zeros, "ordered": []}
    return SimpleNamespace(
        path=folder,
        plan=PLAN | {"queries": queries, "histogram": rules},
        cells=cells,
        levels=levels,
        table=lambda name: pq.read_table(folder / name),
        require_form=lambda _: None,
    )


# -- estimates ------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", [estimate_gls, estimate_gls_topdown])
def test_areas_without_anyone_are_known_without_noise(method):
    """As in dense least squares that measures every cell of two empty counties without noise."""
    tree, schema = worlds.TREE, worlds.SCHEMA
    exact = {"total": 0.0}
    measured = [exact | {"a": 3.0}, exact, exact | {"b": 2.0}, {"detailed": 4.0}]
    truth, evidence = worlds.evidence(tree, measured, np.random.default_rng(3))
    empty = np.isin(np.arange(tree.sizes[2]), [1, 4])[tree.parents(3)]
    for level, counts in enumerate(tree.sum_up(np.where(empty[:, np.newaxis], 0, truth[-1]))):
        for name, answer in evidence.answers[level].items():
            answer += parse_query(schema, name).answer(counts - truth[level])
    known = known_facts(evidence, Constraints.none(schema.n_cells))
    requests = [(level, name) for level in tree.level_names for name in ("total", "two * b")]
    if method is estimate_gls:
        found = estimate_gls(evidence, marginals=requests, facts=known)
    else:
        found = estimate_gls_topdown(evidence, 0, marginals=requests, facts=known).margins
    dense, covariance = dense_histogram_gls(
        tree, schema, measured, evidence.answers, np.flatnonzero(empty)
    )
    for (level, name), made in found.items():
        index = tree.index(level)
        centre = parse_query(schema, name).answer(dense[index])
        np.testing.assert_allclose(made.centre, centre, rtol=1e-8, atol=1e-7)
        errors = made.std_errors(np.arange(tree.sizes[index]))
        slow = dense_marginal_variances(tree, schema, covariance, index, name)
        np.testing.assert_allclose(errors**2, slow, rtol=1e-8, atol=1e-7)
    errors = found["block", "two * b"].std_errors(np.arange(empty.size))
    assert ((errors == 0) == empty[:, np.newaxis]).all()


def test_without_anyone_nothing_is_left_to_estimate():
    measured = [{"total": 0.0}, {"detailed": 4.0}]
    tree = Hierarchy.from_paths([("r", "a"), ("r", "b")], ["nation", "town"])
    noisy = np.random.default_rng(0).integers(-3, 4, (2, SCHEMA.n_cells))
    answers = [{"total": np.zeros((1, 1), int)}, {"detailed": noisy}]
    evidence = EvidenceInMemory(tree, SCHEMA, measured, answers)
    known = known_facts(evidence, Constraints.none(SCHEMA.n_cells))
    (made,) = estimate_gls(evidence, marginals=[("town", "sex")], facts=known).values()
    assert not made.centre.any()
    assert not made.std_errors(np.arange(2)).any()


def test_a_fixed_answer_has_no_error_and_its_neighbours_keep_theirs():
    measured = [{"detailed": 1.0}, {"detailed": 1.0}, {"detailed": 1.0}]
    answers = [{"detailed": np.ones((n, SCHEMA.n_cells), int)} for n in TREE.sizes]
    evidence = EvidenceInMemory(TREE, SCHEMA, measured, answers)
    most = bound("town", "sex", "<=", [[-1, 0], [-1, -1], [0, -1], [-1, 0]])
    known = known_facts(evidence, Constraints((most,), NOTHING))
    (plain,) = estimate_gls(evidence, marginals=[("town", "sex")]).values()
    (made,) = estimate_gls(evidence, marginals=[("town", "sex")], facts=known).values()
    fixed = np.array([[0, 1], [0, 0], [1, 0], [0, 1]], dtype=bool)
    expected = np.where(fixed, 0.0, plain.std_errors(np.arange(4)))
    np.testing.assert_array_equal(made.std_errors(np.arange(4)), expected)
    assert set(made.class_of.tolist()) == set(range(len(made.std_error)))
    np.testing.assert_array_equal(made.centre, plain.centre)
