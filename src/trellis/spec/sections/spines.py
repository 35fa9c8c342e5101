"""Keys for areas of interest and for the spine."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from trellis.model.trees.spine import MOST_CUTOFF
from trellis.spec.sections.base import Model
from trellis.spec.sections.values import Exact, Name, PathText

Names = Annotated[tuple[Name, ...], Field(min_length=1)]
Cutoff = Annotated[int, Field(ge=0, le=MOST_CUTOFF, strict=True)]


class AreasSpec(Model):
    """A category of areas of interest: a public file with areas of a level and their entities.

    Under the name of a published level there is no file, only the weight of the level.
    """

    source: PathText | None = None
    public: bool = False
    area: str | None = None
    entity: str | None = None
    level: Name | None = None
    within: Name | None = None
    outside: tuple[str, ...] = ()
    skip_unknown: bool = False
    weight: Exact = Fraction(1)

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if (self.area is None) != (self.entity is None):
            raise ValueError("area (the column of area codes) and entity go together")
        if self.weight < 0:
            raise ValueError("a weight is at least 0")
        return self


class BranchSpec(Model):
    """Put the union of some areas on the spine."""

    level: Name
    inside: Names


class RegroupSpec(Model):
    """Redraw the level above the leaves."""

    areas: Names
    fanout_cutoff: Cutoff = 12
    cut: Literal["fill", "even"] = "fill"


class GroupSpec(Model):
    """Put a level of groups above a level."""

    level: Name
    areas: Names
    fanout_cutoff: Cutoff = 12
    name: Name | None = None


class BypassSpec(Model):
    """Bypass parents; there is nothing to set."""


class StepSpec(Model):
    """One reduction of the spine."""

    branch: BranchSpec | None = None
    regroup_leaves: RegroupSpec | None = None
    group_level: GroupSpec | None = None
    bypass: BypassSpec | None = None

    @model_validator(mode="after")
    def _one(self) -> Self:
        if len(self.model_fields_set) != 1 or all(value is None for _, value in self):
            raise ValueError(
                "write one of branch, regroup_leaves, group_level and bypass for each step"
            )
        return self


def _to_step(value: Any) -> Any:
    """`bypass` alone is short for `bypass: {}`."""
    if value == "bypass":
        return {"bypass": {}}
    if isinstance(value, dict) and "bypass" in value and value["bypass"] is None:
        return {**value, "bypass": {}}
    return value


Steps = tuple[Annotated[StepSpec, BeforeValidator(_to_step)], ...]
"""The reductions of a spine, in order."""
