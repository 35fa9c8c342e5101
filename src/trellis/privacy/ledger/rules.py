"""How charges add up, and when one more is refused.

Charges are kept as what they are (noise, unit, relation), not as numbers, so they can be counted
for another relation or unit where that is sound:

- a charge for `add_remove` counts for `replace` with its own change vector; never the reverse;
- a charge for another unit counts only with a declared bound: one unit has at most k of those;
- rho and pure epsilon add up whatever was seen before the next release was planned, as long as
  the limit was set first (a privacy filter); the exact epsilon of all together is true only
  if no noise was chosen after seeing an earlier release.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import product
from math import prod

from trellis.errors import BudgetExceeded, LedgerError
from trellis.privacy.budget import Budget
from trellis.privacy.guarantee import Charge, Guarantee
from trellis.privacy.neighbours import Neighbours

_MOST_PATHS = 32
"""Pairs of more kinds of paths would take too long to account for."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What the owner of a data set allows and declares.

    `unit_bounds` says how many units of another kind one unit of this release has at most:
    {"person": 6} for a release that protects households.
    """

    limit: Budget | None = None
    unit_bounds: Mapping[str, int] = field(default_factory=dict)
    new_edition: bool = False


def counted_together(
    guarantees: Sequence[Guarantee], unit: str, unit_bounds: Mapping[str, int]
) -> list[Guarantee]:
    """The same charges for one unit and one relation."""
    converted = [_for_unit(g, unit, unit_bounds) for g in guarantees]
    neighbours = joint_neighbours(converted)
    return [g.under(neighbours) for g in converted]


def joint_neighbours(guarantees: Sequence[Guarantee]) -> Neighbours:
    """The relation under which all of these can be added up."""
    relations = {g.protection.neighbours for g in guarantees}
    return Neighbours.REPLACE if Neighbours.REPLACE in relations else Neighbours.ADD_REMOVE


def total_rho(guarantees: Sequence[Guarantee]) -> Fraction:
    return sum((g.rho for g in guarantees), Fraction(0))


def total_pure_epsilon(guarantees: Sequence[Guarantee]) -> Fraction | None:
    """The sum of pure epsilons, or None where one of them has none."""
    parts = [g.pure_epsilon for g in guarantees]
    return None if None in parts else sum((p for p in parts if p is not None), Fraction(0))


def joint_guarantee(guarantees: Sequence[Guarantee]) -> Guarantee | None:
    """All charges as one, or None where contribution bounds differ and only sums are known.

    Where noise depends on the path, which path of one release goes with which of another is not
    known: every combination is considered, or, if there are too many, none.
    """
    protections = {replace(g.protection, within=None, required=()) for g in guarantees}
    n_paths = prod(max(1, len(g.paths)) for g in guarantees)
    if len(protections) != 1 or n_paths > _MOST_PATHS:
        return None
    charges: tuple[Charge, ...] = ()
    paths: tuple[tuple[int, ...], ...] = ((),)
    for g in guarantees:
        first = len(charges)
        charges += g.charges
        new = g.paths or (tuple(range(len(g.charges))),)
        paths = tuple((*path, *(first + i for i in more)) for path, more in product(paths, new))
    return Guarantee(protections.pop(), charges, paths if n_paths > 1 else ())


def check_cost(
    dataset: str, before: Sequence[Guarantee], new: Guarantee, known: Budget | None, terms: Terms
) -> None:
    """Whether a charge fits those before it, and the limit that is known or declared."""
    if known is not None and terms.limit is not None and known != terms.limit:
        declared = terms.limit.in_words()
        raise LedgerError(
            f"The ledger holds a limit of {known.in_words()} for data set {dataset!r}, the spec "
            f"says {declared}. Change the spec, or the ledger: trellis ledger {dataset} "
            f"--set-limit {declared.replace(' ', '')}."
        )
    *used, cost = counted_together([*before, new], new.protection.unit, terms.unit_bounds)
    if (limit := known or terms.limit) is not None:
        _check_limit(dataset, used, cost, limit)


def _check_limit(dataset: str, before: list[Guarantee], new: Guarantee, limit: Budget) -> None:
    if limit.rho is not None:
        kind, allowed, cost, used = "rho", limit.rho, new.rho, total_rho(before)
    else:
        kind, allowed, cost = "epsilon", limit.epsilon, new.pure_epsilon
        used = total_pure_epsilon(before)
        if cost is None or used is None:
            raise BudgetExceeded(
                f"Data set {dataset!r} has a limit in pure epsilon, which Gaussian noise never "
                "meets. Use mechanism: discrete_laplace, or set a limit in rho."
            )
    assert allowed is not None
    if used + cost > allowed:
        left = max(allowed - used, Fraction(0))
        raise BudgetExceeded(
            f"This release costs {kind} = {cost}, but data set {dataset!r} has only {left} of its "
            f"limit {allowed} left, all counted for neighbours {new.protection.neighbours}. "
            "Lower the budget, or raise the limit."
        )


def _for_unit(guarantee: Guarantee, unit: str, unit_bounds: Mapping[str, int]) -> Guarantee:
    other = guarantee.protection.unit
    if other == unit:
        return guarantee
    if other not in unit_bounds:
        raise LedgerError(
            f"The data set has charges for the unit {other!r}, and this release protects "
            f"{unit!r}. To add them up, declare how many of the former one {unit} has at most: "
            f"ledger: {{units: {{{other}: 1}}}}."
        )
    records = guarantee.protection.max_contribution * unit_bounds[other]
    protection = replace(guarantee.protection, unit=unit, max_contribution=records)
    return replace(guarantee, protection=protection)
