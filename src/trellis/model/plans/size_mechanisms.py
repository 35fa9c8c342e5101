"""What the mechanisms for group sizes measure, and what their tables promise."""

from __future__ import annotations

from dataclasses import dataclass

from trellis.privacy.group_size_changes import SizeQuery

GROUP_SIZES = "group_sizes"
"""The kind of release."""


@dataclass(frozen=True, slots=True)
class SizeMechanism:
    """`adds_up`: children add up to their parents and the root to the number of groups, always.

    `keeps_groups`: so does every area to its own public number of groups.
    """

    query: SizeQuery
    adds_up: bool
    keeps_groups: bool


SIZE_MECHANISMS: dict[str, SizeMechanism] = {
    "histogram_relaxed": SizeMechanism(SizeQuery.HISTOGRAM, adds_up=False, keeps_groups=False),
    "histogram_exact": SizeMechanism(SizeQuery.HISTOGRAM, adds_up=True, keeps_groups=False),
    "cumulative_relaxed": SizeMechanism(SizeQuery.CUMULATIVE, adds_up=False, keeps_groups=True),
    "cumulative_exact": SizeMechanism(SizeQuery.CUMULATIVE, adds_up=True, keeps_groups=False),
    "cumulative_joint": SizeMechanism(SizeQuery.CUMULATIVE, adds_up=True, keeps_groups=True),
}

DEFAULT_SIZE_MECHANISM = "cumulative_joint"

WIDEST_RATIO = 10**12
"""Between the weights of two levels in sums of squares."""
