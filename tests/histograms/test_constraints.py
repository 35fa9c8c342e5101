"""Bounds from public tables: reading, what they imply, and what cannot be kept."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from histogram_release_worlds import SCHEMA, TREE, histogram_plan
from trellis.errors import InputError, SpecError
from trellis.ingest.public.constraints import BoundTable, facility_bounds, read_bounds
from trellis.model import Hierarchy, Schema
from trellis.model.tables.constraints import Constraints, LinearConstraint, Sense
from trellis.model.tables.queries import parse_query
from trellis.model.tables.schema import Recode
from trellis.numerics.feasibility.clashes import clashing_rows
from trellis.planning.feasibility.constraints import (
    check_feasible,
    check_program_size,
    implied_bounds,
)
from trellis.storage.constraints import read_constraints, write_constraints

INF = np.inf
NOTHING = np.zeros(SCHEMA.n_cells, dtype=bool)


def constraint(label, level, query, sense, bound, group_of=None):
    groups = None if group_of is None else np.array(group_of)
    return LinearConstraint(label, level, query, Sense(sense), np.array(bound), groups)


def table(rows, query="sex", value="n", level="town", group=None, **columns):
    names = ["town", *([] if query == "total" else query.split(" * ")), value]
    names += [] if group is None else [group]
    source = pa.table({name: [row[i] for row in rows] for i, name in enumerate(names)})
    return BoundTable("homes", source, level, "town", query, value, group=group, **columns)


# -- reading --------------------------------------------------------------------------------------


def test_bounds_are_put_where_the_table_says():
    bounds = read_bounds(table([("a1", "m", 3), ("c", "f", 0)]), Sense.AT_LEAST, TREE, SCHEMA)
    assert bounds.bound.tolist() == [[-1, 3], [-1, -1], [-1, -1], [0, -1]]
    assert (bounds.level, bounds.query, bounds.sense) == ("town", "sex", ">=")


def test_groups_of_children():
    rows = [("a1", 7, "coast"), ("a2", 7, "coast"), ("b1", 4, "inland")]
    bounds = read_bounds(table(rows, "total", group="part"), Sense.EQUAL, TREE, SCHEMA)
    assert bounds.group_of.tolist() == [0, 0, 1, -1]
    assert bounds.bound.tolist() == [[7], [4]]


@pytest.mark.parametrize(
    ("rows", "wish", "message"),
    [
        ([("nowhere", "m", 3)], {}, "'nowhere', which is not an area of level 'town'"),
        ([("a1", "x", 3)], {}, "'x' in column 'sex'"),
        ([("a1", None, 3)], {}, "None in column 'sex'"),
        ([("a1", "m", -3)], {}, "whole number"),
        ([("a1", "m", 0.5)], {}, "whole number"),
        ([("a1", "m", 3), ("a1", "m", 3)], {}, "two bounds"),
        ([("a1", 3, "x"), ("b1", 3, "x")], {"query": "total", "group": "part"}, "two parents"),
        ([("a1", 3, "x"), ("a1", 3, "y")], {"query": "total", "group": "part"}, "two groups"),
        ([("a1", 3, "x"), ("a2", 4, "x")], {"query": "total", "group": "part"}, "two bounds"),
        ([("a1", 3, None)], {"query": "total", "group": "part"}, "empty rows"),
        ([("r", 3, "x")], {"query": "total", "group": "part", "level": "nation"}, "no siblings"),
    ],
)
def test_bad_table_is_refused(rows, wish, message):
    with pytest.raises(InputError, match=message):
        read_bounds(table(rows, **wish), Sense.EQUAL, TREE, SCHEMA)


def test_facilities():
    """At least one person in each, none where there is none, and the example of the notes."""
    one, none = facility_bounds(table([("a1", "m", 2)]), ("f",), TREE, SCHEMA)
    assert one.bound.tolist() == [[0, 2], [0, 0], [0, 0], [0, 0]]
    assert none.bound.tolist() == [[-1, -1], [-1, 0], [-1, 0], [-1, 0]]
    with pytest.raises(InputError, match="open_to_all"):
        facility_bounds(table([("a1", "m", 2)]), ("x",), TREE, SCHEMA)
    with pytest.raises(InputError, match="one factor"):
        facility_bounds(table([("a1", 2)], "total"), (), TREE, SCHEMA)


# -- what follows ---------------------------------------------------------------------------------


def test_an_exact_total_leaves_this_much_for_each_facility():
    """5 people, facilities [1, 2, 0, 1, 0]: between 1 and 2, 2 and 3, none, 1 and 2, none."""
    schema = Schema({"type": list("abcde")})
    tree = Hierarchy.from_paths([("r",)], ["area"])
    facilities = np.array([[1, 2, 0, 1, 0]])
    linear = (
        constraint("one each", "area", "type", ">=", facilities),
        constraint("none", "area", "type", "<=", np.where(facilities == 0, 0, -1)),
        constraint("total", "area", "total", "=", [[5]]),
    )
    box = implied_bounds(Constraints(linear, np.zeros(5, bool)), tree, schema)[0]["type"]
    assert box.lower.tolist() == [[1, 2, 0, 1, 0]]
    assert box.upper.tolist() == [[2, 3, 0, 2, 0]]


def test_bounds_add_up_the_hierarchy():
    least = constraint("least", "town", "sex", ">=", [[1, 2], [3, -1], [-1, -1], [4, 0]])
    most = constraint("most", "town", "sex", "<=", [[5, 6], [7, -1], [8, 9], [9, 9]])
    boxes = implied_bounds(Constraints((least, most), NOTHING), TREE, SCHEMA)
    assert boxes[1]["sex"].lower.tolist() == [[4, 2], [0, 0], [4, 0]]
    assert boxes[1]["sex"].upper.tolist() == [[12, INF], [8, 9], [9, 9]]
    assert boxes[0]["sex"].lower.tolist() == [[8, 2]]
    assert boxes[0]["sex"].upper.tolist() == [[29, INF]]


def test_groups_and_the_rest_add_up():
    group = constraint("part", "town", "total", ">=", [[9]], [0, 0, -1, -1])
    single = constraint("least", "town", "total", ">=", [[2], [-1], [1], [-1]])
    boxes = implied_bounds(Constraints((group, single), NOTHING), TREE, SCHEMA)
    assert boxes[1]["total"].lower.tolist() == [[9], [1], [0]]


@given(st.data())
def test_true_counts_stay_possible(data):
    """What is implied by bounds that some counts keep is kept by these counts, on every level."""
    leaves = np.array(data.draw(st.lists(st.integers(0, 6), min_size=32, max_size=32))).reshape(
        4, 8
    )
    linear = []
    for query, level in (("sex", "town"), ("total", "state"), ("adult * sex", "town")):
        parsed = parse_query(SCHEMA, query)
        answer = parsed.answer(TREE.sum_up(leaves)[TREE.index(level)])
        slack = data.draw(st.integers(0, 3))
        linear.append(constraint(f"{query} >=", level, query, ">=", np.maximum(answer - slack, 0)))
        linear.append(constraint(f"{query} <=", level, query, "<=", answer + slack))
    stated = Constraints(tuple(linear), NOTHING)
    check_feasible(stated, TREE, SCHEMA)
    for level, boxes in enumerate(implied_bounds(stated, TREE, SCHEMA)):
        for query, box in boxes.items():
            answer = parse_query(SCHEMA, query).answer(TREE.sum_up(leaves)[level])
            assert (box.lower <= answer).all()
            assert (answer <= box.upper).all()


# -- what cannot be kept ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("linear", "named"),
    [
        (
            [constraint("least", "town", "sex", ">=", [[3, -1], [4, -1], [9, -1], [-1, -1]]),
             constraint("most", "state", "sex", "<=", [[6, -1], [-1, -1], [-1, -1]])],
            ["'a' of level 'state'", "These 3 clash", "most (f in 'a' <= 6)", "at least 3",
             "at least 4"],
        ),
        (
            [constraint("least", "town", "sex", ">=", [[3, 3], [-1, -1], [-1, -1], [-1, -1]]),
             constraint("all", "town", "total", "=", [[5], [-1], [-1], [-1]])],
            ["'a1' of level 'town'", "These 3 clash", "all (the total in 'a1' = 5)"],
        ),
        (
            [constraint("least", "town", "sex", ">=", [[3, -1], [4, -1], [9, -1], [-1, -1]]),
             constraint("most", "nation", "total", "<=", [[10]])],
            ["'r' of level 'nation'", "most (the total in 'r' <= 10)"],
        ),
        (
            [constraint("part", "town", "total", ">=", [[9]], [0, 0, -1, -1]),
             constraint("most", "town", "total", "<=", [[4], [4], [-1], [-1]])],
            ["'a' of level 'state'", "part"],
        ),
        (
            [constraint("part", "state", "total", "<=", [[3]], [0, 0, -1]),
             constraint("least", "state", "total", ">=", [[2], [2], [-1]])],
            ["'r' of level 'nation'", "These 3 clash", "part", "least 2 of the total in 'a'",
             "least 2 of the total in 'b'"],
        ),
        (
            [constraint("by sex", "town", "sex", "=", [[3, 3], [-1, -1], [-1, -1], [-1, -1]]),
             constraint("by age", "town", "age", "=", [[1, 1, 1, 1]] + [[-1] * 4] * 3)],
            ["'a1' of level 'town'", "by sex (f in 'a1' = 3)", "by age (0 in 'a1' = 1)"],
        ),
        (
            [constraint("by sex", "town", "sex", "=", [[3, 3], [3, 3], [-1, -1], [-1, -1]]),
             constraint("by age", "nation", "age", "<=", [[2, 2, 2, 2]])],
            ["'r' of level 'nation'", "by age (0 in 'r' <= 2)", "at least 6 of f in 'a'"],
        ),
        (
            [constraint("full", "town", "total", "=", [[5], [9], [0], [0]]),
             constraint("shut", "town", "age", "<=", [[-1] * 4, [-1, 0, 0, -1]] + [[-1] * 4] * 2),
             constraint("some", "nation", "age", ">=", [[-1, 3, 3, -1]])],
            ["'r' of level 'nation'", "some (1 in 'r' >= 3)", "some (2 in 'r' >= 3)",
             "0 of 1 in other areas of 'r'", "full (the total in 'a1' = 5)"],
        ),
    ],
    ids=["parent", "queries", "grandparent", "group", "members", "apart", "below", "union"],
)  # fmt: skip
def test_the_fewest_that_clash_are_named(linear, named):
    with pytest.raises(SpecError) as caught:
        check_feasible(Constraints(tuple(linear), NOTHING), TREE, SCHEMA)
    for words in named:
        assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_groups_that_clash_with_nothing_else_are_named():
    """Leaves with no bound of their own, only as members of groups."""
    ages = constraint("ages", "town", "age", "=", [[1, 0, 0, 0]], [0, 0, -1, -1])
    sexes = constraint("sexes", "town", "sex", "=", [[3, 3]], [0, 0, -1, -1])
    with pytest.raises(SpecError, match=r"'a' of level 'state'.*sexes"):
        check_feasible(Constraints((ages, sexes), NOTHING), TREE, SCHEMA)


def test_ranges_that_cross_by_far_are_refused():
    """Many queries would sharpen crossed ranges until they overflow."""
    categories = [str(i) for i in range(40)]
    halves = {"l": categories[:20], "u": categories[20:]}
    fives = {f"g{i}": categories[5 * i : 5 * i + 5] for i in range(8)}
    schema = Schema(
        {"a": categories, "b": ["x", "y", "z"], "c": ["p", "q"]},
        {"h": Recode("a", halves), "q": Recode("a", fives)},
    )
    tree = Hierarchy.from_paths([("r", "s", "t")], ["nation", "state", "town"])
    truth = np.random.default_rng(0).poisson(2, (1, schema.n_cells))
    linear = []
    for name in ("total", "h", "q", "a", "a * b", "detailed", "h * b", "q * b * c"):
        bound = parse_query(schema, name).answer(truth)
        bound[0, 0] += len(linear)
        linear.append(LinearConstraint(name, "town", name, Sense.EQUAL, bound))
    with pytest.raises(SpecError, match="clash"):
        check_feasible(Constraints(tuple(linear), np.zeros(240, dtype=bool)), tree, schema)


def test_programs_too_large_for_memory_are_refused():
    most = constraint("most", "town", "sex", "<=", [[5, 5]] + [[0, 9]] * 3)
    by_age = constraint("by age", "town", "age", "<=", [[1, 2, 3, 4]] * 4)
    both = Constraints((most, by_age), NOTHING)
    with pytest.raises(SpecError, match="8 areas x 8 cells of 'age \\* sex'"):
        check_program_size(both, TREE, SCHEMA, (), 50_000)
    check_program_size(both, TREE, SCHEMA, (), 10**6)
    check_program_size(both, TREE, SCHEMA, (), None)


def test_exact_totals_count_where_more_than_one_cell_is_open():
    """b1, c and a2 hold one sex alone, which their totals fix."""
    most = Constraints((constraint("most", "town", "sex", "<=", [[5, 5]] + [[0, 9]] * 3),), NOTHING)
    check_program_size(most, TREE, SCHEMA, (), 1)
    with pytest.raises(SpecError, match="3 areas x 2 cells of 'sex'"):
        check_program_size(most, TREE, SCHEMA, ("town",), 5_000)


def test_structural_zeros_clash_too():
    impossible = np.array([sex == "f" for _, sex in SCHEMA.cells()])
    least = constraint("least", "town", "sex", ">=", [[3, -1]] + [[-1, -1]] * 3)
    with pytest.raises(SpecError, match="structural zeros"):
        check_feasible(Constraints((least,), impossible), TREE, SCHEMA)


def test_clashing_rows_are_minimal():
    matrix = csr_array(np.array([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]))
    lower, upper = np.array([0, 3, 4, 0.0]), np.array([6, INF, INF, 9])
    assert clashing_rows(matrix, lower, upper, range(4)) == [0, 1, 2]
    assert clashing_rows(matrix, lower, np.array([7, INF, INF, 9]), range(4)) == []


# -- on disk --------------------------------------------------------------------------------------


def test_constraints_survive_the_run_folder(tmp_path):
    plan = histogram_plan(structural_zeros=("age = 0",))
    linear = (
        constraint("least", "town", "sex", ">=", [[1, 2], [3, -1], [-1, -1], [4, 0]]),
        constraint("part", "town", "total", "=", [[9], [4]], [0, 0, 1, -1]),
    )
    write_constraints(tmp_path, Constraints(linear, NOTHING))
    read = read_constraints(tmp_path, plan, TREE)
    assert read.impossible.tolist() == [age == "0" for age, _ in SCHEMA.cells()]
    for mine, theirs in zip(linear, read.linear, strict=True):
        assert (mine.label, mine.level, mine.query, mine.sense) == (
            theirs.label, theirs.level, theirs.query, theirs.sense,
        )  # fmt: skip
        np.testing.assert_array_equal(mine.bound, theirs.bound)
    assert read.linear[1].group_of.tolist() == [0, 0, 1, -1]
    write_constraints(tmp_path / "none", Constraints((), NOTHING))
    assert not read_constraints(tmp_path / "none", plan, TREE).linear
