r"""Variances of areas of any shape on a tree whose noise follows few classes, and their gradients.

The recursion is that of `trellis.numerics.trees.areas`, for all areas at once and for classes of
alike nodes: nodes of a class have the precision q (1 / variance) of the class. Leaves of one family
and class are alike and kept as one entry, so that a state is a few thousand numbers. Upwards,

    v = 1 / (q + 1 / V),    beta = sum_c b_c beta_c,    r = sum_c r_c + sum_c (beta_c - beta)^2 v_c

with V = sum_c v_c and b_c = v_c / V over the children, and Var = r + beta^2 v at the root.

Gradients go down again (the chain rule, backwards). A derivative of Var by x is written x'. Since
beta is the mean that makes r least, it passes nothing on to r:

    beta'_root = 2 beta v,         beta'_c = b_c beta' + 2 v_c (beta_c - beta),
    v'_root    = beta^2,           v'_c    = (beta_c - beta)^2 + beta' (beta_c - beta) / V
                                             + v' (v / V)^2,
    q'         = - sum of v' v^2 over the nodes of the class.

Children that hold no leaf of an area have beta_c = 0; what they contribute is the same for all of
them, so that only pairs of a node and an area in it are visited.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from trellis.errors import StructureError
from trellis.model.trees.hierarchy import Hierarchy

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_ROUNDING = 1e-12
"""What may be left of a sum when all of its terms are taken away again."""


@dataclass(frozen=True, slots=True, eq=False)
class Nodes:
    """The entries of a level: position of the parent, class, and how many alike nodes it is."""

    parent: Ints
    class_of: Ints
    times: Ints


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Areas present in the entries of a level, with `times` nodes of the entry in the area.

    `above` is the pair of the same area in the parent.
    """

    node: Ints
    area: Ints
    times: Ints
    above: Ints


@dataclass(frozen=True, slots=True, eq=False)
class Solved:
    """Upward passes for one choice of precisions, by level; `sums` are V, by parent."""

    v: list[Floats]
    sums: list[Floats]
    passed: list[Floats]  # derivative of v by V
    b: list[Floats]
    beta: list[Floats]
    variance: Floats


