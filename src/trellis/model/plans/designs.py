"""The designs by kind: the one place of the model that lists them."""

from __future__ import annotations

from trellis.model.plans.counts import CountsDesign
from trellis.model.plans.design import Design
from trellis.model.plans.flows import FlowDesign
from trellis.model.plans.group_sizes import GroupSizesDesign
from trellis.model.plans.histograms import HistogramDesign

DESIGNS: dict[str, type[Design]] = {
    design.kind: design for design in (CountsDesign, HistogramDesign, GroupSizesDesign, FlowDesign)
}
