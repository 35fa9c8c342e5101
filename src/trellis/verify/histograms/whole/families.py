"""Whole counts of histograms, family by family: near the best fit to what was measured.

All families are recomputed where that is little work, else some that are drawn. One line says how
many of how many they are.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trellis.verify.files.histogram_files import marginal
from trellis.verify.files.run_files import RunFiles
from trellis.verify.files.safe_files import load_json
from trellis.verify.histograms.facts import HistogramFacts
from trellis.verify.histograms.linear.estimates import OLDEST
from trellis.verify.histograms.linear.noisy_answers import noisy_queries
from trellis.verify.histograms.linear.solving import MOST_CELLS, solved_here
from trellis.verify.histograms.measurements import decisive_levels
from trellis.verify.histograms.rules import edit_rule_cells
from trellis.verify.histograms.whole.bounds import LevelBounds
from trellis.verify.histograms.whole.drawn_families import LevelFamilies
from trellis.verify.histograms.whole.evidence import Evidence, OwnMeasurements, Subtrees
from trellis.verify.histograms.whole.moved import EditRule
from trellis.verify.histograms.whole.nearness import Nearness

TOLERANCE = 0.03
"""The distance that families are solved to."""
MOST_SAMPLED = 1 << 20
"""Areas x cells of the subtrees of drawn families, where not all are recomputed."""
GREATEST_RATIO = 1e6
"""Of variances, up to which searches are exact enough."""


def whole_counts(run: RunFiles) -> Iterator[str]:
    """Whole counts are those of the method: within rounding of the best fit to the measurements."""
    if run.plan.get("format", 1) < OLDEST:
        run.notes.append("whole counts of this older format were not recomputed")
        return
    fit = load_json(run.path, "estimates/fit.json")
    if fit["tolerance"] != TOLERANCE:
        yield "estimates/fit.json states another tolerance than the method has"
    if not fit["distance"] >= 0:
        yield "estimates/fit.json states a distance that is none"
        return
    if fit["distance"] > TOLERANCE:
        run.notes.append(
            "whole counts were compared within the distance that estimates/fit.json states, which "
            "is more than usual"
        )
    if _is_extreme(run):
        run.notes.append(
            "whole counts were not recomputed: variances differ by too many orders of magnitude"
        )
        return
    levels = _Levels(run, float(fit["distance"]))
    for index, families in enumerate(levels.families):
        if not levels.holds(index):
            yield f"counts of level {families.name} are not near the best fit to the measurements"
    if any(families.checked < families.number for families in levels.families):
        run.notes.append(f"whole counts of some families were recomputed: {levels.shares()}")


def _is_extreme(run: RunFiles) -> bool:
    """Whether this recomputation is less exact than what it checks."""
    variances = [q.variance for q in noisy_queries(run) if not q.is_exact]
    return max(variances) > GREATEST_RATIO * min(variances)


class _Levels:
    """All levels: the families that are drawn, and what they are held to."""

    def __init__(self, run: RunFiles, distance: float) -> None:
        self._run, self._distance = run, distance
        self._facts = HistogramFacts(run, every=True)
        self._looks_below = run.plan["method"] == "gls_topdown"
        self.families = [LevelFamilies(run, index) for index in range(len(run.levels))]
        self._solved = None
        for families in self.families:
            families.draw()
        if self._looks_below and len(run.levels) > 1:
            self._solve()

    def _solve(self) -> None:
        """The estimates of subtrees, of all areas or of those that are drawn and below them."""
        run, upper = self._run, self.families[:-1]
        below = _subtree_sizes(run)
        kept = None
        if int(below[0][0]) * run.n_cells > MOST_CELLS:
            left = MOST_SAMPLED // run.n_cells
            for index, families in enumerate(upper):
                left -= families.limit(below[index], left // (len(upper) - index))
            kept = _with_subtrees(run, [families.nodes() for families in upper])
        solved = solved_here(run, exactly=True, only=kept)
        if isinstance(solved, str):
            for families in upper:
                families.limit(below[0], 0)
        else:
            self._solved = solved

    def holds(self, index: int) -> bool:
        """Whether all drawn families of a level are near, as far as can be told."""
        families = self.families[index]
        near = self._nearness(index)
        found = [near.holds(family) for family in families.drawn()]
        families.checked = len(found) - found.count(None)
        return False not in found

    def _nearness(self, index: int) -> Nearness:
        run = self._run
        # With measurements that depend on the counts above, it speaks of the last level alone.
        is_last = index == len(run.levels) - 1 or not decisive_levels(run)
        return Nearness(
            self._evidence(index),
            LevelBounds(run, self._facts, index),
            [marginal(run.plan, name) for name in run.plan["histogram"]["passes"]],
            _enforced(run),
            self._distance if is_last else max(self._distance, TOLERANCE),
            self._facts.mixes_below(index),
        )

    def _evidence(self, index: int) -> Evidence:
        if self._solved is not None and index < len(self.families) - 1:
            return Subtrees(self._run, *self._solved, index)
        return OwnMeasurements(self._run, index, self.families[index].nodes())

    def shares(self) -> str:
        """How many families of each level were recomputed, in one line."""
        return ", ".join(f"{f.name} {f.checked} of {f.number}" for f in self.families if f.number)


def _subtree_sizes(run: RunFiles) -> list[np.ndarray]:
    """Areas in the subtree of each area, by level."""
    sizes = [np.ones(len(run.levels[-1]), dtype=np.int64)]
    for level in reversed(run.levels[1:]):
        n_parents = int(level.parent.max()) + 1
        sizes.append(1 + np.bincount(level.parent, sizes[-1], n_parents).astype(np.int64))
    return sizes[::-1]


def _with_subtrees(run: RunFiles, chosen: list[np.ndarray]) -> list[np.ndarray]:
    """Marks, by level, of the chosen areas, all below them and all above them."""
    marks = [np.zeros(len(level), dtype=bool) for level in run.levels]
    for index, nodes in enumerate(chosen):
        marks[index][nodes] = True
    for index in range(1, len(marks)):
        marks[index] |= marks[index - 1][run.levels[index].parent]
    for index in range(len(marks) - 1, 0, -1):
        marks[index - 1][run.levels[index].parent[marks[index]]] = True
    return marks


def _enforced(run: RunFiles) -> list[EditRule]:
    rules = run.plan["histogram"]
    if not rules.get("enforce_edit_rules", True):
        return []
    return [edit_rule_cells(run.plan, rule) for rule in rules["edit_rules"]]
