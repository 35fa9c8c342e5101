"""Shares of queries by level, or how to compute them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Discriminator, Tag, model_validator

from trellis.spec.sections.base import Model
from trellis.spec.sections.planning import form_of_shares, form_of_weights, optimal_word
from trellis.spec.sections.values import Exact, Name, SharesField

TableWeights = Annotated[
    Annotated[dict[str, Exact], Tag("~named")] | Annotated[Exact, Tag("~")],
    Discriminator(form_of_weights),
]
"""What the errors of a level count for: all alike, or by query."""


class OptimalQueriesSpec(Model):
    """Which queries may be measured, and what the errors of published tables count for."""

    queries: dict[Name, tuple[str, ...]] | None = None
    weights: dict[Name, TableWeights] | None = None


class OptimalStrategySpec(Model):
    """Shares of queries that are computed: `optimal`, or `{optimal: {..}}`."""

    optimal: OptimalQueriesSpec = OptimalQueriesSpec()

    @model_validator(mode="before")
    @classmethod
    def _word(cls, values: Any) -> Any:
        return optimal_word(values)


AnyStrategy = Annotated[
    Annotated[dict[Name, SharesField], Tag("~")] | Annotated[OptimalStrategySpec, Tag("~optimal")],
    Discriminator(form_of_shares),
]
"""Shares of queries by level, or how to compute them."""
