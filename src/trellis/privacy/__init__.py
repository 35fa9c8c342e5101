"""Random bits, exact noise, accounting and the ledger: the part an auditor reads first."""

from trellis.privacy.accounting import Accountant, calibrate_gaussian
from trellis.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace
from trellis.privacy.neighbours import Neighbours

__all__ = [
    "Accountant",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Neighbours",
    "calibrate_gaussian",
]
