"""Targets on areas of interest and on spines: met by the least budget, missed with 3 % less."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from oracles.spines import dense_area_variances
from planning.test_data_free import ONE_CELL, STATE, scene
from trellis.errors import SpecError
from trellis.model import Hierarchy, Schema
from trellis.model.tables.queries import parse_query
from trellis.model.trees.areas import Category
from trellis.planning.allocation.choose import (
    Scene,
    Wish,
    area_weights,
    choose,
    level_weights,
    met_targets,
)
from trellis.planning.allocation.targets import how_far_met, least_budgets, least_total
from trellis.planning.forecast.area_variance import AreaAim, MeasuredTree
from trellis.planning.spine.measured import SpineTrees
from trellis.planning.spine.steps import Bypass, GroupLevel, RegroupLeaves
from trellis.privacy.budget import Budget

KINDS = ("discrete_gaussian", "discrete_laplace")
N_BLOCKS = STATE.sizes[-1]
RUNS = np.cumsum(np.random.default_rng(4).random(N_BLOCKS) < 0.02).tolist()
PLACES = Category.of([f"P{k:03d}" if k % 2 else None for k in RUNS], "place")
STEPS = (
    RegroupLeaves(("place",), 2),
    GroupLevel("tract", ("place",), 2),
    Bypass(),
)


def with_places(kind="discrete_gaussian", steps=()):
    here = replace(scene(kind), categories={"place": PLACES})
    if not steps:
        return here
    spine = SpineTrees(STATE, tuple(steps), here.categories, ("state",), kind)
    return replace(here, spine=spine, slots=tuple((name, "total") for name in spine.measurable))


def some_targets(here, county=30, block=15, place=40):
    return (
        here.target("county", "total", Fraction(county), Fraction(19, 20)),
        here.target("block", "total", Fraction(block), Fraction(9, 10)),
        here.area_target("place", "total", Fraction(place), Fraction(19, 20)),
    )


def reached_with(here, choice, targets, factor=1.0):
    """How far the targets are met by this part of what was chosen."""
    total = factor * float(choice.budget.rho or choice.budget.epsilon)
    shares = {level: share for (level, _), share in choice.shares.items()}
    if here.spine is None:
        measured = MeasuredTree.in_shares(STATE, {k: float(v) for k, v in shares.items()})
    else:
        measured = here.spine.in_shares(shares)
    model = here.area_model([t.name for t in targets], measured)
    return how_far_met(model, targets, np.array([total]))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("steps", [(), STEPS[:1], STEPS], ids=["tree", "redrawn", "spine"])
@pytest.mark.parametrize("place", [25, 60, 200])
def test_the_budget_meets_all_and_three_percent_less_misses_one(kind, steps, place):
    here = with_places(kind, steps)
    targets = some_targets(here, place=place)
    choice = choose(here, Wish(None, targets=targets, keep=here.slots[-1:]))
    assert sum(choice.shares.values()) == 1
    assert all(line.is_met for line in reached_with(here, choice, targets))
    assert not all(line.is_met for line in reached_with(here, choice, targets, 0.97))


def test_levels_on_the_conventional_tree_are_as_without_areas():
    """Two computations of the same variances: by level, and as areas."""
    here = with_places()
    targets = tuple(
        here.target(level, "total", Fraction(20), Fraction(9, 10))
        for level in STATE.level_names[1:]
    )
    budgets = np.array([0.1, 0.2, 0.3, 0.4])
    as_areas = how_far_met(here.area_model([t.name for t in targets]), targets, budgets)
    for one, other in zip(met_targets(here, targets, budgets), as_areas, strict=True):
        assert other.reached == pytest.approx(one.reached)
        assert other.median == pytest.approx(one.median)
        assert other.budget_per_unit == pytest.approx(one.budget_per_unit)


@pytest.mark.parametrize("steps", [(), STEPS], ids=["tree", "spine"])
def test_no_other_split_does_with_less(steps):
    here = with_places(steps=steps)
    targets = some_targets(here)
    forecast = here.forecast(targets)
    best = least_budgets(forecast, targets)
    rng = np.random.default_rng(3)
    around = rng.dirichlet(best / best.sum() * 40 + 0.05, 12)
    for shares in [*around, *rng.dirichlet(np.ones(best.size), 8)]:
        assert least_total(forecast, targets, np.maximum(shares, 1e-9)) >= best.sum() * (1 - 1e-5)


@pytest.mark.parametrize("steps", [(), STEPS], ids=["tree", "spine"])
def test_marginal_costs_are_what_a_looser_target_saves(steps):
    here = with_places(steps=steps)
    targets = some_targets(here, county=25, block=12, place=25)
    best = least_budgets(here.forecast(targets), targets)
    lines = how_far_met(here.forecast(targets), targets, best)
    assert sum(line.binds for line in lines) >= 2
    step = Fraction(1, 20)
    for k, line in enumerate(lines):
        sums = []
        for sign in (1, -1):
            moved = list(targets)
            moved[k] = replace(targets[k], within=targets[k].within + sign * step)
            sums.append(least_budgets(here.forecast(moved), moved).sum())
        saved = (sums[1] - sums[0]) / (2 * float(step))
        assert line.budget_per_unit == pytest.approx(saved, rel=0.05, abs=2e-5)


def test_slopes_are_derivatives():
    for kind in KINDS:
        here = with_places(kind, STEPS)
        targets = some_targets(here)
        model = here.forecast(targets)
        budgets = np.linspace(0.5, 1.5, model.n_slots)
        picked = [(0, 0), (1, 3), (2, 5), (2, 7)]
        slopes = model.slopes(targets, budgets, picked)
        for slot in range(model.n_slots):
            ends = []
            for sign in (1, -1):
                moved = budgets.copy()
                moved[slot] *= np.exp(sign * 1e-5)
                found = model.variances(targets, moved)
                ends.append(np.array([found[k][entry] for k, entry in picked]))
            np.testing.assert_allclose(
                slopes[:, slot], (ends[0] - ends[1]) / 2e-5, rtol=1e-4, atol=1e-6
            )


def test_the_shares_of_a_spine_under_zcdp_are_sums_of_level_shares():
    trees = with_places(steps=STEPS).spine
    assert trees is not None
    assert not trees.follows_shares
    shares = {"county": Fraction(1, 10), "tract_group": Fraction(1, 5), "tract": Fraction(1, 5),
              "block_group": Fraction(1, 4), "block": Fraction(1, 4)}  # fmt: skip
    built = trees._build(STEPS, shares)
    marked = trees.in_shares(shares)
    assert built.hierarchy.sizes == marked.tree.sizes
    values = np.array([float(v) for v in built.node_shares.values])
    for mine, theirs in zip(marked.classes, built.node_shares.classes, strict=True):
        np.testing.assert_allclose(marked.mixing[mine, 0], values[theirs])


def test_under_pure_dp_a_spine_follows_the_shares():
    trees = with_places("discrete_laplace", STEPS).spine
    assert trees is not None
    assert trees.follows_shares
    even = {name: Fraction(1, 5) for name in trees.measurable}
    assert trees.in_shares(even).tree.sizes != trees.by_level.tree.sizes
    assert not with_places("discrete_laplace", STEPS[:2]).spine.follows_shares


def test_errors_of_several_cells_are_those_of_totals_and_contrasts():
    tree = Hierarchy.from_paths([("r", "x", b) for b in "abc"] + [("r", "y", b) for b in "de"])
    places = Category.of(["p", "p", None, "p", "q"], "place")
    schema = Schema({"cell": ["m", "f", "o"]})
    here = scene()
    slots = tuple((level, "detailed") for level in tree.level_names)
    here = Scene(tree, schema, here.protection, ("level_0",), here.mechanism, slots,
                 {"place": places})  # fmt: skip
    model = here.area_model(["place"])
    budgets = np.array([0.3, 0.2, 0.5])
    noise = 1 / model._precision(budgets)[0]
    measured = [np.full(n, v) for n, v in zip(tree.sizes, noise, strict=True)]
    contrasts = dense_area_variances(tree, measured, places)
    means = dense_area_variances(tree, [np.zeros(1), *measured[1:]], places)
    solved = model.solve(budgets)
    of = {query: model.of_query(solved, "place", parse_query(schema, query))
          for query in ("total", "detailed")}  # fmt: skip
    np.testing.assert_allclose(of["total"], 3 * means)
    np.testing.assert_allclose(of["detailed"], means / 3 + 2 * contrasts / 3)


# -- weights ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("steps", [(), STEPS], ids=["tree", "spine"])
def test_weights_on_areas_move_the_shares_to_where_they_serve_them(steps):
    here = with_places(steps=steps)
    levels = here.weighted_levels
    assert levels == list(STATE.level_names[1:])
    cells = parse_query(ONE_CELL, "total")

    def error(weights, shares):
        names = [name for name, weight in weights.items() if weight]
        aims = [AreaAim(name, cells, weights[name]) for name in names]
        budgets = np.array([max(float(shares.get(slot, 0)), 1e-9) for slot in here.slots])
        return here.area_model(names).weighted_error(aims, budgets)[0]

    plain, heavy = {**dict.fromkeys(levels, 1.0)}, {**dict.fromkeys(levels, 1.0), "place": 300.0}
    wishes = [
        Wish(Budget(rho=Fraction(1)), weights=[1.0] * 4, area_weights=areas, keep=here.slots[-1:])
        for areas in ({}, {"place": 300.0})
    ]
    first, second = (choose(here, wish).shares for wish in wishes)
    assert first != second
    assert error(heavy, second) < error(heavy, first)
    assert error(plain, first) < error(plain, second)


def test_weights_may_name_categories_beside_all_levels():
    levels, areas = ["county", "block"], {"place": None}
    given = {"county": Fraction(1), "block": Fraction(0), "place": Fraction(10)}
    assert level_weights(given, levels, areas) == [1.0, 0.0]
    assert area_weights(given, areas) == {"place": 10.0}
    assert area_weights([Fraction(1)], areas) == {}
    for wrong, words in (
        ({"place": Fraction(1)}, "level 'county' has no weight"),
        ({**given, "town": Fraction(1)}, "names level 'town'.*county, block, place"),
        ({**given, "place": Fraction(-1)}, "0 or more"),
        (dict.fromkeys(given, Fraction(0)), "one of them positive"),
    ):
        with pytest.raises(SpecError, match=words):
            level_weights(wrong, levels, areas)


# -- refusals --------------------------------------------------------------------------------------


def test_unknown_areas_and_levels_as_areas_are_refused():
    here = with_places()
    with pytest.raises(SpecError, match="names areas 'school'; there are place declared"):
        here.area_target("school", "total", Fraction(1), Fraction(9, 10))
    with pytest.raises(SpecError, match=r"'tract' is a level\. Write level: tract"):
        here.area_target("tract", "total", Fraction(1), Fraction(9, 10))


@pytest.mark.parametrize("steps", [(), STEPS], ids=["tree", "spine"])
def test_what_cannot_be_reached_names_the_best(steps):
    here = with_places(steps=steps)
    wish = Wish(None, targets=some_targets(here, place=2), keep=here.slots[-1:],
                most=Fraction(1, 50))  # fmt: skip
    with pytest.raises(SpecError, match=r"within 2 .*cannot be reached.*rho = 1/50, reaches \d"):
        choose(here, wish)
