"""The spec of a release of group sizes: how many groups of an area have which size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from trellis.model.plans.kinds.group_sizes import SIZE_METHODS
from trellis.model.plans.methods import Method
from trellis.spec.public_files import REGISTER
from trellis.spec.release import DataSpec, EstimateSpec, Spec
from trellis.spec.sections.base import Model
from trellis.spec.sections.planning import AnyShares
from trellis.spec.sections.privacy import PrivacySpec
from trellis.spec.sections.sources import SourceField
from trellis.spec.sections.values import Exact, Name

_UNFIT = {"group": ("size", "groups"), "size": ("quantity",)}
"""By the form of the data: keys that do not go with it."""


class GroupSizesData(DataSpec):
    """Records with the group they belong to, or a table of how many groups have which size."""

    area: str | None = None
    group: str | None = None
    quantity: str | None = None
    max_quantity: int = Field(default=1, ge=1, le=1_000_000, strict=True)
    size: str | None = None
    groups: str | None = None

    def columns(self) -> tuple[list[str], list[str]]:
        texts, numbers = [self.area, self.group], [self.quantity, self.size, self.groups]
        return [c for c in texts if c is not None], [c for c in numbers if c is not None]


class RegisterSpec(Model):
    """The public register: groups and their areas, or the number of groups by area."""

    source: SourceField | None = None
    area: str
    group: str | None = None
    groups: str | None = None

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        if (self.group is None) == (self.groups is None):
            raise ValueError(
                "give group (one row per group) or groups (the number of groups of an area)"
            )
        return self


class SizesSpec(Model):
    """Sizes run from 0 to the cap."""

    cap: int = Field(ge=1, le=100_000, strict=True)
    top_code: bool = False


class GroupSizesPrivacy(PrivacySpec):
    """Shares have no default for this kind."""

    shares: AnyShares  # pyright: ignore[reportGeneralTypeIssues]


class ExactGroupsSpec(Model):
    """Numbers of groups are published exactly."""

    groups: bool = False


class GroupSizesEstimate(EstimateSpec):
    """How consistent estimates are made."""

    method: Literal[
        "histogram_relaxed",
        "histogram_exact",
        "cumulative_relaxed",
        "cumulative_exact",
        "cumulative_joint",
    ] = "cumulative_joint"
    weights: dict[Name, Exact] | None = None


class GroupSizesSpec(Spec):
    """Groups by size."""

    title: ClassVar[str] = "groups by size"
    methods: ClassVar[Mapping[str, Method]] = SIZE_METHODS

    kind: Literal["group_sizes"] = "group_sizes"
    data: GroupSizesData
    privacy: GroupSizesPrivacy
    unprotected: ExactGroupsSpec = ExactGroupsSpec()
    estimate: GroupSizesEstimate = GroupSizesEstimate()
    sizes: SizesSpec
    group_register: RegisterSpec

    def _faults(self) -> Iterator[str]:
        yield from self._faults_of_the_kind()
        yield from super()._faults()
        if self.comes_with_records(self.group_register.source):
            yield REGISTER

    def _faults_of_the_kind(self) -> Iterator[str]:
        data, listed = self.data, self.group_register
        if not self.unprotected.groups:
            yield (
                "The number of groups of every area is public through the register and published "
                "exactly. Confirm this: unprotected: {groups: true}."
            )
        is_records = data.group is not None
        if is_records == (data.size is not None):
            yield (
                "data: give group (one row per record, with the group it belongs to), or area, "
                "size and groups (a table of how many groups have which size)."
            )
            return
        form = "group" if is_records else "size"
        for key in _UNFIT[form]:
            if getattr(data, key) is not None:
                yield f"data.{key} does not go with data.{form}."
        needed = (
            {"group_register.group": listed.group}
            if is_records
            else {
                "data.area": data.area,
                "data.groups": data.groups,
                "group_register.groups": listed.groups,
            }
        )
        for key in (key for key, value in needed.items() if value is None):
            yield (
                f"Missing key {key!r}: records go with a register of groups (group), tables of "
                "sizes with the declared number of groups of every area (groups)."
            )
        if data.max_quantity != 1 and is_records and data.quantity is None:
            yield "data.max_quantity goes with data.quantity: without it, each record adds 1."

    @property
    def needs_register(self) -> bool:
        return True

    @property
    def required_of_records(self) -> tuple[str, ...]:
        size = f"a size of at most {self.sizes.cap} of each group"
        quantity = f"a quantity of at most {self.data.max_quantity} in each record"
        return (
            *([] if self.sizes.top_code else [size]),
            *([] if self.data.quantity is None else [quantity]),
        )

    def _places(self) -> dict[str, Any]:
        return {**super()._places(), "group_register": {"source"}}
