"""Shares of levels and queries together: the least error there is, and the least budget."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.optimize import minimize

from histogram_release_worlds import SCHEMA, TREE
from planning.test_data_free import STATE
from trellis.errors import SpecError, StructureError
from trellis.model.tables.queries import parse_query
from trellis.planning.allocation.choose import Scene, Wish, choose, met_targets
from trellis.planning.allocation.data_free import Aim, Split, optimal_budgets, weighted_error
from trellis.planning.allocation.query_choice import candidates, needed, table_aims
from trellis.privacy.budget import Budget
from trellis.privacy.neighbours import Neighbours
from trellis.privacy.protection import Protection

LEVELS = TREE.level_names
QUERIES = ("total", "adult * sex", "detailed")
SLOTS = tuple(product(LEVELS, QUERIES))
TABLES = (("nation", "adult * sex"), ("state", "total"), ("state", "age"), ("town", "adult"))
WEIGHTS = (
    None,
    {"town": Fraction(10)},
    {"default": Fraction(1, 5), "state": {"total": Fraction(9)}},
)


def scene(slots=SLOTS, tree=TREE, **changes):
    protection = Protection("person", Neighbours.REPLACE, 1)
    known = tree.level_names[:1]
    return Scene(tree, SCHEMA, protection, known, "discrete_gaussian", slots, **changes)


def general_solver(model, aims, n_slots):
    """The least error by a solver that knows nothing of shares."""

    def error(x):
        return np.log(weighted_error(model, aims, np.maximum(x, 1e-9)))

    found = minimize(
        error,
        np.full(n_slots, 1 / n_slots),
        bounds=[(1e-9, 1)] * n_slots,
        constraints={"type": "eq", "fun": lambda x: x.sum() - 1},
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 500},
    )
    return np.exp(found.fun)


@pytest.mark.parametrize("weights", WEIGHTS)
def test_the_optimum_is_that_of_a_general_solver(weights):
    here = scene()
    model, aims = here.model(), table_aims(TREE, SCHEMA, TABLES, weights, None)
    best = optimal_budgets(model, aims, 1.0)
    mine = weighted_error(model, aims, best)
    assert best.sum() == pytest.approx(1)
    assert mine <= general_solver(model, aims, len(SLOTS)) * (1 + 1e-5)


@pytest.mark.parametrize("weights", WEIGHTS)
def test_no_slot_is_worth_more_than_all_together(weights):
    """For a convex error this proves that no split is better by more than the slack."""
    here = scene(tuple((level, q) for level in STATE.level_names for q in QUERIES), STATE)
    tables = [("county", "adult * sex"), ("tract", "total"), ("block", "detailed")]
    renamed = {"town": "block", "state": "tract"}
    given = weights and {renamed.get(name, name): value for name, value in weights.items()}
    model, aims = here.model(), table_aims(STATE, SCHEMA, tables, given, None)
    best = optimal_budgets(model, aims, 0.01)
    error = weighted_error(model, aims, best)
    gains = []
    for i in range(best.size):
        more = best.copy()
        more[i] += 1e-7 * 0.01
        gains.append((error - weighted_error(model, aims, more)) / 1e-7)
    assert max(gains) <= error * (1 + 1e-3)


def test_no_better_split_lies_on_a_grid():
    slots = (("state", "total"), ("state", "detailed"), ("town", "detailed"))
    here = scene(slots)
    model, aims = here.model(), table_aims(TREE, SCHEMA, TABLES[1:], None, None)
    least = weighted_error(model, aims, optimal_budgets(model, aims, 1.0))
    for i, j in product(range(1, 24), repeat=2):
        if i + j < 24:
            shares = np.array([i, j, 24 - i - j]) / 24
            assert weighted_error(model, aims, shares) >= least * (1 - 1e-9)


def test_stated_levels_stay_and_the_rest_is_optimal():
    levels = {"nation": Fraction(1, 10), "state": Fraction(3, 10), "town": Fraction(6, 10)}
    here, aims = scene(), table_aims(TREE, SCHEMA, TABLES, None, None)
    wish = Wish(Budget(rho=Fraction(1)), aims=aims, level_shares=levels, keep=(SLOTS[-1],))
    shares = choose(here, wish).shares
    for level, part in levels.items():
        assert sum(share for (at, _), share in shares.items() if at == level) == part
    model = here.model()
    found = np.array([max(float(shares.get(slot, 0)), 1e-12) for slot in SLOTS])
    mine = weighted_error(model, aims, found)
    rng = np.random.default_rng(3)
    for _ in range(60):
        within = np.concatenate([rng.dirichlet(np.ones(3)) for _ in LEVELS])
        other = within * np.repeat([0.1, 0.3, 0.6], 3)
        assert weighted_error(model, aims, np.maximum(other, 1e-9)) >= mine * (1 - 1e-3)


def test_levels_alone_are_optimal_for_stated_queries():
    mix = {"total": Fraction(1, 4), "detailed": Fraction(3, 4)}
    keys = tuple((level, "strategy") for level in LEVELS)
    here = scene(keys, mixes=dict.fromkeys(keys, mix))
    aims = table_aims(TREE, SCHEMA, TABLES, None, None)
    best = optimal_budgets(here.model(), aims, 1.0)
    full = scene(tuple(product(LEVELS, mix)))
    spread = np.repeat(best, 2) * np.tile([0.25, 0.75], 3)
    model = full.model()
    mine = weighted_error(model, aims, spread)
    assert mine == pytest.approx(weighted_error(here.model(), aims, best), rel=1e-9)
    for levels in np.random.default_rng(4).dirichlet(np.ones(3), 60):
        other = np.repeat(levels, 2) * np.tile([0.25, 0.75], 3)
        assert weighted_error(model, aims, np.maximum(other, 1e-9)) >= mine * (1 - 1e-9)


def test_groups_of_shares_sum_to_their_parts():
    split = Split(np.array([0, 0, 1]), np.array([0.25, 0.75]))
    np.testing.assert_allclose(split.shares(np.array([0.0, 0.0, -5.0])), [0.125, 0.125, 0.75])


def test_every_cell_of_a_target_is_within():
    here = scene()
    asked = [("state", "adult * sex", 10), ("town", "total", 20), ("town", "detailed", 15)]
    targets = tuple(here.target(lv, q, Fraction(n), Fraction(19, 20)) for lv, q, n in asked)
    choice = choose(here, Wish(None, targets=targets, keep=(SLOTS[-1],)))
    total = float(choice.budget.rho or 0)
    budgets = np.array([max(float(choice.shares.get(s, 0)), 1e-12) for s in SLOTS]) * total
    met = met_targets(here, targets, budgets.tolist())
    assert all(line.is_met for line in met)
    assert any(line.binds for line in met)
    model = here.model()
    for line in met:
        variances = model.variances(budgets, [(line.target.level, line.target.query)])[0]
        shown = model.shape.published[line.target.level] > 0
        widest = np.sqrt(variances[shown].max()) * line.target.factor(here.mechanism)
        assert line.reached == pytest.approx(widest)
    assert not all(line.is_met for line in met_targets(here, targets, (budgets * 0.97).tolist()))
    equal = Wish(None, {s: Fraction(1, 9) for s in SLOTS}, targets=targets)
    assert total < float(choose(here, equal).budget.rho or 0)


def test_candidates_are_what_is_published_the_total_and_all_cells():
    found = candidates(SCHEMA, LEVELS, LEVELS, ("nation",), None, ["adult * sex", "sex * adult"])
    assert found[:2] == (("nation", "adult * sex"), ("nation", "detailed"))
    assert found[2:5] == (("state", "total"), ("state", "adult * sex"), ("state", "detailed"))
    named = candidates(SCHEMA, LEVELS, ["state"], (), {"default": ["sex", "detailed"]}, [])
    assert named == (("state", "sex"), ("state", "detailed"))


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        ({"city": ["sex"]}, r"strategy.optimal.queries names level 'city'"),
        ({"default": ["sex * age", "detailed"]}, "ask for the same cells"),
        ({"default": ["height"]}, "neither an attribute nor a recode"),
    ],
)
def test_bad_candidates_are_refused(wish, words):
    with pytest.raises((SpecError, StructureError), match=words):
        candidates(SCHEMA, LEVELS, LEVELS, (), wish, [])


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ({"city": Fraction(1)}, r"strategy.optimal.weights names level 'city'"),
        ({"state": {"sex": Fraction(1)}}, "'sex', which is not published there"),
        ({"default": Fraction(0)}, "one of them must be positive"),
        ({"state": Fraction(-1)}, "0 or more"),
    ],
)
def test_bad_weights_are_refused(weights, words):
    with pytest.raises(SpecError, match=words):
        table_aims(TREE, SCHEMA, TABLES, weights, None)


def test_weights_multiply_those_of_levels():
    aims = table_aims(TREE, SCHEMA, TABLES, {"state": {"age": Fraction(3)}}, {"state": 2.0})
    assert aims == (
        Aim(1, parse_query(SCHEMA, "total"), 2.0),
        Aim(1, parse_query(SCHEMA, "age"), 6.0),
    )


def test_what_must_be_measured_is_kept():
    assert needed(SCHEMA, "gls_topdown", SLOTS) == (("town", "detailed"),)
    assert needed(SCHEMA, "topdown", SLOTS) == tuple((level, "detailed") for level in LEVELS)
