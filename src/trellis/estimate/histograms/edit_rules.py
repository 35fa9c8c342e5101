"""Edit rules of one family, kept where its sums and bounds allow."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trellis.model.arrays import Floats, Ints, Marks
from trellis.model.rules import RuleSides
from trellis.numerics.histograms.rules.enforce import enforce
from trellis.numerics.histograms.rules.family import NOTHING, EditRules
from trellis.numerics.histograms.whole_numbers.weighted_queries import WeightedQueries, residuals
from trellis.numerics.histograms.whole_numbers.whole_bounds import WholeBounds

PLENTY = 1 << 40
"""What the world outside has of every cell."""


def keep_rules(
    rules: Sequence[RuleSides],
    active: Ints,
    bounds: WholeBounds,
    queries: WeightedQueries,
    blocked: Marks,
    x: Floats,
    y: Ints,
) -> None:
    """Exchange whole units of y (cells x children) between children that break a rule and others.

    Cells keep their sums, and answers stay as near to those of the real x as can be.
    """
    here = _on(rules, active)
    if _any_broken(here, y):
        enforce(bounds, queries, here, blocked, NOTHING, residuals(queries, x, y), y)


def keep_rules_in_root(
    rules: Sequence[RuleSides],
    active: Ints,
    bounds: WholeBounds,
    queries: WeightedQueries,
    x: Floats,
    y: Ints,
) -> None:
    """The same for the root (cells x 1), which exchanges units with the world outside."""
    here = _on(rules, active)
    if not _any_broken(here, y):
        return
    both = np.column_stack([y, np.full(len(y), PLENTY)])
    real = np.column_stack([x, np.full(len(x), float(PLENTY))])
    free = np.full((len(bounds.constraint), 1), NOTHING)
    bounds = bounds._replace(constraint=np.column_stack([bounds.constraint, free]))
    nowhere = np.zeros((0, 0), dtype=np.bool_)
    enforce(bounds, queries, here, nowhere, 1, residuals(queries, real, both), both)
    y[:, 0] = both[:, 0]


def _on(rules: Sequence[RuleSides], active: Ints) -> EditRules:
    given, needed = (np.array([rule[side][active] for rule in rules]) for side in (0, 1))
    return EditRules(given, needed)


def _any_broken(rules: EditRules, y: Ints) -> bool:
    """Rules x children."""
    given, needed = (side.astype(np.int64) @ y > 0 for side in rules)
    return bool((given & ~needed).any())
