"""What facts about the records alone settle, for the margins of histograms.

An area whose total can only be 0 is 0 in every cell, and so are all areas in it. The best linear
unbiased estimate that knows this is the one on the tree without such areas: nothing else has to
change, and all others gain. What other facts fix has no error either; there the estimates stay as
they are, so that they add up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trellis.estimate.histograms.evidence import HistogramEvidence
from trellis.model.arrays import Floats, Ints
from trellis.model.results.histogram_facts import HistogramFacts
from trellis.model.tables.constraints import Constraints
from trellis.model.tables.queries import TOTAL, Query, parse_query
from trellis.model.tables.schema import Schema
from trellis.model.trees.hierarchy import Hierarchy

CELLS_AT_ONCE = 1 << 20


def known_facts(evidence: HistogramEvidence, bounds: Constraints) -> HistogramFacts:
    """Exact answers, and constraints that the records are known to keep."""
    hierarchy = evidence.hierarchy
    exact = [
        {n: evidence.read(i, n, 0, hierarchy.size(i)) for n, v in level.items() if v == 0}
        for i, level in enumerate(evidence.measured)
    ]
    return HistogramFacts.of(hierarchy, evidence.schema, exact, bounds)


@dataclass(frozen=True, slots=True, eq=False)
class MarginalErrors:
    """Standard errors of a query on a level; areas of a class share a row of `std_errors`.

    Classes x query cells; infinite where what is measured does not determine an answer.
    """

    class_of: Ints
    std_errors: Floats

    def rows(self, first: int, last: int) -> Floats:
        """Written out for a run of areas: areas x query cells."""
        return self.std_errors[self.class_of[first:last]]

    def compact(self) -> MarginalErrors:
        """The same without classes that no area is of."""
        used, class_of = np.unique(self.class_of, return_inverse=True)
        return MarginalErrors(class_of, self.std_errors[used])


@dataclass(frozen=True, slots=True, eq=False)
class Occupied:
    """The areas that may hold anyone, by level, root first, and what was measured of them."""

    evidence: HistogramEvidence
    sizes: tuple[int, ...]
    kept: tuple[Ints, ...] | None = None
    """None if all areas are kept."""
    is_void: bool = False
    """Whether all areas must be empty; then no tree is left, and all areas are kept."""

    @classmethod
    def of(cls, evidence: HistogramEvidence, facts: HistogramFacts | None) -> Occupied:
        hierarchy = evidence.hierarchy
        if facts is None:
            return cls(evidence, hierarchy.sizes)
        total = parse_query(evidence.schema, TOTAL)
        leaf = hierarchy.leaf_level
        may_hold = [facts.allowed(leaf, total, 0, hierarchy.sizes[-1]).upper[:, 0] > 0]
        for level in reversed(range(leaf)):
            may_hold.append(np.logical_or.reduceat(may_hold[-1], hierarchy.child_start[level][:-1]))
        if may_hold[0].all() or not may_hold[-1].any():
            return cls(evidence, hierarchy.sizes, is_void=not may_hold[-1].any())
        kept = tuple(np.flatnonzero(marks) for marks in reversed(may_hold))
        return cls(_KeptAreas(evidence, _pruned(hierarchy, kept), kept), hierarchy.sizes, kept)

    def spread(self, level: int, values: NDArray, elsewhere: int = 0) -> NDArray:
        """Values of the areas that are kept, by row, among those of all areas of a level."""
        if self.kept is None:
            return values
        out = np.full((self.sizes[level], *values.shape[1:]), elsewhere, dtype=values.dtype)
        out[self.kept[level]] = values
        return out

    def spread_errors(self, level: int, errors: MarginalErrors) -> MarginalErrors:
        """The same for standard errors: empty areas have none."""
        if self.kept is None:
            return errors
        rows = np.concatenate([errors.std_errors, np.zeros((1, errors.std_errors.shape[1]))])
        return MarginalErrors(self.spread(level, errors.class_of, len(rows) - 1), rows)


@dataclass(frozen=True, slots=True, eq=False)
class _KeptAreas:
    """Evidence about some areas alone."""

    every: HistogramEvidence
    hierarchy: Hierarchy
    kept: tuple[Ints, ...]

    @property
    def schema(self) -> Schema:
        return self.every.schema

    @property
    def measured(self) -> Sequence[Mapping[str, float]]:
        return self.every.measured

    def read(self, level: int, query: str, first: int, last: int) -> Ints:
        chosen = self.kept[level][first:last]
        begin = int(chosen[0])
        return self.every.read(level, query, begin, int(chosen[-1]) + 1)[chosen - begin]


def _pruned(hierarchy: Hierarchy, kept: Sequence[Ints]) -> Hierarchy:
    starts = [
        np.searchsorted(kept[level + 1], start[np.append(kept[level], start.size - 1)])
        for level, start in enumerate(hierarchy.child_start)
    ]
    return Hierarchy(
        hierarchy.level_names,
        tuple(codes[rows] for codes, rows in zip(hierarchy.node_codes, kept, strict=True)),
        tuple(starts),
        tuple(np.zeros(rows.size, dtype=bool) for rows in kept),  # nothing of it is published
    )


def settled_errors(
    errors: MarginalErrors, facts: HistogramFacts, level: int, query: Query
) -> MarginalErrors:
    """The same, 0 where the facts leave one number; such areas form classes of their own."""
    n_areas, step = errors.class_of.size, max(1, CELLS_AT_ONCE // query.n_cells)
    areas, masks = [np.zeros(0, np.int64)], [np.zeros((0, -(-query.n_cells // 8)), np.uint8)]
    for first in range(0, n_areas, step):
        last = min(first + step, n_areas)
        allowed = facts.allowed(level, query, first, last)
        known = (allowed.lower == allowed.upper) & (errors.rows(first, last) > 0)
        some = np.flatnonzero(known.any(axis=1))
        areas.append(first + some)
        masks.append(np.packbits(known[some], axis=1))
    chosen, mask = np.concatenate(areas), np.concatenate(masks)
    if not chosen.size:
        return errors.compact()
    number = errors.class_of[chosen].astype(">u8").view(np.uint8).reshape(-1, 8)
    _, example, place = np.unique(
        np.concatenate([number, mask], axis=1), axis=0, return_index=True, return_inverse=True
    )
    rows = errors.std_errors[errors.class_of[chosen[example]]]
    known = np.unpackbits(mask[example], axis=1, count=query.n_cells).astype(bool)
    class_of = errors.class_of.copy()
    class_of[chosen] = len(errors.std_errors) + place.reshape(-1)
    every = np.concatenate([errors.std_errors, np.where(known, 0.0, rows)])
    return MarginalErrors(class_of, every).compact()
