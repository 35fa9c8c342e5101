"""The links put together: for the families of a level, and for the root."""

from __future__ import annotations

from collections.abc import Sequence

from trellis.estimate.histograms.family.edit_rules import KeepRules, KeepRulesOfRoot
from trellis.estimate.histograms.family.feasible_below import HoldBelow
from trellis.estimate.histograms.family.fixed_marginals import FixMarginals
from trellis.estimate.histograms.family.least_squares import LeastSquares
from trellis.estimate.histograms.family.repair import Repair, RepairRoot
from trellis.estimate.histograms.family.rounding import Round, RoundRoot
from trellis.estimate.histograms.family.solver import FamilySolver
from trellis.model.tables.rules import RuleSides
from trellis.numerics.feasibility.feasible_below import FeasibleBelow


def whole_family(
    tolerance: float,
    tie_seed: int,
    rules: Sequence[RuleSides],
    passes: Sequence[str],
    below: FeasibleBelow,
    level: int,
) -> FamilySolver:
    """Whole children of one parent; `level` is theirs."""
    whole = Repair(Round(LeastSquares(tolerance), tie_seed))
    return FixMarginals(HoldBelow(KeepRules(whole, rules), below, level), passes, tie_seed)


def whole_root(
    tolerance: float, tie_seed: int, rules: Sequence[RuleSides], below: FeasibleBelow
) -> FamilySolver:
    """The whole counts of the root, whose sums are free."""
    whole = RepairRoot(RoundRoot(LeastSquares(tolerance), tie_seed))
    return HoldBelow(KeepRulesOfRoot(whole, rules), below, 0)
