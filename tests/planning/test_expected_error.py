"""Expected errors are those of the best linear unbiased estimate, known without counts."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from oracles.cells_gls import dense_cells_gls
from strategies import hierarchies
from trellis.estimate.best_linear import solve_tree
from trellis.estimate.evidence import Evidence
from trellis.model import Hierarchy
from trellis.model.plans.shares import Shares
from trellis.planning.forecast.expected_error import with_expected_errors
from trellis.privacy.budget import Budget
from trellis.privacy.neighbours import Neighbours
from worlds import TREE, noisy, plan_for


@st.composite
def planned_worlds(draw):
    """A tree, a plan that leaves out some levels or has exact ones, and counts of the leaves."""
    tree = draw(hierarchies(max_levels=3))
    neighbours = draw(st.sampled_from(Neighbours))
    n_cells = draw(st.integers(1, 3))
    assume(neighbours is Neighbours.ADD_REMOVE or n_cells > 1 or tree.n_levels > 1)
    exact = 0  # number of levels with exact totals
    if neighbours is Neighbours.REPLACE:
        exact = 1 if n_cells > 1 else draw(st.integers(1, tree.n_levels - 1))
    inner = tree.level_names[exact if n_cells == 1 else 0 : -1]
    chosen = [name for name in inner if draw(st.booleans())] + [tree.level_names[-1]]
    weights = {name: draw(st.fractions(Fraction(1, 10), 10)) for name in chosen}
    budget = draw(st.sampled_from([Budget(rho=Fraction(1, 8)), Budget(epsilon=Fraction(1, 2))]))
    plan = plan_for(
        tree,
        n_cells,
        neighbours=neighbours,
        budget=budget,
        shares=Shares(weights, are_weights=True),
        unprotected_totals=tree.level_names[:exact] if n_cells == 1 else (),
    )
    leaves = np.random.default_rng(draw(st.integers(0, 99))).integers(
        0, 40, (tree.sizes[-1], n_cells)
    )
    return tree, plan, leaves


@given(planned_worlds())
def test_estimates_and_variances_match_a_dense_solve(world):
    tree, plan, leaves = world
    measurements = noisy(plan, tree, leaves)
    estimates, variances = dense_cells_gls(measurements)
    solved = solve_tree(tree, Evidence.of(measurements))
    for level in range(tree.n_levels):
        np.testing.assert_allclose(solved.final[level], estimates[level], rtol=1e-7, atol=1e-7)
        for cell in range(plan.schema.n_cells):  # the cells of an area share their variance
            np.testing.assert_allclose(
                solved.final_variance[level], variances[level][:, cell], rtol=1e-7, atol=1e-7
            )


@given(planned_worlds())
def test_expected_errors_summarise_the_true_ones_of_published_areas(world):
    tree, plan, leaves = world
    expected = with_expected_errors(plan, tree).forecast.errors
    _, variances = dense_cells_gls(noisy(plan, tree, leaves))
    assert [line.level for line in expected] == list(tree.level_names)
    for level, line in enumerate(expected):
        errors = np.sqrt(np.maximum(variances[level][~tree.passes_through[level]], 0))
        assert line.areas == len(errors)
        summary = [line.least, line.median, line.most]
        true = [errors.min(), np.median(errors[:, 0]), errors.max()]
        np.testing.assert_allclose(summary, true, rtol=1e-6, atol=1e-6)


def test_an_exact_root_total_takes_one_contrast_from_its_cells():
    """One area, C cells of variance v and an exact sum: v (1 - 1/C) is left."""
    tree = Hierarchy.from_paths([("r",)])
    plan = plan_for(tree, n_cells=4)
    variance = plan.query("level_0", "detailed").variance
    [line] = with_expected_errors(plan, tree).forecast.errors
    assert line.least == line.most == pytest.approx((variance * 3 / 4) ** 0.5)


def test_exact_levels_have_no_error():
    lines = with_expected_errors(plan_for(unprotected_totals=("state",)), TREE).forecast.errors
    assert [line.most for line in lines[:2]] == [0, 0]
    assert lines[2].least == 0  # the only town of its state
    assert lines[2].most > 0


def test_topdown_has_no_variances_to_foresee():
    plan = plan_for(method="topdown")
    assert with_expected_errors(plan, TREE).forecast.errors is None


def test_more_budget_means_less_error():
    def median(rho: int) -> float:
        plan = with_expected_errors(plan_for(budget=Budget(rho=Fraction(rho))), TREE)
        return plan.forecast.errors[-1].median

    assert median(1) > median(4) > 0
