r"""The joint fit of cumulative counts, step by step.

Least squares over cumulative counts that add up over areas (x) and grow with size (z), by the
alternating direction method of multipliers, with a penalty of 2 and an over-relaxation of 1.6:

    x <- nearest tables that add up to (y + 2 (z - u)) / 3
    v <- 1.6 x - 0.6 z + u,    z <- nearest monotone rows to v,    u <- v - z

Every fifth round it stops if neither x and z nor two successive z differ by more than half a group,
and after 300 rounds in any case. What is published rests on where it stops, not on the optimum that
it tends to, so the steps are part of the promise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from trellis.verify.counts.families import Families
from trellis.verify.group_sizes.isotonic import nearest_rows

PENALTY, RELAXATION, TOLERANCE, ROUNDS, EVERY = 2.0, 1.6, 0.5, 300, 5
_DOUBT = 1e-9

Tables = list[np.ndarray]
"""Nodes x columns, by level, root first."""


@dataclass(frozen=True, slots=True)
class Forest:
    """The measured levels, their families, and one weight for each level."""

    families: list[Families]
    weights: list[float]

    def nearest_sums(self, tables: Tables) -> Tables:
        """The nearest tables that add up: means upwards, then what is missing downwards."""
        found, variance = [tables[-1]], [np.full(len(tables[-1]), 1 / self.weights[-1])]
        for family, table, weight in zip(
            self.families[::-1], tables[-2::-1], self.weights[-2::-1], strict=True
        ):
            precision = 1 / family.sum(variance[-1])
            sums, share = family.sum(found[-1]), (precision / (precision + weight))[:, np.newaxis]
            found.append(share * sums + (1 - share) * table)
            variance.append(1 / (precision + weight))
        found, variance = found[::-1], variance[::-1]
        for index, family in enumerate(self.families):
            missing = (found[index] - family.sum(found[index + 1]))[family.parent]
            part = variance[index + 1] / family.sum(variance[index + 1])[family.parent]
            found[index + 1] = found[index + 1] + part[:, np.newaxis] * missing
        return found


def fits(
    forest: Forest, noisy: Tables, groups: Tables, followed: int
) -> Iterator[tuple[Tables, Tables]]:
    """Tables that add up, and monotone ones, where the method stops.

    If rounding leaves it open whether it stops, there is more than one answer; there is none if it
    takes more than `followed` rounds.
    """
    x = forest.nearest_sums(noisy)
    z = [nearest_rows(rows, most) for rows, most in zip(x, groups, strict=True)]
    u = [np.zeros_like(rows) for rows in z]
    for number in range(1, min(ROUNDS, followed) + 1):
        targets = [
            (y + PENALTY * (b - c)) / (1 + PENALTY) for y, b, c in zip(noisy, z, u, strict=True)
        ]
        x, old = forest.nearest_sums(targets), z
        v = [RELAXATION * a + (1 - RELAXATION) * b + c for a, b, c in zip(x, old, u, strict=True)]
        z = [nearest_rows(rows, most) for rows, most in zip(v, groups, strict=True)]
        u = [a - b for a, b in zip(v, z, strict=True)]
        if number % EVERY:
            continue
        gap = max(_largest(z, x), _largest(z, old))
        if gap <= TOLERANCE + _DOUBT or number == ROUNDS:
            yield x, z
        if gap <= TOLERANCE - _DOUBT:
            return


def _largest(one: Tables, other: Tables) -> float:
    return max(float(np.abs(a - b).max(initial=0.0)) for a, b in zip(one, other, strict=True))
