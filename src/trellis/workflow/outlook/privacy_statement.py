"""The exact guarantee of a release, before or after it is made, or of mechanisms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

from trellis.errors import PrivacyError
from trellis.evaluate.privacy_pictures import privacy_curve
from trellis.model.plans.plan import Plan
from trellis.model.plans.statement import protected_in_words
from trellis.privacy import Accountant
from trellis.privacy.attacker import PRIOR, strongest_attacks
from trellis.privacy.guarantee import GuaranteeCurve
from trellis.spec.sections.values import to_fraction

DELTAS = ("1e-3", "1e-5", "1e-6", "1e-8", "1e-10", "1e-12")
"""Where epsilon is stated if no delta is named."""


@dataclass(frozen=True, slots=True)
class PrivacyStatement:
    """Epsilon at some deltas; for a release, never without whom it protects and what narrows it."""

    accountant: Accountant | GuaranteeCurve
    deltas: tuple[Fraction, ...]
    plan: Plan | None = None

    @classmethod
    def of(cls, stated: Plan | Accountant | GuaranteeCurve, deltas: Sequence[Any] = ()) -> Self:
        """Of a plan or of mechanisms; deltas are numbers or text such as 1e-10."""
        exact = tuple(_delta(value) for value in deltas or DELTAS)
        if isinstance(stated, Plan):
            return cls(stated.privacy.accountant, exact, stated)
        return cls(stated, exact)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """For each delta: epsilon (an upper bound), a lower bound, and what zCDP would say."""
        return [self._row(delta) | self._conditions for delta in self.deltas]

    @property
    def sentences(self) -> list[str]:
        """How it is certified, who is protected, and what an attacker can learn."""
        accountant = self.accountant
        return [
            f"rho = {accountant.rho}, certified by: {accountant.tier}",
            *([] if self.plan is None else [protected_in_words(self.plan)]),
            *accountant.notes,
            *(attack.in_words(PRIOR) for attack in strongest_attacks(accountant)),
        ]

    @property
    def svg(self) -> str:
        """Epsilon at every delta, next to the bound from zCDP, as a picture."""
        return privacy_curve(self.accountant)

    def to_json(self) -> dict[str, Any] | list[dict[str, Any]]:
        """What `trellis account --json` prints: a row, or a list if there are several deltas."""
        rows = self.rows
        return rows[0] if len(rows) == 1 else rows

    def _row(self, delta: Fraction) -> dict[str, Any]:
        lower, upper = self.accountant.epsilon_bounds(delta)
        return {
            "delta": float(delta),
            "epsilon": upper,
            "epsilon_lower": lower,
            "epsilon_zcdp": self.accountant.epsilon_zcdp(delta),
        }

    @property
    def _conditions(self) -> dict[str, Any]:
        if self.plan is None:
            return {}
        protection = self.plan.protection
        return {
            "unit_of_protection": protection.unit,
            "neighbours": protection.neighbours,
            "protected_within_level": protection.within,
            "restrictions": list(protection.restrictions),
        }


def _delta(value: Any) -> Fraction:
    try:
        return to_fraction(value)
    except ValueError:
        raise PrivacyError(f"--delta {value!r} is not a number such as 1e-10.") from None
