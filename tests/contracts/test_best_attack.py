"""Privacy contract: the best attack, carried out, wins as often as the plan says.

A nation of many towns is measured by the real step. Each town is an independent trial of two
neighbouring worlds. The likelihood ratio of what was measured is the strongest statistic there is
(Neyman and Pearson); the rate at which it tells the worlds apart is compared with the accountant's
delta, five standard errors either way: false alarms below 1e-5. Every kind of release joins.
"""

from __future__ import annotations

import numpy as np
import pytest

from kinds import WITH_TOYS
from trellis.privacy.mechanisms import DiscreteLaplace

EPSILONS = (0.25, 0.5, 1.0, 1.5, 2.0)
AUDITS = [(kind, name) for kind, world in WITH_TOYS.items() for name in world.audits()]


def losses(audit, values) -> np.ndarray:
    """The log-likelihood ratio of the two worlds, for each town."""
    total = np.zeros(len(next(iter(values.values()))))
    for query, measured in values.items():
        noise = audit.plan.query(audit.level, query).noise
        here, there = (measured - truth[query] for truth in audit.truths)
        if isinstance(noise, DiscreteLaplace):
            total += (np.abs(there) - np.abs(here)).sum(axis=1) / float(noise.scale)
        else:
            total += (there**2 - here**2).sum(axis=1) / (2 * float(noise.sigma_squared))
    return total


def observed(audit, folder, epsilons):
    """What the attack reaches at each epsilon, and five standard errors of it."""
    found = [
        losses(audit, audit.measured(folder / str(world), audit.plan, world, seed=world + 1))
        for world in (0, 1)
    ]
    for epsilon in epsilons:
        hit, false = (loss > epsilon + 1e-9 for loss in found)
        spread = hit.var() + np.exp(2 * epsilon) * false.var()
        margin = 5 * np.sqrt(spread / hit.size) + 1e-4
        yield epsilon, hit.mean() - np.exp(epsilon) * false.mean(), margin


@pytest.mark.parametrize(("kind", "name"), AUDITS)
def test_the_best_attack_wins_as_often_as_stated(tmp_path, kind, name):
    audit = WITH_TOYS[kind].audits()[name]()
    for epsilon, reached, margin in observed(audit, tmp_path, EPSILONS):
        stated = audit.stated(epsilon)
        assert reached <= stated + margin
        assert reached >= stated - margin  # and the statement is tight for these neighbours


@pytest.mark.parametrize("kind", WITH_TOYS)
def test_mutation_too_little_noise_is_caught(tmp_path, kind):
    honest, halved = WITH_TOYS[kind].halved()
    [(_, reached, margin)] = observed(halved, tmp_path, [1.0])
    assert reached - margin > honest.stated(1.0)


@pytest.mark.parametrize("kind", WITH_TOYS)
def test_noise_of_another_plan_is_refused(kind):
    from seeded_bits import SeededBits
    from trellis.errors import LedgerError
    from trellis.measure.charged_noise import ChargedNoise
    from trellis.privacy.ledger import Claim

    honest, halved = WITH_TOYS[kind].halved()
    with pytest.raises(LedgerError, match="another plan"):
        ChargedNoise(honest.plan, Claim("run", "token", halved.plan.privacy), SeededBits(0))
