"""From noisy measurements to estimates: least squares on trees and whole numbers that add up."""

from trellis.estimate.chebyshev import project_chebyshev, project_chebyshev_families
from trellis.estimate.histograms.family.round_family import round_family
from trellis.estimate.histograms.family.solve_family import solve_family
from trellis.estimate.projection import project_l2, project_l2_families
from trellis.estimate.tree import gls

__all__ = [
    "gls",
    "project_chebyshev",
    "project_chebyshev_families",
    "project_l2",
    "project_l2_families",
    "round_family",
    "solve_family",
]
