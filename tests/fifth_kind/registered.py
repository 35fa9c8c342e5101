"""The three registries that a new kind is entered in; all else is found through them."""

from __future__ import annotations

import pytest

from fifth_kind.design import MEANS, MeansDesign
from fifth_kind.spec import MeansSpec
from trellis.api import specs
from trellis.model.plans.designs import DESIGNS
from trellis.spec.kinds import SPECS
from trellis.workflow.kinds import KINDS, Kind

PARTS = Kind(
    preparing="fifth_kind.preparing",
    public="fifth_kind.public",
    confidential="fifth_kind.confidential",
    comparison="fifth_kind.comparison",
)


def register(patch: pytest.MonkeyPatch) -> None:
    """What three lines in `src` would do."""
    patch.setitem(SPECS, MEANS, MeansSpec)
    patch.setitem(DESIGNS, MEANS, MeansDesign)
    patch.setitem(KINDS, MEANS, PARTS)
    patch.setattr(specs, "_CLASSES", dict(specs._CLASSES))  # a class that is made stays in here
