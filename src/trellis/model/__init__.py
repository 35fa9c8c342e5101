"""Frozen, self-validating data that passes between the stages; NumPy only."""

from trellis.model.hierarchy import Hierarchy
from trellis.model.schema import Schema

__all__ = ["Hierarchy", "Schema"]
