"""Bounds carried up the hierarchy, beside the same one number at a time."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from histogram_release_worlds import SCHEMA, TREE
from oracles.carried_bounds import slow_carried_bounds
from trellis.model.tables.carried_bounds import Range, StatedRange, carried_bounds
from trellis.model.tables.constraints import LinearConstraint, Sense
from trellis.model.tables.queries import parse_query

QUERIES = {name: parse_query(SCHEMA, name) for name in ("total", "sex", "adult", "adult * sex")}
PARTS = np.array([0, 0, 1, -1])


def stated_about(rng, leaves, level):
    """Ranges of some queries, single and grouped, that these leaves keep."""
    out = []
    for name, query in QUERIES.items():
        answer = query.answer(TREE.sum_up(leaves)[level]).astype(float)
        if level == TREE.leaf_level and rng.random() < 0.3:
            both = np.array([answer[group == PARTS].sum(axis=0) for group in range(2)])
            out.append(StatedRange(name, _around(rng, both), PARTS))
        if rng.random() < 0.6:
            out.append(StatedRange(name, _around(rng, answer)))
    return out


def _around(rng, answer):
    free_below, free_above = rng.random((2, *answer.shape)) < 0.3
    slack = rng.integers(0, 3, (2, *answer.shape))
    return Range(
        np.where(free_below, 0.0, np.maximum(answer - slack[0], 0.0)),
        np.where(free_above, np.inf, answer + slack[1]),
    )


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_they_match_the_slow_twin_and_leave_the_counts_possible(seed):
    rng = np.random.default_rng(seed)
    impossible = rng.random(SCHEMA.n_cells) < 0.2
    leaves = rng.poisson(1.5, (TREE.sizes[-1], SCHEMA.n_cells)) * ~impossible
    stated = [stated_about(rng, leaves, level) for level in range(TREE.n_levels)]
    fast = carried_bounds(TREE, QUERIES, stated, impossible)
    slow = slow_carried_bounds(TREE, QUERIES, stated, impossible)
    for level, (ranges, boxes) in enumerate(zip(fast, slow, strict=True)):
        assert set(ranges) == set(boxes)
        for name, found in ranges.items():
            np.testing.assert_array_equal(
                np.stack([found.lower, found.upper], axis=-1), np.array(boxes[name])
            )
            answer = QUERIES[name].answer(TREE.sum_up(leaves)[level])
            assert ((found.lower <= answer) & (answer <= found.upper)).all()


def test_an_open_cell_holds_what_the_closed_ones_cannot():
    """10 in all and at most 3 of f: at least 7 of m, though m has no bound of its own."""
    size = TREE.size(0)
    stated = [
        [
            StatedRange("total", Range(np.full((size, 1), 10.0), np.full((size, 1), np.inf))),
            StatedRange("sex", Range(np.zeros((size, 2)), np.array([[3.0, np.inf]]))),
        ],
        *([] for _ in range(TREE.n_levels - 1)),
    ]
    carried = carried_bounds(TREE, QUERIES, stated, np.zeros(SCHEMA.n_cells, dtype=bool))
    assert carried[0]["sex"].lower.tolist() == [[0, 7]]
    assert carried[1:] == [{}, {}]


def test_members_of_a_group_and_their_siblings_bound_the_parent():
    """At most 9, 1 and 2 in two groups and outside are at most 12; members hold at least 5."""
    tops = Range(np.array([[2.0], [3], [0], [0]]), np.array([[np.inf], [np.inf], [2], [2]]))
    parts = Range(np.zeros((2, 1)), np.array([[9.0], [1]]))
    stated = [[] for _ in range(TREE.n_levels)]
    stated[-1] = [StatedRange("total", tops), StatedRange("total", parts, PARTS)]
    carried = carried_bounds(TREE, QUERIES, stated, np.zeros(SCHEMA.n_cells, dtype=bool))
    assert carried[0]["total"].lower.tolist() == [[5]]
    assert carried[0]["total"].upper.tolist() == [[12]]


@pytest.mark.parametrize(
    ("sense", "lower", "upper"),
    [("=", [4, 0], [4, np.inf]), ("<=", [0, 0], [4, np.inf]), (">=", [4, 0], [np.inf, np.inf])],
)
def test_a_constraint_is_a_range(sense, lower, upper):
    bound = np.array([[4, -1]])
    rule = LinearConstraint("rule", TREE.level_names[0], "sex", Sense(sense), bound)
    stated = StatedRange.of(rule, QUERIES["sex"])
    assert stated.range.lower.tolist() == [lower]
    assert stated.range.upper.tolist() == [upper]
