"""What can be computed ahead for a kind of release, from public counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from trellis.planning.allocation.targets import Target
from trellis.planning.forecast.outlook import Outlook
from trellis.planning.forecast.useless_margins import Margin
from trellis.spec.sections.planning import PriorSpec
from trellis.workflow.outlook.simulation import Simulation
from trellis.workflow.preparing.prepared import Prepared
from trellis.workflow.progress import Progress

AnyPrepared = TypeVar("AnyPrepared", bound=Prepared, contravariant=True)


class OutlookKind(Protocol[AnyPrepared]):
    """It cannot import true counts, the ledger, or code that draws for a release."""

    def outlook(self, prepared: AnyPrepared) -> Outlook | None:
        """Errors of the tables, and what they count for; None where errors are not known."""
        ...

    def table_counts(
        self, prepared: AnyPrepared, margins: Sequence[Margin], prior: PriorSpec
    ) -> Iterator[NDArray[np.int64]]:
        """What a prior counts in every published table, areas x cells."""
        ...

    def simulate(
        self, prepared: AnyPrepared, prior: PriorSpec, releases: int, targets: Sequence[Target],
        progress: Progress,
    ) -> Simulation:  # fmt: skip
        """Releases of a prior as if it were the truth."""
        ...
