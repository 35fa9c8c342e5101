"""What a kind of release does with the records: count them, and add the noise that was charged."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol, TypeVar

from trellis.ingest.reader import Source
from trellis.measure.charged_noise import ChargedNoise
from trellis.spec.sections.planning import PriorSpec
from trellis.workflow.preparing.prepared import Prepared

AnyPrepared = TypeVar("AnyPrepared", bound=Prepared, contravariant=True)
AnyCounts = TypeVar("AnyCounts")


class ConfidentialKind(Protocol[AnyPrepared, AnyCounts]):
    """The confidential half of a kind: the only code that sees true counts."""

    def tabulate(self, prepared: AnyPrepared, source: Source, register: Any) -> AnyCounts:
        """The true table that is to be measured; records that break a rule are refused."""
        ...

    def measure(
        self, into: Path, prepared: AnyPrepared, counts: AnyCounts, noise: ChargedNoise,
        tie_seed: int,
    ) -> None:  # fmt: skip
        """Noisy answers to all planned queries, written into a folder."""
        ...

    def are_those_of(self, prepared: AnyPrepared, counts: AnyCounts, prior: PriorSpec) -> bool:
        """Whether a prior counts the same in every leaf and cell."""
        ...
