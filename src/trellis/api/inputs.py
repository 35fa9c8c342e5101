"""The parts of a spec that read better in Python than as nested dictionaries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa

from trellis.errors import SpecError
from trellis.model.trees.hierarchy import Hierarchy as Tree
from trellis.spec.sections.hierarchies import HierarchySpec
from trellis.spec.sections.values import to_fraction
from trellis.workflow.preparing.areas import read_layout

Number = int | float | str | Fraction
"""A number that becomes an exact fraction: 1, "1/2", "0.25"."""


def _exact(number: Number | None) -> str | None:
    if number is None:
        return None
    try:
        return str(to_fraction(number))
    except ValueError as error:
        raise SpecError(f"{error}.") from None


@dataclass(frozen=True, slots=True)
class Unit:
    """Who is protected, and against which change.

    >>> tr.Unit("person", neighbours="add_remove", max_contribution=1).unit
    'person'
    """

    unit: str
    neighbours: str
    max_contribution: int

    def keys(self) -> dict[str, Any]:
        """The keys of `privacy` that it stands for."""
        return {
            "unit": self.unit,
            "neighbours": self.neighbours,
            "max_contribution": self.max_contribution,
        }


@dataclass(frozen=True, slots=True)
class Gaussian:
    """Discrete Gaussian noise for a budget of rho, or of epsilon with delta.

    Without rho and epsilon, the least budget that meets the targets of `accuracy`.

    >>> tr.Gaussian(rho="1/2").keys()["budget"]
    {'rho': '1/2'}
    """

    rho: Number | None = None
    epsilon: Number | None = None
    delta: Number | None = None

    def keys(self) -> dict[str, Any]:
        """The keys of `privacy` that it stands for."""
        return {"mechanism": "discrete_gaussian", **_budget(self.rho, self.epsilon, self.delta)}


@dataclass(frozen=True, slots=True)
class Laplace:
    """Discrete Laplace noise for a budget of pure epsilon.

    >>> tr.Laplace(epsilon=1).keys()["mechanism"]
    'discrete_laplace'
    """

    epsilon: Number | None = None

    def keys(self) -> dict[str, Any]:
        """The keys of `privacy` that it stands for."""
        return {"mechanism": "discrete_laplace", **_budget(None, self.epsilon, None)}


def _budget(rho: Number | None, epsilon: Number | None, delta: Number | None) -> dict[str, Any]:
    given = {"rho": _exact(rho), "epsilon": _exact(epsilon), "delta": _exact(delta)}
    stated = {key: value for key, value in given.items() if value is not None}
    return {"budget": stated} if stated else {}


@dataclass(frozen=True, slots=True)
class Optimal:
    """Shares of the levels that are computed: for a prior, or for weighted variances.

    `prior` names a public file of earlier or assumed counts, `weights` how much squared errors of
    each level count.

    >>> tr.Optimal(weights={"region": 10, "town": 1}).key()
    {'optimal': {'weights': {'region': 10, 'town': 1}}}
    """

    prior: Any = None
    weights: Any = None

    def key(self) -> dict[str, Any]:
        """The value of `privacy.shares` that it stands for."""
        given = {"prior": self.prior, "weights": self.weights}
        return {"optimal": {key: value for key, value in given.items() if value is not None}}


class Source:
    """A file, a database, or a frame, with the keys that say how to read it.

    `source` is a path, a mapping such as `{"sql": .., "table": ..}`, or any frame that speaks Arrow
    (pandas, Polars, PyArrow, DuckDB).
    """

    def __init__(self, source: Any = None, /, **columns: Any) -> None:
        is_named = source is None or isinstance(source, str | Path | Mapping)
        self.frame = None if is_named else source
        self._source = str(source) if isinstance(source, Path) else source
        self._columns = columns

    def keys(self) -> dict[str, Any]:
        """The section of a spec that it stands for; frames are left out."""
        named = {} if self.frame is not None or self._source is None else {"source": self._source}
        return {**named, **{k: v for k, v in self._columns.items() if v is not None}}

    def __repr__(self) -> str:
        of = "a frame" if self.frame is not None else repr(self._source)
        return f"{type(self).__name__}({of}, {', '.join(self._columns)})"


class Records(Source):
    """The confidential records: where they are, and which column means what.

    >>> tr.Records("people.csv", area="town").keys()
    {'source': 'people.csv', 'area': 'town'}
    """


class Register(Source):
    """The public register of groups: their areas, or how many there are in each.

    >>> tr.Register("addresses.parquet", group="household", area="tract").keys()
    {'source': 'addresses.parquet', 'group': 'household', 'area': 'tract'}
    """


class Areas(Source):
    """A public list of areas of interest: columns `area` and `entity`.

    >>> tr.Areas("places.csv", area="block", entity="place", weight=2).keys()
    {'source': 'places.csv', 'area': 'block', 'entity': 'place', 'weight': 2}
    """


class Hierarchy:
    """The public tree of areas, in one of four layouts; made by one of the `from_` methods.

    >>> towns = tr.Hierarchy.from_paths(
    ...     [("all", "north", "ash"), ("all", "north", "elm")], ["country", "region", "town"]
    ... )
    >>> towns.levels
    ('country', 'region', 'town')
    """

    def __init__(self, layout: Mapping[str, Any], source: Any = None) -> None:
        is_named = source is None or isinstance(source, str | Path | Mapping)
        self.frame = None if is_named else source
        self._source = str(source) if isinstance(source, Path) else source
        self._layout = dict(layout)

    @classmethod
    def from_columns(
        cls,
        source: Any,
        columns: Sequence[str],
        root: tuple[str, str] | Mapping[str, str] | None = None,
        *,
        public: bool | None = None,
    ) -> Hierarchy:
        """One row per leaf, one column per level, root first; `root` puts one area above all."""
        return cls(_layout({"columns": list(columns)}, root, public), source)

    @classmethod
    def from_prefixes(
        cls,
        source: Any,
        column: str,
        prefixes: Mapping[str, int],
        root: tuple[str, str] | Mapping[str, str] | None = None,
        *,
        width: int | None = None,
        public: bool | None = None,
    ) -> Hierarchy:
        """One column of codes; each level is a prefix of the code, with this many characters.

        >>> blocks = tr.Hierarchy.from_prefixes("blocks.csv", "geoid", {"state": 2, "county": 5})
        >>> blocks.keys()["prefixes"]
        {'state': 2, 'county': 5}
        """
        code = {"column": column} | ({} if width is None else {"width": width})
        return cls(_layout({"code": code, "prefixes": dict(prefixes)}, root, public), source)

    @classmethod
    def from_parent_child(
        cls,
        source: Any,
        child: str = "child",
        parent: str = "parent",
        levels: Sequence[str] | None = None,
        root: tuple[str, str] | Mapping[str, str] | None = None,
        *,
        width: int | None = None,
        public: bool | None = None,
    ) -> Hierarchy:
        """One row per area, with its parent."""
        inside = {"child": child, "parent": parent} | ({} if width is None else {"width": width})
        named = {} if levels is None else {"levels": list(levels)}
        return cls(_layout({"parent_child": inside, **named}, root, public), source)

    @classmethod
    def from_hrc(
        cls,
        source: str | Path,
        lead: str = "@",
        levels: Sequence[str] | None = None,
        root: tuple[str, str] | Mapping[str, str] | None = None,
    ) -> Hierarchy:
        """A hierarchy file of tau-Argus; `lead` is the prefix of a code for each level down."""
        named = {} if levels is None else {"levels": list(levels)}
        return cls(_layout({"hrc": {"lead": lead}, **named}, root, None), source)

    @classmethod
    def from_paths(cls, rows: Iterable[Sequence[str]], level_names: Sequence[str]) -> Hierarchy:
        """One tuple of codes per leaf, root first."""
        columns = list(zip(*rows, strict=True))
        frame = pa.table({n: list(c) for n, c in zip(level_names, columns, strict=True)})
        return cls.from_columns(frame, level_names)

    def keys(self) -> dict[str, Any]:
        """The section of a spec that it stands for; frames are left out."""
        if self.frame is not None or self._source is None:
            return self._layout
        for inside in ("parent_child", "hrc"):
            if inside in self._layout:
                section = {**self._layout[inside], "source": self._source}
                return {**self._layout, inside: section}
        return {**self._layout, "source": self._source}

    @property
    def tree(self) -> Tree:
        """The tree itself, read from its source."""
        return read_layout(HierarchySpec(**self._layout), self.frame, self._source)

    @property
    def levels(self) -> tuple[str, ...]:
        """The names of the levels, root first."""
        return self.tree.level_names

    def codes(self, level: str | int) -> list[str]:
        """The codes of a level, in the order of the tree."""
        return self.tree.codes(level).tolist()

    def __repr__(self) -> str:
        of = "a frame" if self.frame is not None else repr(self._source)
        return f"Hierarchy({of}, {', '.join(self._layout)})"


def _layout(
    layout: dict[str, Any], root: tuple[str, str] | Mapping[str, str] | None, public: bool | None
) -> dict[str, Any]:
    above = (
        {} if root is None else {"root": dict([root]) if isinstance(root, tuple) else dict(root)}
    )
    return {**layout, **above, **({} if public is None else {"public": public})}
