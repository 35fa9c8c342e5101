"""One family at a time: from noisy children to whole ones that add up to their parent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from trellis.estimate.chebyshev import project_chebyshev_families
from trellis.estimate.projection import project_l2_families
from trellis.model.arrays import Floats, Ints, Marks
from trellis.model.plans.kinds.flows import FlowDesign, flow_method
from trellis.model.plans.plan import Plan
from trellis.numerics.projection.any_weights import GREATEST_WEIGHT
from trellis.numerics.projection.sparse_support import keep_largest
from trellis.numerics.ties import tie_key


@dataclass(frozen=True, slots=True)
class FamilyRule:
    """How the children of one level are fitted.

    `variance` is that of the level's noise; `penalty` is in standard deviations of it. The seed
    breaks ties by the position of a child on its level, so that slices give what the whole gives.
    """

    method: str
    variance: float
    penalty: float
    seed: int

    @classmethod
    def of(cls, plan: Plan, level: int, tie_seed: int) -> FamilyRule:
        """The rule that makes the release."""
        return cls._of(flow_method(plan).rule, plan, level, tie_seed)

    @classmethod
    def of_descent(cls, plan: Plan, level: int, tie_seed: int) -> FamilyRule:
        """The rule that decides where to measure next."""
        return cls._of(flow_method(plan).descent_rule, plan, level, tie_seed)

    @classmethod
    def _of(cls, method: str, plan: Plan, level: int, tie_seed: int) -> FamilyRule:
        penalty = float(plan.design_as(FlowDesign).penalty or 0)
        return cls(method, plan.queries[level].variance, penalty, (tie_seed + level) % 2**63)

    def fit(self, values: Ints, start: Ints, totals: Ints, first_index: int) -> Ints:
        """Whole numbers of at least zero that sum to `totals` in every family."""
        if self.method == "sparse":
            price = np.full(totals.size, self.penalty**2 * self.variance)
            return self._fit_sparse(values, price, start, totals, first_index)
        return self._project(values, start, totals, first_index)

    def fit_estimates(
        self, estimates: Floats, variances: Floats, start: Ints, totals: Ints, first_index: int
    ) -> Ints:
        """The same from estimates, each with a variance of its own.

        `l2` weighs by it, exactly. The others round the estimates first, and `sparse` asks for a
        price by the mean variance of a family.
        """
        if self.method == "l2":
            weights = 1 / np.maximum(variances, 1 / GREATEST_WEIGHT)
            return project_l2_families(
                estimates, start, totals, weights, tie_seed=self.seed,
                first_index=first_index, workers=1,
            )  # fmt: skip
        values = np.rint(estimates).astype(np.int64)
        if self.method == "sparse":
            mean = np.add.reduceat(variances, start[:-1]) / np.diff(start)
            return self._fit_sparse(values, self.penalty**2 * mean, start, totals, first_index)
        return self._project(values, start, totals, first_index)

    def fit_within(
        self, allowed: Marks, values: Ints, start: Ints, totals: Ints, first_index: int
    ) -> Ints:
        """Those of one family, with zeros outside `allowed`."""
        where = np.flatnonzero(allowed)
        pointer = np.searchsorted(where, start)
        counts = np.zeros(values.size, dtype=np.int64)
        counts[where] = self._project(values[where], pointer, totals, first_index)
        return counts

    def _fit_sparse(
        self, values: Ints, price: Floats, start: Ints, totals: Ints, first_index: int
    ) -> Ints:
        kept = np.empty(values.size, dtype=np.bool_)
        key = tie_key(self.seed)
        keep_largest(values, start, totals, price, key, first_index, kept, 0, totals.size)
        where = np.flatnonzero(kept)
        counts = np.zeros(values.size, dtype=np.int64)
        counts[where] = project_chebyshev_families(
            values[where], np.searchsorted(where, start), totals, tie_seed=self.seed,
            index=first_index + where, workers=1,
        )  # fmt: skip
        return counts

    def _project(self, values: Ints, start: Ints, totals: Ints, first_index: int) -> Ints:
        project = _PROJECTIONS[self.method]
        return project(values, start, totals, tie_seed=self.seed, first_index=first_index,
                       workers=1)  # fmt: skip


_PROJECTIONS: dict[str, Callable[..., Ints]] = {
    "chebyshev": project_chebyshev_families,
    "chebyshev_descending": partial(project_chebyshev_families, order="descending"),
    "l2": project_l2_families,
    "sparse": project_chebyshev_families,
}
