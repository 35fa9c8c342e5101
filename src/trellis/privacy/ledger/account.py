"""What has been spent on one data set, added up for any unit that it can be added up for.

An account depends on the set of its charges and bounds alone, never on their order:

- every charge of a unit is priced for the most records that any release declares for that unit,
  unless the release caps contributions itself (its bound then holds by construction);
- a charge for another unit counts with the largest bounds declared (`units`), or is left out, and
  a sum that leaves something out says so;
- if one charge is for `replace`, all are counted for `replace`, each with its own change vector;
- a sum protects the changes that all of its charges protect: restrictions are united.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

from trellis.privacy.accounting import Composition, PrivacyCurve, WorstCase
from trellis.privacy.accounting.zcdp import zcdp_epsilon
from trellis.privacy.budget import Budget
from trellis.privacy.flow_changes import FlowQuery, FlowTable
from trellis.privacy.group_size_changes import SizeTable
from trellis.privacy.guarantee import Guarantee
from trellis.privacy.ledger.units import UnitBound, conversion, priced
from trellis.privacy.neighbours import Neighbours

_MOST_CASES = 512
"""More combinations of paths would take too long to account for."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What one release costs."""

    release: str
    guarantee: Guarantee
    caps: bool = False
    """Whether the release itself leaves out what a unit has above its bound."""
    run_id: str = ""

    @property
    def unit(self) -> str:
        return self.guarantee.protection.unit

    @property
    def max_contribution(self) -> int:
        return self.guarantee.protection.max_contribution

    @property
    def is_replace(self) -> bool:
        return self.guarantee.protection.neighbours is Neighbours.REPLACE

    @property
    def keeps_number(self) -> bool:
        """Whether the number of records may be exact: no measured table says that it can move."""
        tables = [charge.table for charge in self.guarantee.charges]
        return not any(
            isinstance(t, SizeTable)
            or (isinstance(t, FlowTable) and t.query is FlowQuery.GRAND_TOTAL)
            for t in tables
        )


@dataclass(frozen=True, slots=True)
class Counted:
    """One release at its price for the unit of a total."""

    cost: Cost
    priced: Guarantee
    bound: UnitBound | None = None

    @property
    def in_words(self) -> str:
        """What was counted, and how, if not as it was charged."""
        protection, charged = self.priced.protection, self.cost.guarantee.protection
        if protection == charged:
            return f"{self.cost.release} (as charged)"
        moved = "replaced" if protection.neighbours is Neighbours.REPLACE else "added or removed"
        why = "" if self.bound is None else f", since {self.bound.in_words}"
        records = f"{protection.max_contribution} record(s) {moved}"
        own = f"{charged.max_contribution} of a {charged.unit}, {charged.neighbours}"
        return f"{self.cost.release} (counted for {records}{why}; charged for {own})"

    @property
    def restrictions(self) -> tuple[str, ...]:
        """What narrows the changes that are protected, one sentence each."""
        said = self.priced.protection.restrictions
        several = self.priced.protection.max_contribution > 1
        if not (several and self.cost.is_replace and self.cost.keeps_number):
            return said
        number = (
            f"Release {self.cost.release!r} is for records that are replaced: changes in the "
            "number of records are not covered."
        )
        return (*said, number)


@dataclass(frozen=True, slots=True)
class Total:
    """All charges that count for one unit, and those that do not."""

    unit: str
    neighbours: Neighbours
    counted: tuple[Counted, ...]
    left_out: tuple[Cost, ...]

    @property
    def rho(self) -> Fraction:
        return sum((c.priced.rho for c in self.counted), Fraction(0))

    @property
    def pure_epsilon(self) -> Fraction | None:
        """The sum of pure epsilons, or None where one of them has none."""
        parts = [c.priced.pure_epsilon for c in self.counted]
        return None if None in parts else sum((p for p in parts if p is not None), Fraction(0))

    @property
    def within(self) -> tuple[str, ...]:
        """Levels with exact totals: only changes inside an area of each are protected."""
        levels = (c.priced.protection.within for c in self.counted)
        return tuple(sorted({level for level in levels if level is not None}))

    @property
    def restrictions(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(line for c in self.counted for line in c.restrictions))

    @property
    def relation_in_words(self) -> str:
        return ", within ".join([self.neighbours, *self.within])

    @property
    def curve(self) -> PrivacyCurve | None:
        """All charges together, or None if there are too many combinations of paths.

        Where noise depends on the path, which path of one release goes with which of another is
        not known: every combination is considered.
        """
        cases: set[Composition] = set()
        for part in self.counted:
            new = part.priced.accountant.cases
            joined = {Composition.of((*a.parts, *b.parts)) for a in cases for b in new}
            cases = joined or set(new)
            if len(cases) > _MOST_CASES:
                return None
        certified = all(part.priced.accountant.certified for part in self.counted)
        return WorstCase(tuple(cases), certified)

    def epsilon(self, delta: str) -> float:
        """All charges together, if no noise was chosen after seeing an earlier release."""
        if not self.counted:
            return 0.0
        curve = self.curve
        if curve is None:
            return zcdp_epsilon(self.rho, float(delta))
        return curve.epsilon(float(delta))


@dataclass(frozen=True, slots=True)
class Account:
    """All charges on one data set, what is declared of its units, and what may be spent."""

    costs: tuple[Cost, ...] = ()
    bounds: tuple[UnitBound, ...] = ()
    limits: Mapping[str, Budget] = field(default_factory=dict)

    @property
    def units(self) -> list[str]:
        """Those that have charges or a limit."""
        return sorted({cost.unit for cost in self.costs} | set(self.limits))

    def with_release(
        self, cost: Cost, bounds: tuple[UnitBound, ...], limits: Mapping[str, Budget]
    ) -> Account:
        return replace(
            self,
            costs=(*self.costs, cost),
            bounds=(*self.bounds, *bounds),
            limits={**self.limits, **limits},
        )

    def total(self, unit: str) -> Total:
        """Everything that can be counted for this unit."""
        counts = [c for c in self.costs if self._counts_for(c, unit)]
        neighbours = (
            Neighbours.REPLACE if any(c.is_replace for c in counts) else Neighbours.ADD_REMOVE
        )
        counted = tuple(self._counted(cost, unit, neighbours) for cost in counts)
        left_out = tuple(c for c in self.costs if not self._counts_for(c, unit))
        return Total(unit, neighbours, counted, left_out)

    def _counts_for(self, cost: Cost, unit: str) -> bool:
        return cost.unit == unit or conversion(self.bounds, unit, cost.unit) is not None

    def _counted(self, cost: Cost, unit: str, neighbours: Neighbours) -> Counted:
        records = self._records(cost)
        if cost.unit == unit:
            return Counted(cost, priced(cost.guarantee, unit, neighbours, records))
        how = conversion(self.bounds, unit, cost.unit)
        assert how is not None
        price = how.moves(neighbours), how.records(neighbours, records)
        return Counted(cost, priced(cost.guarantee, unit, *price), how.bound)

    def _records(self, cost: Cost) -> int:
        """The most that a unit has in this release, as far as is declared."""
        if cost.caps:
            return cost.max_contribution
        return max(c.max_contribution for c in self.costs if c.unit == cost.unit)
