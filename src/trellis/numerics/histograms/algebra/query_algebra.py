r"""The algebra that all weighted sums of marginal queries live in.

For a query Q that keeps, recodes or sums each attribute, Q'Q is a Kronecker product with one factor
for each attribute: the identity, ones within groups, or ones everywhere. Split each attribute's
space into the functions that are constant on its *atoms* (the common refinement of its recodes;
one atom if there are none) and the contrasts *within* atoms. On the contrasts the identity acts as
1 and all else as 0; on the atoms each factor is a small matrix. So on the subspace with contrasts
in the attributes U, every operator is a matrix M_U between the atoms of the others, and sums,
products and inverses are taken for each U by itself. Without recodes all M_U are numbers.

To apply an operator, it is written on marginals: with I for the attributes of a set T and the
matrix N_T between the atoms of the others,

    F = sum_T  I_T (x) E N_T E',     N_T from sum over U >= T of (-1)^|U - T| M_U,

E the indicators of atoms. N_T vanishes unless T is an intersection of sets that queries keep.

Within the atoms the basis is orthonormal and starts with the constant, followed by what each
coarser recode adds, so that the answers of a query span a set of coordinates if the recodes of an
attribute are nested. Then "exactly known" and "not measured" are sets of coordinates as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import combinations
from math import prod

import numpy as np
from numba import njit

from trellis.errors import StructureError
from trellis.model.arrays import Floats, Ints, Marks
from trellis.model.queries import Query
from trellis.numerics.histograms.fastmath import REORDER
from trellis.numerics.histograms.marginals import MarginalTree, Stack, add_up, hand_down

Blocks = list[Floats]
"""One array of shape (operators, a, a) for each subspace U."""

LARGEST_BLOCK = 1000
"""Atoms of several attributes together, beyond which matrices between them grow too large."""

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


@dataclass(frozen=True, slots=True, eq=False)
class Algebra:
    """Operators for histograms of one schema and one set of queries."""

    axes: tuple[Axis, ...]
    subspaces: tuple[tuple[int, ...], ...]
    """The attributes U with contrasts."""
    kept_sets: tuple[tuple[int, ...], ...]
    """The sets T that operators are written on."""
    tree: MarginalTree
    """The marginals of all kept sets but the one of all attributes, cells before atoms."""
    n_entries: int
    """Numbers that an operator written on marginals takes."""
    _grams: dict[Query, Blocks] = field(default_factory=dict)
    _spreads: dict[Query, Spread] = field(default_factory=dict)

    @classmethod
    def of(cls, shape: Sequence[int], queries: Sequence[Query]) -> Algebra:
        recodes: list[list[tuple[int, ...]]] = [[] for _ in shape]
        for query in queries:
            for factor in query.factors:
                if factor.is_recoded:
                    recodes[factor.attribute].append(factor.group_of)
        _check_size(recodes)
        axes = tuple(Axis.of(size, r) for size, r in zip(shape, recodes, strict=True))
        able = [i for i, axis in enumerate(axes) if axis.has_contrasts]
        subspaces = tuple(u for k in range(len(able) + 1) for u in combinations(able, k))
        kept = {frozenset(_kept(query)) & frozenset(able) for query in queries}
        closed = set(kept)
        for _ in kept:
            closed |= {a & b for a in closed for b in kept}
        sets = tuple(sorted((tuple(sorted(t)) for t in closed), key=lambda t: (len(t), t)))
        maps, whole = [], []
        for kept_set in sets:
            if len(kept_set) < len(axes):
                maps.append(_cell_of(axes, kept_set))
                whole.append(_n_atoms(axes, kept_set) > 1)
        tree = MarginalTree.of(maps, int(np.prod(shape)), whole)
        entries = sum(_n_atoms(axes, t) ** 2 for t in sets)
        return cls(axes, subspaces, sets, tree, entries)

    # -- operators ------------------------------------------------------------------------------

    def gram(self, query: Query) -> Blocks:
        """Q'Q as one operator."""
        if query not in self._grams:
            self._grams[query] = self._gram(query)
        return self._grams[query]

    def _gram(self, query: Query) -> Blocks:
        kept = set(_kept(query))
        group_of = {factor.attribute: factor.group_of for factor in query.factors}
        blocks = []
        for subspace in self.subspaces:
            factors = [
                axis.factor(group_of.get(i, (0,) * axis.size))
                if i not in kept
                else np.eye(axis.n_atoms)
                for i, axis in enumerate(self.axes)
                if i not in subspace
            ]
            scale = 1.0 if kept.issuperset(subspace) else 0.0
            blocks.append(scale * reduce(np.kron, factors, np.ones((1, 1)))[np.newaxis])
        return blocks

    def support(self, query: Query) -> list[Marks]:
        """For each subspace, the coordinates that the query's answers determine."""
        return [np.diagonal(block[0]) > ROUNDING for block in self.gram(query)]

    def is_nested(self, queries: Iterable[Query]) -> bool:
        """Whether all recodes of an attribute are, so that answers span sets of coordinates."""
        for query in queries:
            for factor in query.factors:
                if factor.is_recoded:
                    axis = self.axes[factor.attribute]
                    spanned = np.diagonal(axis.factor(factor.group_of)) > ROUNDING
                    if spanned.sum() > len(factor.labels):
                        return False
        return True

    def written(self, blocks: Blocks, kept_sets: Sequence[tuple[int, ...]] | None = None) -> Floats:
        """Operators on marginals: entries x operators, T after T, each (atoms, atoms).

        On `kept_sets` alone if the others vanish.
        """
        parts = []
        for t in self.kept_sets if kept_sets is None else kept_sets:
            n = len(blocks[0])
            outside = [i for i in range(len(self.axes)) if i not in t]
            sizes = [self.axes[i].n_atoms for i in outside]
            total = np.zeros((n, int(np.prod(sizes)), int(np.prod(sizes))))
            for subspace, block in zip(self.subspaces, blocks, strict=True):
                if set(t) <= set(subspace):
                    sign = (-1) ** (len(subspace) - len(t))
                    extra = [outside.index(i) for i in subspace if i not in t]
                    total += sign * _with_identity(block, sizes, extra)
            change = reduce(
                np.kron,
                [
                    self.axes[i].basis / np.sqrt(self.axes[i].atom_sizes)[:, np.newaxis]
                    for i in outside
                ],
                np.ones((1, 1)),
            )
            parts.append((change @ total @ change.T).reshape(n, -1).T)
        return np.ascontiguousarray(np.concatenate(parts))

    def apply(self, written: Floats, which: Ints, x: Floats) -> Floats:
        """Operator `which[i]` on column i of x (cells x vectors)."""
        out = np.zeros_like(x)
        rows = np.empty((self.tree.stack.n_rows, x.shape[1]))
        atoms, starts, whole = self.layout()
        _apply(self.tree.stack, atoms, starts, whole, written, which, x, rows, out)
        return out

    def spread(self, query: Query) -> Spread:
        """Where the query's answers go when a gain is applied to them."""
        if query not in self._spreads:
            self._spreads[query] = self._spread(query)
        return self._spreads[query]

    def _spread(self, query: Query) -> Spread:
        able = [i for i in _kept(query) if self.axes[i].has_contrasts]
        own = tuple(sorted(able))
        row_of = _cell_of(self.axes, own)
        n_rows = int(row_of.max()) + 1
        cell_of_row = np.zeros(n_rows, dtype=np.int64)
        cell_of_row[row_of] = query.cell_of
        part = np.bincount(row_of) / np.bincount(query.cell_of)[cell_of_row]
        counts = [_n_atoms(self.axes, t) for t in self.kept_sets]
        inside = [i for i, t in enumerate(self.kept_sets) if set(t) <= set(own)]
        start = dict(zip(inside, np.cumsum([0, *(counts[i] ** 2 for i in inside)]), strict=False))
        place = {position: g for g, position in enumerate(self.tree.order)}
        in_tree = [i for i, t in enumerate(self.kept_sets) if len(t) < len(self.axes)]
        listed = [i for i in inside if i in in_tree]
        maps = []
        for i in listed:
            coarser = np.zeros(n_rows, dtype=np.int64)
            coarser[row_of] = _cell_of(self.axes, self.kept_sets[i])
            maps.append(coarser)
        tree = MarginalTree.of(maps, n_rows)
        chosen = [listed[position] for position in tree.order]
        targets = [self.tree.stack.row_start[place[in_tree.index(i)]] for i in chosen]
        whole = [int(start[i]) for i in inside if i not in in_tree]
        return Spread(
            cell_of_row,
            part,
            [self.kept_sets[i] for i in inside],
            tree.stack,
            np.array([counts[i] for i in chosen], dtype=np.int64),
            np.array([start[i] for i in chosen], dtype=np.int64),
            np.array(targets, dtype=np.int64),
            whole[0] if whole else -1,
        )

    def add_gains(
        self,
        gains: Sequence[tuple[Spread, Floats]],
        which: Ints,
        answers: Sequence[Floats],
    ) -> Floats:
        """The sum over queries of a gain times Q+ z, z the answers (nodes x query cells).

        Gains are P Q'Q / variance, with eigenvalues between 0 and 1: whatever the variances are,
        nothing large is added up only to cancel. They are written on `spread.kept_sets`; `which` is
        the operator of each node. Returns cells x nodes.
        """
        out = np.zeros((self.tree.n_cells, which.size))
        rows = np.zeros((self.tree.stack.n_rows, which.size))
        for (spread, written), z in zip(gains, answers, strict=True):
            values = np.ascontiguousarray(z.T[spread.cell_of_row] * spread.part[:, np.newaxis])
            own = np.empty((spread.stack.n_rows, which.size))
            _add_gain(
                spread.stack, spread.atoms, spread.starts, spread.targets, spread.whole, written,
                which, values, own, rows, out,
            )  # fmt: skip
        hand_down(self.tree.stack, rows, out)
        return out

    def layout(self) -> tuple[Ints, Ints, int]:
        """Atoms and first entry of each marginal of the tree, and the entry of the diagonal or -1.

        The diagonal is the marginal that keeps all attributes.
        """
        counts = [_n_atoms(self.axes, t) for t in self.kept_sets]
        firsts = np.concatenate([[0], np.cumsum(np.square(counts))])
        in_tree = [i for i, t in enumerate(self.kept_sets) if len(t) < len(self.axes)]
        chosen = [in_tree[position] for position in self.tree.order]
        whole = [int(firsts[i]) for i, t in enumerate(self.kept_sets) if len(t) == len(self.axes)]
        return (
            np.array([counts[i] for i in chosen], dtype=np.int64),
            np.array([firsts[i] for i in chosen], dtype=np.int64),
            whole[0] if whole else -1,
        )

    def least_eigenvalue(self, blocks: Blocks) -> Floats:
        """Of each operator; 0 where some subspace has none."""
        return np.min([np.linalg.eigvalsh(block)[:, 0] for block in blocks], axis=0)

    def variances(self, query: Query, covariance: Blocks) -> Floats:
        """Variances of the query's answers under covariances: operators x query cells."""
        kinds = self.cell_kinds(query)
        return kinds.variances(covariance)[:, kinds.kind_of_cell]

    def cell_kinds(self, query: Query) -> CellKinds:
        """The cells of a query, those that have the same variance under all operators as one."""
        group_of = {factor.attribute: np.array(factor.group_of) for factor in query.factors}
        members, numbers = [], []
        for i, axis in enumerate(self.axes):
            groups = group_of.get(i, np.zeros(axis.size, dtype=np.int64))
            counts = np.zeros((groups.max() + 1, axis.n_atoms))
            np.add.at(counts, (groups, axis.atom_of), 1.0)
            kinds, number = np.unique(counts, axis=0, return_inverse=True)
            members.append(kinds)
            numbers.append(number.ravel())
        shape = tuple(len(kinds) for kinds in members)
        cells = np.unravel_index(np.arange(query.n_cells), query.shape or (1,))
        position = [np.zeros(query.n_cells, dtype=np.int64) for _ in self.axes]
        for cell, factor in zip(cells, query.factors, strict=False):
            position[factor.attribute] = numbers[factor.attribute][cell]
        kind_of_cell = np.ravel_multi_index(tuple(position), shape)
        vectors, lengths = [], []
        for subspace in self.subspaces:
            vector, length = np.ones((1, 1)), np.ones(1)
            for i, axis in enumerate(self.axes):
                inside, outside = axis.parts(members[i])
                if i in subspace:
                    vector = np.repeat(vector, len(outside), axis=0)
                    length = np.outer(length, outside).ravel()
                else:
                    vector = np.einsum("ka,lb->klab", vector, inside).reshape(
                        len(vector) * len(inside), -1
                    )
                    length = np.repeat(length, len(inside))
            vectors.append(vector)
            lengths.append(length)
        return CellKinds(kind_of_cell, vectors, lengths)


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """Answers of a query, handed out evenly to its cells and added up on the sets inside its own.

    Row r, a cell of what the query keeps with atoms of the rest, gets `part[r]` of the answer
    `cell_of_row[r]`. Marginal g of the stack goes into the rows from `targets[g]` of the algebra's
    tree, weighted by the entries from `starts[g]`; the cells themselves by entry `whole`, if any.
    """

    cell_of_row: Ints
    part: Floats
    kept_sets: list[tuple[int, ...]]
    stack: Stack
    atoms: Ints
    starts: Ints
    targets: Ints
    whole: int


