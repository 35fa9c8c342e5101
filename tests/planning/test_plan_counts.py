"""The plan spends exactly the budget, on the levels where noise is not wasted."""

from fractions import Fraction
from math import log, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trellis.errors import PrivacyError, SpecError
from trellis.model.plans.shares import Shares
from trellis.model.tables.queries import DETAILED, TOTAL
from trellis.privacy.budget import Budget
from trellis.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace
from trellis.privacy.neighbours import Neighbours
from worlds import TREE, plan_for

REPLACE, ADD_REMOVE = Neighbours.REPLACE, Neighbours.ADD_REMOVE
CELLS_MOVED = {REPLACE: 2, ADD_REMOVE: 1}

amounts = st.fractions(min_value=Fraction(1, 1000), max_value=100)
weights = st.fractions(min_value=Fraction(1, 100), max_value=100)
relations = st.sampled_from(Neighbours)
contributions = st.integers(1, 50)


@given(amounts, weights, weights, relations, contributions)
def test_gaussian_noise_costs_exactly_the_budget(rho, state, town, neighbours, m):
    plan = plan_for(
        neighbours=neighbours,
        max_contribution=m,
        budget=Budget(rho=rho),
        shares=Shares({"state": state, "town": town}, are_weights=True),
    )
    noisy = [query for query in plan.queries if query.noise is not None]
    assert all(isinstance(query.noise, DiscreteGaussian) for query in noisy)
    # A unit moves k cells of each partition by m at most: squared L2 = k m^2.
    by_hand = [CELLS_MOVED[neighbours] * m**2 / (2 * q.noise.sigma_squared) for q in noisy]
    assert sum(by_hand) == rho == plan.privacy.rho
    assert by_hand == [q.share * rho for q in noisy]


@given(amounts, weights, weights, relations, contributions)
def test_laplace_noise_costs_exactly_the_budget(epsilon, state, town, neighbours, m):
    plan = plan_for(
        neighbours=neighbours,
        max_contribution=m,
        budget=Budget(epsilon=epsilon),
        shares=Shares({"state": state, "town": town}, are_weights=True),
    )
    noisy = [query for query in plan.queries if query.noise is not None]
    assert all(isinstance(query.noise, DiscreteLaplace) for query in noisy)
    by_hand = [CELLS_MOVED[neighbours] * m / q.noise.scale for q in noisy]
    assert sum(by_hand) == epsilon == plan.privacy.pure_epsilon
    assert by_hand == [q.share * epsilon for q in noisy]


@pytest.mark.parametrize(("epsilon", "delta"), [("1/2", "1e-10"), ("20", "1e-5")])
@pytest.mark.parametrize("neighbours", Neighbours)
def test_epsilon_and_delta_are_used_up_but_not_exceeded(epsilon, delta, neighbours):
    budget = Budget(epsilon=Fraction(epsilon), delta=Fraction(delta))
    plan = plan_for(budget=budget, neighbours=neighbours, shares=half_each("state", "town"))
    assert plan.privacy.epsilon(budget.delta) <= budget.epsilon
    # At least what the conversion from rho allows; a sharper accountant may find room for more.
    rho = float(plan.privacy.rho)
    assert rho + 2 * sqrt(rho * -log(float(delta))) >= budget.epsilon * (1 - 1e-7)
    state, town = (query.noise for query in plan.queries if query.noise)
    assert state == town


@pytest.mark.parametrize("delta", ["1e-2", "1e-100"])
def test_the_least_epsilon_of_a_budget_has_a_plan(delta):
    plan = plan_for(budget=Budget(epsilon=Fraction(1, 10**6), delta=Fraction(delta)))
    assert plan.privacy.rho > 0
    assert plan.privacy.epsilon(Fraction(delta)) <= Fraction(1, 10**6)


def test_a_single_cell_is_measured_by_its_total():
    plan = plan_for()
    assert [(q.level, q.query, q.share) for q in plan.queries] == [
        ("nation", TOTAL, 0),
        ("state", TOTAL, Fraction(1, 2)),
        ("town", TOTAL, Fraction(1, 2)),
    ]
    assert plan.unprotected_totals == ("nation",)
    assert plan.protection.within is None  # no wider area than the root exists


def test_under_add_remove_the_root_is_measured_too():
    plan = plan_for(neighbours=ADD_REMOVE)
    assert [(q.level, q.share) for q in plan.queries] == [
        ("nation", Fraction(1, 3)), ("state", Fraction(1, 3)), ("town", Fraction(1, 3)),
    ]  # fmt: skip
    assert all(q.noise is not None for q in plan.queries)
    assert plan.unprotected_totals == ()


def test_with_several_cells_the_root_is_measured_beside_its_exact_total():
    plan = plan_for(n_cells=4)
    assert [(q.level, q.query, q.noise is None) for q in plan.queries] == [
        ("nation", TOTAL, True),
        ("nation", DETAILED, False),
        ("state", DETAILED, False),
        ("town", DETAILED, False),
    ]


def test_exact_totals_of_a_level_narrow_what_is_protected():
    plan = plan_for(unprotected_totals=("state",))
    assert plan.protection.within == "state"
    assert plan.unprotected_totals == ("nation", "state")
    assert [(q.level, q.share) for q in plan.queries if q.noise] == [("town", 1)]


def half_each(*levels: str) -> Shares:
    return Shares(dict.fromkeys(levels, Fraction(1, len(levels))))


@pytest.mark.parametrize(
    ("level", "unprotected"), [("nation", ()), ("nation", ("nation",)), ("state", ("state",))]
)
def test_a_share_on_an_exact_level_is_refused_as_wasted(level, unprotected):
    with pytest.raises(SpecError, match=f"{level!r} is wasted"):
        plan_for(shares=half_each(level, "town"), unprotected_totals=unprotected)


def test_with_several_cells_a_share_of_the_root_is_not_wasted():
    plan = plan_for(n_cells=2, shares=half_each("nation", "town"))
    assert plan.query("nation", DETAILED).share == Fraction(1, 2)


@pytest.mark.parametrize("method", ["gls_topdown", "gls"])
def test_a_level_between_may_go_unmeasured(method):
    plan = plan_for(method=method, shares=half_each("town"))
    assert plan.query("state", TOTAL) is None
    assert plan.privacy.rho == 1


def test_topdown_needs_every_level():
    with pytest.raises(SpecError, match=r"topdown .* level 'state' has no share"):
        plan_for(method="topdown", shares=half_each("town"))
    plan_for(method="topdown", shares=half_each("state", "town"))
    plan_for(method="topdown", unprotected_totals=("state",))  # exact, not missing


@pytest.mark.parametrize("method", ["gls_topdown", "topdown", "gls"])
def test_the_last_level_must_be_measured(method):
    with pytest.raises(SpecError, match="last level, 'town', must be measured"):
        plan_for(method=method, shares=half_each("state"))


def test_noise_beyond_what_can_be_drawn_is_refused():
    tiny = Shares({"state": Fraction(10**15 - 1, 10**15), "town": Fraction(1, 10**15)})
    with pytest.raises(PrivacyError):
        plan_for(budget=Budget(epsilon=Fraction(1, 100)), shares=tiny)


def test_a_plan_repeats_the_request_and_the_tree():
    plan = plan_for(confidence=Fraction(19, 20), method="gls")
    assert (plan.levels, plan.sizes) == (TREE.level_names, TREE.sizes)
    assert (plan.kind, plan.method.name, plan.confidence) == ("counts", "gls", Fraction(19, 20))
    assert plan.forecast.errors is None
