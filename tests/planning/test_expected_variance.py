"""Variances as functions of budgets: against one large matrix, and their derivatives."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from oracles.query_gls import dense_query_variances
from strategies import hierarchies
from trellis.model import Schema
from trellis.model.queries import parse_query
from trellis.model.schema import Recode
from trellis.planning.choose import Scene
from trellis.planning.components import components
from trellis.planning.expected_variance import noise_variance
from trellis.planning.spine_shape import SpineShape
from trellis.privacy.mechanisms import mechanism
from trellis.privacy.neighbours import Neighbours
from trellis.privacy.protection import Protection

PROTECTION = Protection("person", Neighbours.ADD_REMOVE, 1)
ONE_CELL = Schema({"cell": ["total"]})
PEOPLE = Schema(
    {"sex": ["f", "m"], "age": ["0-9", "10-19", "20-29", "30+"]},
    {"adult": Recode("age", {"no": ["0-9", "10-19"], "yes": ["20-29", "30+"]})},
)
QUERIES = ("total", "sex", "age", "sex * adult", "adult")


@pytest.mark.parametrize("kind", ["discrete_laplace", "discrete_gaussian"])
@pytest.mark.parametrize("parameter", ["1/100", "1/3", "1/2", "7/10", "3", "1000"])
def test_noise_variance_is_that_of_the_mechanism(kind, parameter):
    expected = mechanism(kind, parameter).variance
    assert noise_variance(kind, float(Fraction(parameter))) == pytest.approx(expected, rel=1e-12)


def draw_scene(draw, schema, kind="discrete_gaussian"):
    """A tree, slots on some levels, perhaps exact totals from the root down, and budgets."""
    tree = draw(hierarchies(max_levels=3))
    levels = tree.level_names
    exact = levels[: draw(st.integers(0, max(len(levels) - 1, 0)))]
    slots = [(levels[-1], "detailed")]
    if schema is PEOPLE:
        for level in levels:
            slots += [(level, q) for q in QUERIES if draw(st.booleans())]
    else:
        upper = [name for name in levels[:-1] if name not in exact]
        slots += [(level, "total") for level in upper if draw(st.booleans())]
    scene = Scene(tree, schema, PROTECTION, tuple(exact), kind, tuple(slots))
    n = len(slots)
    budgets = draw(st.lists(st.floats(0.01, 5), min_size=n, max_size=n))
    return scene, np.array(budgets)


@st.composite
def scenes(draw, schema=PEOPLE):
    return draw_scene(draw, schema)


@settings(deadline=None, max_examples=60)
@given(scenes() | scenes(ONE_CELL), st.data())
def test_variances_match_a_dense_solve(world, data):
    scene, budgets = world
    level = data.draw(st.sampled_from(scene.hierarchy.level_names))
    query = data.draw(st.sampled_from(QUERIES if scene.schema is PEOPLE else ("total",)))
    model = scene.model()
    noise = {
        slot: noise_variance(scene.mechanism, model.unit / budget)
        for slot, budget in zip(scene.slots, budgets, strict=True)
    }
    index = scene.hierarchy.level_names.index(level)
    found = model.of_query(model.by_component(budgets), index, parse_query(scene.schema, query))
    if index == scene.hierarchy.leaf_level:
        found = np.repeat(found, SpineShape.of(scene.hierarchy).family_sizes)
    slow = dense_query_variances(
        scene.hierarchy, scene.schema, noise, scene.exact, (level, query)
    ).reshape(found.size, -1)
    np.testing.assert_allclose(slow, np.broadcast_to(found[:, None], slow.shape), atol=1e-7)


@given(scenes() | scenes(ONE_CELL))
def test_derivatives_are_those_of_small_steps(world):
    scene, budgets = world
    model = scene.model()
    solved, slopes = model.derivatives(budgets)
    for i in range(budgets.size):
        up, down = budgets.copy(), budgets.copy()
        up[i] *= 1 + 1e-5
        down[i] *= 1 - 1e-5
        high, low = model.by_component(up), model.by_component(down)
        for part in range(len(solved)):
            for level, values in enumerate(solved[part]):
                step = (high[part][level] - low[part][level]) / 2e-5
                scale = np.abs(values).max() + 1e-12
                np.testing.assert_allclose(slopes[i][part][level], step, atol=1e-4 * scale)


@given(scenes())
def test_components_add_up_to_all_cells(world):
    scene, _ = world
    queries = [parse_query(scene.schema, query) for _, query in scene.slots]
    parts = components(scene.schema)
    assert sum(part.dimension for part in parts) == scene.schema.n_cells
    for query in queries:
        assert sum(p.dimension for p in parts if p.is_seen_by(query)) == query.n_cells


@given(scenes(ONE_CELL), st.floats(1.1, 10))
def test_more_budget_never_hurts(world, factor):
    scene, budgets = world
    assume(len(scene.exact) < scene.hierarchy.n_levels)
    model = scene.model()
    for less, more in zip(
        model.by_component(budgets)[0], model.by_component(budgets * factor)[0], strict=True
    ):
        assert (more <= less * (1 + 1e-12)).all()


def test_laplace_budgets_are_epsilons():
    tree_scene = Scene(
        scenes_tree(), ONE_CELL, PROTECTION, (), "discrete_laplace", (("level_0", "total"),)
    )
    model = tree_scene.model()
    found = model.by_component(np.array([0.5]))[0][0][0]
    assert found == pytest.approx(mechanism("discrete_laplace", 2).variance)
    assert replace(model, unit=2.0).by_component(np.array([1.0]))[0][0][0] == pytest.approx(found)


def scenes_tree():
    from trellis.model import Hierarchy

    return Hierarchy.from_paths([("r",)])
