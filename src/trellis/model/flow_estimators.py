"""The estimators of flows that a spec can name, and what they are given."""

from __future__ import annotations

from trellis.privacy.flow_changes import FlowQuery

FLOW_QUERIES = frozenset(FlowQuery)

FLOW_ESTIMATORS = ("chebyshev", "chebyshev_descending", "l2", "sparse")
DEFAULT_FLOW_ESTIMATOR = "chebyshev"
DEFAULT_PENALTY = 2
"""Of `sparse`, in standard deviations of the noise."""
