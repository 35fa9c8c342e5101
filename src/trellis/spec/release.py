"""The spec: one YAML file, read once into frozen models that reject unknown keys.

`Spec` has the keys of all kinds of release; the kind itself is a subclass, one file for each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Any, ClassVar, Self

import yaml
from pydantic import PrivateAttr, ValidationError, model_validator

from trellis.errors import SpecError
from trellis.model.plans.methods import Method
from trellis.spec.public_files import confidential_source_faults
from trellis.spec.reading.gaps import refuse_gaps
from trellis.spec.reading.messages import sentences, without_unknown
from trellis.spec.reading.moved_paths import is_same_place, moved
from trellis.spec.reading.older import modern
from trellis.spec.reading.yaml_reader import read_yaml
from trellis.spec.sections.base import Model
from trellis.spec.sections.hierarchies import HierarchySpec
from trellis.spec.sections.output import OutputSpec
from trellis.spec.sections.planning import AccuracySpec, planning_faults
from trellis.spec.sections.privacy import LedgerSpec, PrivacySpec
from trellis.spec.sections.sources import SourceField, SqlSource, may_share_rows
from trellis.spec.sections.values import Name

_FOLDER: ContextVar[Path] = ContextVar("folder of the spec", default=Path())
"""Relative paths are taken from here; validation looks at files too."""

_OLD_SPELLINGS: ContextVar[tuple[str, ...]] = ContextVar("old spellings", default=())


class DataSpec(Model):
    """Where the confidential records are; the kind says what a row means."""

    source: SourceField | None = None

    def columns(self) -> tuple[list[str], list[str]]:
        """Columns of the records: of codes and categories, and of whole numbers."""
        return [], []


class EstimateSpec(Model):
    """How consistent estimates are made."""

    method: str


class Spec(Model):
    """A release, as its owner describes it.

    An instance is valid or does not exist: every way to make one validates it. `Spec(...)` makes a
    spec of the kind that it names.
    """

    title: ClassVar[str]
    """The kind in words, such as `flows between areas`."""
    methods: ClassVar[Mapping[str, Method]]
    can_be_planned: ClassVar[bool] = False
    """Whether shares and budgets can be computed: `optimal`, `accuracy`."""
    not_supported: ClassVar[tuple[str, ...]] = ()
    """Keys of the class that this kind still refuses."""

    release: Name
    kind: str
    dataset: Name
    data: DataSpec
    hierarchy: HierarchySpec
    privacy: PrivacySpec
    estimate: EstimateSpec
    output: OutputSpec = OutputSpec()
    accuracy: tuple[AccuracySpec, ...] | None = None
    ledger: LedgerSpec = LedgerSpec()

    _folder: Path = PrivateAttr(default_factory=_FOLDER.get)
    _old_spellings: tuple[str, ...] = PrivateAttr(default_factory=_OLD_SPELLINGS.get)

    # -- making one -----------------------------------------------------------------------------

    @classmethod
    def of_kind(cls, kind: Any) -> type[Self]:
        """The class of a kind of release."""
        from trellis.spec.kinds import SPECS  # which imports this module

        if not isinstance(kind, str) or kind not in SPECS:
            listed = ", ".join(map(repr, SPECS))
            missing = "Missing key 'kind'" if kind is None else "kind"
            raise SpecError(f"{missing}: use one of {listed}.")
        found: Any = SPECS[kind]
        return found

    def __new__(cls, /, **values: Any) -> Self:
        """An instance of the class of its kind."""
        if hasattr(cls, "title"):  # a class of one kind
            return super().__new__(cls)
        return super().__new__(cls.of_kind(modern(values)[0].get("kind")))

    def __init__(self, /, **values: Any) -> None:
        """Validate; relative paths are taken from the current folder."""
        values, notes = modern(values)
        token = _OLD_SPELLINGS.set(notes)
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise SpecError(*self._all_faults(values, error)) from None
        finally:
            _OLD_SPELLINGS.reset(token)

    @classmethod
    def _all_faults(cls, values: dict[str, Any], error: ValidationError) -> list[str]:
        """What is wrong; unknown keys do not hide what does not go together."""
        faults, known = sentences(error, cls), without_unknown(values, error)
        if known != values:
            try:
                cls(**known)
            except SpecError as more:
                faults += [fault for fault in more.faults if fault not in faults]
        return faults

    @model_validator(mode="before")
    @classmethod
    def _without_gaps(cls, values: Any) -> Any:
        refuse_gaps(values)
        return values

    @model_validator(mode="after")
    def _goes_together(self) -> Self:
        """What no section can see alone. It is part of the type: there is no spec without it."""
        if faults := tuple(dict.fromkeys(self._faults())):
            raise SpecError(*faults)
        return self

    def _faults(self) -> Iterator[str]:
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

    @classmethod
    def model_validate(cls, obj: Any, **_: Any) -> Self:
        return cls.parse(obj._given if isinstance(obj, Spec) else obj)

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

    # -- what it says ---------------------------------------------------------------------------

    @property
    def old_spellings(self) -> tuple[str, ...]:
        """A line for each key that is now written in another way: what to write."""
        return self._old_spellings

    @property
    def notes(self) -> list[str]:
        """Lines for the operator about what the spec leaves unsaid."""
        return [*self._old_spellings]

    @property
    def required_of_records(self) -> tuple[str, ...]:
        """What the records must keep, or nothing is released.

        Each requirement narrows the changes that are protected. Records that break one are refused,
        so a release proves that they keep it, and tells them with certainty from a neighbour that
        does not. The clauses become part of the protection that is planned, charged and stated.
        """
        return ()

    @property
    def caps_contributions(self) -> bool:
        """Whether the release itself drops what a unit has beyond its bound."""
        return False

    @property
    def needs_register(self) -> bool:
        """Whether a public register is read together with the records."""
        return False

    def columns(self) -> tuple[list[str], list[str]]:
        """Columns of the records: of codes and categories, and of whole numbers."""
        return self.data.columns()

    @property
    def hierarchies(self) -> dict[str, HierarchySpec]:
        """Of the areas; for flows of the origins, and of the destinations if they differ."""
        return {"hierarchy": self.hierarchy}

    def comes_with_records(self, source: str | SqlSource | None) -> bool:
        """Whether something public is in the file of the records."""
        records = self.data.source
        if records is None or source is None:
            return False
        return may_share_rows(records, source, self.resolve)

    # -- places ---------------------------------------------------------------------------------

    @property
    def folder(self) -> Path:
        """The folder that relative paths are taken from."""
        return self._folder

    def resolve(self, path: str) -> Path:
        """A path in the spec, taken from the spec's folder."""
        return self._folder / path

    @property
    def ledger_path(self) -> Path:
        return self.resolve(self.ledger.path)

    @property
    def default_run_folder(self) -> Path:
        return self._folder / "runs" / self.release

    # -- as text --------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """What the spec states, as a YAML file holds it; defaults are left out."""
        stated = self.model_dump(mode="json", exclude_unset=True, exclude_none=True)
        return {"release": stated.pop("release"), "kind": stated.pop("kind", self.kind), **stated}

    def to_yaml(self, path: str | Path | None = None) -> str:
        """The spec as YAML, written to `path` if one is given; paths stay true there.

        The ledger stays the same too: in another folder its path is written out.
        """
        content = self.to_dict()
        if path is not None and not is_same_place(Path(path).parent, self._folder):
            content["ledger"] = {**content.get("ledger", {}), "path": self.ledger.path}
            content = moved(content, self._folder, Path(path).parent)
        text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True)
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    def __eq__(self, other: object) -> bool:
        """Specs are equal if they state the same and mean the same files."""
        if not isinstance(other, Spec):
            return NotImplemented
        return _resolved(self) == _resolved(other)

    def __hash__(self) -> int:
        return hash((self.kind, self.release, self.dataset))

    def public(self) -> dict[str, Any]:
        """The spec without places and credentials, as kept in the run folder."""
        return self.model_dump(mode="json", exclude_none=True, exclude=self._places())

    def _places(self) -> dict[str, Any]:
        """What is left out of the public spec."""
        return {
            "data": {"source"},
            "hierarchy": PLACES_OF_A_HIERARCHY,
            "privacy": {"shares": {"optimal": {"prior": {"source", "crosswalk"}}}},
            "ledger": True,
        }


PLACES_OF_A_HIERARCHY: dict[str, Any] = {
    "source": True, "parent_child": {"source"}, "hrc": {"source"}
}  # fmt: skip


def _resolved(spec: Spec) -> dict[str, Any]:
    return moved(spec.model_dump(mode="json", exclude_none=True), spec.folder, None)
