r"""Takes nodes off the tree whose share does more good one level below.

A parent with share p and children with shares g_1 .. g_c is bypassed when

    pure DP (Laplace noise):   sum_i p / (2 g_i + p) <= 1     (equal children: g >= (c - 1) p / 2),
    zCDP (Gaussian noise):     c = 1.

This makes no variance of the least squares estimate of any sum of leaves larger. In the parent's
place come c nodes, each with one of the children as its only child; node i has the share p + g_i,
and the child 0. So the number of levels stays, and the shares of every path still sum to one. The
root stays: if it is bypassed and has several children, its share goes to them and it is not
measured. A parent without a share has nothing to give and is bypassed only if it has one child.

The walk is from the leaves up: a larger share makes the rule harder to satisfy, so that nothing
that was left can be bypassed later.

Reference: Cumings-Menon et al., arXiv:2203.16654, Theorems 2 and 3, Algorithm 3; the rule for
unequal children follows from the same proof.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from trellis.errors import StructureError
from trellis.model.trees.codes import Codes
from trellis.model.trees.hierarchy import Hierarchy
from trellis.planning.spine.node_shares import Classes, NodeShares
from trellis.planning.spine.reduction import Reduction, tree_of
from trellis.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace, Mechanism

Shares = Sequence[Fraction | Sequence[Fraction]]

_LAPLACE = (DiscreteLaplace.name, "laplace", "pure", "pure_dp")
_GAUSSIAN = (DiscreteGaussian.name, "gaussian", "zcdp")

_NEAR = 1e-9
"""Sums this close to one are decided in fractions."""


def bypass(
    hierarchy: Hierarchy,
    shares: Shares,
    mechanism: str | Mechanism | type[Mechanism],
    *,
    keep_levels: int = 0,
) -> Reduction:
    """Bypass every parent for which that makes no estimate worse.

    `shares` holds one fraction, or one per node, for each level. `mechanism` is
    `discrete_laplace` (short: pure) or `discrete_gaussian` (zcdp). Nodes of the first `keep_levels`
    levels stay as they are: levels whose totals are published exactly.
    """
    is_pure = _is_pure(mechanism)
    given = NodeShares.of(hierarchy, shares)
    given.require_one_on_every_path(hierarchy)
    given.require_determined(hierarchy, keep_levels)
    table = _ShareTable(list(given.values))
    codes, starts = list(hierarchy.node_codes), list(hierarchy.child_start)
    classes = list(given.classes)
    for level in reversed(range(keep_levels, hierarchy.n_levels - 1)):
        start, own, below = starts[level], classes[level], classes[level + 1]
        n_children = np.diff(start)
        gone = n_children == 1
        if is_pure:
            gone |= table.pure_rule(own, below, start)
        if level == 0 and gone[0] and n_children[0] > 1:
            classes[0] = table.zeros(1)
            classes[1] = table.sums(np.full(below.size, own[0], np.int32), below)
            continue
        _lift(level, gone, codes, starts, classes, table)
    tree = tree_of(hierarchy.level_names, codes, starts)
    kept = NodeShares(tuple(table.values), tuple(classes))
    return Reduction(hierarchy, tree, np.arange(hierarchy.sizes[-1]), kept)


def _lift(
    level: int,
    gone: NDArray[np.bool_],
    codes: list[Codes],
    starts: list[NDArray[np.int64]],
    classes: list[Classes],
    table: _ShareTable,
) -> None:
    """Put one node per child in the place of every node that is gone."""
    if not gone.any():
        return
    start, n_children = starts[level], np.diff(starts[level])
    parent = np.repeat(np.arange(gone.size), n_children)  # of each child
    moved = gone[parent]
    copies = np.where(gone, n_children, 1)
    old = np.repeat(np.arange(gone.size), copies)  # the node each new one comes from
    first = np.concatenate(([0], np.cumsum(copies)))
    child = start[old] + np.arange(old.size) - first[old]  # its only child, if it was gone
    new_class = classes[level][old].copy()
    lifted = gone[old]
    new_class[lifted] = table.sums(new_class[lifted], classes[level + 1][child[lifted]])
    new_codes = codes[level][old]
    several = lifted & (copies[old] > 1)
    if several.any():
        joined = np.strings.add(new_codes[several], "/")
        new_codes[several] = np.strings.add(joined, codes[level + 1][child[several]])
    below = classes[level + 1].copy()
    below[moved] = table.zeros(1)[0]
    codes[level], classes[level], classes[level + 1] = new_codes, new_class, below
    sizes = np.where(lifted, 1, n_children[old])
    starts[level] = np.concatenate(([0], np.cumsum(sizes)))
    if level:
        starts[level - 1] = first[starts[level - 1]]


@dataclass(slots=True)
class _ShareTable:
    """The different shares that occur; nodes hold positions in it."""

    values: list[Fraction]
    _known: dict[tuple[Fraction, tuple[Fraction, ...]], bool] = field(default_factory=dict)

    def number(self, share: Fraction) -> int:
        if share not in self.values:
            self.values.append(share)
        return self.values.index(share)

    def zeros(self, size: int) -> Classes:
        return np.full(size, self.number(Fraction(0)), np.int32)

    def sums(self, left: Classes, right: Classes) -> Classes:
        """The positions of left + right."""
        n = len(self.values)
        keys, of = np.unique(left.astype(np.int64) * n + right, return_inverse=True)
        added = [self.number(self.values[k // n] + self.values[k % n]) for k in keys.tolist()]
        return np.array(added, np.int32)[of]

    def pure_rule(
        self, own: Classes, below: Classes, start: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """Whether sum_i p / (2 g_i + p) <= 1 with p > 0, decided in fractions where it is close."""
        amounts = np.array([float(v) for v in self.values])
        p = np.repeat(amounts[own], np.diff(start))
        with np.errstate(invalid="ignore"):  # p = g = 0
            sums = np.add.reduceat(p / (2 * amounts[below] + p), start[:-1])
        has_share = amounts[own] > 0
        result = has_share & (sums <= 1)
        for node in np.flatnonzero(has_share & (np.abs(sums - 1) < _NEAR)):
            children = np.sort(below[start[node] : start[node + 1]]).tolist()
            result[node] = self._exactly(int(own[node]), tuple(children))
        return result

    def _exactly(self, own: int, children: tuple[int, ...]) -> bool:
        p, g = self.values[own], tuple(self.values[i] for i in children)
        if (p, g) not in self._known:
            self._known[p, g] = sum(p / (2 * share + p) for share in g) <= 1
        return self._known[p, g]


def _is_pure(mechanism: str | Mechanism | type[Mechanism]) -> bool:
    name = mechanism if isinstance(mechanism, str) else getattr(mechanism, "name", None)
    if isinstance(name, str) and name.lower() in _LAPLACE + _GAUSSIAN:
        return name.lower() in _LAPLACE
    raise StructureError(
        f"Nodes are bypassed for {DiscreteLaplace.name} or {DiscreteGaussian.name} noise, "
        f"not for {mechanism!r}."
    )
