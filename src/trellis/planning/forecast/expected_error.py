"""Standard errors of the estimates, foreseen from the plan alone.

The variance of the best linear unbiased estimate depends on the tree and the noise, not on the
counts, so it can be shown before anything is spent.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf

import numpy as np

from trellis.model.plans.forecast import ExpectedError, Forecast
from trellis.model.plans.plan import Plan
from trellis.model.plans.query import PlannedQuery
from trellis.model.tables.queries import DETAILED, TOTAL
from trellis.model.trees.hierarchy import Hierarchy
from trellis.planning.forecast.level_variances import level_variances
from trellis.privacy.group_size_changes import SizeQuery


def with_expected_errors(plan: Plan, hierarchy: Hierarchy) -> Plan:
    """The plan with one line per level; methods without variances get none."""
    if not plan.method.has_variances:
        return plan
    has_sum = plan.cell_query == DETAILED and plan.query(plan.levels[0], TOTAL) is not None
    # The exact sum of the root's cells leaves their contrasts only.
    root_part = 1 - 1 / plan.schema.n_cells if has_sum else 1.0
    final = level_variances(hierarchy, [_variance(plan, name) for name in plan.levels], root_part)
    # A count by size is the difference of two cumulative ones, except at the ends.
    factor = 2 if plan.cell_query == SizeQuery.CUMULATIVE else 1
    lines = []
    for level, variances in enumerate(final):
        shown = np.sqrt(factor * variances[~hierarchy.passes_through[level]])
        lines.append(
            ExpectedError(
                plan.levels[level],
                shown.size,
                float(shown.min()),
                float(np.median(shown)),
                float(shown.max()),
            )
        )
    return replace(plan, forecast=Forecast(tuple(lines)))


def with_own_noise(plan: Plan) -> Plan:
    """The same where an estimate is as uncertain as its own measurement, at most."""
    return replace(plan, forecast=Forecast(tuple(map(_own_noise, plan.queries, plan.areas))))


def _own_noise(query: PlannedQuery, nodes: int) -> ExpectedError:
    error = query.variance**0.5
    return ExpectedError(query.level, nodes, error, error, error)


def _variance(plan: Plan, level: str) -> float:
    query = plan.query(level, plan.cell_query)
    return inf if query is None else query.assumed_variance
