r"""Laws of the loss rounded onto a common grid, on the safe side.

An atom of mass p at loss l between the grid points a and a + h is split: the share
w = (1 - e^{-(l-a)}) / (1 - e^{-h}) goes to a + h, the rest to a. Both neighbours' masses, p and
p e^{-l}, are kept, so the rounded pair of laws can only be easier to tell apart: undoing the
split is a post-processing. The same holds for any composition of rounded laws, whose delta is
therefore an upper bound.

Reference: Doroshenko, Ghazi, Kamath, Kumar and Manurangsi, PoPETs 2022, arXiv:2207.04380
("connect the dots").
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trellis.privacy.accounting.composition import Composition, Coordinates, common_step
from trellis.privacy.accounting.distributions.exact import LOG_FLOOR
from trellis.privacy.accounting.distributions.laplace import laplace_law
from trellis.privacy.accounting.distributions.lattice import gaussian_law
from trellis.privacy.accounting.distributions.losses import UNIT, FloatArray
from trellis.privacy.mechanisms import DiscreteGaussian

_MOST_POINTS = 2**14


@dataclass(frozen=True, slots=True, eq=False)
class LossLaw:
    """Bounds of the mass at each loss, and of what is `missing` from the list."""

    losses: FloatArray
    lower: FloatArray
    upper: FloatArray
    missing: float

    def rounded(self, step: float) -> GridLaw:
        below = np.floor(self.losses / step)
        share = np.expm1(below * step - self.losses) / np.expm1(-step)
        share = np.clip(share, 0.0, 1.0)
        first = int(below[0])
        at = (below - first).astype(np.int64)
        size = int(at[-1]) + 2

        def on_grid(mass: FloatArray) -> FloatArray:
            low = np.bincount(at, mass * (1 - share), size)
            return (low + np.bincount(at + 1, mass * share, size)).astype(np.float64)

        masses, excess = on_grid(self.upper), on_grid(self.upper - self.lower)
        used = np.flatnonzero(masses)
        return GridLaw(step, first + used, masses[used], excess[used])


@dataclass(frozen=True, slots=True, eq=False)
class GridLaw:
    """Upper masses at whole multiples of the step, and how much they may exceed the true ones."""

    step: float
    index: NDArray[np.int64]
    masses: FloatArray
    excess: FloatArray

    def tilted(self, theta: float) -> Tilted:
        """Masses times e^{theta l}, normalised; an exponent x has 4 x + 8 units of error."""
        losses = self.step * self.index
        exponents = theta * losses
        largest = float(np.max(np.log(self.masses) + exponents))
        factors = np.exp(exponents - largest)
        weights = self.masses * factors
        total = float(np.sum(weights))
        mean = float(np.sum(weights * losses)) / total
        units = 16 + len(self.masses) + 4 * float(np.abs(exponents).max() + abs(largest))
        return Tilted(
            masses=weights / total,
            log_moment=largest + float(np.log(total)),
            mean=mean,
            variance=float(np.sum(weights * (losses - mean) ** 2)) / total,
            mass_error=float(np.sum(self.excess * factors)) / total + UNIT * units,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Tilted:
    """A grid law under a tilt, and a bound of the sum of the errors of its masses."""

    masses: FloatArray
    log_moment: float
    mean: float
    variance: float
    mass_error: float


def commensurate(composition: Composition) -> list[tuple[Coordinates, ...]]:
    """The parts in few clusters, each of one kind and on a lattice of its own."""
    clusters: list[tuple[Coordinates, ...]] = []
    for part in (*composition.gaussian, *composition.laplace):
        for number, cluster in enumerate(clusters):
            if _fits((*cluster, part)):
                clusters[number] = (*cluster, part)
                break
        else:
            clusters.append((part,))
    return clusters


def loss_law(cluster: tuple[Coordinates, ...]) -> LossLaw | None:
    """The law of commensurate coordinates of one kind, or None where it has too many atoms."""
    if not isinstance(cluster[0].mechanism, DiscreteGaussian):
        law = laplace_law(cluster)
        return law and LossLaw(law.losses, *law.mass_bounds(), missing=0.0)
    law = gaussian_law(cluster)
    if law is None:
        return None
    reach = law.reach(LOG_FLOOR)
    masses = law.masses(-reach, reach)
    return LossLaw(law.losses(-reach, reach), *masses, missing=2 * float(np.exp(-LOG_FLOOR)))


def _fits(cluster: tuple[Coordinates, ...]) -> bool:
    """Whether these are of one kind and their losses lie on a lattice of modest size."""
    if len({type(part.mechanism) for part in cluster}) > 1:
        return False
    step = common_step(part.loss_step for part in cluster)
    points = sum(part.count * part.shift * part.loss_step for part in cluster) / step
    return points <= _MOST_POINTS and points / step <= _MOST_POINTS**2
