"""The spec file and its validation."""

from trellis.workflow.config.spec import Spec

__all__ = ["Spec"]
