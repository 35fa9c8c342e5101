"""Groups by size are compared as tables of counts are."""

from trellis.workflow.evaluation.counts import compare

__all__ = ["compare"]
