import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import histogram_worlds as worlds
from strategies import hierarchies
from trellis.errors import Infeasible, SpecError, StructureError
from trellis.estimate.histograms.estimators import estimate_gls_topdown, estimate_topdown
from trellis.estimate.histograms.evidence import EvidenceInMemory
from trellis.estimate.histograms.family.least_squares import TOLERANCE
from trellis.model.tables.constraints import NO_BOUND, Constraints, LinearConstraint, Sense
from trellis.model.tables.queries import parse_query

METHODS = pytest.mark.parametrize("estimate", [estimate_topdown, estimate_gls_topdown])
MEASURED = [
    {"detailed": 2.0, "total": 1.0},
    {"detailed": 5.0, "three": 1.0},
    {"detailed": 5.0, "b": 1.0, "total": 0.5},
    {"detailed": 3.0, "ends": 4.0},
]
N_CELLS = worlds.SCHEMA.n_cells


def dense(estimates):
    return [counts.dense() for counts in estimates.counts]


def assert_adds_up(tree, levels):
    for level in range(tree.n_levels - 1):
        np.testing.assert_array_equal(tree.sum_children(level, levels[level + 1]), levels[level])


@METHODS
@settings(max_examples=12, deadline=None)
@given(tree=hierarchies(max_levels=3), seed=st.integers(0, 2**32 - 1))
def test_any_tree_adds_up(estimate, tree, seed):
    measured = [{"detailed": 2.0, "total": 1.0, "three": 9.0}] * tree.n_levels
    _, evidence = worlds.evidence(tree, measured, np.random.default_rng(seed))
    assert_adds_up(tree, dense(estimate(evidence, 0)))


@METHODS
def test_little_noise_returns_the_truth(estimate):
    measured = [dict.fromkeys(level, 1e-4) for level in MEASURED]
    truth, evidence = worlds.evidence(worlds.TREE, measured, np.random.default_rng(1))
    for found, true in zip(dense(estimate(evidence, 0)), truth, strict=True):
        np.testing.assert_array_equal(found, true)


@METHODS
@pytest.mark.parametrize("ratio", [1e4, 1e6, 1e9])
def test_variances_far_apart_are_fitted_to_the_tolerance(estimate, ratio):
    measured = [
        {"detailed": 2.0, "total": 2.0 / ratio, "three": 9.0},
        {"detailed": 5.0, "three": 1.0 / ratio, "two * b": 1e3},
        {"detailed": 5.0, "b": 1.0, "total": 0.5 / ratio},
        {"detailed": 3.0, "total": 4.0 / ratio},
    ]
    rng = np.random.default_rng(0)
    truth, evidence = worlds.evidence(worlds.TREE, measured, rng, scale=400.0)
    found = estimate(evidence, 0)
    assert found.distance <= TOLERANCE
    assert_adds_up(worlds.TREE, dense(found))
    assert np.abs(dense(found)[-1].sum(axis=1) - truth[-1].sum(axis=1)).max() <= 1


@METHODS
def test_threads_and_runs_change_nothing(estimate):
    _, evidence = worlds.evidence(worlds.TREE, MEASURED, np.random.default_rng(2))
    first, second = (dense(estimate(evidence, 5, workers=workers)) for workers in (1, 3))
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, other)


@METHODS
def test_distance_is_reported_and_kept(estimate):
    _, evidence = worlds.evidence(worlds.TREE, MEASURED, np.random.default_rng(3), scale=40.0)
    assert 0 < estimate(evidence, 0).distance <= 0.03
    assert estimate(evidence, 0, tolerance=1e-4).distance <= 1e-4


