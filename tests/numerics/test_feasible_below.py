"""What areas can hold, beside every way to share out."""

from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from oracles.feasible_below import shared_out, slow_can_hold
from trellis.model import Hierarchy, Schema
from trellis.model.tables.carried_bounds import Range, StatedRange, carried_bounds
from trellis.model.tables.queries import is_finer, parse_query, refinement
from trellis.model.tables.schema import Recode
from trellis.numerics.feasibility.feasible_below import FeasibleBelow

RECODES = {
    "low": Recode("a", {"one": ["1"], "more": ["2", "3"]}),
    "high": Recode("a", {"less": ["1", "2"], "three": ["3"]}),
}
SCHEMA = Schema({"a": ["1", "2", "3"]}, RECODES)
QUERIES = {name: parse_query(SCHEMA, name) for name in ("total", "a", "low", "high")}
TREE = Hierarchy.from_paths(
    [("r", "s", "s1"), ("r", "s", "s2"), ("r", "t", "t1"), ("r", "t", "t2")],
    ("nation", "state", "town"),
)
GROUPS = [[0, 0, 1, 1], [0, 0, -1, -1], [0, -1, 1, 1]]
NOTHING = np.zeros(3, dtype=bool)


@st.composite
def worlds(draw):
    """Counts by level, and ranges around some of their answers, also of groups of siblings."""
    leaves = np.array(draw(st.lists(st.integers(0, 2), min_size=12, max_size=12))).reshape(4, 3)
    counts = TREE.sum_up(leaves)
    stated = [[] for _ in TREE.level_names]
    for _ in range(draw(st.integers(1, 5))):
        level = draw(st.sampled_from([0, 1, 2, 2]))
        query = QUERIES[draw(st.sampled_from(list(QUERIES)))]
        answer, group_of = query.answer(counts[level]), None
        if level == 2 and draw(st.booleans()):
            group_of = np.array(draw(st.sampled_from(GROUPS)))
            member = group_of >= 0
            grouped = np.zeros((2, query.n_cells), dtype=np.int64)
            np.add.at(grouped, group_of[member], answer[member])
            answer = grouped
        below, above = (
            np.array(draw(st.lists(st.sampled_from([0, 0, 1, 9]), min_size=n, max_size=n)))
            for n in (answer.size, answer.size)
        )
        lower = np.maximum(answer - below.reshape(answer.shape), 0).astype(np.float64)
        upper = answer + np.where(above == 9, np.inf, above).reshape(answer.shape)
        stated[level].append(StatedRange(query.name, Range(lower, upper), group_of))
    return counts, stated


@st.composite
def near(draw, counts):
    """Some counts with a few units moved elsewhere."""
    found = counts.copy()
    for _ in range(draw(st.integers(0, 3))):
        giver, taker = (draw(st.integers(0, counts.size - 1)) for _ in range(2))
        if found.flat[giver]:
            found.flat[giver] -= 1
            found.flat[taker] += 1
    return found


def feasible_below(stated, impossible=NOTHING):
    named = {s.query: QUERIES[s.query] for level in stated for s in level}
    carried = carried_bounds(TREE, named, stated, impossible)
    return FeasibleBelow.of(TREE, SCHEMA, named, carried, stated, impossible)


def within(below, level, area, held):
    for name, found in below.ranges[level].items():
        answer = np.zeros(found.lower.shape[1])
        np.add.at(answer, below.image[name], held)
        if not ((found.lower[area] <= answer) & (answer <= found.upper[area])).all():
            return False
    return True


@settings(max_examples=150)
@given(world=worlds(), data=st.data())
def test_areas_can_hold_what_can_be_shared_out(world, data):
    counts, stated = world
    impossible = (counts[0][0] == 0) & data.draw(st.booleans())
    below = feasible_below(stated, impossible)
    slow = slow_can_hold(TREE, QUERIES, below.kinds, stated, impossible)
    for _ in range(12):
        level, area = data.draw(st.sampled_from([(0, 0), (1, 0), (1, 1), (2, 3)]))
        held = data.draw(near(below.kinds.answer(counts[level][area])))
        assume(np.isin(np.flatnonzero(held), below.possible).all())
        fast = within(below, level, area, held) and below.can_hold(level, area, held)
        assert fast == slow(level, area, tuple(held.tolist()))