@dataclass(frozen=True, slots=True, eq=False)
class CellKinds:
    """Indicators of a query's cells, projected on the subspaces; one row for each kind of cell.

    Under M_U the projection on U has the square `lengths` * v' M_U v, v a row of `vectors`.
    """

    kind_of_cell: Ints
    vectors: Blocks
    lengths: Blocks

    @property
    def sizes(self) -> Ints:
        """How many cells are of each kind."""
        return np.bincount(self.kind_of_cell, minlength=len(self.lengths[0]))

    def squares(self, subspace: int, blocks: Floats) -> Floats:
        """The squares of all kinds of cells under operators on one subspace: operators x kinds."""
        v = self.vectors[subspace]
        return ((blocks @ v.T) * v.T).sum(axis=1) * self.lengths[subspace]

    def variances(self, covariance: Blocks) -> Floats:
        """Variances of all kinds of cells: operators x kinds."""
        parts = [self.squares(i, block) for i, block in enumerate(covariance)]
        return np.maximum(np.sum(parts, axis=0), 0.0)

    def weighted(self, subspace: int, weights: Floats) -> Floats:
        """The matrix whose scalar product with M_U is the weighted sum of the squares."""
        v = self.vectors[subspace]
        return (v.T * (weights * self.lengths[subspace])) @ v


