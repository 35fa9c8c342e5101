"""Variances as functions of budgets: against one large matrix, and their derivatives."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles.query_gls import dense_query_variances
from strategies import hierarchies
from trellis.model import Schema
from trellis.model.tables.queries import parse_query
from trellis.model.tables.schema import Recode
from trellis.planning.allocation.choose import Scene
from trellis.planning.forecast.expected_variance import Load, noise_variance
from trellis.planning.forecast.tree_shape import TreeShape
from trellis.privacy.mechanisms import mechanism
from trellis.privacy.neighbours import Neighbours
from trellis.privacy.protection import Protection

PROTECTION = Protection("person", Neighbours.ADD_REMOVE, 1)
ONE_CELL = Schema({"cell": ["total"]})
PEOPLE = Schema(
    {"sex": ["f", "m"], "age": ["0-9", "10-19", "20-29", "30+"]},
    {
        "adult": Recode("age", {"no": ["0-9", "10-19"], "yes": ["20-29", "30+"]}),
        "small": Recode("age", {"yes": ["0-9"], "no": ["10-19", "20-29", "30+"]}),
    },
)
"""One recode has groups of one size, the other has not, and they are not nested."""
QUERIES = ("total", "sex", "age", "sex * adult", "small", "small * sex", "detailed")


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
            slots += [(level, q) for q in QUERIES[:-1] if draw(st.booleans())]
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
    query = data.draw(st.sampled_from(names_of(scene.schema)))
    model = scene.model()
    noise = {
        slot: noise_variance(scene.mechanism, model.unit / budget)
        for slot, budget in zip(scene.slots, budgets, strict=True)
    }
    index = scene.hierarchy.level_names.index(level)
    asked = parse_query(scene.schema, query)
    found = model.variances(budgets, [(index, asked)])[0][:, model.kinds(asked).kind_of_cell]
    if index == scene.hierarchy.leaf_level:
        found = np.repeat(found, TreeShape.of(scene.hierarchy).family_sizes, axis=0)
    slow = dense_query_variances(
        scene.hierarchy, scene.schema, noise, scene.exact, (level, query)
    ).reshape(found.shape)
    np.testing.assert_allclose(found, slow, rtol=1e-8, atol=1e-8)


@settings(deadline=None, max_examples=60)
@given(scenes() | scenes(ONE_CELL), st.data())
def test_derivatives_are_those_of_small_steps(world, data):
    scene, budgets = world
    model = scene.model()
    loads = []
    for level in data.draw(st.sets(st.sampled_from(range(scene.hierarchy.n_levels)), min_size=1)):
        query = parse_query(scene.schema, data.draw(st.sampled_from(names_of(scene.schema))))
        entries, cells = len(model.shape.published[level]), len(model.kinds(query).sizes)
        weights = st.floats(0, 3)
        loads.append(
            Load(
                level,
                query,
                np.array(data.draw(st.lists(weights, min_size=entries, max_size=entries))),
                np.array(data.draw(st.lists(weights, min_size=cells, max_size=cells))),
            )
        )
    (value,), (slopes,) = model.slopes(budgets, [loads])
    found = model.variances(budgets, [(load.level, load.query) for load in loads])
    plain = sum(load.entries @ v @ load.cells for load, v in zip(loads, found, strict=True))
    assert value == pytest.approx(plain, rel=1e-9, abs=1e-9)
    for i in range(budgets.size):
        up, down = budgets.copy(), budgets.copy()
        up[i] *= 1 + 1e-5
        down[i] *= 1 - 1e-5
        high, low = (model.slopes(b, [loads])[0][0] for b in (up, down))
        assert slopes[i] == pytest.approx((high - low) / 2e-5, rel=1e-5, abs=1e-6 * (value + 1e-6))


def names_of(schema):
    return QUERIES if schema is PEOPLE else ("total",)


@given(scenes(), st.floats(1.1, 3))
def test_more_budget_never_hurts(world, factor):
    scene, budgets = world
    model = scene.model()
    asked = [
        (level, parse_query(scene.schema, query))
        for level in range(scene.hierarchy.n_levels)
        for query in QUERIES
    ]
    for less, more in zip(
        model.variances(budgets, asked), model.variances(budgets * factor, asked), strict=True
    ):
        assert (more <= less * (1 + 1e-6) + 1e-9).all()


def test_laplace_budgets_are_epsilons():
    tree_scene = Scene(
        scenes_tree(), ONE_CELL, PROTECTION, (), "discrete_laplace", (("level_0", "total"),)
    )
    model, asked = tree_scene.model(), [(0, parse_query(ONE_CELL, "total"))]
    found = model.variances(np.array([0.5]), asked)[0].item()
    assert found == pytest.approx(mechanism("discrete_laplace", 2).variance)
    twice = replace(model, unit=2.0).variances(np.array([1.0]), asked)[0].item()
    assert twice == pytest.approx(found)


def scenes_tree():
    from trellis.model import Hierarchy

    return Hierarchy.from_paths([("r",)])
