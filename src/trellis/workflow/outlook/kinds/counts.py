"""The outlook of a release of counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from trellis.planning.allocation.targets import Target
from trellis.planning.forecast.outlook import Outlook
from trellis.planning.forecast.useless_margins import Margin
from trellis.spec.counts import CountsSpec
from trellis.spec.sections.planning import PriorSpec
from trellis.workflow.outlook.choose_budget import prior_counts
from trellis.workflow.outlook.simulate_counts import simulate_counts
from trellis.workflow.outlook.simulation import Simulation
from trellis.workflow.preparing.prepared import Prepared
from trellis.workflow.progress import Progress
from trellis.workflow.public.facts import PublicFacts

PreparedCounts = Prepared[CountsSpec, PublicFacts]


class OutlookOfCounts:
    """Errors by level and by category of areas."""

    def outlook(self, prepared: PreparedCounts) -> Outlook | None:
        return Outlook.of(prepared.plan, prepared.hierarchy)

    def table_counts(
        self, prepared: PreparedCounts, margins: Sequence[Margin], prior: PriorSpec
    ) -> Iterator[NDArray[np.int64]]:
        tree, leaves = prepared.hierarchy, _leaves(prepared, prior)
        sums = tree.sum_up(leaves)
        categories = {category.name: category for category in prepared.interests.categories}
        for margin in margins:
            if margin.is_area:
                yield categories[margin.place].sums(leaves)
            else:
                level = tree.index(margin.place)
                yield sums[level][~tree.passes_through[level]]

    def simulate(
        self,
        prepared: PreparedCounts,
        prior: PriorSpec,
        releases: int,
        targets: Sequence[Target],
        progress: Progress,
    ) -> Simulation:
        leaves = _leaves(prepared, prior)
        return simulate_counts(prepared, leaves, releases, targets, progress=progress)


def _leaves(prepared: PreparedCounts, prior: PriorSpec) -> NDArray[np.int64]:
    return prior_counts(prepared.spec, prior, prepared.hierarchy, prepared.plan.schema)


OUTLOOK = OutlookOfCounts()
