r"""Curves from exact laws of the loss: Gaussian, Laplace, and both together (tier 1).

A composition of Gaussians with loss G and of Laplaces with loss l, independent, has

    delta(eps) = E_l [ delta_G(eps - l) ],    delta_G(-x) = 1 - e^{-x} + e^{-x} delta_G(x),

so the two kinds need no common lattice; the second formula is the symmetry of the law.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trellis.privacy.accounting.composition import Composition
from trellis.privacy.accounting.curves import (
    Bounds,
    Curve,
    Tier,
    confirm,
    invert,
    simple_epsilons,
)
from trellis.privacy.accounting.distributions.laplace import LaplaceLaw, laplace_law
from trellis.privacy.accounting.distributions.lattice import GaussianLaw, gaussian_law
from trellis.privacy.accounting.distributions.losses import UNIT, FloatArray, LossGrid, LossTable

LOG_FLOOR = 277.0
"""Tails below e^-277 = 1e-120 are not tabulated but counted as infinite loss."""

_CHUNK = 2**21


@dataclass(frozen=True, slots=True, eq=False)
class TableCurve:
    """Two tables of one law: masses rounded down and masses rounded up.

    True losses differ from the tabulated ones by at most `loss_error`, and zero losses not at
    all. A larger loss is worse, so delta(eps) lies between lower(eps + error) and
    upper(eps - error), each up to the rounding of its table.
    """

    lower: LossTable
    upper: LossTable
    tier: Tier = Tier.LATTICE

    @property
    def size(self) -> int:
        return len(self.upper.losses)

    @property
    def loss_error(self) -> float:
        return 4 * UNIT * float(self.upper.losses[-1])

    def delta_bounds(self, epsilons: FloatArray) -> Bounds:
        slack = self.upper.rounding
        upper = self.upper.delta(np.maximum(epsilons - self.loss_error, 0.0))
        return (
            self.lower.delta(epsilons + self.loss_error) * (1 - slack),
            np.minimum(upper * (1 + slack), 1.0),
        )

    def epsilon_bounds(self, deltas: FloatArray) -> Bounds:
        slack = 2 * self.upper.rounding
        lower = self.lower.epsilon(deltas * (1 + slack)) - self.loss_error
        upper = self.upper.epsilon(deltas * (1 - slack)) + self.loss_error
        upper = np.where(self.delta_bounds(np.zeros_like(deltas))[1] <= deltas, 0.0, upper)
        return confirm(self.delta_bounds, deltas, np.maximum(lower, 0.0), upper)


@dataclass(frozen=True, slots=True, eq=False)
class MixedCurve:
    """Gaussian and Laplace coordinates together."""

    composition: Composition
    gaussian: TableCurve
    laplace: LaplaceLaw
    tier: Tier = Tier.LATTICE

    @property
    def size(self) -> int:
        return self.gaussian.size + len(self.laplace.losses)

    def delta_bounds(self, epsilons: FloatArray) -> Bounds:
        """E_l of both bounds; one more `slack` for the sum and for the rounding of eps - l."""
        masses = self.laplace.mass_bounds()
        lower, upper = np.empty_like(epsilons), np.empty_like(epsilons)
        rows = max(1, _CHUNK // len(self.laplace.losses))
        for start in range(0, len(epsilons), rows):
            chunk = slice(start, start + rows)
            differences = epsilons[chunk, None] - self.laplace.losses
            error = 4 * UNIT * (np.abs(epsilons[chunk, None]) + np.abs(self.laplace.losses))
            lower[chunk] = self._signed(differences + error)[0] @ masses[0]
            upper[chunk] = self._signed(differences - error)[1] @ masses[1]
        slack = UNIT * (len(self.laplace.losses) + 16)
        return lower * (1 - slack), np.minimum(upper * (1 + slack), 1.0)

    def epsilon_bounds(self, deltas: FloatArray) -> Bounds:
        return invert(self.delta_bounds, deltas, simple_epsilons(self.composition, deltas))

    def _signed(self, epsilons: FloatArray) -> Bounds:
        """Bounds of delta_G for arguments of either sign."""
        shape, size = epsilons.shape, np.abs(epsilons)
        lower, upper = (
            side.reshape(shape) for side in self.gaussian.delta_bounds(size.reshape(-1))
        )
        sure, shrink = -np.expm1(-size), np.exp(-size)
        negative = epsilons < 0
        return (
            np.where(negative, sure + shrink * lower, lower),
            np.where(negative, sure + shrink * upper, upper),
        )


def exact_curve(composition: Composition) -> Curve | None:
    """The curve of the exact law, or None where a lattice does not fit."""
    laplace = laplace_law(composition.laplace) if composition.laplace else None
    if composition.laplace and laplace is None:
        return None
    gaussian = gaussian_law(composition.gaussian) if composition.gaussian else None
    if composition.gaussian and gaussian is None:
        return None
    if laplace is None:
        return gaussian and gaussian_curve(gaussian)
    if gaussian is None:
        return _laplace_curve(laplace)
    return MixedCurve(composition, gaussian_curve(gaussian), laplace)


def gaussian_curve(law: GaussianLaw) -> TableCurve:
    """Tables of all positive losses up to P(S >= s) <= 1e-120."""
    last = law.reach(LOG_FLOOR)
    first = max(-last, (2 - law.period) // 2)
    grid, (lower, upper) = LossGrid(law.losses(first, last)), law.masses(first, last)
    missing = 2 * float(np.exp(-LOG_FLOOR))
    return TableCurve(LossTable(grid, lower), LossTable(grid, upper, missing))


def _laplace_curve(law: LaplaceLaw) -> TableCurve:
    positive = law.losses > 0
    lower, upper = (masses[positive] for masses in law.mass_bounds())
    grid = LossGrid(law.losses[positive])
    return TableCurve(LossTable(grid, lower), LossTable(grid, upper))
