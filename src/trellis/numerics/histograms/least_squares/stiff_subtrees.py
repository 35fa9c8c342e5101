"""Stiff directions of the estimates of subtrees, from their covariances."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trellis.model.arrays import Floats, Ints, Marks
from trellis.numerics.histograms.algebra.query_algebra import Algebra
from trellis.numerics.histograms.algebra.subspaces import Blocks
from trellis.numerics.histograms.least_squares.stiff_directions import GREATEST, KEPT


@dataclass(frozen=True, slots=True, eq=False)
class StiffPrecisions:
    """Precisions J of a level's classes of nodes, and `cut` in their stiff directions.

    `written` has the operators of `Space`, by their names; J is `weigh`.
    """

    algebra: Algebra
    least: Floats
    cut: Floats
    written: dict[str, Floats]

    @classmethod
    def of(
        cls,
        algebra: Algebra,
        covariance: Blocks,
        free: list[Marks],
        exact: list[Marks],
    ) -> StiffPrecisions:
        """From covariances, whose great eigenvalues are exact where those of J would be lost.

        What is known exactly gets the least weight: a constraint decides there.
        """
        spectra = [_spectrum(p, at) for p, at in zip(covariance, free, strict=True)]
        positive = [values[:, at] for (values, _), at in zip(spectra, free, strict=True)]
        least = min(float(values.min()) for values in positive if values.size)
        lowest = np.full(len(covariance[0]), np.inf)
        cuts: Blocks = []
        whole: Blocks = []
        parts: dict[str, Blocks] = {}
        for (values, vectors), known in zip(spectra, exact, strict=True):
            w = np.minimum(np.where(known, least, values), GREATEST * least)
            lowest = np.minimum(lowest, w.min(axis=1))
            stiff = w > 2 * KEPT * least
            c = np.where(stiff, KEPT * least, w)
            cuts.append(_operator(c, vectors))
            whole.append(_operator(w, vectors))
            some = np.where(stiff, w, 2.0)  # for quotients
            for name, part in {
                "excess": w - c,
                "kept": c,
                "faded": (w - c) / some,
                "inverse": 1 / some,
                "whole": w,
                "over_excess": w**2 / np.where(stiff, w - c, 1.0),
            }.items():
                parts.setdefault(name, []).append(_operator(np.where(stiff, part, 0.0), vectors))
        parts["weigh"] = whole
        written = {name: algebra.written(blocks) for name, blocks in parts.items()}
        return cls(algebra, lowest, algebra.written(cuts), written)


def _operator(values: Floats, vectors: Floats) -> Floats:
    return (vectors * values[:, np.newaxis]) @ vectors.transpose(0, 2, 1)


def _spectrum(blocks: Floats, free: Marks) -> tuple[Floats, Floats]:
    """Eigenvalues and vectors of the inverses: 0 and unit vectors for coordinates not free."""
    values = np.zeros(blocks.shape[:2])
    vectors = np.repeat(np.eye(blocks.shape[1])[np.newaxis], len(blocks), axis=0)
    at = np.flatnonzero(free)
    if at.size:
        variances, inside = np.linalg.eigh(blocks[:, at[:, np.newaxis], at])
        lowest = np.finfo(float).eps * variances[:, -1:]
        values[:, at] = 1 / np.maximum(variances, lowest)
        vectors[:, at[:, np.newaxis], at] = inside
    return values, vectors


@dataclass(frozen=True, slots=True, eq=False)
class StiffSubtrees:
    """All cells of the children of a family, of which only the active ones may hold anyone."""

    precisions: StiffPrecisions
    classes: Ints
    active: Ints

    def _apply(self, name: str, y: Floats) -> Floats:
        return self.precisions.algebra.apply(self.precisions.written[name], self.classes, y)

    def answers(self, x: Floats) -> Floats:
        out = np.zeros((self.precisions.algebra.tree.n_cells, x.shape[1]))
        out[self.active] = x
        return out

    def spread_back(self, y: Floats) -> Floats:
        return y[self.active]

    def excess(self, y: Floats) -> Floats:
        return self._apply("excess", y)

    def kept(self, y: Floats) -> Floats:
        return self._apply("kept", y)

    def faded(self, y: Floats) -> Floats:
        return self._apply("faded", y)

    def inverse(self, y: Floats) -> Floats:
        return self._apply("inverse", y)

    def whole(self, y: Floats) -> Floats:
        return self._apply("whole", y)

    def over_excess(self, y: Floats) -> Floats:
        return self._apply("over_excess", y)

    def weigh(self, y: Floats) -> Floats:
        return self._apply("weigh", y)
