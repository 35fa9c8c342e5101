"""Targets: the least budget meets them all, and not with 3 % less."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from planning.test_data_free import SLOTS, STATE, scene
from trellis.errors import SpecError
from trellis.model import Hierarchy
from trellis.model.plans.confidence import standard_errors_within
from trellis.planning.allocation.choose import Wish, choose, met_targets
from trellis.planning.allocation.rational_shares import DENOMINATOR
from trellis.planning.allocation.targets import least_budgets, least_total
from trellis.privacy.budget import LEAST, Budget

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


def asked_of(here, *asked):
    return tuple(here.target(lv, "total", Fraction(n), Fraction(9, 10)) for lv, n in asked)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("block", [[], [("block", 10)]], ids=["alone", "beside another"])
def test_to_relax_one_of_two_equal_targets_saves_nothing(kind, block):
    here = scene(kind)
    targets = asked_of(here, ("county", 20), ("county", 20), *block)
    choice = choose(here, Wish(None, targets=targets, keep=SLOTS[-1:]))
    one, other, *rest = met_targets(here, targets, budgets_of(choice))
    assert (one.binds, other.binds) == (True, True)
    assert (one.is_tied, other.is_tied) == (True, True)
    assert (one.budget_per_unit, other.budget_per_unit) == (0, 0)
    assert all(line.budget_per_unit > 0 for line in rest)
    looser = asked_of(here, ("county", 21), ("county", 20), *block)
    assert choose(here, Wish(None, targets=looser, keep=SLOTS[-1:])) == choice


def test_in_stated_shares_equal_targets_are_tied_too():
    here, shares = scene(), dict.fromkeys(SLOTS, Fraction(1, 4))
    targets = asked_of(here, ("county", 20), ("county", 20), ("block", 90))
    choice = choose(here, Wish(None, shares=shares, targets=targets))
    lines = met_targets(here, targets, budgets_of(choice))
    assert [line.is_tied for line in lines] == [True, True, False]
    assert [line.binds for line in lines] == [True, True, False]


@pytest.mark.parametrize(
    ("kind", "county", "block"), [("discrete_laplace", 100, 5), ("discrete_gaussian", 60, 10)]
)
def test_rounded_shares_do_not_change_what_binds(kind, county, block):
    """A small share is rounded coarsely, and its target is then met by more than the others."""
    here = scene(kind)
    targets = asked_of(here, ("county", county), ("block", block))
    exact = met_targets(here, targets, least_budgets(here.forecast(()), targets))
    choice = choose(here, Wish(None, targets=targets, keep=SLOTS[-1:]))
    for rounded, line in zip(met_targets(here, targets, budgets_of(choice)), exact, strict=True):
        assert rounded.budget_per_unit == pytest.approx(line.budget_per_unit, rel=0.02)
        assert line.binds


@pytest.mark.parametrize("kind", KINDS)
def test_the_least_budget_that_there_is_meets_targets_that_do_not_bind(kind):
    here = scene(kind)
    targets = asked_of(here, ("county", 10**8))
    choice = choose(here, Wish(None, targets=targets, keep=SLOTS[-1:]))
    assert (choice.budget.rho or choice.budget.epsilon) == LEAST
    (line,) = met_targets(here, targets, budgets_of(choice))
    assert line.is_met
    assert (line.binds, line.budget_per_unit) == (False, 0)


@pytest.mark.parametrize("part", [0.5, 2])
def test_nothing_binds_where_the_budget_is_not_the_least(part):
    here = scene()
    targets = asked_of(here, ("county", 20), ("block", 10))
    best = least_budgets(here.forecast(()), targets)
    assert not any(line.binds for line in met_targets(here, targets, part * best))


def test_a_share_that_a_target_needs_is_not_rounded_to_nothing():
    paths = [("r", f"c{i // 20_000}", f"b{i}") for i in range(40_000)]
    slots = (("county", "total"), ("block", "total"))
    here = replace(
        scene(), hierarchy=Hierarchy.from_paths(paths, ["state", "county", "block"]), slots=slots
    )
    targets = asked_of(here, ("county", 150), ("block", 2))
    best = least_budgets(here.forecast(()), targets)
    assert best[0] / best.sum() < Fraction(1, 2 * DENOMINATOR)
    choice = choose(here, Wish(None, targets=targets, keep=slots[-1:]))
    assert choice.shares[slots[0]] == Fraction(1, DENOMINATOR)
    total = float(choice.budget.rho or 0)
    assert total == pytest.approx(best.sum(), rel=2 / DENOMINATOR)
    # With the least share that there is, the counties are met by more than was asked.
    county, block = met_targets(
        here, targets, [float(choice.shares[slot]) * total for slot in slots]
    )
    assert (county.is_met, county.binds) == (True, False)
    assert block.binds


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
