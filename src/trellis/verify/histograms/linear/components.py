"""Histograms split into components that no query mixes.

Categories of an attribute that every recode puts into the same group form an *atom*. A query keeps
the categories of an attribute, or adds up whole atoms; so it keeps or destroys contrasts between
the categories of an atom, and never turns one into a sum. A component is a set of attributes with
contrasts: what is left of a histogram are numbers for the atoms of all other attributes, by
contrast. Measurements of different components, and of different contrasts of one component, have
nothing to do with one another.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from math import prod
from typing import Any

import numpy as np

from trellis.verify.files.safe_files import Unreadable

Parts = dict[tuple[int, ...], np.ndarray]
"""By component: nodes x rows x contrasts."""

_ONE = np.ones((1, 1))


@dataclass(frozen=True, slots=True)
class Axis:
    """An attribute: the atom of each category, and orthonormal contrasts, categories x contrasts.

    These are all contrasts, or one that was drawn at random.
    """

    atom: np.ndarray
    contrasts: np.ndarray

    @classmethod
    def of(cls, size: int, groups: list[np.ndarray], rng: np.random.Generator | None) -> Axis:
        stacked = np.array(groups, dtype=np.int64).reshape(len(groups), size)
        atom = np.unique(stacked, axis=1, return_inverse=True)[1].reshape(-1)
        # Spread out, so that differences between the categories of an atom are left.
        inside = np.eye(size) - (atom == atom[:, np.newaxis]) / np.bincount(atom)[atom]
        if rng is not None and size > atom.max() + 1:
            drawn = inside @ rng.standard_normal(size)
            return cls(atom, (drawn / np.linalg.norm(drawn))[:, np.newaxis])
        values, vectors = np.linalg.eigh(inside)
        return cls(atom, vectors[:, values > 0.5])

    @property
    def sizes(self) -> np.ndarray:
        return np.bincount(self.atom)

    @property
    def has_contrasts(self) -> bool:
        return self.contrasts.shape[1] > 0

    @property
    def forward(self) -> np.ndarray:
        """From categories to sums of atoms and contrasts."""
        atoms = self.atom[:, np.newaxis] == np.arange(self.sizes.size)
        return np.concatenate([atoms, self.contrasts], axis=1)

    @property
    def back(self) -> np.ndarray:
        """And back, where all contrasts are there."""
        atoms = self.atom[:, np.newaxis] == np.arange(self.sizes.size)
        return np.concatenate([atoms / self.sizes, self.contrasts], axis=1)


@dataclass(frozen=True, slots=True)
class Asked:
    """A query: by attribute None where it is kept, else the group of each category."""

    groups: dict[int, np.ndarray | None]

    @property
    def kept(self) -> set[int]:
        return {axis for axis, group in self.groups.items() if group is None}


def asked(plan: dict[str, Any], name: str) -> Asked:
    """A query by its name, from the schema and the recodes of plan.json."""
    attributes = list(plan["schema"])
    names = {"total": [], "detailed": attributes}.get(name, name.split(" * "))
    groups: dict[int, np.ndarray | None] = {}
    for factor in names:
        if factor in attributes:
            groups[attributes.index(factor)] = None
        else:
            recode = plan["recodes"][factor]
            members = list(recode["groups"].values())
            of = [
                next(i for i, group in enumerate(members) if category in group)
                for category in plan["schema"][recode["attribute"]]
            ]
            groups[attributes.index(recode["attribute"])] = np.array(of)
    if len(groups) != len(names) or list(groups) != sorted(groups):
        raise Unreadable("plan.json names a query whose attributes are not in order")
    return Asked(groups)


@dataclass(frozen=True, slots=True)
class Components:
    """The components of a schema under some queries."""

    axes: list[Axis]

    @classmethod
    def of(
        cls, shape: list[int], queries: list[Asked], rng: np.random.Generator | None
    ) -> Components:
        """With one random contrast of each attribute if there is a generator, else with all."""
        groups: list[list[np.ndarray]] = [[] for _ in shape]
        for query in queries:
            for axis, group in query.groups.items():
                if group is not None:
                    groups[axis].append(group)
        return cls([Axis.of(size, g, rng) for size, g in zip(shape, groups, strict=True)])

    def all_of(self, queries: list[Asked]) -> list[tuple[int, ...]]:
        """Those that some query keeps."""
        able = [i for i, axis in enumerate(self.axes) if axis.has_contrasts]
        sets = [set(query.kept) for query in queries]
        return [
            chosen
            for size in range(len(able) + 1)
            for chosen in combinations(able, size)
            if any(kept.issuperset(chosen) for kept in sets)
        ]

    def others(self, component: tuple[int, ...]) -> list[int]:
        return [i for i in range(len(self.axes)) if i not in component]

    def n_atoms(self, component: tuple[int, ...]) -> int:
        return int(np.prod([self.axes[i].sizes.size for i in self.others(component)]))

    def rows(self, query: Asked, component: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        """What is left of the answers: rows x atoms, and how many answers each row adds up."""
        matrices, numbers = [_ONE], [np.ones(1)]
        for i in self.others(component):
            atoms = self.axes[i].sizes
            if i not in query.groups:
                matrices.append(np.ones((1, atoms.size)))
            elif (group := query.groups[i]) is None:
                matrices.append(np.eye(atoms.size))
                numbers.append(atoms.astype(np.float64))
            else:
                of_atom = np.zeros(atoms.size, dtype=np.int64)
                of_atom[self.axes[i].atom] = group
                matrices.append((np.arange(group.max() + 1)[:, np.newaxis] == of_atom) * 1.0)
                numbers.append(np.ones(group.max() + 1))
        return reduce(np.kron, matrices), reduce(np.kron, numbers)

    def split(self, query: Asked, answers: np.ndarray, components: list[tuple[int, ...]]) -> Parts:
        """Answers, nodes x cells of the query, by component."""
        axes = list(query.groups)
        sizes = [
            len(self.axes[i].atom) if group is None else int(group.max()) + 1
            for i, group in query.groups.items()
        ]
        values = answers.astype(np.float64).reshape(len(answers), *sizes)
        for place, i in enumerate(axes):
            if query.groups[i] is None:
                turned = np.tensordot(values, self.axes[i].forward, (place + 1, 0))
                values = np.moveaxis(turned, -1, place + 1)
        found = {}
        for component in components:
            if query.kept.issuperset(component):
                cut = tuple(
                    self._part(i, component) if query.groups[i] is None else slice(None)
                    for i in axes
                )
                rows = [1 + place for place, i in enumerate(axes) if i not in component]
                columns = [1 + place for place, i in enumerate(axes) if i in component]
                part = values[(slice(None), *cut)].transpose(0, *rows, *columns)
                height, width = (
                    prod(part.shape[1:][: len(rows)]),
                    prod(part.shape[1:][len(rows) :]),
                )
                found[component] = part.reshape(len(answers), height, width)
        return found

    def joined(self, parts: Parts) -> np.ndarray:
        """Histograms, nodes x cells, from all components, with all atoms as rows."""
        return self._together(parts, [axis.back for axis in self.axes])

    def slopes(self, parts: Parts) -> np.ndarray:
        """By cell, from what a function of histograms grows by with each row of each component."""
        return self._together(parts, [axis.forward for axis in self.axes])

    def _together(self, parts: Parts, matrices: list[np.ndarray]) -> np.ndarray:
        n_nodes = len(next(iter(parts.values())))
        sizes = [axis.forward.shape[1] for axis in self.axes]
        values = np.zeros((n_nodes, *sizes))
        for component, part in parts.items():
            others = self.others(component)
            shape = [self.axes[i].sizes.size for i in others]
            shape += [self.axes[i].contrasts.shape[1] for i in component]
            order = np.argsort([*others, *component])
            cut = tuple(self._part(i, component) for i in range(len(self.axes)))
            placed = part.reshape(n_nodes, *shape).transpose(0, *(order + 1))
            values[(slice(None), *cut)] = placed
        for i, matrix in enumerate(matrices):
            values = np.moveaxis(np.tensordot(values, matrix, (i + 1, 1)), -1, i + 1)
        return values.reshape(n_nodes, -1)

    def _part(self, axis: int, component: tuple[int, ...]) -> slice:
        n_atoms = self.axes[axis].sizes.size
        return slice(n_atoms, None) if axis in component else slice(0, n_atoms)

    def cell_rows(self, query: Asked, component: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        """For each cell of the query its row, and the factor of that row's variance in its own."""
        row, factor = np.zeros(1, dtype=np.int64), np.ones(1)
        for i, group in query.groups.items():
            sizes = self.axes[i].sizes
            if group is not None:
                here, part, n_rows = np.arange(group.max() + 1), 1.0, int(group.max()) + 1
            elif i in component:
                own = sizes[self.axes[i].atom]
                here, part, n_rows = np.zeros(own.size, dtype=np.int64), 1 - 1 / own, 1
            else:
                here, n_rows = self.axes[i].atom, sizes.size
                part = 1 / sizes[here] ** 2.0
            row = (row[:, np.newaxis] * n_rows + here).ravel()
            factor = (factor[:, np.newaxis] * (part * np.ones(here.size))).ravel()
        return row, factor

    def between_answers(self, query: Asked, parts: dict[tuple[int, ...], np.ndarray]) -> np.ndarray:
        """Covariances of answers from those of the rows that are left of them by component."""
        total = np.zeros((1, 1))
        for component, matrix in parts.items():
            inside, row = _ONE, np.zeros(1, dtype=np.int64)
            for i, group in query.groups.items():
                axis = self.axes[i]
                if group is not None:
                    here, own = np.arange(group.max() + 1), np.ones((group.max() + 1,) * 2)
                elif i in component:
                    here, own = np.zeros(axis.atom.size, int), axis.contrasts @ axis.contrasts.T
                else:
                    here, own = axis.atom, np.outer(*[1 / axis.sizes[axis.atom]] * 2)
                inside = np.kron(inside, own)
                row = (row[:, np.newaxis] * (here.max() + 1) + here).ravel()
            total = total + inside * matrix[np.ix_(row, row)]
        return total

    def between_cells(
        self, parts: dict[tuple[int, ...], np.ndarray], cells: np.ndarray
    ) -> np.ndarray:
        """A matrix between some cells from matrices between the atoms of each component.

        That is: atoms enter with the sums of their cells, contrasts with what they differ by.
        """
        shape = [axis.atom.size for axis in self.axes]
        places = np.unravel_index(cells, shape)
        total = np.zeros((cells.size,) * 2)
        for component, matrix in parts.items():
            inside, atom = np.ones(total.shape), np.zeros(cells.size, dtype=np.int64)
            for i, (axis, place) in enumerate(zip(self.axes, places, strict=True)):
                if i in component:
                    own = axis.contrasts[place]
                    inside *= own @ own.T
                else:
                    atom = atom * axis.sizes.size + axis.atom[place]
            total += inside * matrix[np.ix_(atom, atom)]
        return total


def subsets(components: list[tuple[int, ...]], query: Asked) -> Iterator[tuple[int, ...]]:
    """The components that a query keeps."""
    return (component for component in components if query.kept.issuperset(component))
