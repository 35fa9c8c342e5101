"""Simulated releases agree with what planning foresees.

False alarms: each bound is at least four standard errors wide, so below one in 10,000 each.
"""

from fractions import Fraction

import numpy as np
import pytest

from planning.test_data_free import SLOTS, STATE, scene
from trellis.model.plans.shares import Shares
from trellis.planning.allocation.choose import Wish, choose
from trellis.planning.forecast.outlook import Outlook
from trellis.privacy.budget import Budget
from trellis.samples.demo import block_populations
from trellis.spec import Spec
from trellis.workflow.outlook.simulate_counts import simulate_counts
from trellis.workflow.preparing.prepared import Prepared
from trellis.workflow.progress import Silent
from trellis.workflow.public.facts import PublicFacts
from worlds import SPEC, plan_for

PEOPLE = block_populations(np.random.default_rng(3), STATE.sizes[-1])[:, np.newaxis]
RELEASES = 60


def least_share(confidence, areas):
    """What so many intervals reach at least; the areas of a level sum to an exact total."""
    independent = RELEASES * (areas - 1)
    return confidence - 4 * np.sqrt(confidence * (1 - confidence) / independent)


def prepared(choice):
    shares = Shares({level: share for (level, _), share in choice.shares.items()})
    plan = plan_for(STATE, budget=choice.budget, shares=shares)
    return Prepared(Spec.parse(SPEC), plan, PublicFacts(STATE))


@pytest.mark.slow
@pytest.mark.parametrize("budget", [Budget(rho=Fraction(1)), Budget(epsilon=Fraction(1))])
def test_predictions_hold(budget):
    kind = "discrete_laplace" if budget.is_pure else "discrete_gaussian"
    ready = prepared(choose(scene(kind), Wish(budget, keep=SLOTS[-1:])))
    outlook = Outlook.of(ready.plan, STATE)
    expected = outlook.root_mean_squares()
    made = simulate_counts(ready, PEOPLE, RELEASES, progress=Silent())
    for line, areas in zip(made.levels[1:], STATE.areas[1:], strict=True):
        allowed = 4 * (2 if budget.is_pure else 1) / np.sqrt(2 * RELEASES * (areas - 1))
        found = line.linear_root_mean_square
        assert found == pytest.approx(expected[line.level], rel=max(allowed, 0.05))
        assert line.coverage > least_share(0.9, areas)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["discrete_gaussian", "discrete_laplace"])
def test_the_least_budget_reaches_its_targets(kind):
    here = scene(kind)
    asked = [("county", 30, "0.95"), ("tract", 25, "0.9"), ("block", 8, "0.9")]
    targets = tuple(here.target(lv, "total", Fraction(w), Fraction(c)) for lv, w, c in asked)
    ready = prepared(choose(here, Wish(None, targets=targets, keep=SLOTS[-1:])))
    made = simulate_counts(ready, PEOPLE, RELEASES, targets, progress=Silent())
    for target, share in zip(targets, made.within, strict=True):
        assert share >= least_share(float(target.confidence), STATE.areas[target.level])
