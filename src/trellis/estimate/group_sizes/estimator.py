"""From the measurements of a release of group sizes to estimates, with standard errors.

Counts come from the mechanism that the plan names. Intervals lie around the best linear unbiased
estimate from all levels, which uses neither signs nor order of sizes: each size of the measured
table is a tree of its own. Cumulative counts are turned into counts by size as n_s = c_s - c_{s-1},
with the variance of a difference of independent estimates; c_{-1} is 0 and c_N the public number of
groups, without error.
"""

from __future__ import annotations

import numpy as np

from trellis.estimate.best_linear import solve_tree
from trellis.estimate.evidence import Evidence, empty_nodes
from trellis.estimate.group_sizes.mechanisms import MECHANISMS
from trellis.model.arrays import Floats, Ints
from trellis.model.plans.kinds.group_sizes import GroupSizesDesign
from trellis.model.results.estimates import Estimates
from trellis.model.results.measurements import Measurements
from trellis.model.tables.queries import TOTAL
from trellis.privacy.group_size_changes import SizeQuery


def estimate_group_sizes(measurements: Measurements, tie_seed: int) -> Estimates:
    """Whole tables of groups by size; measurements and public numbers of groups are all it needs.

    The same seed gives the same answer.
    """
    plan, hierarchy = measurements.plan, measurements.hierarchy
    mechanism = MECHANISMS[plan.method.name]
    evidence = Evidence.of(measurements)
    groups = group_numbers(measurements)
    counts = mechanism.post_process(
        hierarchy,
        evidence.cells,
        groups[-1],
        plan.design_as(GroupSizesDesign).weights,
        tie_seed=tie_seed,
    )
    if mechanism.keeps_groups:  # others may publish groups of an area that has none
        evidence = evidence.with_empty(empty_nodes(measurements))
    solved = solve_tree(hierarchy, evidence)
    centre, variance = solved.final, solved.final_variance
    if mechanism.query is SizeQuery.CUMULATIVE:
        centre = [
            np.diff(np.column_stack([values, total]), axis=1, prepend=0)
            for values, total in zip(centre, groups, strict=True)
        ]
    std_error = [_std_error(mechanism.query, v, plan.schema.n_cells) for v in variance]
    return Estimates(
        hierarchy, plan.schema, tuple(counts), tuple(centre), tuple(std_error), mechanism.adds_up
    )


def group_numbers(measurements: Measurements) -> list[Ints]:
    """The public, exact numbers of groups of the areas of each level."""
    answers = [measurements.answer(level, TOTAL) for level in measurements.plan.levels]
    return [answer[0][:, 0] for answer in answers if answer is not None]


def _std_error(query: SizeQuery, variance: Floats, n_sizes: int) -> Floats:
    """Areas x sizes; inner sizes differ from two noisy cumulative counts, the ends from one."""
    terms = np.ones(n_sizes)
    if query is SizeQuery.CUMULATIVE:
        terms[1:-1] = 2
    return np.sqrt(variance[:, np.newaxis] * terms)
