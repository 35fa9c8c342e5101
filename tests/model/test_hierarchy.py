"""Hierarchies: built from rows in any order, ragged or not, and refused when they are no tree."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies import hierarchies
from trellis.errors import StructureError
from trellis.model import Hierarchy
from trellis.model.trees.codes import CODE

RAGGED = [("r", "a", "a1"), ("r", "a", "a2"), ("r", "b", "b1"), ("r", "c")]
NAMES = ["nation", "state", "town"]


def leaf_paths(tree: Hierarchy) -> list[tuple[str, ...]]:
    """The rows a hierarchy was made of, walked up from its leaves, one by one."""
    paths = []
    for leaf in range(tree.size(tree.leaf_level)):
        path, node = [], leaf
        for level in reversed(range(tree.n_levels)):
            if not tree.passes_through[level][node]:
                path.append(str(tree.codes(level)[node]))
            if level:
                node = int(tree.parents(level)[node])
        paths.append(tuple(reversed(path)))
    return paths


def assert_same(one: Hierarchy, other: Hierarchy) -> None:
    assert one.level_names == other.level_names
    for a, b in zip(one.node_codes, other.node_codes, strict=True):
        assert a.tolist() == b.tolist()
    for a, b in zip(one.child_start, other.child_start, strict=True):
        assert a.tolist() == b.tolist()
    for a, b in zip(one.passes_through, other.passes_through, strict=True):
        assert a.tolist() == b.tolist()


# -- construction ---------------------------------------------------------------------------------


def test_levels_are_csr_arrays_in_the_order_of_codes():
    tree = Hierarchy.from_paths(
        [("r", "b", "b2"), ("r", "a", "a1"), ("r", "b", "b1"), ("r", "b", "b3")], NAMES
    )
    assert tree.sizes == (1, 2, 4)
    assert tree.codes("town").tolist() == ["a1", "b1", "b2", "b3"]
    assert [start.tolist() for start in tree.child_start] == [[0, 2], [0, 1, 4]]
    assert tree.parents(2).tolist() == [0, 1, 1, 1]
    assert tree.leaf_level == 2
    assert not any(marks.any() for marks in tree.passes_through)


def test_areas_that_end_early_pass_through_with_their_code():
    tree = Hierarchy.from_paths(RAGGED, NAMES)
    assert tree.codes("town").tolist() == ["a1", "a2", "b1", "c"]
    assert tree.passes_through[2].tolist() == [False, False, False, True]
    assert not tree.passes_through[1].any()


def test_areas_may_end_several_levels_early_or_carry_no_code():
    rows = [("r", "a", "a1", "a11"), ("r", "b"), ("r", "c", None, ""), ("r", "d", "d1")]
    tree = Hierarchy.from_paths(rows)
    assert tree.level_names == ("level_0", "level_1", "level_2", "level_3")
    assert tree.codes(3).tolist() == ["a11", "b", "c", "d1"]
    assert tree.passes_through[2].tolist() == [False, True, True, False]
    assert tree.passes_through[3].tolist() == [False, True, True, True]


def test_a_lone_root_is_a_hierarchy():
    tree = Hierarchy.from_paths([("r",)], ["nation"])
    assert tree.sizes == (1,)
    assert tree.sum_up(np.array([[7]]))[0].tolist() == [[7]]


@given(tree=hierarchies(), data=st.data())
def test_order_of_rows_does_not_matter(tree, data):
    rows = data.draw(st.permutations(leaf_paths(tree)))
    assert_same(Hierarchy.from_paths(rows, tree.level_names), tree)


@given(tree=hierarchies(), data=st.data())
def test_columns_in_any_order_give_the_same_tree(tree, data):
    rows = data.draw(st.permutations(leaf_paths(tree)))
    filled = [[*row, *[""] * (tree.n_levels - len(row))] for row in rows]
    columns = [np.array(column, dtype=CODE) for column in zip(*filled, strict=True)]
    assert_same(Hierarchy.from_columns(tree.level_names, columns), tree)


def test_codes_are_text_in_any_alphabet_and_of_any_length():
    codes = ["Ærø", "Żary", "北京", "한글", "🏝️", "a" * 300]
    tree = Hierarchy.from_paths([("r", code) for code in codes])
    assert tree.codes(1).tolist() == sorted(codes)  # by code point, as everywhere


def test_digits_are_not_numbers():
    tree = Hierarchy.from_paths([("0", code) for code in ("10", "9", "09", "1")])
    assert tree.codes(1).tolist() == ["09", "1", "10", "9"]


# -- reading --------------------------------------------------------------------------------------


@given(tree=hierarchies(), seed=st.integers(0, 2**32 - 1))
def test_totals_are_sums_over_all_leaves_below(tree, seed):
    leaves = np.random.default_rng(seed).integers(-50, 50, (tree.sizes[-1], 2))
    below = {}
    for row, values in zip(leaf_paths(tree), leaves, strict=True):
        for depth in range(tree.n_levels):
            key = (depth, row[min(depth, len(row) - 1)])
            below[key] = below.get(key, 0) + values
    for level, totals in enumerate(tree.sum_up(leaves)):
        expected = [below[level, code].tolist() for code in tree.codes(level).tolist()]
        assert totals.tolist() == expected


def test_levels_are_found_by_name_and_position():
    tree = Hierarchy.from_paths(RAGGED, NAMES)
    assert tree.index("state") == tree.index(1) == tree.index(-2) == 1
    assert tree.size("town") == 4
    with pytest.raises(StructureError, match="No level 'county'; there are"):
        tree.index("county")
    with pytest.raises(IndexError):
        tree.index(3)


# -- what is no tree ------------------------------------------------------------------------------


BAD_ROWS = {
    "no rows": ([], None, "empty"),
    "a number as a code": ([("r", 1)], None, "Codes are text; 1 is not"),
    "more codes than names": ([("r", "a")], ["nation"], "1 level names for paths of 2"),
    "a name twice": ([("r", "a")], ["x", "x"], "must be distinct"),
    "no root": ([("", "a")], None, "no code on the first level, 'level_0'"),
    "an empty row": ([("r",), ()], None, "no code on the first level"),
    "two roots": ([("r", "a"), ("s", "b")], None, "2 roots on level 'level_0'"),
    "a gap": ([("r", None, "x")], None, "'x' of level 'level_2' has no code on level 'level_1'"),
    "a leaf twice": ([("r", "a"), ("r", "a")], None, "Leaf 'a' occurs twice"),
    "an early leaf twice": (
        [("r", "a"), ("r", "a"), ("r", "b", "c")], None, "'a' of level 'level_1' occurs twice"
    ),
    "a leaf with areas below": (
        [("r", "a"), ("r", "a", "b")], None, "'a' of level 'level_1' occurs twice"
    ),
    "two parents": (
        [("r", "a", "x"), ("r", "b", "x")], None, "'x' occurs twice on level 'level_2'.* one parent"
    ),
    "two parents further up": (
        [("r", "a", "x", "1"), ("r", "b", "x", "2")], None, "'x' occurs twice on level 'level_2'"
    ),
    "a level that no area reaches": ([("r", "a")], NAMES, "'town' has no areas of its own"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_ROWS)
def test_rows_that_are_no_tree_are_refused(case):
    rows, names, message = BAD_ROWS[case]
    with pytest.raises(StructureError, match=message):
        Hierarchy.from_paths(rows, names)


def codes(*values: str) -> np.ndarray:
    return np.array(values, dtype=CODE)


def test_columns_must_match_their_names_and_each_other():
    with pytest.raises(StructureError, match="one column for each level name"):
        Hierarchy.from_columns(["x"], [codes("r"), codes("a")])
    with pytest.raises(StructureError, match="all of one length"):
        Hierarchy.from_columns(["x", "y"], [codes("r"), codes("a", "b")])
    with pytest.raises(StructureError, match="empty"):
        Hierarchy.from_columns([], [])
    with pytest.raises(StructureError, match="empty"):
        Hierarchy.from_columns(["x"], [codes()])


def starts(*values: list[int]) -> tuple[np.ndarray, ...]:
    return tuple(np.array(v) for v in values)


def marks(*values: list[int]) -> tuple[np.ndarray, ...]:
    return tuple(np.array(v, dtype=bool) for v in values)


BAD_FIELDS = {
    "no levels": ({"level_names": ()}, "at least one"),
    "a row pointer too few": ({"child_start": starts([0, 3])}, "one child_start for each level"),
    "codes of a level missing": (
        {"node_codes": (codes("r"), codes("a", "b", "c"))}, "codes and marks for each level"
    ),
    "marks of a level missing": (
        {"passes_through": marks([0], [0, 0, 0])}, "codes and marks for each level"
    ),
    "marks of a node missing": (
        {"passes_through": marks([0], [0, 0], [0, 0, 0, 1])}, "'state' needs codes and marks for 3"
    ),
    "a row pointer that begins late": (
        {"child_start": starts([1, 3], [0, 2, 3, 4])}, "'nation' must hold 0 and 1 ends"
    ),
    "an area without children": (
        {"child_start": starts([0, 3], [0, 2, 4, 4])}, r"Nodes \[2\] of level 'state' have no child"
    ),
    "a row pointer that goes back": (
        {"child_start": starts([0, 3], [0, 4, 3, 4])}, r"Nodes \[1\] of level 'state'"
    ),
    "children without codes": (
        {"child_start": starts([0, 3], [0, 2, 3, 5])}, "'town' needs codes and marks for 5"
    ),
    "a root that passes through": (
        {"passes_through": marks([1], [0, 0, 0], [0, 0, 0, 1])}, "'nation' has no areas of its own"
    ),
    "a pass-through node with siblings": (
        {"passes_through": marks([0], [0, 0, 0], [1, 0, 0, 1])}, "pass-through node of level 'town'"
    ),
    "a pass-through node with a code of its own": (
        {"passes_through": marks([0], [0, 0, 0], [0, 0, 1, 1])}, "pass-through node of level 'town'"
    ),
    "an area below a pass-through node": (
        {"passes_through": marks([0], [0, 0, 1], [0, 0, 0, 0])}, "pass-through node of level 'stat"
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_FIELDS)
def test_arrays_that_are_no_tree_are_refused(case):
    tree = Hierarchy.from_paths(RAGGED, NAMES)
    fields, message = BAD_FIELDS[case]
    with pytest.raises(StructureError, match=message):
        replace(tree, **fields)


def test_a_real_area_below_a_pass_through_node_is_refused():
    """Here the upper node is a proper only child with its parent's code."""
    tree = Hierarchy.from_paths([("r", "a", "a1", "x"), ("r", "b")])
    lower = tuple(tree.passes_through[:3]) + marks([0, 0])
    with pytest.raises(StructureError, match="'level_3', or one below such a node"):
        replace(tree, passes_through=lower)


def test_unordered_codes_of_digits_are_compared_as_text():
    """01 and 1 are one number and two codes."""
    tree = [np.array(["r"], CODE), np.array(["01", "2", "1"], CODE)]
    marks = [np.zeros(n, dtype=bool) for n in (1, 3)]
    made = Hierarchy(("a", "b"), tuple(tree), (np.array([0, 3]),), tuple(marks))
    assert made.codes("b").tolist() == ["01", "2", "1"]
    tree[1] = np.array(["2", "1", "2"], CODE)
    with pytest.raises(StructureError, match="'2' occurs twice"):
        Hierarchy(("a", "b"), tuple(tree), (np.array([0, 3]),), tuple(marks))
