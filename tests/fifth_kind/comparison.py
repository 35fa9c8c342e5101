"""Compares means with the true ones: what they are made of. The result is confidential."""

from trellis.workflow.evaluation.counts import compare

__all__ = ["compare"]
