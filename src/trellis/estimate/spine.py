"""From the internal tree back to what is published: levels as declared, and areas of interest.

Counts are sums of leaves, so everything that is published adds up. Standard errors are those of the
best linear unbiased estimates on the tree that was measured, whatever the shape of an area.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trellis.model.results.area_estimates import AreaEstimates
from trellis.model.results.estimates import Estimates
from trellis.model.trees.areas import Category
from trellis.model.trees.hierarchy import Hierarchy
from trellis.model.trees.spine import Spine
from trellis.numerics.trees.area_errors import AreaErrors


def carry_back(
    estimates: Estimates, published: Hierarchy, spine: Spine, errors: AreaErrors
) -> Estimates:
    """Estimates of the published levels, from those on the spine."""
    counts = _published(published, spine, estimates.counts[-1])
    if estimates.centre is None:
        return Estimates(published, estimates.schema, counts)
    std_error = []
    for level, values in enumerate(counts):
        category = Category.of_level(published, level).carried(spine.leaf_order)
        one = errors.of(category)[:, np.newaxis]
        std_error.append(np.broadcast_to(one, values.shape))
    centre = _published(published, spine, estimates.centre[-1])
    return Estimates(published, estimates.schema, counts, centre, tuple(std_error))


def _published(published: Hierarchy, spine: Spine, leaves: NDArray) -> tuple[NDArray, ...]:
    back = np.empty_like(leaves)
    back[spine.leaf_order] = leaves
    return tuple(published.sum_up(back))


def estimate_areas(
    estimates: Estimates, category: Category, spine: Spine | None, errors: AreaErrors | None
) -> AreaEstimates:
    """The entities of a category, from the published leaves."""
    counts = category.sums(estimates.counts[-1])
    if estimates.centre is None or errors is None:
        return AreaEstimates(category, counts)
    carried = category if spine is None else category.carried(spine.leaf_order)
    std_error = np.broadcast_to(errors.of(carried)[:, np.newaxis], counts.shape)
    return AreaEstimates(category, counts, category.sums(estimates.centre[-1]), std_error)
