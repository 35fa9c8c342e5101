"""Answers the planned queries and adds noise: the last step that sees true counts."""

from trellis.measure.counts import measure_counts

__all__ = ["measure_counts"]
