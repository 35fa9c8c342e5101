"""Measures flows: noisy counts of all children of the nodes that are left, zero or not.

The noise of every level was charged before the descent began. Every child of a node that is left
gets noise of its own, whether or not anything flows there; which nodes are left was decided from
noisy values of the level above. So each level is measured once, with the noise it was charged for,
on a set of nodes that is itself private: adaptive composition.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trellis.confidential.flows import TrueLevel
from trellis.measure.charged_noise import ChargedNoise
from trellis.model.plans.query import PlannedQuery

Ints = NDArray[np.int64]

ABSENT = -1
"""The position of a node without any flow among those that have one."""


def noisy_children(
    truth: TrueLevel, parents: Ints, start: Ints, query: PlannedQuery, noise: ChargedNoise
) -> tuple[Ints, Ints]:
    """Noisy counts of all children, and their positions among the nodes that are not zero.

    `parents` holds the positions of the parents among those of the level above.
    """
    from trellis.numerics.flows.children import add_to_children  # compiles

    values = noise.sample(query, int(start[-1]))
    positions = np.full(values.size, ABSENT, dtype=np.int64)
    add_to_children(truth.start, truth.within, truth.count, parents, start, values, positions)
    return values, positions
