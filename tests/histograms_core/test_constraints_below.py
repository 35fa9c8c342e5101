"""Constraints that some counts keep are kept by every release, however heavy the noise."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import histogram_worlds as worlds
from trellis.errors import Infeasible
from trellis.estimate.histograms.estimators import estimate_gls_topdown, estimate_topdown
from trellis.estimate.histograms.evidence import EvidenceInMemory
from trellis.model import Hierarchy, Schema
from trellis.model.tables.constraints import ALONE, NO_BOUND, Constraints, LinearConstraint, Sense
from trellis.model.tables.queries import parse_query
from trellis.planning.feasibility.constraints import check_feasible

METHODS = pytest.mark.parametrize("estimate", [estimate_topdown, estimate_gls_topdown])
TREE, SCHEMA = worlds.TREE, worlds.SCHEMA
NOTHING = np.zeros(SCHEMA.n_cells, dtype=bool)


def answers(levels, constraint):
    """What a constraint bounds: units x cells."""
    level = TREE.index(constraint.level)
    found = parse_query(SCHEMA, constraint.query).answer(levels[level])
    if constraint.group_of is None:
        return found
    member, sums = constraint.group_of != ALONE, np.zeros(constraint.bound.shape, dtype=np.int64)
    np.add.at(sums, constraint.group_of[member], found[member])
    return sums


def keeps(levels, constraint):
    binds = constraint.bound != NO_BOUND
    found, bound = answers(levels, constraint)[binds], constraint.bound[binds]
    return {"=": found == bound, "<=": found <= bound, ">=": found >= bound}[constraint.sense].all()


@st.composite
def constraints_of(draw, truth):
    """Some that the truth keeps, of all kinds; many bind tightly."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    linear = []
    for i in range(draw(st.integers(1, 5))):
        level = draw(st.integers(0, 3))
        query, sense = draw(st.sampled_from(worlds.NAMES)), draw(st.sampled_from(Sense))
        group_of, n_units = None, TREE.size(level)
        if level and draw(st.integers(0, 3)) == 0:
            pairs = 2 * TREE.parents(level) + rng.integers(0, 2, n_units)
            _, group_of = np.unique(pairs, return_inverse=True)
            n_units = group_of.max() + 1
            group_of = np.where(rng.random(group_of.size) < 0.2, ALONE, group_of)
        width = parse_query(SCHEMA, query).n_cells
        name = TREE.level_names[level]
        free = np.full((n_units, width), NO_BOUND)
        exact = answers(truth, LinearConstraint(str(i), name, query, sense, free, group_of))
        slack = draw(st.integers(0, 2))
        bound = {"=": exact, "<=": exact + slack, ">=": np.maximum(exact - slack, 0)}[sense]
        bound = np.where(rng.random(bound.shape) < draw(st.floats(0, 1)), NO_BOUND, bound)
        linear.append(LinearConstraint(str(i), name, query, sense, bound, group_of))
    return tuple(linear)


@METHODS
@settings(max_examples=60)
@given(data=st.data(), seed=st.integers(0, 2**32 - 1))
def test_what_the_truth_keeps_is_kept(estimate, data, seed):
    variance = data.draw(st.sampled_from([1.0, 30.0, 1000.0]))
    measured = [{"detailed": variance, "total": variance / 10}] * TREE.n_levels
    scale = data.draw(st.sampled_from([0.3, 1.0, 4.0]))
    truth, evidence = worlds.evidence(TREE, measured, np.random.default_rng(seed), scale)
    linear = data.draw(constraints_of(truth))
    constraints = Constraints(linear, NOTHING)
    check_feasible(constraints, TREE, SCHEMA)
    two = parse_query(SCHEMA, "two").cell_of
    found = estimate(
        evidence, 0, constraints=constraints, edit_rules=[(two == 0, two == 1)],
        passes=data.draw(st.sampled_from([(), ("ends", "two")])),
    )  # fmt: skip
    levels = [counts.dense() for counts in found.counts]
    for level in range(TREE.n_levels - 1):
        np.testing.assert_array_equal(TREE.sum_children(level, levels[level + 1]), levels[level])
    assert all(keeps(levels, constraint) for constraint in linear)


def two_towns(root, variance=1e-3):
    """Prison and college may hold 9 each, but both lie in a town of 10 people."""
    tree = Hierarchy.from_paths([("r", "a"), ("r", "b")], ["nation", "town"])
    schema = Schema({"hhgq": ["household", "nursing", "prison", "college"]})
    towns = {"detailed": np.array([[2, 38, 0, 0], [0, 0, 5, 5]])}
    measured = [{"detailed": variance}, {"detailed": 1.0}]
    evidence = EvidenceInMemory(tree, schema, measured, [{"detailed": np.array([root])}, towns])
    least = np.array([[0, 1, 0, 0], [0, 0, 1, 1]])
    most = np.array([[NO_BOUND, NO_BOUND, 0, 0], [NO_BOUND, 0, NO_BOUND, NO_BOUND]])
    linear = (
        LinearConstraint("total", "town", "total", Sense.EQUAL, np.array([[40], [10]])),
        LinearConstraint("least", "town", "hhgq", Sense.AT_LEAST, least),
        LinearConstraint("most", "town", "hhgq", Sense.AT_MOST, most),
    )
    return evidence, Constraints(linear, np.zeros(4, dtype=bool))


@METHODS
def test_counts_that_no_children_can_have_are_not_chosen(estimate):
    evidence, constraints = two_towns([0, 32, 9, 9])
    check_feasible(constraints, evidence.hierarchy, evidence.schema)
    root, towns = (level.dense() for level in estimate(evidence, 0, constraints=constraints).counts)
    assert root[0, 2:].sum() <= 10
    assert np.abs(root[0] - [0, 32, 9, 9]).sum() == 16  # as near as can be
    np.testing.assert_array_equal(towns.sum(axis=0), root[0])
    np.testing.assert_array_equal(towns.sum(axis=1), [40, 10])


@METHODS
def test_counts_that_can_be_shared_out_are_left_alone(estimate):
    evidence, constraints = two_towns([1, 40, 5, 4])
    found = estimate(evidence, 0, constraints=constraints).counts[0].dense()
    assert found.tolist() == [[1, 40, 5, 4]]


@METHODS
def test_constraints_that_nothing_can_keep_are_named(estimate):
    """Totals by sex and by age differ, and neither tells of the other."""
    tree = Hierarchy.from_paths([("r", "a"), ("r", "b")], ["nation", "town"])
    schema = Schema({"sex": ["f", "m"], "age": ["young", "old"]})
    zeros = [{"detailed": np.zeros((n, 4), dtype=np.int64)} for n in (1, 2)]
    evidence = EvidenceInMemory(tree, schema, [{"detailed": 1.0}] * 2, zeros)
    by_sex = LinearConstraint("sex", "town", "sex", Sense.EQUAL, np.array([[3, 2], [1, 1]]))
    by_age = LinearConstraint("age", "town", "age", Sense.EQUAL, np.array([[3, 3], [1, 1]]))
    constraints = Constraints((by_sex, by_age), np.zeros(4, dtype=bool))
    with pytest.raises(Infeasible, match="'r' on level 'nation'"):
        estimate(evidence, 0, constraints=constraints)
