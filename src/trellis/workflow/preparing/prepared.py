"""A spec with the plan and the public facts that it leads to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from trellis.model.plans.plan import Plan
from trellis.model.trees.hierarchy import Hierarchy
from trellis.spec import Spec
from trellis.workflow.public.facts import PublicFacts
from trellis.workflow.public.interests import Interests

AnySpec = TypeVar("AnySpec", bound=Spec)
AnyFacts = TypeVar("AnyFacts", bound=PublicFacts)


@dataclass(frozen=True, slots=True)
class Prepared(Generic[AnySpec, AnyFacts]):
    """Everything that is known before any record is read."""

    spec: AnySpec
    plan: Plan
    facts: AnyFacts

    @property
    def hierarchy(self) -> Hierarchy:
        return self.facts.hierarchy

    @property
    def interests(self) -> Interests:
        return self.facts.interests
