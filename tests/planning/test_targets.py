"""Targets: the least budget meets them all, and not with 3 % less."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from planning.test_data_free import SLOTS, STATE, scene
from trellis.errors import SpecError
from trellis.model.confidence import standard_errors_within
from trellis.planning.choose import Wish, choose, met_targets
from trellis.planning.targets import least_budgets, least_total
from trellis.privacy.budget import Budget

NO_SHRINKING = (Phase.explicit, Phase.generate)  # an example takes a second
KINDS = ("discrete_gaussian", "discrete_laplace")


@st.composite
def target_lists(draw, here):
    levels = draw(st.lists(st.sampled_from(STATE.level_names[1:]), min_size=1, max_size=4))
    within = st.fractions(Fraction(1, 2), 200)
    confidence = st.fractions(Fraction(1, 2), Fraction(999, 1000))
    return tuple(here.target(lv, "total", draw(within), draw(confidence)) for lv in set(levels))


def budgets_of(choice):
    total = float(choice.budget.rho or choice.budget.epsilon)
    return [max(float(choice.shares.get(slot, 0)), 1e-12) * total for slot in SLOTS]


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None, max_examples=12, phases=NO_SHRINKING)
@given(data=st.data())
def test_the_budget_meets_all_and_three_percent_less_misses_one(kind, data):
    here = scene(kind)
    targets = data.draw(target_lists(here))
    choice = choose(here, Wish(None, targets=targets, keep=SLOTS[-1:]))
    assert sum(choice.shares.values()) == 1
    budgets = np.array(budgets_of(choice))
    met = met_targets(here, targets, budgets)
    assert all(line.is_met for line in met)
    assert any(line.binds for line in met)
    assert not all(line.is_met for line in met_targets(here, targets, budgets * 0.97))


@settings(deadline=None, max_examples=10, phases=NO_SHRINKING)
@given(data=st.data(), seed=st.integers(0, 99))
def test_no_other_split_does_with_less(data, seed):
    here = scene()
    targets = data.draw(target_lists(here))
    model = here.forecast(())
    best = least_budgets(model, targets)
    rng = np.random.default_rng(seed)
    around = rng.dirichlet(best / best.sum() * 30 + 0.05, 15)
    for shares in [*around, *rng.dirichlet(np.ones(4), 15)]:
        total = least_total(model, targets, np.maximum(shares, 1e-9))
        assert total >= best.sum() * (1 - 1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_marginal_costs_are_what_a_looser_target_saves(kind):
    here = scene(kind)
    asked = [("county", 20), ("tract", 20), ("block_group", 15), ("block", 10)]

    def targets(changed=None, by=Fraction(0)):
        return tuple(
            here.target(
                level, "total", Fraction(n) + (by if level == changed else 0), Fraction(9, 10)
            )
            for level, n in asked
        )

    model = here.forecast(())
    best = least_budgets(model, targets())
    lines = met_targets(here, targets(), best)
    assert sum(line.binds for line in lines) >= 2
    step = Fraction(1, 50)
    for line in lines:
        name = line.target.name
        looser, tighter = (
            least_budgets(model, targets(name, sign * step)).sum() for sign in (1, -1)
        )
        saved = (tighter - looser) / (2 * float(step))
        assert line.budget_per_unit == pytest.approx(saved, rel=0.05, abs=2e-5)


def test_stated_shares_are_kept_and_only_the_budget_is_found():
    here = scene()
    targets = (here.target("county", "total", Fraction(30), Fraction(19, 20)),)
    shares = {slot: Fraction(1, 4) for slot in SLOTS}
    choice = choose(here, Wish(None, shares=shares, targets=targets))
    assert choice.shares == shares
    (line,) = met_targets(here, targets, budgets_of(choice))
    assert line.is_met
    assert line.reached == pytest.approx(30, rel=1e-4)
    # In fixed shares the whole budget pays for the one target: it goes with 1 / within^2.
    assert line.budget_per_unit == pytest.approx(2 * float(choice.budget.rho) / 30, rel=0.01)


def test_a_stated_budget_is_kept_and_targets_do_not_move_its_shares():
    here = scene()
    targets = tuple(
        here.target(level, "total", Fraction(n), Fraction(19, 20))
        for level, n in (("county", 5), ("block", 5))
    )
    budget = Budget(rho=Fraction(1, 10))
    choice = choose(here, Wish(budget, targets=targets, keep=SLOTS[-1:]))
    assert choice == choose(here, Wish(budget, keep=SLOTS[-1:]))
    assert choice.budget == budget


def test_what_cannot_be_reached_names_the_best():
    here = scene()
    targets = (here.target("block", "total", Fraction(2), Fraction(19, 20)),)
    wish = Wish(None, targets=targets, keep=SLOTS[-1:], most=Fraction(1, 100))
    with pytest.raises(SpecError, match=r"cannot be reached.*rho = 1/100, reaches \d"):
        choose(here, wish)


def test_targets_on_exact_or_unknown_levels_are_refused():
    here = scene()
    with pytest.raises(SpecError, match="published exactly"):
        here.target("state", "total", Fraction(1), Fraction(9, 10))
    with pytest.raises(SpecError, match="accuracy names level 'town'"):
        here.target("town", "total", Fraction(1), Fraction(9, 10))


def test_laplace_tails_are_wider():
    assert standard_errors_within(Fraction(1, 2), laplace=True) == pytest.approx(0.6745, rel=1e-3)
    wide = standard_errors_within(Fraction(99, 100), laplace=True)
    assert wide == pytest.approx(-np.log(0.01) / np.sqrt(2))
    assert standard_errors_within(Fraction(99, 100), laplace=False) == pytest.approx(
        2.575829, rel=1e-6
    )
