"""The design of means, and its methods."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from trellis.errors import StructureError
from trellis.model.plans.design import Design
from trellis.model.plans.methods import BOTTOMUP, GLS, GLS_TOPDOWN, Method, by_name
from trellis.model.plans.plan import Plan

MEANS = "means"
PARTS = ("sum", "missing")


@dataclass(frozen=True, slots=True)
class MeansDesign(Design):
    """`at_most` is the largest value that a record may state."""

    kind: ClassVar[str] = MEANS
    methods: ClassVar[Mapping[str, Method]] = by_name([GLS_TOPDOWN, GLS, BOTTOMUP])
    title: ClassVar[str] = "Means of a value"
    described: ClassVar[str] = "Means of a bounded value"
    counted_in: ClassVar[str] = "units of the value"
    divides_records: ClassVar[bool] = False

    at_most: int

    def check(self, plan: Plan) -> None:
        Design.check(self, plan)
        if self.at_most < 1:
            raise StructureError("The largest value must be at least 1.")

    def to_json(self) -> dict[str, Any]:
        return {"at_most": self.at_most}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Self:
        return cls(content["at_most"])
