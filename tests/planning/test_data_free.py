"""Shares without counts: no worse than any other split, exact as fractions."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trellis.errors import SpecError
from trellis.model import Hierarchy, Schema
from trellis.planning.allocation.choose import Scene, Wish, choose, level_aims, level_weights
from trellis.planning.allocation.data_free import optimal_budgets, weighted_error
from trellis.planning.allocation.rational_shares import DENOMINATOR, rational_shares
from trellis.planning.forecast.outlook import STRATEGIES, Outlook
from trellis.privacy.budget import Budget
from trellis.privacy.neighbours import Neighbours
from trellis.privacy.protection import Protection
from trellis.samples.demo import block_codes

CODES = block_codes(np.random.default_rng(2020), 3000)
LEVELS = {"state": 2, "county": 5, "tract": 11, "block_group": 12, "block": 15}
STATE = Hierarchy.from_paths([[c[:n] for n in LEVELS.values()] for c in CODES], list(LEVELS))
ONE_CELL = Schema({"cell": ["total"]})
SLOTS = tuple((level, "total") for level in list(LEVELS)[1:])


def scene(kind="discrete_gaussian"):
    protection = Protection("person", Neighbours.REPLACE, 1)
    return Scene(STATE, ONE_CELL, protection, ("state",), kind, SLOTS)


WEIGHTS = [
    (1, 1, 1, 1),
    (0, 0, 0, 1),
    (1, 0, 0, 1),
    tuple(1 / n for n in STATE.areas[1:]),
    (100, 10, 1, 0.1),
]


@pytest.mark.parametrize("kind", ["discrete_gaussian", "discrete_laplace"])
@pytest.mark.parametrize("weights", WEIGHTS)
def test_no_worse_than_any_other_split(kind, weights):
    here = scene(kind)
    model, aims = here.model(), level_aims(here, weights)
    best = optimal_budgets(model, aims, 1.0)
    assert best.sum() == pytest.approx(1)
    least = weighted_error(model, aims, best)
    rng = np.random.default_rng(5)
    others = [*rng.dirichlet(np.ones(4), 60), *rng.dirichlet(best * 50 + 0.1, 60)]
    for shares in others:
        error = weighted_error(model, aims, np.maximum(shares, 1e-9))
        assert error >= least * (1 - 1e-6)


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("name", STRATEGIES)
def test_no_worse_than_named_strategies_after_rounding(weights, name):
    here = scene()
    wish = Wish(Budget(rho=Fraction(1)), weights=weights, keep=SLOTS[-1:])
    shares = choose(here, wish).shares
    assert sum(shares.values()) == 1
    budgets = np.array([max(float(shares.get(slot, 0)), 1e-12) for slot in SLOTS])
    mine, other = Outlook(here, budgets).compare([name], weights)
    assert mine.squared_error <= other.squared_error * (1 + 1e-4)


@given(
    st.dictionaries(st.integers(0, 9), st.floats(0, 1e6), min_size=1),
    st.sets(st.integers(0, 9)),
)
def test_rational_shares_sum_to_one_and_stay_close(weights, required):
    total = sum(weights.values())
    if total < 1e-6:
        return
    keep = required & weights.keys()
    shares = rational_shares(weights, keep)
    assert sum(shares.values()) == 1
    assert all(share > 0 for share in shares.values())
    assert keep <= shares.keys()
    for key, weight in weights.items():
        allowed = (1 + len(keep)) / DENOMINATOR
        assert abs(float(shares.get(key, 0)) - weight / total) <= allowed


def test_weights_come_as_a_mapping_or_a_list():
    levels = ["county", "block"]
    assert level_weights(None, levels) is None
    assert level_weights({"block": Fraction(2), "county": Fraction(0)}, levels) == [0, 2]
    assert level_weights([Fraction(1), Fraction(3)], levels) == [1, 3]


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ([Fraction(1)], "1 weights for 2 measured levels \\(county, block\\)"),
        ({"county": Fraction(1)}, "level 'block' has no weight"),
        ({"county": Fraction(1), "tract": Fraction(1)}, "'tract', which is not measured"),
        ([Fraction(0), Fraction(0)], "one of them positive"),
        ([Fraction(-1), Fraction(1)], "0 or more"),
    ],
)
def test_weights_that_do_not_fit_are_refused(weights, words):
    with pytest.raises(SpecError, match=words):
        level_weights(weights, ["county", "block"])


def test_unknown_strategies_are_refused():
    with pytest.raises(SpecError, match=r"no strategy 'magic'.*uniform, optimal"):
        Outlook(scene(), np.ones(4)).compare(["magic"])


@settings(max_examples=20, deadline=None)
@given(st.lists(st.floats(0.05, 1), min_size=4, max_size=4))
def test_outlook_agrees_with_the_compiled_passes(shares):
    from trellis.numerics.trees import gls as tree_gls
    from trellis.privacy.mechanisms import DiscreteGaussian

    outlook = Outlook(scene(), np.array(shares))
    variance = [0.0] + [
        DiscreteGaussian(Fraction(1) / Fraction(share)).variance for share in shares
    ]
    fast = tree_gls.variances_down(STATE, tree_gls.variances_up(STATE, variance))
    for line, values in zip(outlook.errors(), fast, strict=True):
        assert line.median == pytest.approx(float(np.median(np.sqrt(values))), rel=1e-9, abs=1e-12)
        assert line.most == pytest.approx(float(np.sqrt(values.max())), rel=1e-9, abs=1e-12)
