"""Areas of interest and the spine of a release, between the files and the stages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from trellis.model.plans.plan import Plan
from trellis.model.trees.areas import Category
from trellis.model.trees.spine import Spine


@dataclass(frozen=True, slots=True, eq=False)
class Interests:
    """What the spec's `areas` and `spine` amount to; nothing where it has neither.

    `conventional` is the plan of the same release without a spine, to compare with. `shares` are
    those of the levels of the spine, before any was moved.
    """

    categories: tuple[Category, ...] = ()
    spine: Spine | None = None
    conventional: Plan | None = None
    shares: Mapping[str, Fraction] = field(default_factory=dict)
