"""What is known about errors before any count is seen."""

from __future__ import annotations

from dataclasses import dataclass

from trellis.model.trees.areas import Effect


@dataclass(frozen=True, slots=True)
class ExpectedError:
    """Standard errors of the estimates of one level."""

    level: str
    areas: int
    least: float
    median: float
    most: float


@dataclass(frozen=True, slots=True)
class Forecast:
    """Expected errors by level, and what a spine does for levels and areas of interest.

    None where they are not known. A forecast follows from a plan and is not part of its identity.
    """

    errors: tuple[ExpectedError, ...] | None = None
    effects: tuple[Effect, ...] | None = None


NOTHING_FORESEEN = Forecast()
