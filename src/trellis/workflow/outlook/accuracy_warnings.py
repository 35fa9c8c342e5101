"""What a spec is warned about before anything is spent: margins of error that are of no use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from trellis.model.plans.plan import Plan
from trellis.planning.forecast.useless_margins import (
    Margin,
    published_margins,
    useless_margins,
    without_target,
)
from trellis.spec.sections.planning import OptimalSharesSpec, PriorSpec
from trellis.workflow.kinds import outlook_kind
from trellis.workflow.preparing.prepared import Prepared


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
    counted = outlook_kind(prepared.plan.kind, "prior").table_counts(prepared, margins, prior)
    for margin, counts in zip(margins, counted, strict=True):
        positive = counts[counts > 0]
        typical = float(np.median(positive)) if positive.size else None
        yield replace(margin, typical_count=typical)
