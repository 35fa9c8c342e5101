"""The root of a tree, whose cells add up to nothing but themselves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trellis.errors import Infeasible
from trellis.estimate.histograms.bounds import FamilyBound
from trellis.estimate.histograms.edit_rules import keep_rules_in_root
from trellis.estimate.histograms.rounding import Rounder, stacked_queries
from trellis.model.arrays import Floats, Ints
from trellis.model.queries import Query
from trellis.numerics.histograms.whole_numbers.nearest_whole import nearest_whole
from trellis.numerics.histograms.whole_numbers.rounding import round_single
from trellis.numerics.histograms.whole_numbers.whole_bounds import answers
from trellis.numerics.ties import tie_key


def round_root(
    queries: Sequence[Query],
    rounder: Rounder,
    active: Ints,
    x: Floats,
    bounds: Sequence[FamilyBound],
    tie_seed: int,
) -> Ints:
    """Whole counts near x: the total by rounding, cells by remainders and swaps between cells."""
    stacked = stacked_queries(queries, np.ones(len(queries)), active)
    y = round_single(stacked, x, tie_key(tie_seed))[:, np.newaxis]
    whole = rounder.whole_bounds(bounds, active, 1)
    if bounds:
        kept = answers(whole, y)
        if not ((whole.lower <= kept) & (kept <= whole.upper)).all():
            nearest = nearest_whole(x[:, np.newaxis], None, whole, np.zeros((0, 0), dtype=bool))
            if nearest is None:
                raise Infeasible("No whole counts keep all constraints.")
            y = nearest
    if rounder.edit_rules:
        keep_rules_in_root(rounder.edit_rules, active, whole, stacked, x[:, np.newaxis], y)
    return y[:, 0]