@settings(max_examples=60)
@given(world=worlds(), data=st.data())
def test_the_nearest_are_the_nearest(world, data):
    counts, stated = world
    below = feasible_below(stated)
    slow = slow_can_hold(TREE, QUERIES, below.kinds, stated, NOTHING)
    parent = data.draw(near(below.kinds.answer(counts[1][1])))
    wanted = data.draw(near(below.kinds.answer(counts[2][2:])))
    found = below.nearest(2, 2, 4, wanted, parent)
    possible = [
        np.abs(np.array(parts) - wanted).sum()
        for parts in shared_out(parent.tolist(), 2)
        if slow.shares(1, 1, parts)
    ]
    assert (found is None) == (not possible)
    if found is not None:
        np.testing.assert_array_equal(found.sum(axis=0), parent)
        assert np.abs(found - wanted).sum() == min(possible)


def test_boxes_alone_leave_nothing_to_ask():
    at_most = StatedRange("a", Range(np.zeros((4, 3)), np.arange(12.0).reshape(4, 3)))
    below = feasible_below([[], [], [at_most]])
    assert not any(flags.any() for flags in (*below.written_out, *below.asks))
    assert not below.is_needed


def test_unions_are_asked_for_where_sums_are_bounded():
    exact = StatedRange("total", Range(*np.array([[[2.0], [3], [4], [5]]] * 2)))
    most = np.full((4, 2), np.inf)
    most[1:, 1] = 0  # nobody of the second kind but in s1
    closed = StatedRange("low", Range(np.zeros((4, 2)), most))
    below = feasible_below([[], [], [exact, closed]])
    assert [flags.tolist() for flags in below.written_out[1:]] == [
        [True, False],
        [True] + [False] * 3,
    ]
    assert below.asks[0].tolist() == [True]
    assert below.asks[1].tolist() == [True, False]
    assert below.is_needed
    assert below.can_hold(1, 0, np.array([4, 1]))
    assert not below.can_hold(1, 0, np.array([2, 3]))


def test_groups_are_looked_at():
    """Two people in s1, by a bound on a group: all who may be of kinds 2 and 3 in s."""
    group = StatedRange("total", Range(*np.array([[[2.0], [9]]] * 2)), np.array([0, -1, 1, 1]))
    most = np.array([[9.0, 2, 2], [9, 0, 0], [9, 9, 9], [9, 9, 9]])
    below = feasible_below([[], [], [group, StatedRange("a", Range(np.zeros((4, 3)), most))]])
    assert below.can_hold(1, 0, np.array([4, 1, 1]))
    assert not below.can_hold(1, 0, np.array([4, 2, 1]))


def test_a_root_has_no_sum_to_keep():
    exact = StatedRange("total", Range(*np.full((2, 4, 1), 3.0)))
    odd = StatedRange("low", Range(np.zeros((4, 2)), np.full((4, 2), 2.0)))
    below = feasible_below([[], [], [exact, odd]])
    found = below.nearest(0, 0, 1, np.array([[12, 1]]), None)
    assert found.tolist() == [[8, 4]]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["total"], "total"),
        (["total", "a"], "a"),
        (["a", "b"], "a * b"),
        (["b * a", "a"], "b * a"),
        (["low", "a"], "a"),
        (["low * b", "high"], "a * b"),
        (["high", "b"], "high * b"),
    ],
)
def test_kinds_tell_apart_what_any_query_does(names, expected):
    schema = Schema({"a": ["1", "2", "3"], "b": ["x", "y"], "c": ["p", "q"]}, RECODES)
    queries = [parse_query(schema, name) for name in names]
    found = refinement(schema, queries)
    assert found.name == expected
    assert all(is_finer(found, query) for query in queries)


def test_every_way_to_share_out_is_tried():
    ways = list(shared_out((2, 1), 2))
    assert len(ways) == len(set(ways)) == 6
    assert all(np.array(parts).sum(axis=0).tolist() == [2, 1] for parts in ways)
    assert len(list(product(range(3), range(2)))) == len(ways)
