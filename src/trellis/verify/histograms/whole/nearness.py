"""Whether the whole counts of one family are near the best fit to what was measured.

Rounding puts a whole count on one of the two sides of the real one, so that it lies within 1 of it;
the real ones lie within the distance that `estimates/fit.json` certifies, a root mean square. So
what counts differ by beyond 1 has that norm at most, but for what `moved` says.

Marginals that were fixed first are those of the published counts. They are held to the best fit of
their own problem, and the rest to the best fit that has these marginals.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt

import numpy as np

from trellis.verify.files.histogram_files import Marginal
from trellis.verify.histograms.whole.best_fit import Bounded, Family, best_fit
from trellis.verify.histograms.whole.bounds import LevelBounds, fixed, own_rows, rows_within
from trellis.verify.histograms.whole.evidence import Evidence, Subtrees
from trellis.verify.histograms.whole.moved import EditRule, Moved, is_rounded, mended

POOR = 0.1
"""Fits of this file that are proved less well, in counts, are not used."""
PASS_DISTANCE = 0.03
"""More than passes are solved to."""


@dataclass(frozen=True, slots=True)
class Published:
    """A family: its children, the cells that may count, and what is published."""

    nodes: np.ndarray
    cells: np.ndarray
    parent: np.ndarray | None
    counts: np.ndarray

    def of(self, able: np.ndarray) -> Published:
        """Without the children that cannot hold anyone."""
        return Published(self.nodes[able], self.cells, self.parent, self.counts[able])


@dataclass(frozen=True, slots=True)
class Nearness:
    """What the families of one level are held to.

    With `mixes_below`, bounds on sums below may ask for other counts than rounding makes.
    """

    evidence: Evidence
    bounds: LevelBounds
    passes: list[Marginal]
    rules: list[EditRule]
    distance: float
    mixes_below: bool

    def holds(self, family: Published) -> bool | None:
        """None if it cannot be told."""
        if not family.cells.size:
            return not family.counts.any()
        if isinstance(self.evidence, Subtrees):
            able = self.evidence.has(family.nodes)
            if family.counts[~able].any():
                return False
            family = family.of(able)
        found = False
        for near in self._ways(family):
            if near:
                return True
            found = None if near is None else found
        return found

    def _ways(self, family: Published) -> Iterator[bool | None]:
        """With all passes; where what they fix clashes, the method does without the last ones."""
        passes = self.passes if family.parent is not None else []
        held = Bounded.none(family.counts.shape)
        for number in range(len(passes), -1, -1):
            yield self._after(family, passes[:number], held)
        if self.mixes_below:
            held = fixed(self.bounds.kinds(family.cells), family.counts)
            for number in range(len(passes), -1, -1):
                yield self._after(family, passes[:number], held)

    def _after(self, family: Published, passes: list[Marginal], held: Bounded) -> bool | None:
        """Each pass in its own problem, and the rest given all of them."""
        unsure = False
        for place, query in enumerate(passes):
            evidence = self.evidence.of_query(family.nodes, query)
            if not _determines(evidence[0]):
                continue
            near = self._pass(family, query, evidence, passes[:place])
            if near is False:
                return False
            unsure = unsure or near is None
            held = held.joined(fixed(query.cell_of[family.cells], family.counts))
        near = self._rest(family, held)
        return None if near and unsure else near

    def _pass(
        self,
        family: Published,
        query: Marginal,
        evidence: tuple[np.ndarray, np.ndarray],
        before: list[Marginal],
    ) -> bool | None:
        assert family.parent is not None
        used, rows = np.unique(query.cell_of[family.cells], return_inverse=True)
        counts = np.zeros((family.nodes.size, used.size))
        np.add.at(counts.T, rows, family.counts.T)
        within, held = rows_within(query, used), Bounded.none(counts.shape)
        for other in before:
            if (row := within(other)) is not None:
                held = held.joined(fixed(row, counts))
        cut = evidence[0][:, used][:, :, used], evidence[1][:, used]
        problem = self.bounds.family(
            family.nodes, within, *cut, np.bincount(rows, family.parent), held
        )
        return self._is_near(problem, counts, PASS_DISTANCE, [])

    def _rest(self, family: Published, held: Bounded) -> bool | None:
        evidence = self.evidence.of(family.nodes, family.cells)
        within = own_rows(family.cells)
        problem = self.bounds.family(family.nodes, within, *evidence, family.parent, held)
        rules = [(given[family.cells], needed[family.cells]) for given, needed in self.rules]
        return self._is_near(problem, family.counts, self.distance, rules, family.cells)

    def _is_near(
        self,
        problem: Family,
        counts: np.ndarray,
        distance: float,
        rules: list[EditRule],
        cells: np.ndarray | None = None,
    ) -> bool | None:
        fit = best_fit(problem, counts)
        if fit is None:
            return None
        apart, least = counts - fit.counts, _least_curvature(problem)
        if not least > 0:
            flat = _Flat(self.evidence, apart, distance, fit.gap, 1 + mended(problem, fit))
            return None if rules or cells is None else flat.is_near(cells)
        unsure = sqrt(2 * fit.gap / least)
        if unsure > POOR:
            return None
        reach = distance * sqrt(apart.size) + unsure + 1e-6
        if is_rounded(problem, fit, counts, reach):
            return True
        return Moved(problem, rules).explains(fit, counts, reach)


@dataclass(frozen=True, slots=True)
class _Flat:
    """Where no query tells all cells apart, the distance is one of answers."""

    evidence: Evidence
    apart: np.ndarray
    distance: float
    gap: float
    moved: float

    def is_near(self, cells: np.ndarray) -> bool | None:
        weights = self.evidence.weights
        if not weights:
            return None
        slack = self.distance**2 * self.apart.size * min(weights.values())
        for name, weight in weights.items():
            row = self.evidence.queries[name].cell_of[cells]
            answers = np.zeros((len(self.apart), row.max() + 1))
            np.add.at(answers.T, row, self.apart.T)
            reach = sqrt(slack / weight) + sqrt(2 * self.gap / weight) + 1e-6
            if not (np.abs(answers) <= self.moved * np.bincount(row) + reach).all():
                return False
        return True


def _determines(precision: np.ndarray) -> bool:
    """Whether a marginal has evidence of its own; else the method does not fix it."""
    least = 0.999 * float(np.linalg.eigvalsh(precision)[:, 0].min())
    return bool(least > 1e-12 * precision.max())


def _least_curvature(problem: Family) -> float:
    """Of the objective; 0 if there is none to speak of."""
    least = float(np.linalg.eigvalsh(problem.precision)[:, 0].min())
    return least if least > 1e-9 * problem.scale else 0.0
