"""Variances of areas of interest and published levels as a function of how the budget is split.

The tree may be the published one or a spine. A record meets one node on each of its levels, and the
nodes of a spine may carry the budgets of several levels, so the budget of a class of nodes is a
linear function of the budgets of the slots: its row of `mixing`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from trellis.model.tables.queries import Query
from trellis.model.trees.areas import Category, ancestors
from trellis.model.trees.hierarchy import Hierarchy
from trellis.planning.allocation.components import Component
from trellis.planning.forecast.area_shape import AreaShape, Floats, Ints, Solved
from trellis.planning.forecast.expected_variance import STEP, noise_variance

if TYPE_CHECKING:
    from trellis.planning.allocation.targets import Target

ONE_SLOT = ("budget",)
"""The slot of a tree whose shares are fixed: the whole budget."""


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredTree:
    """The tree that is measured: the published one, or a spine of it.

    Leaf i is leaf `leaf_order[i]` of the published hierarchy. Node i of a level gets the budget
    `mixing[classes[level][i]] @ x`, where x holds one budget for each of `slots`.
    """

    tree: Hierarchy
    leaf_order: NDArray[np.int64]
    classes: tuple[NDArray[Any], ...]
    mixing: Floats
    slots: tuple[str, ...]

    @classmethod
    def conventional(cls, hierarchy: Hierarchy, measured: Sequence[str]) -> MeasuredTree:
        """A budget for each of these levels of the published tree."""
        names = hierarchy.level_names
        mixing = np.array([[float(name == slot) for slot in measured] for name in names])
        classes = tuple(np.full(size, level) for level, size in enumerate(hierarchy.sizes))
        order = np.arange(hierarchy.sizes[-1])
        return cls(hierarchy, order, classes, mixing, tuple(measured))

    @classmethod
    def in_shares(cls, hierarchy: Hierarchy, shares: Mapping[str, float]) -> MeasuredTree:
        """One budget, split over these levels of the published tree."""
        return cls.conventional(hierarchy, list(shares)).split(shares)

    def split(self, shares: Mapping[str, float]) -> MeasuredTree:
        """One slot, the whole budget, of which each slot gets its share."""
        column = self.mixing @ [[float(shares.get(name, 0))] for name in self.slots]
        return replace(self, mixing=column, slots=ONE_SLOT)

    def only(self, slots: Sequence[str]) -> MeasuredTree:
        """Without the slots that get nothing."""
        columns = [self.slots.index(name) for name in slots]
        return replace(self, mixing=self.mixing[:, columns], slots=tuple(slots))


@dataclass(frozen=True, slots=True)
class Wanted:
    """A published level, or a category of areas; `areas` counts what is published, by entry."""

    first: int
    areas: Ints

    @property
    def entries(self) -> slice:
        return slice(self.first, self.first + self.areas.size)


@dataclass(frozen=True, slots=True)
class AreaAim:
    """The summed squared error of one query over a level or a category, times a weight."""

    name: str
    query: Query
    weight: float


@dataclass(frozen=True, eq=False)
class AreaModel:
    """What `VarianceModel` is for levels, for areas of any shape on any tree.

    One query is measured on each level: the total, or all cells. `exact` are levels of the tree
    whose totals are exact. Areas are known by the name of their level or category.
    """

    measured: MeasuredTree
    shape: AreaShape
    wanted: Mapping[str, Wanted]
    parts: tuple[Component, ...]
    exact: tuple[int, ...]
    kind: str
    unit: float

    @classmethod
    def of(
        cls,
        hierarchy: Hierarchy,
        measured: MeasuredTree,
        wanted: Sequence[str | Category],
        parts: tuple[Component, ...],
        exact: Sequence[str],
        kind: str,
        unit: float,
    ) -> AreaModel:
        """A model for the errors of some published levels, by name, and categories."""
        found: dict[str, Wanted] = {}
        members, first = [], 0
        for areas in dict.fromkeys(wanted):
            if isinstance(areas, str):
                name = areas
                member, published = _areas_of_level(hierarchy, measured, areas)
            else:
                name = areas.name
                member, published = areas.member[measured.leaf_order], np.ones(areas.size, int)
            found[name] = Wanted(first, published)
            members.append(np.where(member >= 0, member + first, -1))
            first += published.size
        shape = AreaShape.of(measured.tree, measured.classes, members)
        at = tuple(measured.tree.index(name) for name in exact)
        return cls(measured, shape, found, parts, at, kind, unit)

    @property
    def n_slots(self) -> int:
        return len(self.measured.slots)

    @cached_property
    def n_cells(self) -> int:
        return sum(part.dimension for part in self.parts)

    def solve(self, budgets: Floats) -> list[Solved]:
        """The variances of all areas, for each component."""
        precision = self._precision(budgets)[0]
        return [
            self.shape.solve(precision, self.exact if part.is_total else ()) for part in self.parts
        ]

    def of_query(self, solved: Sequence[Solved], name: str, query: Query) -> Floats:
        """The variance of a cell of the query, for every entry of a level or category."""
        entries = self.wanted[name].entries
        terms = [
            weight * part.variance[entries]
            for part, weight in zip(solved, self._parts_seen(query), strict=True)
        ]
        return np.sum(terms, axis=0)

    def areas_of(self, target: Target) -> Ints:
        """How many published areas every entry stands for."""
        return self.wanted[target.name].areas

    def variances(self, targets: Sequence[Target], budgets: Floats) -> list[Floats]:
        """For each target the variance of every entry; areas that are not published have none."""
        solved = self.solve(budgets)
        return [
            np.where(self.areas_of(t) > 0, self.of_query(solved, t.name, t.query), 0.0)
            for t in targets
        ]

    def slopes(
        self, targets: Sequence[Target], budgets: Floats, picked: Sequence[tuple[int, int]]
    ) -> Floats:
        """Derivatives by the logarithms of the budgets: a row for each target and entry picked."""
        solved, rows = self.solve(budgets), np.empty((len(picked), self.n_slots))
        for query in {targets[k].query for k, _ in picked}:
            chosen = [i for i, (k, _) in enumerate(picked) if targets[k].query == query]
            entries = [self._entry(targets[picked[i][0]], picked[i][1]) for i in chosen]
            different, row = np.unique(entries, return_inverse=True)
            output = np.full(self.shape.n_areas, -1)
            output[different] = np.arange(different.size)
            weight = np.ones(self.shape.n_areas)
            rows[chosen] = self._by_budget(budgets, solved, query, output, weight)[row]
        return rows

    def _entry(self, target: Target, entry: int) -> int:
        return self.wanted[target.name].first + entry

    def weighted_error(self, aims: Sequence[AreaAim], budgets: Floats) -> tuple[float, Floats]:
        """The weighted sum over all areas and cells, and its derivatives by log budgets."""
        solved, total, slopes = self.solve(budgets), 0.0, np.zeros(self.n_slots)
        for query in {aim.query for aim in aims}:
            weight = np.zeros(self.shape.n_areas)
            for aim in aims:
                if aim.query == query:
                    here = self.wanted[aim.name]
                    weight[here.entries] += aim.weight * here.areas * query.n_cells
                    total += float(self.of_query(solved, aim.name, query) @ weight[here.entries])
            output = np.where(weight > 0, 0, -1)
            slopes += self._by_budget(budgets, solved, query, output, weight)[0]
        return total, slopes

    def _by_budget(
        self,
        budgets: Floats,
        solved: Sequence[Solved],
        query: Query,
        output: Ints,
        weight: Floats,
    ) -> Floats:
        by_precision = sum(
            seen * self.shape.gradients(part, output, weight)
            for part, seen in zip(solved, self._parts_seen(query), strict=True)
            if seen
        )
        by_class = by_precision * self._precision(budgets)[1]
        return by_class @ self.measured.mixing * budgets

    def _parts_seen(self, query: Query) -> list[float]:
        """With what weight each component enters the variance of a cell of the query."""
        cells_in_each = self.n_cells / query.n_cells
        return [
            part.dimension * cells_in_each / query.n_cells if part.is_seen_by(query) else 0.0
            for part in self.parts
        ]

    def _precision(self, budgets: Floats) -> tuple[Floats, Floats]:
        """The precision of every class, and its derivative by the budget of the class."""
        amounts = self.measured.mixing @ budgets
        found = np.zeros(amounts.size, np.complex128)
        for i, amount in enumerate(amounts.tolist()):
            if amount > 0:
                parameter = self.unit / (amount * (1 + 1j * STEP))
                found[i] = 1 / noise_variance(self.kind, parameter)
        slopes = np.divide(
            found.imag / STEP, amounts, out=np.zeros_like(amounts), where=amounts > 0
        )
        return found.real, slopes


def _areas_of_level(hierarchy: Hierarchy, measured: MeasuredTree, name: str) -> tuple[Ints, Ints]:
    """The area of every leaf of the measured tree, and how many published ones each stands for.

    Leaves of one family and class are alike: the first of them stands for all.
    """
    level = hierarchy.index(name)
    shown = (~hierarchy.passes_through[level]).astype(np.int64)
    if level < hierarchy.leaf_level:
        return ancestors(hierarchy, level)[measured.leaf_order], shown
    tree, classes = measured.tree, measured.classes[-1].astype(np.int64)
    parent = tree.parents(tree.leaf_level) if tree.n_levels > 1 else np.zeros(1, np.int64)
    key = parent * (int(classes.max()) + 1) + classes
    _, first, entry = np.unique(key, return_index=True, return_inverse=True)
    member = np.full(key.size, -1)
    member[first] = np.arange(first.size)
    return member, np.bincount(entry, shown[measured.leaf_order]).astype(np.int64)
