"""One attribute of a schema: its atoms, and an orthonormal basis of what is constant on them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from trellis.model.arrays import Floats, Ints

ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Axis:
    """One attribute: its atoms, and an orthonormal basis of what is constant on them.

    `basis` has a column for each basis function, in units of atoms of norm 1.
    """

    size: int
    atom_of: Ints
    basis: Floats

    @property
    def n_atoms(self) -> int:
        return self.basis.shape[0]

    @property
    def has_contrasts(self) -> bool:
        return self.n_atoms < self.size

    @property
    def atom_sizes(self) -> Floats:
        return np.bincount(self.atom_of).astype(np.float64)

    def factor(self, group_of: Sequence[int]) -> Floats:
        """Ones within groups, as a matrix in the basis; groups are unions of atoms."""
        root = np.sqrt(self.atom_sizes)
        group_of_atom = np.zeros(self.n_atoms, dtype=np.int64)
        group_of_atom[self.atom_of] = group_of
        indicator = np.zeros((max(group_of) + 1, self.n_atoms))
        indicator[group_of_atom, np.arange(self.n_atoms)] = root
        coordinates = indicator @ self.basis
        return _clean(coordinates.T @ coordinates)

    def parts(self, members: Floats) -> tuple[Floats, Floats]:
        """Sets of categories, as numbers by atom: in the basis, and the square of what is left."""
        inside = _clean((members / np.sqrt(self.atom_sizes)) @ self.basis)
        return inside, (members - members**2 / self.atom_sizes).sum(axis=1)

    @classmethod
    def of(cls, size: int, recodes: Iterable[tuple[int, ...]]) -> Axis:
        recodes = sorted(set(recodes), key=lambda group_of: max(group_of))
        names = list(zip(*recodes, strict=True)) if recodes else [()] * size
        order = {name: i for i, name in enumerate(dict.fromkeys(names))}
        atom_of = np.array([order[name] for name in names], dtype=np.int64)
        root = np.sqrt(np.bincount(atom_of))
        columns = [root / np.linalg.norm(root)]
        for group_of in [*recodes, tuple(atom_of)]:
            for group in range(max(group_of) + 1):
                inside = np.zeros(root.size)
                atoms = np.unique(atom_of[np.array(group_of) == group])
                inside[atoms] = root[atoms]
                for column in columns * 2:  # twice, against rounding
                    inside -= column * (column @ inside)
                if (norm := np.linalg.norm(inside)) > ROUNDING * np.sqrt(size):
                    columns.append(inside / norm)
        return cls(size, atom_of, np.array(columns).T)


def _clean(matrix: Floats) -> Floats:
    """Without entries that are rounding errors, so that supports can be read off."""
    return np.where(np.abs(matrix) < ROUNDING * np.abs(matrix).max(), 0.0, matrix)
