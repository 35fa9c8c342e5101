"""The designs by kind: the one place of the model that lists them."""

from __future__ import annotations

from trellis.model.plans.design import Design
from trellis.model.plans.kinds.counts import CountsDesign
from trellis.model.plans.kinds.flows import FlowDesign
from trellis.model.plans.kinds.group_sizes import GroupSizesDesign
from trellis.model.plans.kinds.histograms import HistogramDesign

DESIGNS: dict[str, type[Design]] = {
    design.kind: design for design in (CountsDesign, HistogramDesign, GroupSizesDesign, FlowDesign)
}
