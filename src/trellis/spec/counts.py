"""The spec of a release of counts: records by cell, for every area of every level."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Literal, Self

from pydantic import model_validator

from trellis.model.plans.kinds.counts import CountsDesign
from trellis.model.plans.methods import Method
from trellis.spec.public_files import undeclared_interests
from trellis.spec.release import DataSpec, EstimateSpec, Spec
from trellis.spec.sections.base import Model
from trellis.spec.sections.cells import SAFE_CELL, CellForm, check_cells, parse_cell
from trellis.spec.sections.spines import AreasSpec, Steps
from trellis.spec.sections.values import CellName, Name


class CountsData(DataSpec):
    """One row per record, a long table with counts, or a wide table with cells."""

    area: str
    cells: dict[CellName, str] | None = None
    count: str | None = None

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        if self.cells is not None and self.count is not None:
            raise ValueError("use cells (a wide table) or count (a long table), not both")
        if self.cells is not None:
            check_cells(self.cell_forms)
        return self

    @property
    def cell_forms(self) -> dict[str, CellForm]:
        """Each cell of a wide table as columns that are added or subtracted."""
        return {name: parse_cell(name, text) for name, text in (self.cells or {}).items()}

    def columns(self) -> tuple[list[str], list[str]]:
        counted = [] if self.count is None else [self.count]
        return [self.area], [*counted, *(c for form in self.cell_forms.values() for c in form)]


class ExactTotalsSpec(Model):
    """Levels whose totals are published exactly."""

    totals: tuple[str, ...] = ()


class CountsEstimate(EstimateSpec):
    """How consistent estimates are made."""

    method: Literal["gls_topdown", "topdown", "gls", "bottomup"] = "gls_topdown"


class TabularSpec(Spec):
    """What counts and histograms have in common."""

    can_be_planned: ClassVar[bool] = True

    data: CountsData
    unprotected: ExactTotalsSpec = ExactTotalsSpec()
    areas: dict[Name, AreasSpec] = {}  # noqa: RUF012 (pydantic copies it)
    spine: Steps = ()

    def _faults(self) -> Iterator[str]:
        yield from super()._faults()
        for name, listed in self.areas.items():
            if self.comes_with_records(listed.source) and not listed.public:
                yield undeclared_interests(name)

    def _places(self) -> dict[str, Any]:
        return {
            **super()._places(),
            "areas": {"__all__": {"source"}} if self.areas else True,
            **({} if self.spine else {"spine": True}),
        }


class CountsSpec(TabularSpec):
    """Counts of records by cell."""

    title: ClassVar[str] = "counts of records"
    methods: ClassVar[Mapping[str, Method]] = CountsDesign.methods

    kind: Literal["counts"] = "counts"
    estimate: CountsEstimate = CountsEstimate()

    def _faults(self) -> Iterator[str]:
        yield from super()._faults()
        for name in self.data.cells or {}:
            if not SAFE_CELL.fullmatch(name):
                yield (
                    f"data.cells: {name!r} cannot name a cell: use letters, digits, spaces, "
                    "commas, dots, hyphens, plus signs and underscores (200 at most)."
                )
