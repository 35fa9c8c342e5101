"""The YAML file as types: one class for each kind of release."""

from trellis.spec.kinds import SPECS
from trellis.spec.release import Spec

__all__ = ["SPECS", "Spec"]