@dataclass(frozen=True, slots=True, eq=False)
class AreaShape:
    """A tree without names, and the areas whose variances are asked for."""

    nodes: tuple[Nodes, ...]
    pairs: tuple[Pairs, ...]
    n_areas: int

    @classmethod
    def of(cls, tree: Hierarchy, classes: Sequence[NDArray], members: Sequence[NDArray]) -> Self:
        """From the class of every node by level, and for some partitions the area of every leaf.

        Areas are numbered through all partitions; a negative number is none of them.
        """
        nodes = [
            Nodes(
                tree.parents(level) if level else np.zeros(1, np.int64),
                np.asarray(of, np.int64),
                np.ones(len(of), np.int64),
            )
            for level, of in enumerate(classes)
        ]
        n_areas = 1 + max(int(member.max()) for member in members)
        nodes[-1], entry = _alike(nodes[-1])
        leaf = np.concatenate([np.flatnonzero(member >= 0) for member in members])
        area = np.concatenate([member[member >= 0] for member in members]).astype(np.int64)
        keys, times = np.unique(entry[leaf] * n_areas + area, return_counts=True)
        pairs: list[Pairs] = []
        for level in reversed(range(len(nodes))):
            node, area = keys // n_areas, keys % n_areas
            keys, above = np.unique(nodes[level].parent[node] * n_areas + area, return_inverse=True)
            pairs.insert(0, Pairs(node, area, times, above))
            times = np.ones(keys.size, np.int64)
        return cls(tuple(nodes), tuple(pairs), n_areas)

    def solve(self, precision: Floats, exact: Collection[int] = ()) -> Solved:
        """Variances of all areas for one precision per class; levels in `exact` have no noise."""
        v, sums, passed = self._variances(precision, exact)
        beta = np.ones(self.pairs[-1].node.size)
        spread = np.zeros_like(beta)
        shares, betas = [np.ones(1)], [beta]
        for level in reversed(range(1, len(self.nodes))):
            nodes, pairs, n_above = self.nodes[level], self.pairs[level], self.pairs[level - 1].node
            total = sums[level - 1][nodes.parent]
            # An unmeasured only child takes all; where all children are exact, none does.
            b = np.isinf(total).astype(np.float64)
            np.divide(v[level], total, out=b, where=np.isfinite(total) & (total > 0))
            known = np.where(np.isfinite(v[level]), v[level], 0.0)
            held = pairs.times * known[pairs.node]
            up = _add(pairs.above, pairs.times * b[pairs.node] * beta, n_above.size)
            gap = beta - up[pairs.above]
            gap[np.abs(gap) < _ROUNDING] = 0.0
            spread = _add(pairs.above, pairs.times * spread + held * gap**2, n_above.size)
            whole = np.bincount(nodes.parent, nodes.times * known)[n_above]
            rest = whole - np.bincount(pairs.above, held, n_above.size)
            spread += up**2 * np.where(rest > _ROUNDING * whole, rest, 0.0)
            beta = up
            shares.insert(1, b)
            betas.insert(0, beta)
        root = self.pairs[0]
        variance = np.empty(self.n_areas)
        variance[root.area] = spread + beta**2 * v[0][0]
        return Solved(v, sums, passed, shares, betas, variance)

    def _variances(
        self, precision: Floats, exact: Collection[int]
    ) -> tuple[list[Floats], list[Floats], list[Floats]]:
        """By level v, and by parent level V and the derivative of v by V."""
        with np.errstate(divide="ignore"):
            v = [1 / precision[self.nodes[-1].class_of]]
            sums, passed = [], []
            for level in reversed(range(len(self.nodes) - 1)):
                below, q = self.nodes[level + 1], precision[self.nodes[level].class_of]
                total = np.bincount(below.parent, below.times * v[0])
                if (np.isinf(total) & (np.bincount(below.parent, below.times) > 1)).any():
                    raise StructureError("An unmeasured area has siblings: it is not determined.")
                here = 1 / (q + 1 / total)
                with np.errstate(invalid="ignore"):  # 0 times infinity
                    slope = np.where(np.isinf(total), 0.0, (1 / (1 + q * total)) ** 2)
                is_exact = level in exact
                v.insert(0, np.zeros_like(here) if is_exact else here)
                sums.insert(0, total)
                passed.insert(0, np.zeros_like(slope) if is_exact else slope)
        return v, sums, passed

    def gradients(self, solved: Solved, output: Ints, weight: Floats) -> Floats:
        """Derivatives, by the precision of every class, of weighted sums of variances.

        Area a is counted with `weight[a]` in output number `output[a]`, and in none if that is
        negative. The result has a row for each output.
        """
        n_outputs, n_classes = int(output.max()) + 1, 1 + max(n.class_of.max() for n in self.nodes)
        found = np.zeros((n_outputs, n_classes))
        root = self.pairs[0]
        slope = 2 * weight[root.area] * solved.beta[0] * solved.v[0][0]  # beta'
        by_v = _sums(root, weight[root.area] * solved.beta[0] ** 2, output, (1, n_outputs))  # v'
        for level, nodes in enumerate(self.nodes):
            if level:
                slope, by_v = self._down(solved, level, output, weight, slope, by_v)
            v = np.where(np.isfinite(solved.v[level]), solved.v[level], 0.0)
            for number in range(n_outputs):
                found[number] -= np.bincount(nodes.class_of, by_v[:, number] * v**2, n_classes)
        return found

    def _down(
        self, solved: Solved, level: int, output: Ints, weight: Floats, slope: Floats, by_v: Floats
    ) -> tuple[Floats, Floats]:
        """From beta' and v' of the level above to those of a level."""
        above, pairs, nodes = self.pairs[level - 1], self.pairs[level], self.nodes[level]
        total = solved.sums[level - 1]
        per_total = np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)
        beta, up = solved.beta[level], solved.beta[level - 1]
        pull = slope * per_total[above.node]
        absent = weight[above.area] * up**2 - pull * up  # v' by a child without the area
        everywhere = _sums(above, absent, output, by_v.shape)
        everywhere += by_v * solved.passed[level - 1][:, np.newaxis]
        w, mean = weight[pairs.area], up[pairs.above]
        instead = pairs.times * beta * (w * (beta - 2 * mean) + pull[pairs.above])
        down = nodes.times[:, np.newaxis] * everywhere[nodes.parent]
        down += _sums(pairs, instead, output, down.shape)
        v = np.where(np.isfinite(solved.v[level]), solved.v[level], 0.0)[pairs.node]
        b = solved.b[level][pairs.node]
        return b * slope[pairs.above] + 2 * w * v * (beta - mean), down


def _alike(leaves: Nodes) -> tuple[Nodes, Ints]:
    """One entry for all leaves of a family and class, and the entry of every leaf."""
    n_classes = int(leaves.class_of.max()) + 1
    keys, entry, times = np.unique(
        leaves.parent * n_classes + leaves.class_of, return_inverse=True, return_counts=True
    )
    return Nodes(keys // n_classes, keys % n_classes, times.astype(np.int64)), entry


def _add(place: Ints, values: Floats, size: int) -> Floats:
    """The sums of values by place; floats even where there are none."""
    return np.bincount(place, values, size).astype(np.float64, copy=False)


def _sums(pairs: Pairs, values: Floats, output: Ints, shape: tuple[int, ...]) -> Floats:
    """Values of pairs added up by node and output."""
    number = output[pairs.area]
    kept = number >= 0
    place = pairs.node[kept] * shape[1] + number[kept]
    return _add(place, values[kept], shape[0] * shape[1]).reshape(shape)
