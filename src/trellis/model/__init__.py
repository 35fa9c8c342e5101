"""Frozen, self-validating data that passes between the stages; NumPy only."""

from trellis.model.plans.forecast import ExpectedError
from trellis.model.plans.plan import Plan
from trellis.model.plans.query import PlannedQuery
from trellis.model.results.estimates import Estimates
from trellis.model.results.measurements import Measurements
from trellis.model.tables.schema import Schema
from trellis.model.trees.hierarchy import Hierarchy

__all__ = [
    "Estimates",
    "ExpectedError",
    "Hierarchy",
    "Measurements",
    "Plan",
    "PlannedQuery",
    "Schema",
]
