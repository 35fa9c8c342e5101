"""What a spec is warned about before anything is spent: margins of error that are of no use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from trellis.model.plans.plan import Plan
from trellis.model.tables.queries import parse_query
from trellis.planning.forecast.useless_margins import (
    Margin,
    published_margins,
    useless_margins,
    without_target,
)
from trellis.spec.planning import OptimalSharesSpec, PriorSpec
from trellis.workflow.preparing.prepare import Prepared


def accuracy_warnings(prepared: Prepared, plan: Plan, prior: PriorSpec | None = None) -> list[str]:
    """One line for each; `plan` has its expected errors, and `prior` comes before the spec's."""
    margins = published_margins(plan, prepared.hierarchy)
    shares, targets = prepared.spec.privacy.shares, prepared.spec.accuracy
    if prior is None and isinstance(shares, OptimalSharesSpec):
        prior = shares.optimal.prior
    if margins and prior is not None:
        margins = list(_beside_counts(prepared, margins, prior))
    found = useless_margins(plan, margins)
    if targets:
        from trellis.workflow.outlook.choose_budget import targets_decide  # optimisers load slowly

        if targets_decide(prepared.spec):
            found += without_target(plan, margins, {t.level or t.area or "" for t in targets})
    return found


def _beside_counts(
    prepared: Prepared, margins: Sequence[Margin], prior: PriorSpec
) -> Iterator[Margin]:
    """Margins with the median of what the prior counts above zero."""
    for margin, counts in zip(margins, _counts(prepared, margins, prior), strict=True):
        positive = counts[counts > 0]
        typical = float(np.median(positive)) if positive.size else None
        yield replace(margin, typical_count=typical)


def _counts(
    prepared: Prepared, margins: Sequence[Margin], prior: PriorSpec
) -> Iterator[NDArray[np.int64]]:
    """What the prior counts in every published table, areas x cells."""
    from trellis.workflow.outlook.choose_budget import prior_counts
    from trellis.workflow.outlook.histogram_priors import prior_histograms

    spec, tree, schema = prepared.spec, prepared.hierarchy, prepared.plan.schema
    if prepared.plan.histogram is not None:
        by_level = prior_histograms(spec, prior, tree, schema)
        for margin in margins:
            level, query = tree.index(margin.place), parse_query(schema, margin.query or "")
            counts = by_level[level].marginal(query.cell_of, query.n_cells)
            yield counts[~tree.passes_through[level]]
        return
    leaves = prior_counts(spec, prior, tree, schema)
    sums = tree.sum_up(leaves)
    categories = {category.name: category for category in prepared.interests.categories}
    for margin in margins:
        if margin.is_area:
            yield categories[margin.place].sums(leaves)
        else:
            level = tree.index(margin.place)
            yield sums[level][~tree.passes_through[level]]
