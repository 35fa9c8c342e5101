"""Counts added up from the leaves; the contract of estimators covers the rest."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles.projection import least_objective, objective
from strategies import hierarchies
from trellis.errors import SpecError
from trellis.estimate.bottomup import estimate_bottomup
from trellis.model.plans.shares import Shares
from trellis.privacy.neighbours import Neighbours
from worlds import TREE, noisy, plan_for


@given(tree=hierarchies(), n_cells=st.integers(1, 3), seed=st.integers(0, 999))
def test_leaves_are_clipped_where_nothing_is_exact(tree, n_cells, seed):
    plan = plan_for(tree, n_cells, method="bottomup", neighbours=Neighbours.ADD_REMOVE)
    leaves = np.random.default_rng(seed).integers(0, 4, (tree.sizes[-1], n_cells))
    measured = noisy(plan, tree, leaves, seed)
    made = estimate_bottomup(measured, 0).counts
    raw = measured.answer(tree.level_names[-1], plan.cell_query)[0]
    np.testing.assert_array_equal(made[-1], np.maximum(raw, 0))
    for level, values in enumerate(tree.sum_up(made[-1])):
        np.testing.assert_array_equal(made[level], values)


def test_exact_totals_are_kept_by_the_nearest_numbers():
    plan = plan_for(TREE, method="bottomup", unprotected_totals=("state",))
    leaves = np.array([[3], [0], [1], [7], [2]])
    measured = noisy(plan, TREE, leaves, seed=4)
    made = estimate_bottomup(measured, 0).counts
    assert made[1][:, 0].tolist() == [4, 7, 2]
    raw = measured.answer("town", "total")[0][:3, 0].tolist()
    assert objective(made[2][:3, 0].tolist(), raw) == least_objective(raw, 4)


def test_all_of_the_budget_goes_to_the_leaves():
    plan = plan_for(TREE, method="bottomup")
    assert [(q.level, q.share) for q in plan.queries if q.noise is not None] == [("town", 1)]
    shares = Shares({"state": 1, "town": 1}, are_weights=True)
    with pytest.raises(SpecError, match="'state' is wasted"):
        plan_for(TREE, method="bottomup", shares=shares)
