"""What every estimator promises, whatever its method."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles.projection import least_objective, objective
from strategies import hierarchies
from trellis.errors import SpecError
from trellis.estimate.best_linear import solve_tree
from trellis.estimate.evidence import Evidence
from trellis.estimate.methods import ESTIMATORS, estimate
from trellis.model import Hierarchy, Measurements
from trellis.model.plans.kinds.counts import CountsDesign
from trellis.model.plans.shares import Shares
from trellis.model.tables.queries import DETAILED, TOTAL
from trellis.privacy.budget import Budget
from trellis.privacy.neighbours import Neighbours
from worlds import TREE, cells, noiseless, noisy, plan_for

REPLACE, ADD_REMOVE = Neighbours.REPLACE, Neighbours.ADD_REMOVE
ROOT = Hierarchy.from_paths([("r",)])
CHAIN = Hierarchy.from_paths([("r", "a", "a1")])
FLAT = Hierarchy.from_paths([("r", f"a{i}") for i in range(7)])
WORLDS = {
    "one level": (ROOT, 1, ADD_REMOVE, ()),
    "one level, cells": (ROOT, 3, REPLACE, ()),
    "one child": (CHAIN, 1, REPLACE, ()),
    "one child, cells": (CHAIN, 2, ADD_REMOVE, ()),
    "flat": (FLAT, 1, REPLACE, ()),
    "ragged": (TREE, 1, REPLACE, ()),
    "ragged, nothing exact": (TREE, 1, ADD_REMOVE, ()),
    "ragged, exact states": (TREE, 1, REPLACE, ("state",)),
    "ragged, cells": (TREE, 3, REPLACE, ()),
    "ragged, cells, nothing exact": (TREE, 2, ADD_REMOVE, ()),
}
BUDGETS = {"gaussian": Budget(rho=Fraction(1, 20)), "laplace": Budget(epsilon=Fraction(1, 3))}


@pytest.fixture(params=CountsDesign.methods)
def method(request) -> str:
    return request.param


@pytest.fixture(params=WORLDS)
def world(request):
    """A tree, a function that plans for it, and true counts with many zeros."""
    tree, n_cells, neighbours, exact = WORLDS[request.param]
    rng = np.random.default_rng(7)
    shape = (tree.sizes[-1], n_cells)
    leaves = rng.integers(0, 30, shape) * (rng.random(shape) < 0.6)

    def plan(**changes):
        fixed = {"neighbours": neighbours, "unprotected_totals": exact}
        return plan_for(tree, n_cells, **fixed | changes)

    return tree, plan, leaves


@pytest.fixture(params=BUDGETS)
def measurements(request, world, method) -> Measurements:
    tree, plan, leaves = world
    return noisy(plan(method=method, budget=BUDGETS[request.param]), tree, leaves, seed=3)


# -- the contract ---------------------------------------------------------------------------------


def test_children_add_up_in_every_cell(measurements):
    estimates = estimate(measurements, tie_seed=1)
    tree = measurements.hierarchy
    for level in range(tree.n_levels - 1):
        for cell in range(measurements.plan.schema.n_cells):
            start, below = tree.child_start[level], estimates.counts[level + 1][:, cell]
            sums = [below[start[i] : start[i + 1]].sum() for i in range(tree.size(level))]
            np.testing.assert_allclose(estimates.counts[level][:, cell], sums, atol=1e-9)


def test_counts_are_whole_and_not_negative_unless_the_method_is_linear(measurements, method):
    for counts in estimate(measurements, tie_seed=1).counts:
        if method == "gls":
            assert counts.dtype == np.float64
        else:
            assert counts.dtype == np.int64
            assert (counts >= 0).all()


def test_exact_totals_are_kept(measurements):
    counts = estimate(measurements, tie_seed=1).counts
    exact = [(q, v) for q, v in zip(measurements.plan.queries, measurements.values, strict=True)
             if q.noise is None]  # fmt: skip
    for query, values in exact:
        level = measurements.hierarchy.index(query.level)
        np.testing.assert_allclose(counts[level].sum(axis=1), values[:, 0], rtol=0, atol=1e-9)
    assert bool(exact) == (measurements.plan.protection.neighbours is REPLACE)


def test_one_seed_gives_one_answer(measurements):
    first, second = (estimate(measurements, tie_seed=5) for _ in range(2))
    for a, b in zip(first.counts, second.counts, strict=True):
        assert a.tolist() == b.tolist()


def test_without_noise_the_truth_comes_back(world, method):
    tree, plan, leaves = world
    estimates = estimate(noiseless(plan(method=method), tree, leaves), tie_seed=1)
    for counts, truth in zip(estimates.counts, tree.sum_up(leaves), strict=True):
        np.testing.assert_allclose(counts, truth, rtol=0, atol=0 if estimates.is_whole else 1e-9)


def test_margins_of_error_are_those_of_the_linear_estimate(measurements, method):
    estimates = estimate(measurements, tie_seed=1)
    if method in ("topdown", "bottomup"):
        assert estimates.centre is None
        assert estimates.std_error is None
        return
    solved = solve_tree(measurements.hierarchy, Evidence.of(measurements))
    for level, centre in enumerate(solved.final):
        assert estimates.centre[level].tolist() == centre.tolist()
        expected = np.sqrt(solved.final_variance[level])
        for cell in range(centre.shape[1]):
            assert estimates.std_error[level][:, cell].tolist() == expected.tolist()


@pytest.mark.parametrize("name", CountsDesign.methods)
@settings(max_examples=40)
@given(tree=hierarchies(), n_cells=st.integers(1, 3), seed=st.integers(0, 2**32 - 1))
def test_every_tree_has_an_answer(name, tree, n_cells, seed):
    """`Estimates` checks sums and signs; here trees of all shapes reach it."""
    leaves = np.random.default_rng(seed).integers(0, 5, (tree.sizes[-1], n_cells))
    plan = plan_for(tree, n_cells, neighbours=ADD_REMOVE, method=name)
    estimates = estimate(noisy(plan, tree, leaves, seed), tie_seed=seed)
    assert estimates.is_whole == (name != "gls")


# -- ties -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["topdown", "gls_topdown"])
def test_another_seed_breaks_ties_another_way_and_favours_no_area(name):
    """Seven equal areas share three: every area gets its turn."""
    plan = plan_for(FLAT, method=name)
    equal = Measurements(plan, FLAT, (np.array([[3]]), np.zeros((7, 1), dtype=np.int64)))
    wins = sum(estimate(equal, seed).counts[1].ravel() for seed in range(300))
    assert wins.sum() == 900
    assert wins.min() > 80  # 129 expected, standard deviation 9
    assert wins.max() < 180


@pytest.mark.parametrize("name", ["topdown", "gls_topdown"])
def test_cells_break_their_ties_independently(name):
    plan = plan_for(FLAT, n_cells=2, neighbours=ADD_REMOVE, method=name)
    values = (np.array([[3, 3]]), np.zeros((7, 2), dtype=np.int64))
    equal = Measurements(plan, FLAT, values)
    differ = [
        len(set(map(tuple, estimate(equal, seed).counts[1].T.tolist()))) for seed in range(20)
    ]
    assert 2 in differ


# -- by brute force -------------------------------------------------------------------------------


def all_shares_of(total: int, n: int):
    return (y for y in product(range(total + 1), repeat=n) if sum(y) == total)


@settings(max_examples=60)
@given(values=st.lists(st.integers(-4, 9), min_size=1, max_size=4), total=st.integers(0, 8))
@pytest.mark.parametrize("name", ["topdown", "gls_topdown"])
def test_a_family_takes_the_nearest_whole_numbers(name, values, total):
    tree = Hierarchy.from_paths([("r", f"a{i}") for i in range(len(values))])
    plan = plan_for(tree, method=name)
    measured = Measurements(plan, tree, (np.array([[total]]), np.array(values)[:, np.newaxis]))
    found = estimate(measured, tie_seed=0).counts[1].ravel().tolist()
    distances = [sum((a - b) ** 2 for a, b in zip(y, values, strict=True))
                 for y in all_shares_of(total, len(values))]  # fmt: skip
    assert sum((a - b) ** 2 for a, b in zip(found, values, strict=True)) == min(distances)


@settings(max_examples=60)
@given(values=st.lists(st.integers(-9, 9), min_size=2, max_size=4), total=st.integers(0, 8))
@pytest.mark.parametrize("name", ["topdown", "gls_topdown"])
def test_the_cells_of_a_root_share_its_exact_total(name, values, total):
    plan = plan_for(ROOT, n_cells=len(values), method=name)
    measured = Measurements(plan, ROOT, (np.array([[total]]), np.array([values])))
    found = estimate(measured, tie_seed=0).counts[0][0].tolist()
    assert sum(found) == total
    # Adding one constant to all cells changes no order of distances, so GLS has the same optimum.
    assert objective(found, values) == least_objective(values, total)


@pytest.mark.parametrize("seed", range(5))
def test_gls_topdown_weighs_children_by_what_is_known_below_them(seed):
    """Each family minimises the squared errors from its subtrees, divided by their variances."""
    leaves = np.random.default_rng(seed).integers(0, 6, (5, 1))
    measured = noisy(plan_for(budget=Budget(rho=Fraction(1, 10))), TREE, leaves, seed)
    counts = estimate(measured, tie_seed=0).counts
    solved = solve_tree(TREE, Evidence.of(measured))
    for level in range(1, TREE.n_levels):
        start = TREE.child_start[level - 1]
        for parent in range(TREE.size(level - 1)):
            family = slice(start[parent], start[parent + 1])
            x = solved.subtree[level][family, 0].tolist()
            weights = (1 / solved.subtree_variance[level][family]).tolist()
            total, found = int(counts[level - 1][parent, 0]), counts[level][family, 0].tolist()
            best = least_objective(x, total, weights)
            assert objective(found, x, weights) <= best * (1 + Fraction(1, 10**9))


@pytest.mark.parametrize("name", ["topdown", "gls_topdown"])
def test_a_measured_root_is_rounded_and_floored_at_zero(name):
    plan = plan_for(ROOT, neighbours=ADD_REMOVE, method=name)
    for value, published in [(7, 7), (0, 0), (-7, 0)]:
        measured = Measurements(plan, ROOT, (np.array([[value]]),))
        assert estimate(measured, tie_seed=0).counts[0].item() == published


# -- what no method can do ------------------------------------------------------------------------


def test_a_level_between_that_was_not_measured_is_estimated_from_around_it():
    plan = plan_for(shares=Shares({"town": Fraction(1)}))
    leaves = np.array([[3], [4], [5], [0], [9]])
    counts = estimate(noiseless(plan, TREE, leaves), tie_seed=0).counts
    assert counts[1].ravel().tolist() == [12, 0, 9]


def test_topdown_refuses_measurements_that_skip_a_level():
    """Measured for another method, and asked for again by this one."""
    plan = plan_for(shares=Shares({"town": Fraction(1)}))
    measured = noiseless(plan, TREE, np.ones((5, 1), dtype=np.int64))
    with pytest.raises(SpecError, match="level 'state' was not measured"):
        ESTIMATORS["topdown"](measured, 0)


def test_unknown_methods_are_refused():
    with pytest.raises(SpecError, match=r"no estimate\.method 'guess'; use one of gls_topdown"):
        plan_for(method="guess")


# -- evidence -------------------------------------------------------------------------------------


def test_evidence_names_exact_and_unmeasured_levels_by_their_variance():
    plan = plan_for(shares=Shares({"town": Fraction(1)}))
    evidence = Evidence.of(noiseless(plan, TREE, np.ones((5, 1), dtype=np.int64)))
    assert evidence.variance == (0, np.inf, plan.query("town", TOTAL).variance)
    assert evidence.root_total is None  # a single cell: the exact total is the cell


def test_evidence_holds_the_root_total_beside_noisy_cells():
    plan = plan_for(n_cells=2)
    leaves = np.arange(10).reshape(5, 2)
    evidence = Evidence.of(noiseless(plan, TREE, leaves))
    assert evidence.root_total == 45
    assert evidence.variance[0] == plan.query("nation", DETAILED).variance > 0
    assert evidence.cells[0].tolist() == [[20, 25]]
    assert plan.schema == cells(2)
