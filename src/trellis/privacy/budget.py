"""A total privacy budget, as stated by the user."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from trellis.errors import PrivacyError

LEAST, MOST = Fraction(1, 10**6), Fraction(1000)
"""Outside this range a budget is a typing error: no use, or no protection."""


@dataclass(frozen=True, slots=True)
class Budget:
    """One of: rho (zero-concentrated DP), epsilon with delta (approximate DP), epsilon (pure)."""

    rho: Fraction | None = None
    epsilon: Fraction | None = None
    delta: Fraction | None = None

    def __post_init__(self) -> None:
        if (self.rho is None) == (self.epsilon is None):
            raise PrivacyError("A budget is either rho, or epsilon with delta, or epsilon alone.")
        if self.delta is not None and self.epsilon is None:
            raise PrivacyError("A delta needs an epsilon, and does not go with rho.")
        for name in ("rho", "epsilon"):
            value = getattr(self, name)
            if value is not None and not LEAST <= value <= MOST:
                raise PrivacyError(
                    f"A budget of {name} = {float(value):g} makes no sense: it must lie between "
                    f"{float(LEAST):g} (only noise) and {MOST} (no protection)."
                )
        if self.delta is not None and not 0 < self.delta <= Fraction(1, 100):
            raise PrivacyError(
                "delta must be above 0 and at most 1/100; well below one over the number of "
                "records is usual, such as 1e-10."
            )

    @property
    def is_pure(self) -> bool:
        return self.epsilon is not None and self.delta is None

    def in_words(self) -> str:
        parts = {"rho": self.rho, "epsilon": self.epsilon, "delta": self.delta}
        return ", ".join(f"{name} = {value}" for name, value in parts.items() if value is not None)
