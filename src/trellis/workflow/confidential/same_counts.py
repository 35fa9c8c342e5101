"""A prior with the counts of the records: the operator is asked, and nothing is refused.

A refusal would depend on the records: a release would then prove that they differ from the prior.
"""

from __future__ import annotations

from typing import Any

from trellis.spec.sections.planning import OptimalSharesSpec
from trellis.workflow.kinds import confidential_kind
from trellis.workflow.preparing.prepared import Prepared

SAME_COUNTS = (
    "The prior has the counts of the records, in every area. If it was made from them, the shares "
    "computed from it reveal something about them, outside any budget."
)


def prior_has_counts_of(prepared: Prepared, counts: Any) -> bool:
    """Whether the prior and the records count the same in every leaf and cell."""
    shares = prepared.spec.privacy.shares
    if not isinstance(shares, OptimalSharesSpec) or (prior := shares.optimal.prior) is None:
        return False
    return confidential_kind(prepared.plan.kind).are_those_of(prepared, counts, prior)
