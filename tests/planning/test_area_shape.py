"""Variances of areas on trees with classes of noise, and gradients, against dense matrices."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from oracles.spines import dense_area_slopes, dense_area_variances
from strategies import hierarchies
from trellis.errors import StructureError
from trellis.model import Hierarchy
from trellis.model.trees.areas import Category
from trellis.planning.forecast.area_shape import AreaShape


@st.composite
def noisy_trees(draw):
    """A tree, classes of its nodes, a precision for each class, exact levels, areas."""
    tree = draw(hierarchies(max_levels=4, max_children=3))
    n_exact = draw(st.integers(0, tree.n_levels - 1))
    positive = st.floats(0.05, 20)
    precision, classes = [], []
    for level, size in enumerate(tree.sizes):
        of_leaves = level == tree.n_levels - 1
        own = draw(
            st.lists(positive if of_leaves else positive | st.just(0.0), min_size=2, max_size=2)
        )
        classes.append(
            np.array(draw(st.lists(st.integers(0, 1), min_size=size, max_size=size)))
            + len(precision)
        )
        precision += own
    labels = draw(
        st.lists(
            st.sampled_from(["a", "b", "c", None]), min_size=tree.sizes[-1], max_size=tree.sizes[-1]
        )
    )
    assume(any(label is not None for label in labels))
    return tree, classes, np.array(precision), range(n_exact), Category.of(labels)


def variances_of(tree, classes, precision, exact):
    with np.errstate(divide="ignore"):
        levels = [1 / precision[of] for of in classes]
    return [np.zeros_like(v) if level in exact else v for level, v in enumerate(levels)]


@settings(max_examples=150, deadline=None)
@given(noisy_trees())
def test_variances_and_gradients_are_those_of_dense_matrices(world):
    tree, classes, precision, exact, category = world
    own = variances_of(tree, classes, precision, exact)
    shape = AreaShape.of(tree, classes, [category.member])
    solved = shape.solve(precision, exact)
    slow = dense_area_variances(tree, own, category)
    np.testing.assert_allclose(solved.variance, slow, rtol=1e-8, atol=1e-8)
    fast = shape.gradients(solved, np.arange(category.size), np.ones(category.size))
    slopes = dense_area_slopes(tree, own, classes, category)
    kept = [k for k in range(slopes.shape[1]) if not any(k in classes[level] for level in exact)]
    np.testing.assert_allclose(fast[:, kept], slopes[:, kept], rtol=1e-7, atol=1e-7)


def test_outputs_are_weighted_sums():
    tree = Hierarchy.from_paths([("r", "x", b) for b in "abc"] + [("r", "y", b) for b in "de"])
    category = Category.of(["p", "q", "p", "q", None])
    classes = [np.full(n, level) for level, n in enumerate(tree.sizes)]
    shape = AreaShape.of(tree, classes, [category.member])
    solved = shape.solve(np.array([1.0, 2.0, 3.0]))
    single = shape.gradients(solved, np.array([0, 1]), np.ones(2))
    both = shape.gradients(solved, np.array([0, 0]), np.array([2.0, 5.0]))
    np.testing.assert_allclose(both[0], 2 * single[0] + 5 * single[1])
    only = shape.gradients(solved, np.array([-1, 0]), np.ones(2))
    np.testing.assert_allclose(only[0], single[1])


def test_alike_leaves_are_one_entry():
    tree = Hierarchy.from_paths([("r", "x", str(i)) for i in range(50)] + [("r", "y", "z")])
    classes = [np.zeros(1, int), np.ones(2, int), np.full(51, 2)]
    member = np.where(np.arange(51) < 20, 0, -1)
    shape = AreaShape.of(tree, classes, [member])
    assert shape.nodes[-1].times.tolist() == [50, 1]
    assert shape.pairs[-1].times.tolist() == [20]


def test_an_unmeasured_only_child_takes_what_its_parent_has():
    """As after bypassing: the leaf has no share of its own."""
    tree = Hierarchy.from_paths([("r", "x", "a"), ("r", "y", "b"), ("r", "y", "c")])
    classes = [np.zeros(1, int), np.array([1, 1]), np.array([3, 2, 2])]
    precision = np.array([0.5, 1.0, 2.0, 0.0])
    category = Category.of(["p", "p", None])
    shape = AreaShape.of(tree, classes, [category.member])
    solved = shape.solve(precision)
    own = variances_of(tree, classes, precision, ())
    np.testing.assert_allclose(solved.variance, dense_area_variances(tree, own, category))
    fast = shape.gradients(solved, np.zeros(1, int), np.ones(1))
    slow = dense_area_slopes(tree, own, classes, category)
    np.testing.assert_allclose(fast[:, :3], slow[:, :3])


def test_unmeasured_siblings_are_refused():
    tree = Hierarchy.from_paths([("r", "a"), ("r", "b")])
    shape = AreaShape.of(tree, [np.zeros(1, int), np.array([1, 2])], [np.array([0, -1])])
    with pytest.raises(StructureError, match="has siblings"):
        shape.solve(np.array([1.0, 1.0, 0.0]))
