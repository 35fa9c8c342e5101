"""The kinds of release: the one place of the spec that lists them."""

from __future__ import annotations

from trellis.spec.counts import CountsSpec
from trellis.spec.flows import FlowsSpec
from trellis.spec.group_sizes import GroupSizesSpec
from trellis.spec.histograms import HistogramsSpec
from trellis.spec.release import Spec

SPECS: dict[str, type[Spec]] = {
    "counts": CountsSpec,
    "histograms": HistogramsSpec,
    "group_sizes": GroupSizesSpec,
    "flows": FlowsSpec,
}
