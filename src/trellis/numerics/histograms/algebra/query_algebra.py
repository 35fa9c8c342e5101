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

from trellis.errors import StructureError
from trellis.model.arrays import Floats, Ints, Marks
from trellis.model.tables.queries import Query
from trellis.numerics.histograms.algebra.axis import ROUNDING, Axis
from trellis.numerics.histograms.algebra.cell_kinds import CellKinds
from trellis.numerics.histograms.algebra.operators import add_gain, apply_written
from trellis.numerics.histograms.algebra.spread import Spread
from trellis.numerics.histograms.algebra.subspaces import (
    Blocks,
    cell_of_kept,
    kept_attributes,
    n_atoms,
    with_identity,
)
from trellis.numerics.histograms.marginals import MarginalTree, hand_down

LARGEST_BLOCK = 1000
"""Atoms of several attributes together, beyond which matrices between them grow too large."""


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
        kept = {frozenset(kept_attributes(query)) & frozenset(able) for query in queries}
        closed = set(kept)
        for _ in kept:
            closed |= {a & b for a in closed for b in kept}
        sets = tuple(sorted((tuple(sorted(t)) for t in closed), key=lambda t: (len(t), t)))
        maps, whole = [], []
        for kept_set in sets:
            if len(kept_set) < len(axes):
                maps.append(cell_of_kept(axes, kept_set))
                whole.append(n_atoms(axes, kept_set) > 1)
        tree = MarginalTree.of(maps, int(np.prod(shape)), whole)
        entries = sum(n_atoms(axes, t) ** 2 for t in sets)
        return cls(axes, subspaces, sets, tree, entries)

    # -- operators ------------------------------------------------------------------------------

    def gram(self, query: Query) -> Blocks:
        """Q'Q as one operator."""
        if query not in self._grams:
            self._grams[query] = self._gram(query)
        return self._grams[query]

    def _gram(self, query: Query) -> Blocks:
        kept = set(kept_attributes(query))
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
                    total += sign * with_identity(block, sizes, extra)
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
        apply_written(self.tree.stack, atoms, starts, whole, written, which, x, rows, out)
        return out

    def spread(self, query: Query) -> Spread:
        """Where the query's answers go when a gain is applied to them."""
        if query not in self._spreads:
            self._spreads[query] = Spread.of(self.axes, self.kept_sets, self.tree, query)
        return self._spreads[query]

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
            add_gain(
                spread.stack, spread.atoms, spread.starts, spread.targets, spread.whole, written,
                which, values, own, rows, out,
            )  # fmt: skip
        hand_down(self.tree.stack, rows, out)
        return out

    def layout(self) -> tuple[Ints, Ints, int]:
        """Atoms and first entry of each marginal of the tree, and the entry of the diagonal or -1.

        The diagonal is the marginal that keeps all attributes.
        """
        counts = [n_atoms(self.axes, t) for t in self.kept_sets]
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
        return CellKinds.of(self.axes, self.subspaces, query)


def _check_size(recodes: Sequence[Sequence[tuple[int, ...]]]) -> None:
    largest = prod(len(set(zip(*groups, strict=True))) for groups in recodes if groups)
    if largest > LARGEST_BLOCK:
        raise StructureError(
            f"The recodes of all attributes together make {largest} groups; more than "
            f"{LARGEST_BLOCK} are too many for gls_topdown. Use fewer or coarser recodes, or "
            "method topdown."
        )
