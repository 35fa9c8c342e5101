"""An audit of edit rules such as `age < 18 requires age >= 18` on the published counts.

Estimates keep edit rules where sums and bounds allow, unless they are only to be audited. Either
way the published counts are checked area by area, and what is left is reported.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trellis.model.plans.kinds.histograms import HistogramDesign
from trellis.model.plans.plan import Plan
from trellis.model.results.histogram_estimates import HistogramEstimates
from trellis.model.tables.rules import edit_rule_cells


def audit_edit_rules(plan: Plan, estimates: HistogramEstimates) -> list[dict[str, Any]]:
    """For each rule and level: areas to which it applies, and those that break it."""
    audit = []
    for rule in plan.design_as(HistogramDesign).edit_rules:
        sides = edit_rule_cells(plan.schema, plan.design_as(HistogramDesign).ordered, rule)
        for level, name in enumerate(plan.levels):
            shown = ~estimates.hierarchy.passes_through[level]
            counts = estimates.counts[level]
            given, needed = (
                counts.marginal(side.astype(np.int32), 2)[shown, 1] > 0 for side in sides
            )
            audit.append(
                {
                    "rule": rule,
                    "level": name,
                    "applies_to": int(given.sum()),
                    "broken_in": int((given & ~needed).sum()),
                }
            )
    return audit
