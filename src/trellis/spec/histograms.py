"""The spec of a release of histograms: attributes, recodes, strategy and rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, Literal

from trellis.errors import SpecError, StructureError
from trellis.model.plans.kinds.histograms import USED, HistogramDesign
from trellis.model.plans.methods import Method
from trellis.model.tables.schema import Recode, Schema
from trellis.spec.counts import CountsData, TabularSpec
from trellis.spec.release import EstimateSpec
from trellis.spec.sections.attributes import Attribute, Attributes, RecodeSpec, column_faults
from trellis.spec.sections.cells import join_cell, split_cell
from trellis.spec.sections.output import OutputSpec
from trellis.spec.sections.rules import ConstraintSpec, EditRule, ZerosField
from trellis.spec.sections.schema_key import with_schema_key
from trellis.spec.sections.strategy import AnyStrategy
from trellis.spec.sections.values import Name

NO_AREAS_YET = (
    "`{}` is not supported for `kind: histograms` yet. Take it out, or release counts of these "
    "cells (kind: counts)."
)


class HistogramsData(CountsData):
    """As for counts; `attributes` are columns of a long table that have other names."""

    attributes: dict[Name, str] | None = None


class HistogramsEstimate(EstimateSpec):
    """How consistent estimates are made."""

    method: Literal["gls_topdown", "topdown", "gls"] = "gls_topdown"
    edit_rules: Literal["enforce", "audit"] | None = None
    passes: tuple[str, ...] | None = None


class HistogramsOutput(OutputSpec):
    """What is written, and what is measured for it."""

    tables: dict[Name, tuple[str, ...]] | None = None
    microdata: bool | None = None
    measurements: Literal["complete", "used"] | None = None


with with_schema_key():

    class HistogramsSpec(TabularSpec):
        """Counts of records by all combinations of attributes."""

        title: ClassVar[str] = "histograms of attributes"
        methods: ClassVar[Mapping[str, Method]] = HistogramDesign.methods
        not_supported: ClassVar[tuple[str, ...]] = ("areas", "spine")

        kind: Literal["histograms"] = "histograms"
        data: HistogramsData
        estimate: HistogramsEstimate = HistogramsEstimate()
        output: HistogramsOutput = HistogramsOutput()
        schema: Attributes  # type: ignore[assignment]
        recodes: dict[Name, RecodeSpec] | None = None
        strategy: AnyStrategy | None = None
        constraints: tuple[ConstraintSpec, ...] | None = None
        structural_zeros: ZerosField | None = None
        edit_rules: tuple[EditRule, ...] | None = None

        @property
        def attributes(self) -> Mapping[str, Attribute]:
            """The declared attributes."""
            declared: Any = self.schema
            return declared

        def cell_schema(self) -> Schema:
            """The declared cells with their recodes."""
            return Schema(
                {name: attribute.categories for name, attribute in self.attributes.items()},
                {n: Recode(r.of, r.groups) for n, r in (self.recodes or {}).items()},
            )

        def columns(self) -> tuple[list[str], list[str]]:
            texts, numbers = super().columns()
            if self.data.cells is None:
                texts += [(self.data.attributes or {}).get(name, name) for name in self.attributes]
            return texts, numbers

        @property
        def notes(self) -> list[str]:
            return [*super().notes, *self._unsaid_bindings()]

        def _unsaid_bindings(self) -> Iterator[str]:
            """A line for each rule that binds the records because `binds` is left out."""
            named = [f"constraint {c.name!r}" for c in self.constraints or () if c.binds is None]
            if self.structural_zeros is not None and self.structural_zeros.binds is None:
                named.append("structural_zeros")
            for rule in named:
                yield (
                    f"{rule} binds the records, because it does not say otherwise: records that "
                    "break it are refused, and only changes that keep it are protected. Write "
                    "binds: records to keep this, or binds: output to bind the published counts "
                    "alone."
                )

        @property
        def required_of_records(self) -> tuple[str, ...]:
            bounds = [c.name for c in self.constraints or () if c.binds_records]
            zeros = self.structural_zeros
            return (
                *(["the structural zeros"] if zeros is not None and zeros.binds_records else []),
                *(f"the bounds of constraint {name!r}" for name in bounds),
            )

        def _places(self) -> dict[str, Any]:
            return {**super()._places(), "constraints": {"__all__": {"source"}}}

        # -- what does not go together ----------------------------------------------------------

        def _faults(self) -> Iterator[str]:
            yield from super()._faults()
            yield from self._rule_faults()
            for key in self.not_supported:
                if getattr(self, key):
                    yield NO_AREAS_YET.format(key)
            if self.estimate.method == "gls":
                yield from self._faults_of_real_estimates()
            try:
                schema = self.cell_schema()
            except StructureError as error:
                yield f"schema: {error}"
                return
            yield from self._schema_faults(schema)

        def _rule_faults(self) -> Iterator[str]:
            for constraint in self.constraints or ():
                if self.comes_with_records(constraint.source):
                    yield (
                        f"constraints: {constraint.name}: the bounds come from the confidential "
                        "file. Bounds are published and not protected: name a public file."
                    )
            if self.estimate.edit_rules and not self.edit_rules:
                yield "estimate.edit_rules goes with edit_rules: state the rules, or take it out."
            if self.output.measurements == USED and self.estimate.method != "topdown":
                yield (
                    "output.measurements: used leaves out measurements, and "
                    f"{self.estimate.method} reads all of them. Set estimate.method to topdown, or "
                    "output.measurements to complete."
                )

        def _faults_of_real_estimates(self) -> Iterator[str]:
            """Real estimates may be negative: they keep no rule, and are not a list of records."""
            unfit = {
                "output.microdata": self.output.microdata,
                "constraints": self.constraints,
                "structural_zeros": self.structural_zeros,
                "edit_rules": self.edit_rules,
                "estimate.passes": self.estimate.passes,
            }
            if named := [key for key, value in unfit.items() if value]:
                yield (
                    f"{', '.join(named)}: cannot go with estimate.method gls, whose estimates are "
                    "real numbers without bounds. Take them out, or use gls_topdown."
                )
            if self.output.tables is not None and not any(self.output.tables.values()):
                yield "output.tables: estimate.method gls publishes only tables. Name at least one."

        def _schema_faults(self, schema: Schema) -> Iterator[str]:
            yield from column_faults("schema", schema.names)
            yield from column_faults("recodes", [name for name, _ in schema.recodes])
            if self.data.cells is not None:
                if self.data.attributes is not None:
                    yield "data: use attributes (a long table) or cells (a wide one), not both."
                try:
                    wide_cells(schema, self.data.cells)
                except SpecError as error:
                    yield from error.faults
            for name in self.data.attributes or {}:
                if name not in schema.names:
                    listed = ", ".join(schema.names)
                    yield f"data.attributes names {name!r}; the attributes are {listed}."


def wide_cells(schema: Schema, cells: Iterable[str]) -> dict[int, str]:
    """The position of each cell of a wide table, and its name in the spec."""
    # Looked up by attribute: a list of all cells may be too long for any machine.
    places = [{c: i for i, c in enumerate(categories)} for categories in schema.categories]
    named: dict[int, str] = {}
    faults = []
    for name in cells:
        cell = split_cell(name)
        if len(cell) != len(places) or any(c not in p for c, p in zip(cell, places, strict=True)):
            example = join_cell([categories[0] for categories in schema.categories])
            faults.append(
                f"data.cells: {name!r} is not a cell; write one category of each attribute with "
                f"commas between (and quotes around a category that has a comma): {example}."
            )
            continue
        position = 0
        for category, place in zip(cell, places, strict=True):
            position = position * len(place) + place[category]
        if position in named:
            faults.append(f"data.cells lists {join_cell(cell)!r} twice.")
        named[position] = name
    if faults:
        raise SpecError(*faults)
    return named
