"""The confidential half of a release of flows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from trellis.confidential.flows import TrueFlows
from trellis.ingest.reader import Source
from trellis.ingest.records.flows import TripColumns, TripRules, read_flows
from trellis.measure.charged_noise import ChargedNoise
from trellis.spec.flows import FlowsSpec
from trellis.spec.sections.planning import PriorSpec
from trellis.workflow.confidential.flow_descent import measure_flows
from trellis.workflow.preparing.prepared import Prepared
from trellis.workflow.public.facts import FlowFacts

PreparedFlows = Prepared[FlowsSpec, FlowFacts]


class ConfidentialFlows:
    """Trips between pairs of areas, measured below the pairs that are left."""

    def tabulate(self, prepared: PreparedFlows, source: Source, register: Any) -> TrueFlows:
        del register
        spec, data = prepared.spec, prepared.spec.data
        columns = TripColumns(
            origin=data.origin,
            destination=data.destination,
            count=data.count,
            unit=data.unit,
            attributes=dict(spec.attributes),
            origin_width=spec.hierarchy.code_width,
            destination_width=(spec.destinations or spec.hierarchy).code_width,
        )
        rules = TripRules(
            most=spec.privacy.max_contribution,
            exactly=spec.has_exact_number,
            distinct=spec.trips.distinct,
            cap=spec.caps_contributions,
        )
        return read_flows(source, prepared.facts.tree(prepared.plan), columns, rules)

    def measure(
        self,
        into: Path,
        prepared: PreparedFlows,
        counts: TrueFlows,
        noise: ChargedNoise,
        tie_seed: int,
    ) -> None:
        tree = prepared.facts.tree(prepared.plan)
        measure_flows(into, prepared.plan, tree, counts, noise, tie_seed)

    def are_those_of(self, prepared: PreparedFlows, counts: TrueFlows, prior: PriorSpec) -> bool:
        """Flows have no priors."""
        del prepared, counts, prior
        return False


CONFIDENTIAL = ConfidentialFlows()
