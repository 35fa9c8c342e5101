"""Privacy contract of histograms: the best attack, carried out, wins as often as the plan says.

A nation of many equal towns is measured by the real step, through the files it writes. Each town is
an independent trial: in one world its person is in the first cell, in the other in the last. The
log-likelihood ratio over all queries of the town is the strongest statistic there is.
"""

from fractions import Fraction

import numpy as np
import pytest

from histogram_release_worlds import SCHEMA, histogram_plan, shares
from trellis.confidential.histograms import TrueHistograms
from trellis.measure.charged_noise import ChargedNoise
from trellis.measure.histograms import measure_histograms
from trellis.model import Hierarchy
from trellis.model.plans.shares import Shares
from trellis.model.tables.queries import parse_query
from trellis.privacy.bits import OsRandom
from trellis.privacy.budget import Budget
from trellis.privacy.ledger import Claim
from trellis.privacy.mechanisms import DiscreteLaplace
from trellis.storage.histograms import MeasuredHistograms

TRIALS = 40_000
TREE = Hierarchy.from_paths([("r", f"{i:05d}") for i in range(TRIALS)], ["nation", "town"])
EPSILONS = (0.5, 1.0, 2.0)
FIRST, LAST = 0, SCHEMA.n_cells - 1


def plan_of(budget):
    strategy = shares({"town": {"sex": "1/4", "adult * sex": "1/4", "detailed": "1/2"}})
    only_towns = Shares({"town": Fraction(1)})
    return histogram_plan(TREE, budget=budget, strategy=strategy, shares=only_towns)


def measured(folder, plan, cell):
    towns = np.arange(TRIALS)
    one = np.ones(TRIALS, dtype=np.int64)
    truth = TrueHistograms.of(TRIALS, SCHEMA.n_cells, towns, np.full(TRIALS, cell), one)
    claim = Claim("run", "token", plan.privacy)
    measure_histograms(folder, plan, TREE, truth, ChargedNoise(plan, claim, OsRandom()))
    read = MeasuredHistograms(folder, plan, TREE)
    return {q.query: read.read("town", q.query, 0, TRIALS) for q in plan.queries if q.noise}


def losses(plan, values):
    """The log-likelihood ratio of the two worlds, for each town."""
    total = np.zeros(TRIALS)
    for query in plan.queries:
        if query.noise is None:
            continue
        parsed = parse_query(plan.schema, query.query)
        here, there = (np.eye(parsed.n_cells)[parsed.cell_of[cell]] for cell in (FIRST, LAST))
        a, b = values[query.query] - here, values[query.query] - there
        if isinstance(query.noise, DiscreteLaplace):
            total += (np.abs(b) - np.abs(a)).sum(axis=1) / float(query.noise.scale)
        else:
            total += (b**2 - a**2).sum(axis=1) / (2 * float(query.noise.sigma_squared))
    return total


@pytest.mark.parametrize(
    "budget", [Budget(rho=Fraction(1)), Budget(epsilon=Fraction(2))], ids=Budget.in_words
)
def test_the_best_attack_wins_as_often_as_stated(tmp_path, budget):
    """Five standard errors either way, at each epsilon: false alarms below 1e-5."""
    plan = plan_of(budget)
    here = losses(plan, measured(tmp_path / "here", plan, FIRST))
    there = losses(plan, measured(tmp_path / "there", plan, LAST))
    for epsilon in EPSILONS:
        hit, false = here > epsilon + 1e-9, there > epsilon + 1e-9
        reached = hit.mean() - np.exp(epsilon) * false.mean()
        spread = hit.var() + np.exp(2 * epsilon) * false.var()
        margin = 5 * np.sqrt(spread / TRIALS) + 1e-4
        stated = plan.privacy.accountant.delta(epsilon)
        assert reached <= stated + margin
        assert reached >= stated - margin  # and the statement is tight for these neighbours
