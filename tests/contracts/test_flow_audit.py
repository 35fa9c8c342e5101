"""Privacy contract of flows: the best attack, carried out, wins as often as the plan says.

A nation of many towns, flows from everywhere to everywhere, measured by the real descent on the
level of destinations alone. Each town is an independent trial: in one world a worker goes there, in
the other not (the strongest neighbours of `add_remove` on one level). The rate at which the
likelihood ratio tells the worlds apart is compared with the accountant's delta.
"""

from fractions import Fraction

import numpy as np
import pyarrow.parquet as pq
import pytest

from flow_worlds import flows_plan, tree_of
from seeded_bits import SeededBits
from trellis.confidential.flows import TrueFlows
from trellis.measure.charged_noise import ChargedNoise
from trellis.model import Hierarchy
from trellis.model.plans.shares import Shares
from trellis.privacy.budget import Budget
from trellis.privacy.ledger import Claim
from trellis.privacy.neighbours import Neighbours
from trellis.workflow.confidential.flow_descent import measure_flows

TRIALS = 40_000
TOWNS = Hierarchy.from_paths([("r", f"{i:05d}") for i in range(TRIALS)], ["nation", "town"])
ONE = Hierarchy.from_paths([("all",)], ["everywhere"])
TREE = tree_of(ONE, TOWNS)
EPSILONS = (0.25, 0.5, 1.0)


def plan_of(rho):
    small = Fraction(1, 10**6)  # of the total, which is not attacked here
    shares = Shares({"everywhere-to-nation": small, "everywhere-to-town": 1 - small})
    return flows_plan(TREE, budget=Budget(rho=rho), shares=shares, exactly=False,
                      neighbours=Neighbours.ADD_REMOVE)  # fmt: skip


def noisy(folder, plan, count, seed):
    """Values of all towns, each with `count` workers and a few thousand others."""
    towns = np.arange(TRIALS, dtype=np.int32)
    flows = TrueFlows(np.zeros(TRIALS, np.int32), towns, np.full(TRIALS, 5000 + count))
    claim = Claim("run", "token", plan.privacy)
    measure_flows(
        folder, plan, TREE, flows, ChargedNoise(plan, claim, SeededBits(seed)), 0, workers=1
    )
    path = folder / "level=everywhere-to-town" / "query=pairs.parquet"
    return pq.ParquetFile(path).read()["value"].to_numpy() - 5000


def observed_delta(folder, plan, epsilon):
    """What the attack reaches, and five standard errors of it."""
    sigma_squared = float(plan.queries[1].noise.sigma_squared)

    def wins(count, seed):
        values = noisy(folder / f"{count}", plan, count, seed)
        return (values**2 - (values - 1) ** 2) / (2 * sigma_squared) > epsilon + 1e-9

    here, there = wins(1, 1), wins(0, 2)
    spread = here.var() + np.exp(2 * epsilon) * there.var()
    return here.mean() - np.exp(epsilon) * there.mean(), 5 * np.sqrt(spread / TRIALS) + 1e-4


def stated(plan, epsilon):
    from dataclasses import replace

    return replace(plan.privacy, charges=plan.privacy.charges[1:]).accountant.delta(epsilon)


def test_the_best_attack_wins_as_often_as_stated(tmp_path):
    plan = plan_of(Fraction(1))
    for epsilon in EPSILONS:
        reached, margin = observed_delta(tmp_path, plan, epsilon)
        assert reached <= stated(plan, epsilon) + margin
        assert reached >= stated(plan, epsilon) - margin


def test_mutation_half_the_noise_is_caught(tmp_path):
    reached, margin = observed_delta(tmp_path, plan_of(Fraction(2)), 1.0)
    assert reached - margin > stated(plan_of(Fraction(1)), 1.0)


def test_noise_of_another_plan_is_refused(tmp_path):
    from trellis.errors import LedgerError

    flows = TrueFlows(*(np.zeros(0, np.int32),) * 2, np.zeros(0, np.int64))
    claim = Claim("run", "token", plan_of(Fraction(2)).privacy)
    with pytest.raises(LedgerError, match="another plan"):
        measure_flows(
            tmp_path,
            plan_of(Fraction(1)),
            TREE,
            flows,
            ChargedNoise(plan_of(Fraction(1)), claim, SeededBits(0)),
            0,
        )