def _check_size(recodes: Sequence[Sequence[tuple[int, ...]]]) -> None:
    largest = prod(len(set(zip(*groups, strict=True))) for groups in recodes if groups)
    if largest > LARGEST_BLOCK:
        raise StructureError(
            f"The recodes of all attributes together make {largest} groups; more than "
            f"{LARGEST_BLOCK} are too many for gls_topdown. Use fewer or coarser recodes, or "
            "method topdown."
        )


def _kept(query: Query) -> list[int]:
    return [factor.attribute for factor in query.factors if not factor.is_recoded]


def _n_atoms(axes: Sequence[Axis], without: Sequence[int]) -> int:
    return int(np.prod([axis.n_atoms for i, axis in enumerate(axes) if i not in without]))


def _cell_of(axes: Sequence[Axis], kept_set: Sequence[int]) -> Ints:
    """The row of each cell: cells of the kept attributes before atoms of the others."""
    positions = np.unravel_index(
        np.arange(int(np.prod([axis.size for axis in axes]))), [axis.size for axis in axes]
    )
    row = np.zeros(positions[0].size, dtype=np.int64)
    for i in kept_set:
        row = row * axes[i].size + positions[i]
    for i, axis in enumerate(axes):
        if i not in kept_set:
            row = row * axis.n_atoms + axis.atom_of[positions[i]]
    return row


