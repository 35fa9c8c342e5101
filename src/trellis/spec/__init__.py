"""The spec file and its validation."""

from trellis.spec.spec import Spec

__all__ = ["Spec"]