@METHODS
@pytest.mark.parametrize("seed", range(3))
def test_constraints_are_kept_on_every_level(estimate, seed):
    rng = np.random.default_rng(seed)
    measured = [dict(level) for level in MEASURED]
    measured[1]["total"] = 0.0
    truth, _ = worlds.evidence(worlds.TREE, measured, rng)
    truth[-1][:, 4] = 0
    truth = worlds.TREE.sum_up(truth[-1])
    _, evidence = worlds.evidence(worlds.TREE, measured, rng)
    answers = [
        {n: parse_query(worlds.SCHEMA, n).answer(truth[i]) + noise for n, noise in level.items()}
        for i, level in enumerate(
            {
                n: np.rint(rng.normal(0, v**0.5, evidence.answers[i][n].shape)).astype(int)
                for n, v in level.items()
            }
            for i, level in enumerate(measured)
        )
    ]
    evidence = EvidenceInMemory(worlds.TREE, worlds.SCHEMA, measured, answers)
    three = parse_query(worlds.SCHEMA, "three")
    held = three.answer(truth[3])
    facilities = np.where(held > 0, 1, 0)
    none = np.where(held > 0, NO_BOUND, 0)
    county_b = parse_query(worlds.SCHEMA, "b").answer(truth[2])
    groups = np.array([0, 1, 1, 2, 2, 3])
    grouped = np.zeros((4, 1), dtype=np.int64)
    np.add.at(grouped, groups, truth[2].sum(axis=1, keepdims=True))
    impossible = np.zeros(N_CELLS, dtype=bool)
    impossible[4] = True
    constraints = Constraints(
        (
            LinearConstraint("one each", "block", "three", Sense.AT_LEAST, facilities),
            LinearConstraint("none", "block", "three", Sense.AT_MOST, none),
            LinearConstraint("at most", "county", "b", Sense.AT_MOST, county_b + 2),
            LinearConstraint("groups", "county", "total", Sense.EQUAL, grouped, groups),
        ),
        impossible,
    )
    found = dense(estimate(evidence, 0, constraints=constraints))
    assert_adds_up(worlds.TREE, found)
    blocks = three.answer(found[3])
    assert (blocks >= facilities).all()
    assert not blocks[held == 0].any()
    assert (parse_query(worlds.SCHEMA, "b").answer(found[2]) <= county_b + 2).all()
    np.testing.assert_array_equal(found[1].sum(axis=1), truth[1].sum(axis=1))
    sums = np.zeros_like(grouped)
    np.add.at(sums, groups, found[2].sum(axis=1, keepdims=True))
    np.testing.assert_array_equal(sums, grouped)
    assert not any(level[:, 4].any() for level in found)


@METHODS
def test_an_infeasible_family_is_named(estimate):
    measured = [dict(level) for level in MEASURED]
    measured[2]["total"] = 0.0
    truth, evidence = worlds.evidence(worlds.TREE, measured, np.random.default_rng(4))
    too_many = np.zeros((worlds.TREE.sizes[3], 1), dtype=np.int64)
    too_many[5:10] = truth[2][1].sum()  # the blocks of county '10'
    rule = LinearConstraint("rule", "block", "total", Sense.AT_LEAST, too_many)
    constraints = Constraints((rule,), np.zeros(N_CELLS, dtype=bool))
    with pytest.raises(Infeasible, match=r"'(1|10|r)'"):
        estimate(evidence, 0, constraints=constraints)


def test_levels_that_are_not_measured():
    measured = [{}, {"total": 1.0}, {}, {"detailed": 2.0}]
    _, evidence = worlds.evidence(worlds.TREE, measured, np.random.default_rng(5))
    assert_adds_up(worlds.TREE, dense(estimate_gls_topdown(evidence, 0)))
    with pytest.raises(SpecError, match="nation"):
        estimate_topdown(evidence, 0)
    coarse = [{"total": 1.0}, *measured[1:]]
    _, evidence = worlds.evidence(worlds.TREE, coarse, np.random.default_rng(5))
    with pytest.raises(SpecError, match="gls_topdown"):
        estimate_topdown(evidence, 0)


