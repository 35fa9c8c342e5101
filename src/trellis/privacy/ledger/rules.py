"""When one more charge is refused.

rho and pure epsilon add up whatever was seen before the next release was planned, as long as the
limit was set first (a privacy filter); the exact epsilon of all together is true only if no noise
was chosen after seeing an earlier release. So limits are in rho or pure epsilon.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

from trellis.errors import BudgetExceeded, LedgerError
from trellis.privacy.budget import Budget
from trellis.privacy.ledger.account import Account, Cost, Total
from trellis.privacy.ledger.units import Tie, UnitBound


@dataclass(frozen=True, slots=True)
class Terms:
    """What the owner of a data set allows and declares with a release.

    `limit` is for `limit_unit`, or for the unit of the release. `unit_bounds` says how many units
    of another kind make up one unit of the release at most: {"person": 6} for a release that
    protects households; `part_of` how many it is part of: {"household": 1} for persons.
    """

    limit: Budget | None = None
    limit_unit: str | None = None
    unit_bounds: Mapping[str, int] = field(default_factory=dict)
    part_of: Mapping[str, int] = field(default_factory=dict)
    caps: bool = False
    """Whether the release itself leaves out what a unit has above max_contribution."""
    new_edition: bool = False
    same_records: bool = False

    def limits(self, unit: str) -> dict[str, Budget]:
        return {} if self.limit is None else {self.limit_unit or unit: self.limit}

    def bounds(self, unit: str) -> tuple[UnitBound, ...]:
        """What is declared of the unit of the release."""
        made = (UnitBound(unit, o, Tie.MADE_OF, most) for o, most in self.unit_bounds.items())
        part = (UnitBound(unit, o, Tie.PART_OF, most) for o, most in self.part_of.items())
        return tuple(bound for bound in (*made, *part) if bound.other != unit)


def check_cost(dataset: str, before: Account, new: Cost, terms: Terms) -> None:
    """Whether a charge fits those before it, and every limit that is known or declared."""
    declared = terms.limits(new.unit)
    for unit, limit in declared.items():
        _check_agreement(dataset, unit, before.limits.get(unit), limit)
    after = before.with_release(new, terms.bounds(new.unit), declared)
    for unit in sorted(after.limits, key=lambda unit: (unit != new.unit, unit)):
        _check_limit(dataset, after.total(unit), after.limits[unit])
    if all(after.total(unit).left_out for unit in after.units):
        raise _cannot_count(dataset, after.total(new.unit))


def _check_agreement(dataset: str, unit: str, known: Budget | None, declared: Budget) -> None:
    if known is not None and known != declared:
        said = declared.in_words()
        raise LedgerError(
            f"The ledger holds a limit of {known.in_words()} for a {unit} of data set {dataset!r}, "
            f"but the spec says {said}. Change the spec, or the ledger: trellis ledger {dataset} "
            f"--set-limit {said.replace(' ', '')} --unit {unit}."
        )


def _check_limit(dataset: str, total: Total, limit: Budget) -> None:
    """Refuse what does not fit a limit; the charge that is asked about comes last."""
    if total.left_out:
        raise _cannot_count(dataset, total)
    kind, allowed, spent = _spent(total, limit)
    if spent is None:
        raise BudgetExceeded(
            f"Data set {dataset!r} has a limit in pure epsilon, which Gaussian noise never "
            "meets. Use mechanism: discrete_laplace, or set a limit in rho."
        )
    if spent > allowed:
        newest = replace(total, counted=total.counted[-1:])
        cost = _spent(newest, limit)[2] or Fraction(0)
        left = max(allowed - (spent - cost), Fraction(0))
        raise BudgetExceeded(
            f"This release costs {kind} = {cost}, but data set {dataset!r} has only {left} of its "
            f"limit {allowed} left, all counted for a {total.unit} and neighbours "
            f"{total.relation_in_words}. Lower the budget, or raise the limit."
        )


def check_new_limit(dataset: str, total: Total, limit: Budget) -> None:
    """Refuse a limit that cannot be counted, or that is exceeded already."""
    if total.left_out:
        raise _cannot_count(dataset, total)
    kind, allowed, spent = _spent(total, limit)
    if spent is None or spent > allowed:
        much = "more, with Gaussian noise," if spent is None else f"{kind} = {spent}"
        raise LedgerError(
            f"Data set {dataset!r} has spent {much} for a {total.unit}, which exceeds a limit of "
            f"{kind} = {allowed}: nothing more could be released. If that is intended, add "
            "--below-spent."
        )


def _spent(total: Total, limit: Budget) -> tuple[str, Fraction, Fraction | None]:
    """In the currency of the limit; None where Gaussian noise has no pure epsilon."""
    if limit.rho is not None:
        return "rho", limit.rho, total.rho
    assert limit.epsilon is not None
    return "epsilon", limit.epsilon, total.pure_epsilon


def _cannot_count(dataset: str, total: Total) -> LedgerError:
    unit, other = total.unit, total.left_out[-1].unit
    return LedgerError(
        f"Data set {dataset!r} has charges for the unit {other!r}, which cannot be counted for "
        f"{unit!r}. Declare how many one {unit} is made up of at most, ledger: {{units: {{{other}: "
        f"6}}}}, or is part of, ledger: {{part_of: {{{other}: 1}}}}, in a spec that protects "
        f"{unit!r}, or with trellis ledger {dataset} --units {unit}:{other}=6 or --part-of."
    )
