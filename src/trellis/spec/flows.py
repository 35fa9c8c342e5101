"""The spec of a release of flows: trips between areas of origin and of destination."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from trellis.model.plans.kinds.flows import DEFAULT_PENALTY, FLOW_METHODS, MOST_PENALTY
from trellis.model.plans.methods import Method
from trellis.model.tables.schema import COLUMNS
from trellis.spec.release import PLACES_OF_A_HIERARCHY, DataSpec, EstimateSpec, Spec
from trellis.spec.sections.base import Model
from trellis.spec.sections.hierarchies import HierarchySpec
from trellis.spec.sections.schema_key import with_schema_key
from trellis.spec.sections.values import Exact, Name


class FlowsData(DataSpec):
    """One row per trip, or a table of numbers of trips."""

    origin: str
    destination: str
    count: str | None = None
    unit: str | None = None

    def columns(self) -> tuple[list[str], list[str]]:
        unit = [] if self.unit is None else [self.unit]
        return [self.origin, self.destination, *unit], [] if self.count is None else [self.count]


class TripsSpec(Model):
    """How many trips a unit has, and what happens to more."""

    number: Literal["exactly", "at_most"] | None = None
    distinct: bool = False
    above: Literal["reject", "cap"] = "reject"


class FlowsEstimate(EstimateSpec):
    """How the children of a pair are fitted to its count."""

    method: Literal[
        "chebyshev", "chebyshev_descending", "l2", "sparse", "gls_chebyshev", "gls_l2", "gls_sparse"
    ] = "gls_chebyshev"
    penalty: Exact | None = None

    @model_validator(mode="before")
    @classmethod
    def _usual_penalty(cls, values: Any) -> Any:
        """Sparse methods have a penalty, whether or not the spec states it."""
        if isinstance(values, dict) and (method := FLOW_METHODS.get(str(values.get("method")))):
            usual = {"penalty": Fraction(DEFAULT_PENALTY)} if method.has_penalty else {}
            return {**usual, **values}
        return values

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        if FLOW_METHODS[self.method].has_penalty != (self.penalty is not None):
            raise ValueError("penalty goes only with method: sparse or gls_sparse")
        if self.penalty is not None and not 0 <= self.penalty <= MOST_PENALTY:
            raise ValueError(
                f"penalty is a number of standard deviations, from 0 (keep all) to {MOST_PENALTY}"
            )
        return self


with with_schema_key():

    class FlowsSpec(Spec):
        """Trips between areas; `schema` has the attributes of a trip, if any."""

        title: ClassVar[str] = "flows between areas"
        methods: ClassVar[Mapping[str, Method]] = FLOW_METHODS

        kind: Literal["flows"] = "flows"
        data: FlowsData
        estimate: FlowsEstimate = FlowsEstimate()
        tree: Literal["destination", "origin"] = "destination"
        destinations: HierarchySpec | None = None
        trips: TripsSpec = TripsSpec()
        schema: dict[Name, tuple[str, ...]] | None = Field(default=None)  # type: ignore[assignment]

        @property
        def attributes(self) -> Mapping[str, tuple[str, ...]]:
            """Attributes of a trip with their categories."""
            declared: Any = self.schema
            return declared or {}

        def columns(self) -> tuple[list[str], list[str]]:
            texts, numbers = super().columns()
            return [*texts, *self.attributes], numbers

        @property
        def has_exact_number(self) -> bool:
            """Whether every unit has exactly max_contribution trips: their total cannot move."""
            if self.trips.number is None:
                return self.privacy.max_contribution == 1
            return self.trips.number == "exactly"

        @property
        def hierarchies(self) -> dict[str, HierarchySpec]:
            others = {} if self.destinations is None else {"destinations": self.destinations}
            return {"hierarchy": self.hierarchy, **others}

        @property
        def caps_contributions(self) -> bool:
            return self.trips.above == "cap"

        @property
        def required_of_records(self) -> tuple[str, ...]:
            if self.data.unit is None or self.caps_contributions:
                return ()
            unit, number = self.privacy.unit, self.privacy.max_contribution
            how_many = "exactly" if self.has_exact_number else "at most"
            distinct = f"different pairs of areas for all trips of a {unit}"
            return (
                f"{how_many} {number} trip(s) of each {unit}",
                *([distinct] if self.trips.distinct else []),
            )

        def _faults(self) -> Iterator[str]:
            yield from super()._faults()
            if self.caps_contributions and self.data.unit is None:
                yield "trips.above: cap needs data.unit, the column that says whose trip it is."
            if self.caps_contributions and self.has_exact_number:
                yield (
                    "trips.above: cap drops trips, so their number is not public. Write "
                    "trips: {number: at_most}; the grand total is then measured with noise."
                )
            if self.data.origin == self.data.destination:
                yield (
                    f"data.origin and data.destination are both {self.data.origin!r}. Name two "
                    "columns."
                )
            yield from self._attribute_faults()

        def _attribute_faults(self) -> Iterator[str]:
            ends = ("origin", "destination", "dest", self.data.origin, self.data.destination)
            for name, categories in self.attributes.items():
                if name in (*COLUMNS, *ends):
                    yield (
                        f"schema: {name!r} is the name of a column that tables have already, or "
                        "that holds an area. Rename the column of the records."
                    )
                if len(categories) < 2 or len(set(categories)) != len(categories):
                    yield (
                        f"schema.{name}: list two or more distinct categories; they are declared, "
                        "never read from the records."
                    )

        def _places(self) -> dict[str, Any]:
            return {**super()._places(), "destinations": PLACES_OF_A_HIERARCHY}
