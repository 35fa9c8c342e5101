"""What is written."""

from __future__ import annotations

from fractions import Fraction
from typing import Self

from pydantic import model_validator

from trellis.spec.sections.base import Model
from trellis.spec.sections.values import Exact


class OutputSpec(Model):
    """What is written. Without `csv`, tables of up to a million rows are written as CSV too."""

    confidence: Exact = Fraction(9, 10)
    csv: bool | None = None

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        # Closer to one, the factor of an interval is infinite in floating point.
        if not 0 < self.confidence <= 1 - Fraction(1, 10**9):
            raise ValueError("confidence must lie above 0 and at most at 1 - 1e-9, such as 9/10")
        return self
