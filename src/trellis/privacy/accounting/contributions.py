r"""Several records of one unit: why all in one cell is the worst they can do.

m records of a unit change a table of counts by a vector of whole numbers whose positive part is a
partition of at most m (and, under `replace`, whose negative part is another). One pair of
neighbours is *worse* than another if a random transformation turns its two output laws into the
other's; worse pairs have a larger delta at every epsilon, also within any composition. Known
without any computation, for noise X whose law is log-concave:

- a coordinate that moves further is worse;
- for Gaussian noise one coordinate moving by 2a is worse than two moving by a: X_1 + 2a plus
  fresh noise X_2 has the law of the sum of two coordinates, which is sufficient for them.

What remains is that one coordinate moving by a + b is worse than two moving by a and b. Merging
parts one by one then leads from any partition to the single part m. It is equivalent to
delta_{(a+b)} >= delta_{(a,b)} everywhere (Blackwell). As functions of e^eps both are convex and the
first is linear between its losses, so eps = 0 and the positive losses of (a + b) decide; they are
checked here with certified bounds, once per mechanism. For Gaussian noise, at the losses
eps_x = (m^2 + 2 m x) / (2 sigma^2), m = a + b, D = a^2 + b^2, the check stops where

    delta_{(a,b)} <= e^{-(eps_x - rho)^2 / (4 rho)},  rho = D / (2 sigma^2)     (zCDP)
    delta_{(m)}   >= P(X = x + 1) (1 - e^{-m / sigma^2})

settle it: the logarithm of their ratio increases in x >= 0 because m a b >= D.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from trellis.privacy.accounting.composition import Composition, Coordinates
from trellis.privacy.accounting.curves import Curve
from trellis.privacy.accounting.distributions.exact import TableCurve, exact_curve
from trellis.privacy.mechanisms import DiscreteGaussian, Mechanism

MOST_CHECKED = 12
"""Records of one unit up to which the check, quadratic in their number, takes a second at most."""


@lru_cache(maxsize=4096)
def one_cell_is_worst(mechanism: Mechanism, shift: int, records: int) -> bool:
    """Whether moving one cell by records * shift is certified to be the worst change."""
    return records <= MOST_CHECKED and all(
        _merging_is_worse(mechanism, a * shift, b * shift)
        for total in range(2, records + 1)
        for b in range(1, total // 2 + 1)
        for a in [total - b]
    )


@lru_cache(maxsize=4096)
def _merging_is_worse(mechanism: Mechanism, a: int, b: int) -> bool:
    """Whether one coordinate moving by a + b is worse than two moving by a and by b."""
    if isinstance(mechanism, DiscreteGaussian) and a == b:
        return True
    merged, split = _curve(mechanism, a + b), _curve(mechanism, a, b)
    if not isinstance(merged, TableCurve) or split is None:
        return False
    # The last loss is left out: there both are 0 (Laplace) or the tail settles it (Gaussian).
    losses = np.append(0.0, merged.upper.losses[:-1])
    if isinstance(mechanism, DiscreteGaussian):
        undecided = ~_tail_settles(float(mechanism.sigma_squared), a, b, losses)
        losses = losses[: int(np.flatnonzero(undecided)[-1]) + 1] if undecided.any() else losses[:1]
        if len(losses) == len(merged.upper.losses):
            return False
    around = merged.loss_error + 1e-15 * losses
    most = split.delta_bounds(np.maximum(losses - around, 0.0))[1]
    least = merged.delta_bounds(losses + around)[0]
    return bool(np.all(most <= least))


def _curve(mechanism: Mechanism, *shifts: int) -> Curve | None:
    return exact_curve(Composition.of(Coordinates(mechanism, 1, shift) for shift in shifts))


def _tail_settles(sigma_squared: float, a: int, b: int, losses: np.ndarray) -> np.ndarray:
    """Where the bounds of the docstring, with a margin for rounding, decide."""
    m, d = a + b, a * a + b * b
    x = losses * sigma_squared / m - m / 2
    distance = m * m - d + 2 * m * x
    gain = (distance**2 / (4 * d) - (x + 1) ** 2) / (2 * sigma_squared)
    theta = 1 + np.sqrt(2 * np.pi * sigma_squared)
    cost = np.log(theta) - np.log(-np.expm1(-m / sigma_squared))
    return (x >= 0) & (gain > cost + 1e-6 * (1 + np.abs(gain)))
