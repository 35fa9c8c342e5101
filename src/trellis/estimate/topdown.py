"""Whole, non-negative, consistent counts, made from the root downwards.

Each family takes the whole numbers nearest to its children's values that add up to the parent.
`topdown` uses what was measured on the children themselves. `gls_topdown` uses the estimates of
the children's subtrees, weighted by their precisions, so that what was measured further down
informs the upper levels; the intervals lie around the best linear unbiased estimates.

Reference: for the two-phase idea, Cumings-Menon et al., arXiv:2203.16654 and the TopDown
algorithm of the 2020 US census, Abowd et al., HDSR 2022.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from trellis.errors import SpecError
from trellis.estimate.best_linear import solve_tree
from trellis.estimate.evidence import Evidence, empty_nodes
from trellis.estimate.projection import project_l2, project_l2_families
from trellis.execution.progress import in_parts, part
from trellis.model.arrays import Floats, Ints
from trellis.model.results.estimates import Estimates
from trellis.model.results.measurements import Measurements
from trellis.model.trees.hierarchy import Hierarchy


def estimate_topdown(measurements: Measurements, tie_seed: int) -> Estimates:
    """Least squares family by family, without variances: the plain TopDown step."""
    if measurements.spine is not None:
        raise SpecError("Method topdown has no use for a spine. Use gls_topdown.")
    evidence = Evidence.of(measurements)
    if np.inf in evidence.variance:
        name = measurements.plan.levels[evidence.variance.index(np.inf)]
        raise SpecError(
            f"Method topdown works on measured levels only, but level {name!r} was not measured. "
            "Use gls_topdown."
        )
    # Within a level the variances are equal; only exact levels stand out.
    weights = [
        np.full(len(cells), np.inf) if variance == 0 else None
        for cells, variance in zip(evidence.cells, evidence.variance, strict=True)
    ]
    counts = _project_down(
        measurements.hierarchy, evidence.cells, weights, evidence.root_total, tie_seed
    )
    return Estimates(measurements.hierarchy, measurements.plan.schema, counts)


def estimate_gls_topdown(measurements: Measurements, tie_seed: int) -> Estimates:
    """Best linear unbiased estimates first, then whole numbers downwards."""
    evidence = Evidence.of(measurements).with_empty(empty_nodes(measurements))
    with part(0.0, 0.5):
        solved = solve_tree(measurements.hierarchy, evidence)
    with np.errstate(divide="ignore"):  # an exact area has variance 0 and weight infinity
        weights = [1 / variance for variance in solved.subtree_variance]
    with part(0.5, 1.0):
        counts = _project_down(
            measurements.hierarchy, solved.subtree, weights, evidence.root_total, tie_seed
        )
    return Estimates(
        measurements.hierarchy,
        measurements.plan.schema,
        counts,
        tuple(solved.final),
        solved.std_errors(),
    )


def _project_down(
    hierarchy: Hierarchy,
    values: Sequence[NDArray],
    weights: Sequence[Floats | None],
    root_total: int | None,
    tie_seed: int,
) -> tuple[Ints, ...]:
    """Round the root, then project each family onto its parent, cell by cell.

    Ties are broken by the index of an area and cell in the whole tree, so that no two share one.
    """
    counts = [_root(values[0], root_total, tie_seed)]
    n_nodes = sum(hierarchy.sizes)
    first_index = 1
    for level in in_parts(range(1, hierarchy.n_levels), hierarchy.sizes[1:]):
        columns = [
            project_l2_families(
                values[level][:, cell],
                hierarchy.child_start[level - 1],
                counts[-1][:, cell],
                weights[level],
                tie_seed=tie_seed,
                first_index=first_index + cell * n_nodes,
            )
            for cell in in_parts(range(values[level].shape[1]))
        ]
        counts.append(np.stack(columns, axis=1))
        first_index += hierarchy.size(level)
    return tuple(counts)


def _root(values: NDArray, root_total: int | None, tie_seed: int) -> Ints:
    if root_total is not None:
        return project_l2(values[0], root_total, tie_seed=tie_seed)[np.newaxis]
    return np.maximum(np.rint(values), 0).astype(np.int64)