def test_gls_is_more_accurate_above_the_leaves():
    errors = np.zeros((2, 30))
    measured = [{"detailed": 40.0}, {"detailed": 40.0}, {"detailed": 40.0}, {"detailed": 2.0}]
    for run in range(30):
        truth, evidence = worlds.evidence(worlds.TREE, measured, np.random.default_rng(run), 30.0)
        for i, estimate in enumerate((estimate_topdown, estimate_gls_topdown)):
            errors[i, run] = np.abs(dense(estimate(evidence, 0))[2] - truth[2]).mean()
    assert errors[1].mean() < 0.8 * errors[0].mean()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bound": np.zeros((2, 1), dtype=np.int64)}, "30 x 1"),
        ({"group_of": np.zeros(30, dtype=np.int64)}, "different parents"),
        ({"group_of": np.zeros(3, dtype=np.int64)}, "each of 30"),
        ({"level": "planet"}, "planet"),
        ({"query": "colour"}, "colour"),
    ],
)
def test_constraints_that_do_not_fit_are_refused(changes, message):
    _, evidence = worlds.evidence(worlds.TREE, MEASURED, np.random.default_rng(6))
    fields = {
        "label": "rule",
        "level": "block",
        "query": "total",
        "sense": Sense.AT_MOST,
        "bound": np.full((30, 1), 5),
    }
    rule = LinearConstraint(**{**fields, **changes})
    with pytest.raises(StructureError, match=message):
        estimate_topdown(evidence, 0, constraints=Constraints((rule,), np.zeros(N_CELLS, bool)))


def test_evidence_needs_every_level():
    with pytest.raises(StructureError, match="4 levels"):
        EvidenceInMemory(worlds.TREE, worlds.SCHEMA, MEASURED, [])


def test_a_marginal_fixed_first_does_not_depend_on_the_other_cells():
    """States' answers to the fixed query follow from its own measurements and the nation's."""
    measured = [{"detailed": 1.0}] + [{"detailed": 40.0, "three": 2.0, "b": 3.0}] * 3
    _, evidence = worlds.evidence(worlds.TREE, measured, np.random.default_rng(8))
    noise = np.random.default_rng(9).integers(-9, 9, (3, N_CELLS))
    answers = [dict(level) for level in evidence.answers]
    answers[1]["detailed"] = answers[1]["detailed"] + noise
    other = EvidenceInMemory(worlds.TREE, worlds.SCHEMA, measured, answers)
    three = parse_query(worlds.SCHEMA, "three")
    for passes, same in (((), False), (("three",), True)):
        found = [dense(estimate_topdown(e, 0, passes=passes)) for e in (evidence, other)]
        assert_adds_up(worlds.TREE, found[1])
        assert np.array_equal(three.answer(found[0][1]), three.answer(found[1][1])) == same


@METHODS
def test_passes_go_with_constraints(estimate):
    measured = [dict(level, three=1.0) for level in MEASURED]
    measured[1]["total"] = 0.0
    truth, evidence = worlds.evidence(worlds.TREE, measured, np.random.default_rng(10))
    bound = parse_query(worlds.SCHEMA, "three").answer(truth[3])
    rule = LinearConstraint("rule", "block", "three", Sense.AT_LEAST, np.minimum(bound, 2))
    constraints = Constraints((rule,), np.zeros(N_CELLS, dtype=bool))
    found = dense(estimate(evidence, 0, passes=("three",), constraints=constraints))
    assert_adds_up(worlds.TREE, found)
    assert (parse_query(worlds.SCHEMA, "three").answer(found[3]) >= rule.bound).all()
    np.testing.assert_array_equal(found[1].sum(axis=1), truth[1].sum(axis=1))


@METHODS
@pytest.mark.parametrize("seed", range(3))
def test_passes_that_clash_are_left_out(estimate, seed):
    """Two marginals fixed one by one may fit no joint table; nor need they fit empty cells."""
    measured = [{"detailed": 2.0, "three": 1.0, "b": 1.0}] * 4
    rng = np.random.default_rng(seed)
    truth, evidence = worlds.evidence(worlds.TREE, measured, rng, 1.0)
    none = np.where(truth[3] > 0, NO_BOUND, 0)
    rule = LinearConstraint("none", "block", "detailed", Sense.AT_MOST, none)
    constraints = Constraints((rule,), np.zeros(N_CELLS, dtype=bool))
    for kept in (None, constraints):
        found = dense(estimate(evidence, 0, passes=("three", "b"), constraints=kept))
        assert_adds_up(worlds.TREE, found)
        assert kept is None or not found[3][none == 0].any()


def test_a_pass_over_too_many_cells_is_refused():
    schema = worlds.Schema({"a": [str(i) for i in range(70)]})
    evidence = EvidenceInMemory(worlds.TREE, schema, [{}] * 4, [{}] * 4)
    with pytest.raises(SpecError, match="70"):
        estimate_topdown(evidence, 0, passes=("a",))
