"""The noise that is drawn is the noise that was planned: real draws, standardised, many of them.

The operating system's bits are used. Each check has a rate of false alarms below 1e-8.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from random import Random

import numpy as np

from redteam.attack import REFUSED, Attack, Outcome
from redteam.truth import Answers, answered, measured, prepared
from redteam.worlds import DRAW
from trellis.errors import TrellisError
from trellis.measure.charged_noise import ChargedNoise
from trellis.model.plans.plan import Plan
from trellis.privacy.ledger import Claim
from trellis.privacy.mechanisms import DiscreteGaussian, Mechanism
from trellis.workflow.confidential.measuring import tabulate

ENOUGH = 1500
"""Numbers that are drawn, at least, with `MOST` draws at most."""
MOST = 60
SIGMAS = 8.0


def trial(kind: str, seed: int, folder: Path) -> Outcome:
    chance = Random(seed)
    world = DRAW[kind](chance).complete
    try:
        made = prepared(world.write(folder))
    except TrellisError:
        return REFUSED
    counts = tabulate(made, world.table(world.others))
    truth = measured(made, world.table(world.others))
    seen = Seen()
    for _ in range(MOST):
        noise = ChargedNoise(made.plan, Claim("run", "token", made.plan.privacy))
        seen.add(made.plan, truth, answered(made, counts, noise))
        if seen.numbers >= ENOUGH:
            break
    return Outcome(seen.numbers, tuple(seen.oddities()), seen.variance, world.spec_text)


@dataclass
class Seen:
    """Noise in standard deviations, and its squares, with what they vary by."""

    numbers: int = 0
    total: float = 0.0
    squares: float = 0.0
    spread: float = 0.0

    def add(self, plan: Plan, truth: Answers, noisy: Answers) -> None:
        for query in plan.queries:
            if query.noise is None:
                continue
            there, kurtosis = truth[query.label], _kurtosis(query.noise)
            for cell, value in noisy[query.label].items():
                z = (value - there.get(cell, 0)) / sqrt(query.variance)
                self.numbers += 1
                self.total += z
                self.squares += z * z
                self.spread += kurtosis - 1

    @property
    def variance(self) -> float:
        """As a part of the planned one."""
        return self.squares / self.numbers

    def oddities(self) -> Iterator[str]:
        if abs(self.total) > SIGMAS * sqrt(self.numbers):
            yield f"noise has the mean {self.total / self.numbers:.3f} standard deviations"
        if abs(self.squares - self.numbers) > SIGMAS * sqrt(self.spread):
            yield f"noise has {self.variance:.3f} times the planned variance"


def _kurtosis(noise: Mechanism) -> float:
    """Of the discrete law, summed directly."""
    parameter = float(noise.parameter)
    gaussian = isinstance(noise, DiscreteGaussian)
    reach = int(20 * (sqrt(parameter) if gaussian else 2 * parameter) + 20)
    x = np.arange(-reach, reach + 1.0)
    weights = np.exp(-(x**2) / (2 * parameter) if gaussian else -np.abs(x) / parameter)
    weights /= weights.sum()
    return float((weights * x**4).sum() / (weights * x**2).sum() ** 2)


ATTACK = Attack("noise", "drawn noise has the planned variance", tuple(DRAW), trial, weight=1)
