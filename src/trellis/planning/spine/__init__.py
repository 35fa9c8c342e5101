"""Redraws the internal tree on which noise is spent, so that areas of interest lie close to it.

Each reduction takes a tree and gives a tree with the same root and the same leaves, and an undo
that carries estimates back. They compose.

Reference: Cumings-Menon et al., Geographic spines in the 2020 Census Disclosure Avoidance System,
arXiv:2203.16654.
"""

from trellis.planning.spine.branch import branch
from trellis.planning.spine.bypass import bypass
from trellis.planning.spine.distance import distances
from trellis.planning.spine.group import group_level
from trellis.planning.spine.regroup import regroup_leaves

__all__ = ["branch", "bypass", "distances", "group_level", "regroup_leaves"]
