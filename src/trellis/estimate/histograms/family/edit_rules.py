"""Edit rules of one family, kept where its sums and bounds allow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trellis.estimate.histograms.family.problem import FamilyProblem
from trellis.estimate.histograms.family.solution import FamilySolution
from trellis.estimate.histograms.family.solver import FamilySolver
from trellis.model.arrays import Ints
from trellis.model.tables.rules import RuleSides
from trellis.numerics.histograms.rules.enforce import enforce
from trellis.numerics.histograms.rules.family import NOTHING, EditRules
from trellis.numerics.histograms.whole_numbers.weighted_queries import residuals

PLENTY = 1 << 40
"""What the world outside has of every cell."""


@dataclass(frozen=True, slots=True)
class KeepRules:
    """Children that break a rule exchange whole units with others.

    Cells keep their sums, and answers stay as near to those of the real counts as can be.
    """

    inner: FamilySolver
    rules: Sequence[RuleSides]

    def solve(self, problem: FamilyProblem) -> FamilySolution:
        found = self.inner.solve(problem)
        broken = _broken(self.rules, found)
        if broken is not None:
            x, y, queries = found.real, found.whole, problem.weighted
            e = residuals(queries, x, y)
            enforce(problem.whole_bounds, queries, broken, problem.blocked, NOTHING, e, y)
        return found


@dataclass(frozen=True, slots=True)
class KeepRulesOfRoot:
    """The same for a root, which exchanges units with the world outside."""

    inner: FamilySolver
    rules: Sequence[RuleSides]

    def solve(self, problem: FamilyProblem) -> FamilySolution:
        found = self.inner.solve(problem)
        broken = _broken(self.rules, found)
        if broken is None:
            return found
        x, y, queries, bounds = found.real, found.counts, problem.weighted, problem.whole_bounds
        both = np.column_stack([y, np.full(len(y), PLENTY)])
        real = np.column_stack([x, np.full(len(x), float(PLENTY))])
        free = np.full((len(bounds.constraint), 1), NOTHING)
        bounds = bounds._replace(constraint=np.column_stack([bounds.constraint, free]))
        nowhere = np.zeros((0, 0), dtype=np.bool_)
        enforce(bounds, queries, broken, nowhere, 1, residuals(queries, real, both), both)
        return found.rounded(both[:, :1].copy(), keeps_bounds=found.keeps_bounds)


def _broken(rules: Sequence[RuleSides], found: FamilySolution) -> EditRules | None:
    """The rules on the family's cells; None if no child breaks one."""
    if not rules:
        return None
    given, needed = (np.array([rule[side][found.cells] for rule in rules]) for side in (0, 1))
    here = EditRules(given, needed)
    return here if _any_broken(here, found.counts) else None


def _any_broken(rules: EditRules, y: Ints) -> bool:
    """Rules x children."""
    given, needed = (side.astype(np.int64) @ y > 0 for side in rules)
    return bool((given & ~needed).any())
