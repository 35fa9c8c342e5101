"""The keys of kind: flows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

from trellis.model.plans.flow_estimators import (
    DEFAULT_FLOW_ESTIMATOR,
    DEFAULT_PENALTY,
    MOST_PENALTY,
    has_penalty,
)
from trellis.model.tables.schema import COLUMNS
from trellis.model.trees.flows import FLOWS, Side
from trellis.spec.base import Model

if TYPE_CHECKING:
    from trellis.spec.spec import Spec

FlowEstimatorName = Literal[
    "chebyshev", "chebyshev_descending", "l2", "sparse", "gls_chebyshev", "gls_l2", "gls_sparse"
]


class TripsSpec(Model):
    """How many trips a unit has, and what happens to more."""

    number: Literal["exactly", "at_most"] | None = None
    distinct: bool = False
    above: Literal["reject", "cap"] = "reject"


def with_flow_defaults(values: dict[str, Any]) -> dict[str, Any]:
    """The keys of flows that a spec leaves out."""
    if values.get("kind") != FLOWS:
        return values
    values = {"tree": str(Side.DESTINATION), "estimator": DEFAULT_FLOW_ESTIMATOR, **values}
    estimate = values.get("estimate", {})
    if has_penalty(str(values["estimator"])) and isinstance(estimate, dict):
        values["estimate"] = {"penalty": str(DEFAULT_PENALTY), **estimate}
    return values


def has_exact_number(spec: Spec) -> bool:
    """Whether every unit has exactly max_contribution trips, so that their total cannot move."""
    if spec.trips.number is None:
        return spec.privacy.max_contribution == 1
    return spec.trips.number == "exactly"


def flow_faults(spec: Spec) -> Iterator[str]:
    """Keys that do not go together."""
    if spec.trips.above == "cap" and spec.data.unit is None:
        yield "trips.above: cap needs data.unit, the column that tells whose a trip is."
    if spec.trips.above == "cap" and has_exact_number(spec):
        yield (
            "trips.above: cap drops trips, so their number is not public. Write "
            "trips: {number: at_most}; the grand total is then measured with noise."
        )
    if has_penalty(str(spec.estimator)) != (spec.estimate.penalty is not None):
        yield "estimate.penalty goes with estimator: sparse or gls_sparse, no other."
    if spec.estimate.penalty is not None and not 0 <= spec.estimate.penalty <= MOST_PENALTY:
        yield (
            "estimate.penalty is a number of standard deviations, from 0 (keep all) to "
            f"{MOST_PENALTY}."
        )
    if spec.data.origin is not None and spec.data.origin == spec.data.destination:
        yield f"data.origin and data.destination are both {spec.data.origin!r}. Name two columns."
    ends = ("origin", "destination", "dest", spec.data.origin, spec.data.destination)
    for name, categories in (spec.attributes or {}).items():
        if name in (*COLUMNS, *ends):
            yield (
                f"attributes: {name!r} is the name of a column that tables have already, or that "
                "holds an area. Rename the column of the records."
            )
        if len(categories) < 2 or len(set(categories)) != len(categories):
            yield (
                f"attributes.{name}: list two or more distinct categories; they are declared, "
                "never read from the records."
            )
