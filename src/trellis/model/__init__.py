"""Frozen, self-validating data that passes between the stages; NumPy only."""

from trellis.model.estimates import Estimates
from trellis.model.hierarchy import Hierarchy
from trellis.model.measurements import Measurements
from trellis.model.plan import ExpectedError, Plan, PlannedQuery
from trellis.model.schema import Schema

__all__ = [
    "Estimates",
    "ExpectedError",
    "Hierarchy",
    "Measurements",
    "Plan",
    "PlannedQuery",
    "Schema",
]
