"""Random worlds: a spec of one kind with its public files and the records that a unit may have."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from redteam.worlds.counts import draw_counts, draw_counts_on_spine
from redteam.worlds.flows import draw_flows
from redteam.worlds.group_sizes import draw_group_sizes
from redteam.worlds.histograms import draw_histograms
from redteam.worlds.world import RandomWorld

DRAW: dict[str, Callable[[Random], RandomWorld]] = {
    "counts": draw_counts,
    "spines": draw_counts_on_spine,
    "histograms": draw_histograms,
    "group_sizes": draw_group_sizes,
    "flows": draw_flows,
}
"""Spines are counts on a tree of their own."""
