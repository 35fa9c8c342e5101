"""Exact accounting of discrete Gaussian and Laplace noise, certified and in milliseconds.

`Accountant` adds up what is measured; its answers come from the first tier that fits: the exact
lattice (`exact`), a certified bracket (`bracket`), the zCDP bound (`zcdp`). `series` is a
cross-check that shares no code with them.
"""

from trellis.privacy.accounting.accountant import Accountant
from trellis.privacy.accounting.calibration import Calibration, calibrate, calibrate_gaussian
from trellis.privacy.accounting.composition import Composition, Coordinates
from trellis.privacy.accounting.curves import Tier
from trellis.privacy.accounting.privacy_curve import PrivacyCurve, WorstCase
from trellis.privacy.accounting.zcdp import tight_zcdp_epsilons, zcdp_epsilon

__all__ = [
    "Accountant",
    "Calibration",
    "Composition",
    "Coordinates",
    "PrivacyCurve",
    "Tier",
    "WorstCase",
    "calibrate",
    "calibrate_gaussian",
    "tight_zcdp_epsilons",
    "zcdp_epsilon",
]
