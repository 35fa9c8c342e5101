"""What a release of group sizes has beside its tables: statistics, and how to read both."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trellis.model.plans.group_sizes import size_method
from trellis.model.plans.plan import Plan
from trellis.model.results.estimates import Estimates
from trellis.release.documents.markdown import plain
from trellis.release.documents.reading_guide import (
    SUMS_OF_ERRORS,
    codes_in_markdown,
    confidence_in_words,
    levels_in_markdown,
    protected_in_markdown,
)
from trellis.release.tables.counts import write_level_table
from trellis.release.tables.size_statistics import statistics_table

STATISTICS = "statistics"
"""The folder beside the tables."""


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
    most = plan.schema.n_cells - 1
    return f"""# {plain(plan.release)}

One table per level, as Parquet; some also as CSV.

{levels_in_markdown(plan)}

Columns: `geocode` (the area), `level`, `size`, `count` (how many groups of the area have that
size), `std_error`, `lower`, `upper`. Sizes run from 0 to {most}; where larger groups exist, they
count as {most}. Mechanism: `{plan.method}`. {_promise(plan, estimates)}

`statistics/` has per area: `groups` (public, exact), `share_of_size_1` (of all groups, those of
size 0 included), `mean_size`, quantiles, and the Gini coefficient of sizes (`gini`). Values are
those of the published table, so sizes beyond {most} enter as {most}. `lower` and `upper` enclose
the true value with the stated confidence; `gini` has no interval.

## Margins of error

`std_error` belongs to the best linear unbiased estimate of the count, made from all measurements.
The published `count` uses more: no count is negative, and sizes have an order. `lower` and `upper`
enclose the true count with the stated confidence: an interval around the unbiased estimate, rounded
to whole numbers, kept between zero and the number of groups of the area, and widened where needed
to contain the published count. {confidence_in_words(plan)}

{SUMS_OF_ERRORS} Use the published level that is the sum.

Noise was added once, to protect people. It is independent of errors that the data had before.

{codes_in_markdown(f"{plan.levels[-1]}.csv", ["geocode"])}

{protected_in_markdown(plan)}
"""


def _promise(plan: Plan, estimates: Estimates) -> str:
    promise = size_method(plan)
    if not promise.adds_up:
        broken = _broken_sums(estimates)
        return (
            "It is relaxed, for comparison with others: counts of areas need not add up to the "
            f"area above them, and in {broken:,} places (an area and a size) they do not."
        )
    whole = "Counts of areas add up to the count of the area above them, for every size, and all "
    if promise.keeps_groups:
        return f"{whole}sizes of an area to its number of groups."
    return f"{whole}sizes of the first area to the number of groups; of single areas they need not."


def _broken_sums(estimates: Estimates) -> int:
    tree = estimates.hierarchy
    return sum(
        int(np.count_nonzero(tree.sum_children(i, estimates.counts[i + 1]) != estimates.counts[i]))
        for i in range(tree.n_levels - 1)
    )
