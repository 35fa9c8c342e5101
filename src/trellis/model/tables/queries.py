"""Query groups: a histogram with some attributes kept, some recoded and the rest summed.

A query is named by its factors, `hispanic * cenrace`; `total` keeps none of the attributes and
`detailed` all. Its cells are ordered like the product of the factors as written, last fastest.
Every cell of the schema falls into exactly one cell of the query, so that one record changes
each query in one cell (or moves between two): a partition. This is checked, not assumed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import prod

import numpy as np
from numpy.typing import NDArray

from trellis.errors import StructureError
from trellis.model.tables.schema import Schema

TOTAL = "total"
"""The query that adds up all cells of an area."""
DETAILED = "detailed"
"""The query that asks for every cell of an area."""


@dataclass(frozen=True, slots=True)
class Factor:
    """One attribute of a query, kept as it is or recoded: `group_of[category]` is its group."""

    name: str
    attribute: int
    labels: tuple[str, ...]
    group_of: tuple[int, ...]

    @property
    def is_recoded(self) -> bool:
        return self.group_of != tuple(range(len(self.group_of)))

    def is_finer(self, other: Factor) -> bool:
        """Whether each of its groups lies within one group of another factor of the attribute."""
        return len(set(zip(self.group_of, other.group_of, strict=True))) == len(self.labels)


@dataclass(frozen=True, slots=True)
class Query:
    """A parsed query; `cell_of[cell]` is the query's cell that a cell of the schema belongs to."""

    name: str
    factors: tuple[Factor, ...]
    cell_of: NDArray[np.int32] = field(repr=False, compare=False)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(factor.labels) for factor in self.factors)

    @property
    def n_cells(self) -> int:
        return prod(self.shape)

    def answer(self, cells: NDArray) -> NDArray:
        """Sums of cells by query cell; `cells` has the schema's cells on its last axis."""
        flat = cells.reshape(-1, self.cell_of.size)
        out = np.zeros((self.n_cells, flat.shape[0]), dtype=flat.dtype)
        np.add.at(out, self.cell_of, flat.T)
        return out.T.reshape(*cells.shape[:-1], self.n_cells)


@lru_cache(maxsize=64)
def parse_query(schema: Schema, name: str) -> Query:
    """The query of that name; blanks around the stars do not matter. Parsed once and kept."""
    if name == TOTAL:
        factors: tuple[Factor, ...] = ()
    elif name == DETAILED:
        factors = tuple(_factor(schema, attribute, name) for attribute in schema.names)
    else:
        factors = tuple(_factor(schema, part.strip(), name) for part in name.split("*"))
    attributes = [factor.attribute for factor in factors]
    if len(set(attributes)) != len(attributes):
        twice = next(schema.names[a] for a in attributes if attributes.count(a) > 1)
        raise StructureError(f"Query {name!r} uses attribute {twice!r} twice.")
    query = Query(_canonical(name, factors), factors, _cell_of(schema, factors))
    _check_partition(query, schema.n_cells)
    query.cell_of.flags.writeable = False  # it is shared by all who ask for this query
    return query


def named_query(schema: Schema, name: str) -> Query:
    """The query that people mean: its attributes are in the order of the schema.

    So `b * a` is `a * b`, and one query has one name in a plan. A plan that was made before may
    have others: `parse_query` takes them as they stand.
    """
    query = parse_query(schema, name)
    ordered = sorted(query.factors, key=lambda factor: factor.attribute)
    if list(query.factors) == ordered:
        return query
    return parse_query(schema, " * ".join(factor.name for factor in ordered))


def is_finer(fine: Query, coarse: Query) -> bool:
    """Whether each cell of `fine` lies within one cell of `coarse`."""
    image = np.full(fine.n_cells, -1, dtype=np.int64)
    image[fine.cell_of] = coarse.cell_of
    return bool((image[fine.cell_of] == coarse.cell_of).all())


def refinement(schema: Schema, queries: Sequence[Query]) -> Query:
    """A query that is finer than each of these: one of them, or a product of their factors."""
    for query in queries:
        if all(is_finer(query, other) for other in queries):
            return query
    names = []
    for attribute, name in enumerate(schema.names):
        used = [f for query in queries for f in query.factors if f.attribute == attribute]
        finest = [f.name for f in used if all(map(f.is_finer, used))]
        names += [finest[0] if finest else name] if used else []
    return parse_query(schema, " * ".join(names) or TOTAL)


def _canonical(name: str, factors: tuple[Factor, ...]) -> str:
    return name if name in (TOTAL, DETAILED) else " * ".join(factor.name for factor in factors)


def _factor(schema: Schema, name: str, query: str) -> Factor:
    if name in schema.names:
        attribute = schema.names.index(name)
        labels = schema.categories[attribute]
        return Factor(name, attribute, labels, tuple(range(len(labels))))
    recodes = dict(schema.recodes)
    if name not in recodes:
        known = ", ".join([*schema.names, *recodes])
        raise StructureError(
            f"Query {query!r} names {name!r}, which is neither an attribute nor a recode; there "
            f"are {known}."
        )
    recode = recodes[name]
    attribute = schema.names.index(recode.attribute)
    group_of = {c: i for i, group in enumerate(recode.groups) for c in group}
    categories = schema.categories[attribute]
    return Factor(name, attribute, recode.names, tuple(group_of[c] for c in categories))


def _cell_of(schema: Schema, factors: tuple[Factor, ...]) -> NDArray[np.int32]:
    """Which cell of the query each cell of the schema belongs to."""
    positions = np.unravel_index(np.arange(schema.n_cells), schema.shape)
    cell = np.zeros(schema.n_cells, dtype=np.int32)
    for factor in factors:
        group_of = np.asarray(factor.group_of, dtype=np.int32)
        cell = cell * len(factor.labels) + group_of[positions[factor.attribute]]
    return cell


def _check_partition(query: Query, n_cells: int) -> None:
    """Each cell of the schema in one cell of the query, and no cell of the query empty."""
    if query.cell_of.shape != (n_cells,) or not np.array_equal(
        np.unique(query.cell_of), np.arange(query.n_cells)
    ):
        raise StructureError(f"Query {query.name!r} does not ask for each cell exactly once.")
