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
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from trellis.privacy.accounting.composition import Composition, Coordinates, common_step
from trellis.privacy.accounting.exact import LOG_FLOOR
from trellis.privacy.accounting.laplace import laplace_law
from trellis.privacy.accounting.lattice import gaussian_law
from trellis.privacy.accounting.losses import UNIT, FloatArray
from trellis.privacy.mechanisms import DiscreteGaussian

_MOST_POINTS = 2**15


@dataclass(frozen=True, eq=False)
class LossLaw:
    """Bounds of the masses at each loss of equal coordinates; `missing` bounds what is not listed."""

    losses: FloatArray
    lower: FloatArray
    upper: FloatArray
    missing: float

    def log_moment(self, theta: float) -> float:
        """log E e^{theta L} under the upper masses."""
        exponents = self._log_upper + theta * self.losses
        largest = exponents.max()
        return float(largest + np.log(np.sum(np.exp(exponents - largest))))

    def tilted_moments(self, theta: float) -> tuple[float, float]:
        """Mean and variance under the law tilted by e^{theta L}."""
        weights = np.exp(self._log_upper + theta * self.losses - self.log_moment(theta))
        mean = float(weights @ self.losses)
        return mean, float(weights @ (self.losses - mean) ** 2)

    @cached_property
    def _log_upper(self) -> FloatArray:
        with np.errstate(divide="ignore"):
            return np.log(self.upper)

    def rounded(self, step: float) -> GridLaw:
        below = np.floor(self.losses / step)
        share = np.expm1(below * step - self.losses) / np.expm1(-step)
        share = np.clip(share, 0.0, 1.0)
        first = int(below[0])
        at = (below - first).astype(np.int64)
        size = int(at[-1]) + 2
        masses, excess = (
            np.bincount(at, mass * (1 - share), size) + np.bincount(at + 1, mass * share, size)
            for mass in (self.upper, self.upper - self.lower)
        )
        used = np.flatnonzero(masses)
        return GridLaw(first + used, masses[used], excess[used])


@dataclass(frozen=True, slots=True, eq=False)
class GridLaw:
    """Upper masses at multiples of the step, and by how much they may exceed the true ones."""

    index: NDArray[np.int64]
    masses: FloatArray
    excess: FloatArray

    def tilted(self, theta: float, step: float) -> Tilted:
        """Masses times e^{theta l}, normalised; an exponent x has 4 x + 8 units of error."""
        exponents = theta * step * self.index
        largest = float(np.max(np.log(self.masses) + exponents))
        factors = np.exp(exponents - largest)
        total = float(self.masses @ factors)
        units = 16 + len(self.masses) + 4 * float(np.abs(exponents).max() + abs(largest))
        return Tilted(
            masses=self.masses * factors / total,
            log_moment=largest + float(np.log(total)),
            excess=float(self.excess @ factors) / total,
            rounding=UNIT * units,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Tilted:
    """A grid law under a tilt: its masses, and bounds of their sums of errors."""

    masses: FloatArray
    log_moment: float
    excess: float
    rounding: float


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
    s = np.arange(-reach, reach + 1)
    losses = float(law.step) * (s + law.period / 2)
    return LossLaw(losses, *law.masses(s), missing=2 * float(np.exp(-LOG_FLOOR)))


def _fits(cluster: tuple[Coordinates, ...]) -> bool:
    """Whether these are of one kind and their losses lie on a lattice of modest size."""
    steps = [part.loss_step for part in cluster]
    largest_loss = sum(part.count * part.shift * step for part, step in zip(cluster, steps, strict=True))
    same_kind = len({type(part.mechanism) for part in cluster}) == 1
    return same_kind and largest_loss / common_step(steps) <= _MOST_POINTS
