"""What the contract tests need to know of a kind of release: its `World`.

A world is tiny data with a spec, neighbours that can be enumerated, values that can be planted, and
neighbours that an attacker tells apart. A kind joins all contracts by entering one in `WORLDS`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from trellis.model.plans.plan import Plan

Content = Any
"""What one unit has in the data, or the data with it."""
Answers = Sequence[np.ndarray]
"""True answers to the planned queries, in their order."""

RHO: dict[str, Any] = {
    "privacy__neighbours": "replace",
    "privacy__mechanism": "discrete_gaussian",
    "privacy__budget": {"rho": 1},
}
"""Changes that make a release of any world cost rho = 1."""


class Case(ABC):
    """A world so small that all neighbours can be listed, under one plan."""

    @abstractmethod
    def plan(self) -> Plan: ...

    @abstractmethod
    def pairs(self) -> Iterable[tuple[Content, Content]]:
        """All pairs of neighbours."""

    @abstractmethod
    def measured(self, plan: Plan, content: Content) -> Answers:
        """From the real ingest and the real measuring step."""

    def reached(self, plan: Plan) -> Fraction:
        """The part of the price that the worst pair reaches at least; 1: the price is tight."""
        del plan
        return Fraction(1)


@dataclass(frozen=True)
class Mutant:
    """A case with a fault that its enumeration must find."""

    case: Case
    plan: Plan
    measured: Callable[[Plan, Content], Answers] | None = None
    says: str = ""
    """What the assertion says, if more than one could fail."""


@dataclass(frozen=True)
class Audit:
    """Many independent trials of two neighbouring worlds, told apart by the likelihood ratio.

    `measured(folder, plan, world, seed)` are noisy answers, trials x numbers for each query in
    `truths`; `truths[world]` has the true ones. `stated` is the accountant's delta.
    """

    plan: Plan
    truths: tuple[Mapping[str, np.ndarray], Mapping[str, np.ndarray]]
    measured: Callable[[Path, Plan, int, int], Mapping[str, np.ndarray]]
    stated: Callable[[float], float]
    level: str = "town"


@dataclass(frozen=True)
class Planted:
    """Records that hold recognisable values, and a spec with much noise."""

    spec: dict[str, Any]
    files: Mapping[str, str]
    good: Mapping[str, list[Any]]
    bad: Mapping[str, dict[str, Any]]
    """Columns of records that are refused."""
    measuring: str
    """The step that measures; see `steps`."""
    quoted: ModuleType
    """The module whose check of numbers is made to quote one."""
    quoted_end: str = "max"
    quoted_records: Mapping[str, list[Any]] = field(default_factory=dict)
    ways: Sequence[dict[str, Any]] = ({},)
    """Changes of the spec under which a whole run is searched."""
    bad_ways: dict[str, Any] = field(default_factory=dict)
    """Changes of the spec under which bad records are refused."""
    crashes: Sequence[tuple[str, dict[str, Any]]] = ()
    """Steps that fail, with changes of the spec."""

    def write(
        self, folder: Path, table: Mapping[str, list[Any]] | None = None, **keys: Any
    ) -> Path:
        """The spec with `keys` in place of its own; columns that are None are left out."""
        columns = {
            k: v for k, v in (self.good if table is None else table).items() if v is not None
        }
        folder.mkdir(exist_ok=True)
        note = [TEXT] * len(next(iter(columns.values())))
        pq.write_table(pa.table({**columns, "note": note}), folder / "records.parquet")
        for name, text in self.files.items():
            (folder / name).write_text(text)
        (folder / "spec.yaml").write_text(yaml.safe_dump(self.spec | keys, sort_keys=False))
        return folder / "spec.yaml"


COUNT = 7_654_321
FRACTION = 7654.321
TEXT = "canary-4711"
PLANTED = (str(COUNT), TEXT, str(FRACTION))
MUCH_NOISE: dict[str, Any] = {
    "unit": "person",
    "neighbours": "replace",
    "max_contribution": 1000,
    "mechanism": "discrete_gaussian",
    "budget": {"rho": "1e-6"},
}
"""Far wider than the search: a noisy value equals COUNT with probability below 1e-4."""


class World(ABC):
    """One for each kind."""

    kind: ClassVar[str]
    planted: ClassVar[Planted]
    unfit: ClassVar[Mapping[str, dict[str, Any]]] = {}
    """Changes of the spec that only this kind refuses."""

    def register(self, patch: pytest.MonkeyPatch) -> None:
        """Enter the kind in the registries, if the package does not have it."""
        del patch

    @abstractmethod
    def write(self, folder: Path, **changes: Any) -> Path:
        """A spec with its files; `section__key=value` changes it."""

    @abstractmethod
    def cases(self) -> Sequence[Case]: ...

    @abstractmethod
    def mutants(self) -> Mapping[str, Callable[[], Mutant]]: ...

    @abstractmethod
    def audits(self) -> Mapping[str, Callable[[], Audit]]: ...

    @abstractmethod
    def halved(self) -> tuple[Audit, Audit]:
        """An audit, and the same with too little noise for what the first states."""
