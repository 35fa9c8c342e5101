"""Privacy contract of group sizes: the best attack, carried out, wins as often as the plan says.

A nation of many equal towns is measured by the real step on the level of towns alone. Each town is
an independent trial: in one world two households of one member each, in the other the second member
has moved to the first household's place, so that one has none and one has two. The change of the
histogram is (+1, -2, +1). The likelihood ratio is the strongest statistic there is; the rate at
which it tells the worlds apart is compared with the accountant's delta.
"""

from fractions import Fraction

import numpy as np
import pytest

from seeded_bits import SeededBits
from size_worlds import sizes_plan
from trellis.confidential.counts import TrueCounts
from trellis.measure.charged_noise import ChargedNoise
from trellis.measure.counts import measure_counts
from trellis.model import Hierarchy
from trellis.model.plans.shares import Shares
from trellis.privacy.budget import Budget
from trellis.privacy.ledger import Claim
from trellis.privacy.mechanisms import DiscreteLaplace
from trellis.privacy.neighbours import Neighbours

TRIALS = 40_000
TREE = Hierarchy.from_paths([("r", f"{i:05d}") for i in range(TRIALS)], ["nation", "town"])
BEFORE, AFTER = np.array([0, 2, 0]), np.array([1, 0, 1])
EPSILONS = (0.25, 0.5, 1.0, 1.5)


def plan_of(mechanism: str, budget: Budget, neighbours: Neighbours):
    shares = Shares({"town": Fraction(1)})
    return sizes_plan(
        TREE, cap=2, method=mechanism, budget=budget, shares=shares, neighbours=neighbours
    )


def noisy(plan, sizes, seed):
    leaves = np.tile(sizes, (TRIALS, 1))
    claim = Claim("run", "token", plan.privacy)
    measured = measure_counts(
        plan, TREE, TrueCounts(leaves), ChargedNoise(plan, claim, SeededBits(seed))
    )
    return measured.answer("town", plan.cell_query)[0]


def truth(plan, sizes):
    return np.cumsum(sizes)[:-1] if plan.cell_query == "cumulative" else sizes


def losses(plan, values):
    """The log-likelihood ratio of the two worlds, for each town."""
    noise = plan.queries[-1].noise
    a, b = values - truth(plan, BEFORE), values - truth(plan, AFTER)
    if isinstance(noise, DiscreteLaplace):
        return (np.abs(b) - np.abs(a)).sum(axis=1) / float(noise.scale)
    return (b**2 - a**2).sum(axis=1) / (2 * float(noise.sigma_squared))


def observed_delta(plan, epsilon):
    """What the attack reaches, and five standard errors of it."""
    here = losses(plan, noisy(plan, BEFORE, 1)) > epsilon + 1e-9
    there = losses(plan, noisy(plan, AFTER, 2)) > epsilon + 1e-9
    spread = here.var() + np.exp(2 * epsilon) * there.var()
    return here.mean() - np.exp(epsilon) * there.mean(), 5 * np.sqrt(spread / TRIALS) + 1e-4


BUDGETS = [Budget(rho=Fraction(1)), Budget(epsilon=Fraction(2))]


@pytest.mark.parametrize("mechanism", ["histogram_exact", "cumulative_joint"])
@pytest.mark.parametrize("budget", BUDGETS, ids=Budget.in_words)
def test_the_best_attack_wins_as_often_as_stated(mechanism, budget):
    plan = plan_of(mechanism, budget, Neighbours.REPLACE)
    for epsilon in EPSILONS:
        reached, margin = observed_delta(plan, epsilon)
        stated = plan.privacy.accountant.delta(epsilon)
        assert reached <= stated + margin
        assert reached >= stated - margin  # and the statement is tight for these neighbours


def test_mutation_noise_for_twice_an_added_record_is_caught():
    """Squared L2 of four, as doubling would have it: the attack wins more often than stated."""
    budget = Budget(rho=Fraction(1))
    honest = plan_of("histogram_exact", budget, Neighbours.REPLACE)
    doubled = plan_of("histogram_exact", Budget(rho=Fraction(3, 2)), Neighbours.REPLACE)
    assert doubled.queries[-1].noise.sigma_squared == 2  # 4 / (2 rho)
    reached, margin = observed_delta(doubled, 1.0)
    assert reached - margin > honest.privacy.accountant.delta(1.0)
