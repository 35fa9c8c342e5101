"""Off-spine distances and variances of areas against their slow twins."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles.spines import dense_area_variances, distance_by_definition, slow_distances
from strategies import hierarchies, identifiable_variances
from trellis.errors import StructureError
from trellis.model import Hierarchy
from trellis.model.trees.areas import Category
from trellis.numerics.trees import gls as tree_gls
from trellis.numerics.trees.areas import entity_variances
from trellis.planning.spine import distances

GROUPS = Hierarchy.from_paths(
    [("r", "x", leaf) for leaf in "abcd"] + [("r", "y", leaf) for leaf in "ef"]
)


@pytest.mark.parametrize(("inside", "distance"), [("abc", 2), ("abcd", 1), ("ae", 2)])
def test_worked_examples(inside, distance):
    labels = ["k" if leaf in inside else None for leaf in "abcdef"]
    assert distances(GROUPS, labels) == {"k": distance}


def test_whole_tree_and_single_leaf_are_nodes():
    assert distances(GROUPS, ["k"] * 6) == {"k": 1}
    assert distances(GROUPS, ["k", *[None] * 5]) == {"k": 1}


def test_no_entity_and_one_level():
    assert distances(GROUPS, [None] * 6) == {}
    assert distances(Hierarchy.from_paths([("r",)]), ["k"]) == {"k": 1}


@st.composite
def labelled(draw, n_entities=3, **kwargs):
    tree = draw(hierarchies(**kwargs))
    size = tree.sizes[-1]
    one = st.sampled_from([None, *"klm"[:n_entities]])
    return tree, draw(st.lists(one, min_size=size, max_size=size))


@given(labelled())
def test_distances_match_the_recursion_written_out(case):
    tree, labels = case
    assert distances(tree, labels) == slow_distances(tree, labels)


@given(labelled(n_entities=1, max_levels=3, max_children=3))
def test_the_recursion_finds_the_least_number_of_nodes(case):
    tree, labels = case
    if tree.sizes[-1] <= 6 and "k" in labels:
        assert distances(tree, labels)["k"] == distance_by_definition(tree, labels)


@given(labelled(), st.data())
def test_variances_match_dense_least_squares(case, data):
    tree, labels = case
    variance = data.draw(identifiable_variances(tree))
    category = Category.of(labels)
    subtree = tree_gls.variances_up(tree, variance)
    fast = entity_variances(tree, category, subtree)
    slow = dense_area_variances(tree, variance, category)
    if slow is not None:
        np.testing.assert_allclose(fast, slow, rtol=1e-7, atol=1e-7)


@given(hierarchies(), st.data())
def test_nodes_as_areas_have_the_variances_of_nodes(tree, data):
    variance = data.draw(identifiable_variances(tree))
    subtree = tree_gls.variances_up(tree, variance)
    final = tree_gls.variances_down(tree, subtree)
    for level in range(tree.n_levels):
        areas = entity_variances(tree, Category.of_level(tree, level), subtree)
        np.testing.assert_allclose(areas, final[level], rtol=1e-9, atol=1e-9)


def test_unmeasured_siblings_are_refused():
    variance = [np.array([1.0]), np.array([1.0, 1.0]), np.full(6, np.inf)]
    subtree = tree_gls.variances_up(GROUPS, variance)
    with pytest.raises(StructureError, match="cannot be told apart"):
        entity_variances(GROUPS, Category.of(["k", *[None] * 5]), subtree)


@pytest.mark.parametrize(
    ("labels", "words"),
    [(["k"] * 5, "labels 5 leaves"), ([1.5] * 6, "text, or None"), ([""] * 6, "text, or None")],
)
def test_bad_labels(labels, words):
    with pytest.raises(StructureError, match=words):
        distances(GROUPS, labels)


def test_an_entity_without_leaves_is_refused():
    with pytest.raises(StructureError, match="has no leaves"):
        Category(
            "place", np.array(["a", "b"], dtype=np.dtypes.StringDType()), np.zeros(3, np.int32)
        )
    with pytest.raises(StructureError, match="does not have"):
        Category(
            "place", np.array(["a"], dtype=np.dtypes.StringDType()), np.array([0, 1], np.int32)
        )
