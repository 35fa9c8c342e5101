"""What a kind of release does with measurements: estimate, release, explain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from trellis.evaluate.report import Sections
from trellis.model.plans.plan import Plan
from trellis.model.trees.hierarchy import Hierarchy
from trellis.workflow.public.facts import PublicFacts
from trellis.workflow.public.run_folder import RunFolder, RunIdentity

AnyFacts = TypeVar("AnyFacts", bound=PublicFacts)
AnyEstimates = TypeVar("AnyEstimates")


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredRun(Generic[AnyFacts]):
    """A run folder with measurements, and what was known before they were made."""

    folder: RunFolder
    plan: Plan
    facts: AnyFacts
    identity: RunIdentity

    @property
    def hierarchy(self) -> Hierarchy:
        return self.facts.hierarchy


class PublicKind(Protocol[AnyFacts, AnyEstimates]):
    """The public half of a kind. It cannot import true counts, the ledger, or code that draws."""

    @property
    def sections(self) -> Sections:
        """Of the report."""
        ...

    def facts(self, folder: RunFolder, plan: Plan) -> AnyFacts:
        """The public facts of a run."""
        ...

    def estimate(self, run: MeasuredRun[AnyFacts], into: Path) -> AnyEstimates:
        """Estimates from the measurements, written into a folder and handed on."""
        ...

    def estimates(self, run: MeasuredRun[AnyFacts]) -> AnyEstimates:
        """The estimates that the run folder has."""
        ...

    def release(self, run: MeasuredRun[AnyFacts], estimates: AnyEstimates, into: Path) -> None:
        """Tables, and how to read them."""
        ...

    def with_method(
        self, spec: Mapping[str, Any], run: MeasuredRun[AnyFacts], method: str,
        penalty: Fraction | None,
    ) -> tuple[dict[str, Any], Plan]:  # fmt: skip
        """Spec and plan of the same measurements estimated by another method."""
        ...

    def left_out(self, spec: Mapping[str, Any], plan: Plan, method: str) -> list[str]:
        """Keys of a spec that another method cannot keep, and does without."""
        ...
