r"""Privacy contract: a distinguishing attack on real measurements stays below the stated epsilon.

Two neighbouring tiny worlds of two towns are measured thousands of times by the real step, every
level. The attack knows both worlds and uses the likelihood ratio of everything that was measured,
the strongest statistic there is (Neyman and Pearson). It raises an alarm when the ratio exceeds a
threshold chosen on a first half of the runs; on the second half, Clopper-Pearson bounds of its
rates of alarms p (in the one world) and q (in the other) give

    epsilon >= log((p - delta) / q),    as (epsilon, delta)-DP demands p <= e^epsilon q + delta:

a lower bound that holds with confidence 1 - 1e-6. It must lie below the epsilon that the plan
states, and, when the noise is deliberately halved, above it: then the audit has found the fault.

Reference: Jagielski, Ullman and Oprea, NeurIPS 2020, arXiv:2006.07709.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import inf, log

import numpy as np
import pytest
from scipy.stats import beta

from seeded_bits import SeededBits
from trellis.confidential.counts import TrueCounts
from trellis.measure.charged_noise import ChargedNoise
from trellis.measure.counts import measure_counts
from trellis.model import Hierarchy, Plan
from trellis.model.plans.answers import answers
from trellis.privacy.budget import Budget
from trellis.privacy.ledger import Claim
from trellis.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace
from trellis.privacy.neighbours import Neighbours
from worlds import plan_for

DELTA = Fraction(1, 1000)
RUNS = 30_000
MISTAKE = 1e-6
"""The probability that a bound is too high by chance."""

TREE = Hierarchy.from_paths([("r", "a"), ("r", "b")], ["nation", "town"])
HERE = np.array([[3], [1]])
MOVES = {
    Neighbours.REPLACE: np.array([[-1], [1]]),  # a person moves
    Neighbours.ADD_REMOVE: np.array([[-1], [0]]),  # a person leaves
}
PLANS = {
    "Gaussian, replace": {"budget": Budget(rho=Fraction(1, 4))},
    "Gaussian, add_remove": {
        "budget": Budget(rho=Fraction(1, 4)), "neighbours": Neighbours.ADD_REMOVE},
    "Gaussian, two contributions": {"budget": Budget(rho=Fraction(1, 4)), "max_contribution": 2},
    "Laplace, replace": {"budget": Budget(epsilon=Fraction(1))},
    "Laplace, add_remove": {
        "budget": Budget(epsilon=Fraction(1)), "neighbours": Neighbours.ADD_REMOVE},
}  # fmt: skip


def neighbour(plan: Plan) -> np.ndarray:
    """The world in which one unit differs by as many records as it may."""
    return HERE + plan.protection.max_contribution * MOVES[plan.protection.neighbours]


def ratios(plan: Plan, stated: Plan, leaves: np.ndarray, seed: int) -> np.ndarray:
    """Log-likelihood ratios of the two worlds, for many runs of the real measuring step.

    The plan with its noise is what is measured; the claim is one for that noise, as if the ledger
    had been charged. `stated` has the noise that the attacker believes in.
    """
    bits, claim = SeededBits(seed), Claim("run", "token", plan.privacy)
    counts, worlds = TrueCounts(leaves), (HERE, neighbour(stated))
    exact = [answers(stated, TREE, world) for world in worlds]
    found = np.zeros(RUNS)
    for run in range(RUNS):
        measured = measure_counts(plan, TREE, counts, ChargedNoise(plan, claim, bits))
        for query, values, here, there in zip(stated.queries, measured.values, *exact, strict=True):
            if query.noise is not None:
                found[run] += loss(query.noise, values - here, values - there)
    return found


def loss(noise, from_here: np.ndarray, from_there: np.ndarray) -> float:
    if isinstance(noise, DiscreteLaplace):
        return float((abs(from_there) - abs(from_here)).sum() / float(noise.scale))
    return float((from_there**2 - from_here**2).sum() / (2 * float(noise.sigma_squared)))


def audited_epsilon(here: np.ndarray, there: np.ndarray) -> float:
    """A lower bound of epsilon at DELTA, with the threshold chosen on other runs."""
    half = RUNS // 2
    thresholds = np.quantile(here[:half], np.linspace(0.02, 0.98, 49))
    best = max(thresholds, key=lambda t: bound((here[:half] > t).sum(), (there[:half] > t).sum()))
    return bound((here[half:] > best).sum(), (there[half:] > best).sum())


def bound(alarms: int, false_alarms: int, n: int = RUNS // 2) -> float:
    p = 0.0 if alarms == 0 else float(beta.ppf(MISTAKE / 2, alarms, n - alarms + 1))
    q = float(beta.ppf(1 - MISTAKE / 2, false_alarms + 1, n - false_alarms))
    return log((p - float(DELTA)) / q) if p > DELTA else -inf


def halved(plan: Plan) -> Plan:
    """The same plan with noise of half the standard deviation."""

    def half(noise):
        if isinstance(noise, DiscreteGaussian):
            return DiscreteGaussian(noise.sigma_squared / 4)
        return None if noise is None else DiscreteLaplace(noise.scale / 2)

    return replace(plan, queries=tuple(replace(q, noise=half(q.noise)) for q in plan.queries))


def audit(real: Plan, stated: Plan) -> float:
    here = ratios(real, stated, HERE, seed=1)
    there = ratios(real, stated, neighbour(stated), seed=2)
    return audited_epsilon(here, there)


@pytest.mark.slow
@pytest.mark.parametrize("name", PLANS)
def test_the_attack_stays_below_the_stated_epsilon(name):
    plan = plan_for(TREE, **PLANS[name])
    stated = plan.privacy.epsilon(DELTA)
    found = audit(plan, plan)
    assert found <= stated
    assert found >= stated / 3  # the attack is a real one, not a blunt knife


@pytest.mark.slow
@pytest.mark.parametrize("name", PLANS)
def test_mutation_half_the_noise_is_found(name):
    plan = plan_for(TREE, **PLANS[name])
    assert audit(halved(plan), plan) > plan.privacy.epsilon(DELTA)
