r"""Real tables on a tree: least squares with non-negative leaves and a given sum, solved exactly.

Let q be the price of one more unit below a node. How many units a node takes at a price is a
function that begins at 0 and grows along straight pieces. A leaf takes y + q / w from -w y on. The
children of a node take the sum of their functions at one price p; the node itself adds what it
pays, q = p + w (n - y), which moves the kinks and flattens the pieces. At the top, all trees share
one price, at which their units add up to the given sum. Prices then go down the tree again.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from trellis.verify.counts.families import Families


@dataclass(frozen=True, slots=True, eq=False)
class Demand:
    """Units by price: none up to the first kink, then straight pieces of these slopes."""

    kinks: np.ndarray
    units: np.ndarray
    slopes: np.ndarray

    def at(self, price: float) -> float:
        piece = int(np.searchsorted(self.kinks, price, side="right")) - 1
        if piece < 0:
            return 0.0
        return float(self.units[piece] + self.slopes[piece] * (price - self.kinks[piece]))

    def price(self, units: float) -> float:
        """At which so many units are taken."""
        piece = max(0, int(np.searchsorted(self.units, units, side="right")) - 1)
        return float(self.kinks[piece] + (units - self.units[piece]) / self.slopes[piece])

    def paying(self, weight: float, noisy: float) -> Demand:
        """What is taken where w (n - y) comes on top of the price."""
        return Demand(
            self.kinks + weight * (self.units - noisy),
            self.units,
            self.slopes / (1 + weight * self.slopes),
        )


def _together(parts: list[Demand]) -> Demand:
    kinks = np.concatenate([part.kinks for part in parts])
    steps = np.concatenate([np.diff(part.slopes, prepend=0.0) for part in parts])
    order = np.argsort(kinks, kind="stable")
    kinks, slopes = kinks[order], np.cumsum(steps[order])
    units = np.concatenate([[0.0], np.cumsum(slopes[:-1] * np.diff(kinks))])
    return Demand(kinks, units, slopes)


def real_optimum(
    families: list[Families], noisy: list[np.ndarray], weights: list[float], total: int
) -> list[np.ndarray]:
    """Nodes x sizes by level, root first. The weight of the leaves is positive."""
    demands = [
        _demands(families, [y[:, s] for y in noisy], weights) for s in range(len(noisy[0].T))
    ]
    found = [np.zeros(y.shape) for y in noisy]
    if not total:
        return found
    price = _together([demand[0][0] for demand in demands]).price(total)
    for size, demand in enumerate(demands):
        prices = [price]
        for index, level in enumerate(demand):
            units = np.array([d.at(p) for d, p in zip(level, prices, strict=True)])
            found[index][:, size] = units
            if index < len(families):
                below = np.array(prices) - weights[index] * (units - noisy[index][:, size])
                prices = below[families[index].parent].tolist()
    return found


def _demands(
    families: list[Families], noisy: list[np.ndarray], weights: list[float]
) -> list[list[Demand]]:
    """Of every node for one size, by level, root first."""
    weight, zero = weights[-1], np.zeros(1)
    leaves = [Demand(np.array([-weight * y]), zero, np.array([1 / weight])) for y in noisy[-1]]
    found = [leaves]
    for index in reversed(range(len(families))):
        ends = [*families[index].start.tolist(), len(found[-1])]
        inside = [_together(found[-1][a:b]) for a, b in pairwise(ends)]
        own = [d.paying(weights[index], y) for d, y in zip(inside, noisy[index], strict=True)]
        found.append(own)
    return found[::-1]
