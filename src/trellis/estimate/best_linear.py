"""Best linear unbiased estimates of cells on the whole tree.

Cells of one level share their variance, so the recursions of `trellis.numerics.trees.gls` run on
all cells at once. An exact total T of the root's C cells is orthogonal to their contrasts and
enters in one place: with the root's estimates u_1..u_C of variance v each,

    u_i <- u_i + (T - sum_j u_j) / C,    v <- v (1 - 1/C).

Each is then the conditional estimate given T, and the downward pass carries it on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trellis.estimate.evidence import Evidence, empty_nodes
from trellis.execution.executor import map_kernel
from trellis.model.arrays import Floats
from trellis.model.results.estimates import Estimates
from trellis.model.results.measurements import Measurements
from trellis.model.trees.hierarchy import Hierarchy
from trellis.numerics.trees import gls as tree_gls


@dataclass(frozen=True, slots=True, eq=False)
class TreeEstimates:
    """Per level: estimates from each area's own subtree and from everything, with variances."""

    subtree: list[Floats]
    subtree_variance: list[Floats]
    final: list[Floats]
    final_variance: list[Floats]

    def std_errors(self) -> tuple[Floats, ...]:
        """One number per cell; the cells of an area share it."""
        return tuple(
            np.broadcast_to(np.sqrt(variance)[:, np.newaxis], values.shape)
            for variance, values in zip(self.final_variance, self.final, strict=True)
        )


def solve_tree(hierarchy: Hierarchy, evidence: Evidence) -> TreeEstimates:
    """Both passes, over all cells."""
    variance = tree_gls.variances_up(hierarchy, evidence.variance, map_kernel)
    subtree = tree_gls.estimates_up(
        hierarchy, evidence.cells, evidence.variance, variance, map_kernel
    )
    if evidence.root_total is not None:
        n_cells = subtree[0].shape[1]
        gap = evidence.root_total - subtree[0].sum()
        subtree[0] = subtree[0] + gap / n_cells
        variance[0] = variance[0] * (1 - 1 / n_cells)
    return TreeEstimates(
        subtree,
        variance,
        tree_gls.estimates_down(hierarchy, subtree, variance, map_kernel),
        tree_gls.variances_down(hierarchy, variance, map_kernel),
    )


def estimate_gls(measurements: Measurements, tie_seed: int) -> Estimates:
    """Real-valued estimates: unbiased, consistent, possibly negative."""
    del tie_seed  # nothing is rounded
    evidence = Evidence.of(measurements).with_empty(empty_nodes(measurements))
    solved = solve_tree(measurements.hierarchy, evidence)
    return Estimates(
        measurements.hierarchy,
        measurements.plan.schema,
        tuple(solved.final),
        tuple(solved.final),
        solved.std_errors(),
    )
