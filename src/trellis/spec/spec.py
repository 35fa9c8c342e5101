"""The spec: one YAML file, read once into frozen models that reject unknown keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, PrivateAttr, ValidationError, model_validator

from trellis.errors import PrivacyError, SpecError
from trellis.model.plans.shares import Shares
from trellis.model.plans.size_mechanisms import DEFAULT_SIZE_MECHANISM, GROUP_SIZES
from trellis.model.trees.flows import FLOWS
from trellis.privacy.budget import Budget
from trellis.privacy.neighbours import Neighbours
from trellis.spec.base import Model
from trellis.spec.cells import CellForm, check_cells, parse_cell
from trellis.spec.flows import FlowEstimatorName, TripsSpec, with_flow_defaults
from trellis.spec.gaps import refuse_gaps
from trellis.spec.histograms import HistogramKeys, histogram_faults
from trellis.spec.kinds import foreign_defaults, kind_faults
from trellis.spec.messages import sentences
from trellis.spec.planning import AccuracySpec, AnyShares, planning_faults
from trellis.spec.public_files import confidential_source_faults
from trellis.spec.sources import SourceField, SqlSource, may_share_rows
from trellis.spec.spines import AreasSpec, Steps
from trellis.spec.values import CellName, Exact, Name, PathText
from trellis.spec.yaml_reader import read_yaml

SizeMechanismName = Literal[
    "histogram_relaxed",
    "histogram_exact",
    "cumulative_relaxed",
    "cumulative_exact",
    "cumulative_joint",
]


_FOLDER: ContextVar[Path] = ContextVar("folder of the spec", default=Path())
"""Relative paths are taken from here; validation looks at files too."""


class DataSpec(Model):
    """Where the confidential records are, and what a row means."""

    source: SourceField | None = None
    area: str | None = None
    cells: dict[CellName, str] | None = None
    count: str | None = None
    attributes: dict[Name, str] | None = None
    group: str | None = None
    quantity: str | None = None
    max_quantity: int = Field(default=1, ge=1, le=1_000_000, strict=True)
    size: str | None = None
    groups: str | None = None
    origin: str | None = None
    destination: str | None = None
    unit: str | None = None

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


class CodeSpec(Model):
    """A column of codes; codes of digits are zero-padded to the width."""

    column: str
    width: int | None = Field(default=None, ge=1, le=200)


class ParentChildSpec(Model):
    """A file with one row per area and its parent."""

    source: SourceField | None = None
    child: str = "child"
    parent: str = "parent"
    width: int | None = Field(default=None, ge=1, le=200)


class HrcSpec(Model):
    """A tau-Argus file: one code a line, `lead` in front once for each level down."""

    source: PathText | None = None
    lead: str = Field(default="@", min_length=1, max_length=20)


class HierarchySpec(Model):
    """The public tree of areas, in one of four layouts."""

    source: SourceField | None = None
    public: bool = False
    code: CodeSpec | None = None
    prefixes: dict[Name, int] | None = None
    columns: tuple[Name, ...] | None = None
    parent_child: ParentChildSpec | None = None
    hrc: HrcSpec | None = None
    levels: tuple[Name, ...] | None = None
    root: dict[Name, str] | None = None

    @model_validator(mode="before")
    @classmethod
    def _file_name(cls, values: Any) -> Any:
        """`parent_child: areas.csv` is short for the file with its usual columns; so is `hrc`."""
        if not isinstance(values, dict):
            return values
        short = {k: {"source": values[k]} for k in ("parent_child", "hrc")
                 if isinstance(values.get(k), str)}  # fmt: skip
        return {**values, **short}

    @model_validator(mode="after")
    def _one_layout(self) -> Self:
        layouts = [self.prefixes, self.columns, self.parent_child, self.hrc]
        if sum(layout is not None for layout in layouts) != 1:
            raise ValueError("give exactly one of prefixes (with code), columns, parent_child, hrc")
        if self.prefixes is not None:
            self._check_prefixes(self.prefixes)
        elif self.code is not None:
            raise ValueError("code goes with prefixes")
        if self.columns is not None and len(set(self.columns)) != len(self.columns):
            raise ValueError("columns names a column twice")
        inside = self.parent_child or self.hrc
        if self.levels is not None and inside is None:
            raise ValueError(
                "levels goes with parent_child or hrc; elsewhere the keys name the levels"
            )
        if inside is not None and self.source is not None:
            raise ValueError("with parent_child or hrc, the file goes there, not into source")
        if self.root is not None and (len(self.root) != 1 or not all(self.root.values())):
            raise ValueError("root holds one level and its code, such as {nation: US}")
        return self

    def _check_prefixes(self, prefixes: dict[str, int]) -> None:
        if self.code is None:
            raise ValueError("prefixes need code: {column: ..}")
        lengths = list(prefixes.values())
        if not lengths or lengths[0] < 1 or sorted(set(lengths)) != lengths:
            raise ValueError("prefixes must grow from level to level: {state: 2, county: 5}")
        if self.code.width is not None and self.code.width != lengths[-1]:
            raise ValueError(
                f"the last prefix ({lengths[-1]}) must be the whole code (width {self.code.width})"
            )

    @property
    def file(self) -> str | SqlSource | None:
        inside = self.parent_child or self.hrc
        return inside.source if inside else self.source

    @property
    def code_width(self) -> int | None:
        """The width to which codes of digits are padded, in the records too."""
        if self.parent_child is not None:
            return self.parent_child.width
        return self.code.width if self.code is not None else None


class BudgetSpec(Model):
    """rho, or epsilon and delta, or epsilon alone."""

    rho: Exact | None = None
    epsilon: Exact | None = None
    delta: Exact | None = None

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        try:
            if self.is_least:
                Budget(epsilon=Fraction(1), delta=self.delta)
            else:
                self.value()
        except PrivacyError as error:
            raise ValueError(str(error)) from None
        return self

    @property
    def is_least(self) -> bool:
        """Only a delta is stated: as little as the targets of `accuracy` allow."""
        return self.rho is None and self.epsilon is None and self.delta is not None

    def value(self) -> Budget:
        return Budget(self.rho, self.epsilon, self.delta)


class LimitSpec(BudgetSpec):
    """The most that may ever be spent on a data set, for one unit: that of the release, if none."""

    unit: Name | None = None

    @model_validator(mode="after")
    def _no_delta(self) -> Self:
        if self.delta is not None:
            raise ValueError("a limit is rho, or epsilon alone for Laplace noise")
        return self


class PrivacySpec(Model):
    """Who is protected, and how much may be learned. Five keys have no default."""

    unit: Name
    neighbours: Neighbours
    max_contribution: int = Field(ge=1, le=1_000_000, strict=True)
    mechanism: Literal["discrete_gaussian", "discrete_laplace"]
    budget: BudgetSpec | None = None
    shares: AnyShares = Shares()

    @model_validator(mode="after")
    def _budget_fits(self) -> Self:
        if self.budget is None:
            return self
        if self.budget.is_least:
            if self.mechanism == "discrete_laplace":
                raise ValueError("a delta goes with discrete_gaussian; Laplace noise needs none")
            return self
        pure = self.budget.value().is_pure
        if self.mechanism == "discrete_laplace" and not pure:
            raise ValueError("discrete_laplace takes a budget of epsilon alone")
        if self.mechanism == "discrete_gaussian" and pure:
            raise ValueError("discrete_gaussian takes a budget of rho, or of epsilon with delta")
        return self


class UnprotectedSpec(Model):
    """What is published exactly."""

    totals: tuple[str, ...] = ()
    groups: bool = False


class EstimateSpec(Model):
    """How consistent estimates are made."""

    method: Literal["gls_topdown", "topdown", "gls", "bottomup"] = "gls_topdown"
    weights: dict[Name, Exact] | None = None
    penalty: Exact | None = None
    edit_rules: Literal["enforce", "audit"] | None = None
    passes: tuple[str, ...] | None = None


class OutputSpec(Model):
    """What is written. Without `csv`, tables of up to a million rows are written as CSV too."""

    confidence: Exact = Fraction(9, 10)
    csv: bool | None = None
    tables: dict[Name, tuple[str, ...]] | None = None
    microdata: bool | None = None
    measurements: Literal["complete", "used"] | None = None

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        # Closer to one, the factor of an interval is infinite in floating point.
        if not 0 < self.confidence <= 1 - Fraction(1, 10**9):
            raise ValueError("confidence must lie above 0 and at most at 1 - 1e-9, such as 9/10")
        return self


UnitNumber = Annotated[int, Field(ge=1, le=1_000_000, strict=True)]


class LedgerSpec(Model):
    """Where spending is recorded, and how much is allowed in all."""

    path: PathText = "ledger.sqlite"
    limit: LimitSpec | None = None
    units: dict[Name, UnitNumber] = {}  # noqa: RUF012 (pydantic copies it)
    part_of: dict[Name, UnitNumber] = {}  # noqa: RUF012 (pydantic copies it)


class CommonKeys(Model):
    """Keys of all kinds of release."""

    release: Name
    kind: Literal["counts", "group_sizes", "flows"]
    dataset: Name
    data: DataSpec
    hierarchy: HierarchySpec
    privacy: PrivacySpec
    unprotected: UnprotectedSpec = UnprotectedSpec()
    estimate: EstimateSpec = EstimateSpec()
    output: OutputSpec = OutputSpec()
    accuracy: tuple[AccuracySpec, ...] | None = None
    ledger: LedgerSpec = LedgerSpec()
    mechanism: SizeMechanismName | None = None
    sizes: SizesSpec | None = None
    group_register: RegisterSpec | None = None
    tree: Literal["destination", "origin"] | None = None
    estimator: FlowEstimatorName | None = None
    destinations: HierarchySpec | None = None
    trips: TripsSpec = TripsSpec()
    attributes: dict[Name, tuple[str, ...]] | None = None
    areas: dict[Name, AreasSpec] = {}  # noqa: RUF012 (pydantic copies it)
    spine: Steps = ()


class Spec(HistogramKeys, CommonKeys):
    """A release, as its owner describes it.

    An instance is valid or does not exist: every way to make one validates it.
    """

    _folder: Path = PrivateAttr(default_factory=_FOLDER.get)

    def __init__(self, /, **values: Any) -> None:
        """Validate; relative paths are taken from the current folder."""
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise SpecError(*sentences(error, type(self))) from None

    @model_validator(mode="before")
    @classmethod
    def _defaults_of_the_kind(cls, values: Any) -> Any:
        refuse_gaps(values)
        if not isinstance(values, dict):
            return values
        if values.get("kind") == GROUP_SIZES:
            return {"mechanism": DEFAULT_SIZE_MECHANISM, **values}
        return with_flow_defaults(values)

    @model_validator(mode="after")
    def _goes_together(self) -> Self:
        """What no section can see alone. It is part of the type: there is no spec without it."""
        if faults := tuple(dict.fromkeys(self._faults())):
            raise SpecError(*faults)
        return self

    def _faults(self) -> Iterator[str]:
        yield from kind_faults(self)
        yield from histogram_faults(self)
        yield from planning_faults(self)
        yield from confidential_source_faults(self)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a YAML file; relative paths in it are taken from its folder."""
        path = Path(path)
        content = read_yaml(path)
        try:
            return cls.parse(content, folder=path.parent)
        except SpecError as error:
            raise SpecError(*(f"{path}: {fault}" for fault in error.faults)) from None

    @classmethod
    def parse(cls, content: Mapping[str, Any], folder: str | Path = ".") -> Self:
        """Validate a mapping such as a YAML file holds."""
        if not isinstance(content, Mapping) or not all(isinstance(key, str) for key in content):
            raise SpecError("A spec holds keys and values, such as 'release: my-release'.")
        token = _FOLDER.set(Path(folder))
        try:
            return cls(**content)
        finally:
            _FOLDER.reset(token)

    # Pydantic copies, constructs and unpickles without validation; a spec does not.

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy with these keys changed, validated again."""
        del deep  # nothing in a spec can be changed
        return self.parse({**self._given, **(update or {})}, self._folder)

    def copy(self, *, update: Mapping[str, Any] | None = None, **_: Any) -> Self:
        return self.model_copy(update=update)

    @classmethod
    def model_construct(cls, _fields_set: set[str] | None = None, **values: Any) -> Self:
        del _fields_set
        return cls(**values)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).parse, (self._given, self._folder)

    @property
    def _given(self) -> dict[str, Any]:
        """Keys that are not there by default."""
        return {key: getattr(self, key) for key in self.model_fields_set}

    @property
    def hierarchies(self) -> dict[str, HierarchySpec]:
        """Of the areas; for flows of the origins, and of the destinations if they differ."""
        both = {"hierarchy": self.hierarchy, "destinations": self.destinations}
        return {key: layout for key, layout in both.items() if layout is not None}

    def comes_with_records(self, source: str | SqlSource | None) -> bool:
        """Whether something public is in the file of the records."""
        records = self.data.source
        if records is None or source is None:
            return False
        return may_share_rows(records, source, self.resolve)

    def resolve(self, path: str) -> Path:
        """A path in the spec, taken from the spec's folder."""
        return self._folder / path

    @property
    def ledger_path(self) -> Path:
        return self.resolve(self.ledger.path)

    @property
    def default_run_folder(self) -> Path:
        return self._folder / "runs" / self.release

    def public(self) -> dict[str, Any]:
        """The spec without places and credentials, as kept in the run folder."""
        places = {"source": True, "parent_child": {"source"}, "hrc": {"source"}}
        return self.model_dump(
            mode="json",
            exclude_none=True,
            exclude={
                "data": {"source", *foreign_defaults(self.kind, "data")},
                "group_register": {"source"},
                "constraints": {"__all__": {"source"}},
                "areas": {"__all__": {"source"}} if self.areas else True,
                **({} if self.spine else {"spine": True}),
                "hierarchy": places,
                "destinations": places,
                "privacy": {"shares": {"optimal": {"prior": {"source", "crosswalk"}}}},
                "unprotected": foreign_defaults(self.kind, "unprotected"),
                "estimate": foreign_defaults(self.kind, "estimate"),
                **({} if self.kind == FLOWS else {"trips": True}),
                "ledger": True,
            },
        )
