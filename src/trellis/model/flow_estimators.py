"""The estimators of flows that a spec can name."""

from __future__ import annotations

FLOW_ESTIMATORS = ("chebyshev", "chebyshev_descending", "l2", "sparse")
DEFAULT_FLOW_ESTIMATOR = "chebyshev"

USES_PENALTY = frozenset({"sparse"})
"""Those that put a price on every flow that is not zero."""
