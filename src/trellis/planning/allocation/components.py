r"""Which parts of a histogram a query tells about.

The cells of an area split into orthogonal components: the overall mean, the main effect of each
attribute, their interactions. A query that keeps some attributes sees the components of those
attributes and no others. With C cells in all, C_q of the query, m = C / C_q cells in each of these
and noise of variance s^2, it measures each coordinate of such a component with precision m / s^2.
So on every component the queries of a level add up to one precision, and the tree is solved once
for each. Back again, a cell of the query has the variance

    m sum_A (dim A / C_q) Var_A     over the components A that the query sees.

A recode splits the main effect of its attribute into one between its groups and one within them.
That is exact where the groups of a recode are equally large and recodes of one attribute are
nested; areas of interest, for which this is used, go with cells that have no recodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import prod

from trellis.model.tables.queries import Query, parse_query
from trellis.model.tables.schema import Schema

Partition = tuple[int, ...]
"""The group of each category of an attribute."""


@dataclass(frozen=True, slots=True)
class Component:
    """What grouping each attribute like this tells, beyond all coarser groupings."""

    partitions: tuple[Partition, ...]
    dimension: int

    @property
    def is_total(self) -> bool:
        return not any(map(any, self.partitions))

    def is_seen_by(self, query: Query) -> bool:
        """Whether the query's groups lie within the component's, in every attribute."""
        kept = {factor.attribute: factor.group_of for factor in query.factors}
        return all(
            _refines(kept.get(attribute, (0,) * len(partition)), partition)
            for attribute, partition in enumerate(self.partitions)
        )


def components(schema: Schema) -> tuple[Component, ...]:
    """The components that queries with these attributes and recodes can tell apart."""
    recodes = [parse_query(schema, name).factors[0] for name, _ in schema.recodes]
    pieces = []
    for attribute, size in enumerate(schema.shape):
        partitions = {(0,) * size, tuple(range(size))}
        partitions |= {f.group_of for f in recodes if f.attribute == attribute}
        dimensions: dict[Partition, int] = {}
        for partition in sorted(partitions, key=lambda p: (max(p), p)):
            coarser = sum(n for other, n in dimensions.items() if _refines(partition, other))
            dimensions[partition] = max(max(partition) + 1 - coarser, 0)
        pieces.append([(partition, n) for partition, n in dimensions.items() if n])
    return tuple(
        Component(tuple(partition for partition, _ in chosen), prod(n for _, n in chosen))
        for chosen in product(*pieces)
    )


def _refines(fine: Partition, coarse: Partition) -> bool:
    return len(set(zip(fine, coarse, strict=True))) == len(set(fine))
