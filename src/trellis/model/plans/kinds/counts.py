"""The design of a release of counts: records by cell of a table, for every area."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from trellis.model.plans.design import Design
from trellis.model.plans.methods import BOTTOMUP, GLS, GLS_TOPDOWN, TOPDOWN, Method, by_name
from trellis.wording.kinds import KINDS


@dataclass(frozen=True, slots=True)
class CountsDesign(Design):
    """Counts have nothing that other kinds do not have."""

    kind: ClassVar[str] = "counts"
    methods: ClassVar[Mapping[str, Method]] = by_name([GLS_TOPDOWN, TOPDOWN, GLS, BOTTOMUP])
    title: ClassVar[str] = KINDS["counts"]["title"]
    described: ClassVar[str] = KINDS["counts"]["described"]
    more_budget: ClassVar[str] = "a larger share (privacy.shares), or a target (accuracy)"

    def to_json(self) -> dict[str, Any]:
        return {}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Self:
        del content
        return cls()
