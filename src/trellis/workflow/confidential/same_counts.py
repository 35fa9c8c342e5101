"""A prior with the counts of the records: the operator is asked, and nothing is refused.

A refusal would depend on the records: a release would then prove that they differ from the prior.
"""

from __future__ import annotations

import numpy as np

from trellis.confidential.counts import TrueCounts
from trellis.confidential.flows import TrueFlows
from trellis.confidential.histograms import TrueHistograms
from trellis.spec.planning import OptimalSharesSpec
from trellis.workflow.preparing.prepare import Prepared

SAME_COUNTS = (
    "The prior has the counts of the records, in every area. If it was made from them, the shares "
    "computed from it tell about them, outside any budget."
)


def prior_has_counts_of(
    prepared: Prepared, counts: TrueCounts | TrueHistograms | TrueFlows
) -> bool:
    """Whether the prior and the records count the same in every leaf and cell."""
    shares = prepared.spec.privacy.shares
    if not isinstance(shares, OptimalSharesSpec) or (prior := shares.optimal.prior) is None:
        return False
    # Optimisers take a while to import; by now a spec with a prior has imported them.
    from trellis.workflow.outlook.choose_budget import prior_counts
    from trellis.workflow.outlook.histogram_priors import prior_counts_by_cell

    given = prepared.spec, prior, prepared.hierarchy, prepared.plan.schema
    if isinstance(counts, TrueHistograms):
        one, other = counts.leaves, prior_counts_by_cell(*given).leaves
        pairs = ((one.start, other.start), (one.cell, other.cell), (one.count, other.count))
        return all(np.array_equal(*pair) for pair in pairs)
    assert isinstance(counts, TrueCounts)
    return np.array_equal(counts.leaves, prior_counts(*given))
