r"""Money that is shared out by published counts, and how much of it goes astray.

Areas with true counts N_i get shares W(P_i) / sum_j W(P_j) of a fixed sum, with the proportions
P_i = N_i / sum_j N_j and one of the weight functions

    logarithmic  W(p) = log(1 + p)      linear  W(p) = p      quadratic  W(p) = p^2.

Computed from released counts, the shares err. Where all counts are zero, all areas get the same.

Reference: Ko, Ziani and Fioretto, "Optimal allocation of privacy budget on hierarchical data
release", Section 5.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trellis.errors import InputError

Floats = NDArray[np.float64]

WEIGHT_FUNCTIONS: dict[str, Callable[[Floats], Floats]] = {
    "logarithmic": np.log1p,
    "linear": lambda p: p,
    "quadratic": np.square,
}


@dataclass(frozen=True, slots=True)
class DownstreamErrors:
    """Sums over areas, of shares: the squared bias, the variance, and what goes to the wrong area.

    `misallocated` is the mean part of the sum that is not where it belongs.
    """

    bias_squared: float
    variance: float
    misallocated: float


def shares_of_money(counts: ArrayLike, weights: str) -> Floats:
    """The share of each area; `weights` names a weight function."""
    if weights not in WEIGHT_FUNCTIONS:
        raise InputError(f"No weights {weights!r}; use one of {', '.join(WEIGHT_FUNCTIONS)}.")
    sizes = np.asarray(counts, dtype=np.float64)
    if not sizes.size or not (np.isfinite(sizes) & (sizes >= 0)).all():
        raise InputError("Counts must be numbers of at least zero, and at least one.")
    total = sizes.sum()
    if total == 0:
        return np.full(sizes.shape, 1 / sizes.size)
    worth = WEIGHT_FUNCTIONS[weights](sizes / total)
    return worth / worth.sum()


def downstream_errors(
    truth: ArrayLike, releases: Iterable[ArrayLike], weights: str
) -> DownstreamErrors:
    """How the shares of many releases differ from those of the truth."""
    right = shares_of_money(truth, weights)
    given = np.array([shares_of_money(counts, weights) for counts in releases])
    if given.ndim != 2 or given.shape[1:] != right.shape:
        raise InputError("Give at least one release, each with a count for every area.")
    bias = given.mean(axis=0) - right
    return DownstreamErrors(
        float(bias @ bias),
        float(given.var(axis=0).sum()),
        float(np.abs(given - right).sum(axis=1).mean() / 2),
    )
