r"""Which parts of a histogram a query tells about.

The cells of an area split into orthogonal components: the overall mean, the main effect of each
attribute, their interactions. A query that keeps some attributes sees the components of those
attributes and no others. With C cells in all, C_q of the query, m = C / C_q cells in each of these
and noise of variance s^2, it measures each coordinate of such a component with precision m / s^2.
So on every component the queries of a level add up to one precision, and the tree is solved once
for each. Back again, a cell of the query has the variance

    m sum_A (dim A / C_q) Var_A     over the components A that the query sees.

A recode splits the main effect of its attribute into one between its groups and one within them.
That is exact where the groups of a recode are equally large, and an approximation elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from math import prod

from trellis.model.queries import Query
from trellis.model.schema import Schema

MEAN, WITHIN = "mean", "within"


@dataclass(frozen=True, slots=True)
class Component:
    """One piece of each attribute: its mean, the effect of a recode, or what is left."""

    pieces: tuple[str, ...]
    dimension: int

    @property
    def is_total(self) -> bool:
        return all(piece == MEAN for piece in self.pieces)

    def is_seen_by(self, query: Query) -> bool:
        factors = {factor.attribute: factor for factor in query.factors}
        for attribute, piece in enumerate(self.pieces):
            factor = factors.get(attribute)
            hidden = factor is None or (factor.is_recoded and piece != factor.name)
            if piece != MEAN and hidden:
                return False
        return True


def components(schema: Schema, queries: Iterable[Query]) -> tuple[Component, ...]:
    """The components that these queries tell apart; their dimensions sum to the cells."""
    recodes = {f.name: f for query in queries for f in query.factors if f.is_recoded}
    pieces = []
    for attribute, size in enumerate(schema.shape):
        own = {MEAN: 1}
        own |= {n: len(f.labels) - 1 for n, f in recodes.items() if f.attribute == attribute}
        own[WITHIN] = max(size - sum(own.values()), 0)
        pieces.append([(name, n) for name, n in own.items() if n])
    return tuple(
        Component(tuple(name for name, _ in chosen), prod(n for _, n in chosen))
        for chosen in product(*pieces)
    )
