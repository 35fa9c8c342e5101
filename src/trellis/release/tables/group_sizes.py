"""What a release of group sizes has besides its tables: statistics, and how to read both."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trellis.model.plans.kinds.group_sizes import size_method
from trellis.model.plans.plan import Plan
from trellis.model.results.estimates import Estimates
from trellis.release.documents.markdown import plain
from trellis.release.documents.reading_guide import (
    codes_in_markdown,
    confidence_in_words,
    levels_in_markdown,
    protected_in_markdown,
)
from trellis.release.tables.counts import write_level_table
from trellis.release.tables.size_statistics import statistics_table
from trellis.wording import guides as words

STATISTICS = "statistics"
"""The folder next to the tables."""


def write_statistics(
    folder: Path,
    plan: Plan,
    estimates: Estimates,
    groups: Sequence[NDArray[np.int64]],
    csv: bool | None,
) -> None:
    for level, name in enumerate(plan.levels):
        table = statistics_table(plan, estimates, groups, level)
        write_level_table(folder / STATISTICS, name, table, csv)


def size_guide(plan: Plan, estimates: Estimates) -> str:
    """Markdown for data users."""
    return words.GROUP_SIZES.format(
        release=plain(plan.release),
        levels=levels_in_markdown(plan),
        most=plan.schema.n_cells - 1,
        method=plan.method,
        promise=_promise(plan, estimates),
        confidence=confidence_in_words(plan),
        sums_of_errors=words.SUMS_OF_ERRORS,
        codes=codes_in_markdown(f"{plan.levels[-1]}.csv", ["geocode"]),
        protected=protected_in_markdown(plan),
    )


def _promise(plan: Plan, estimates: Estimates) -> str:
    promise = size_method(plan)
    if not promise.adds_up:
        return words.RELAXED.format(broken=_broken_sums(estimates))
    return words.KEEPS_GROUPS if promise.keeps_groups else words.ADDS_UP


def _broken_sums(estimates: Estimates) -> int:
    tree = estimates.hierarchy
    return sum(
        int(np.count_nonzero(tree.sum_children(i, estimates.counts[i + 1]) != estimates.counts[i]))
        for i in range(tree.n_levels - 1)
    )
