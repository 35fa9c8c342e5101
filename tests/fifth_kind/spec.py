"""The spec of means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field

from fifth_kind.design import MeansDesign
from trellis.model.plans.methods import Method
from trellis.spec.release import DataSpec, EstimateSpec, Spec


class MeansData(DataSpec):
    """One row per record, with a whole number from 0 to `at_most`."""

    area: str
    value: str
    at_most: int = Field(ge=1, le=10_000_000, strict=True)

    def columns(self) -> tuple[list[str], list[str]]:
        return [self.area], [self.value]


class MeansEstimate(EstimateSpec):
    """How consistent estimates are made."""

    method: Literal["gls_topdown", "gls", "bottomup"] = "gls_topdown"


class MeansSpec(Spec):
    """Sums of a value, and what is missing to its bound."""

    title: ClassVar[str] = "means of a value"
    methods: ClassVar[Mapping[str, Method]] = MeansDesign.methods

    kind: Literal["means"] = "means"
    data: MeansData
    estimate: MeansEstimate = MeansEstimate()

    @property
    def required_of_records(self) -> tuple[str, ...]:
        return (f"a value of at most {self.data.at_most} in each record",)