def _with_identity(block: Floats, sizes: Sequence[int], extra: Sequence[int]) -> Floats:
    """A block with identities put in at the positions `extra` of the factors with these sizes."""
    n = len(block)
    own = [size for i, size in enumerate(sizes) if i not in extra]
    tensor = block.reshape(n, *own, *own)
    for position in sorted(extra):
        size = sizes[position]
        left = tensor.ndim // 2  # factors so far, counted with the axis of operators
        before = tensor.reshape(*tensor.shape[: 1 + position], 1, *tensor.shape[1 + position :])
        column = left + 1 + position + 1
        before = before.reshape(*before.shape[:column], 1, *before.shape[column:])
        eye_shape = [1] * before.ndim
        eye_shape[1 + position] = eye_shape[column] = size
        tensor = before * np.eye(size).reshape(eye_shape)
    return tensor.reshape(n, int(np.prod(sizes)), int(np.prod(sizes)))


def _clean(matrix: Floats) -> Floats:
    """Without entries that are rounding errors, so that supports can be read off."""
    return np.where(np.abs(matrix) < ROUNDING * np.abs(matrix).max(), 0.0, matrix)


@njit(nogil=True, cache=True, fastmath=REORDER)
def _apply(stack, atoms, starts, whole, written, which, x, rows, out):
    width = x.shape[1]
    if whole >= 0:
        for j in range(x.shape[0]):
            for c in range(width):
                out[j, c] = written[whole, which[c]] * x[j, c]
    add_up(stack, x, rows)
    for g in range(atoms.size):
        n_atoms = atoms[g]
        plain = np.empty((n_atoms, width))
        for k in range(stack.row_start[g], stack.row_start[g + 1], n_atoms):
            plain[:] = rows[k : k + n_atoms]
            rows[k : k + n_atoms] = 0.0
            for a in range(n_atoms):
                for b in range(n_atoms):
                    entry = starts[g] + a * n_atoms + b
                    for c in range(width):
                        rows[k + a, c] += written[entry, which[c]] * plain[b, c]
    hand_down(stack, rows, out)


@njit(nogil=True, cache=True, fastmath=REORDER)
def _add_gain(stack, atoms, starts, targets, whole, written, which, values, own, rows, out):
    """Add the weighted marginals of one query's spread answers to `rows`, and cells to `out`."""
    width = which.size
    if whole >= 0:
        for j in range(values.shape[0]):
            for c in range(width):
                out[j, c] += written[whole, which[c]] * values[j, c]
    add_up(stack, values, own)
    for g in range(atoms.size):
        n_atoms = atoms[g]
        for k in range(0, stack.row_start[g + 1] - stack.row_start[g], n_atoms):
            for a in range(n_atoms):
                for b in range(n_atoms):
                    entry = starts[g] + a * n_atoms + b
                    for c in range(width):
                        rows[targets[g] + k + a, c] += (
                            written[entry, which[c]] * own[stack.row_start[g] + k + b, c]
                        )
