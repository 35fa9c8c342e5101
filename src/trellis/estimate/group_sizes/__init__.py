"""Tables of group sizes: from noisy counts to whole ones that add up."""

from trellis.estimate.group_sizes.least_squares import solve
from trellis.estimate.group_sizes.mechanisms import (
    DEFAULT_MECHANISM,
    MECHANISMS,
    GroupSizeMechanism,
    PostProcessing,
    cumulative_exact,
    cumulative_joint,
    cumulative_relaxed,
    histogram_exact,
    histogram_relaxed,
)
from trellis.estimate.group_sizes.regression import isotonic

__all__ = [
    "DEFAULT_MECHANISM",
    "MECHANISMS",
    "GroupSizeMechanism",
    "PostProcessing",
    "cumulative_exact",
    "cumulative_joint",
    "cumulative_relaxed",
    "histogram_exact",
    "histogram_relaxed",
    "isotonic",
    "solve",
]
