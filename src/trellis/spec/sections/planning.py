"""Keys of a spec that leave shares, or the budget itself, to be computed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Discriminator, Tag, model_validator

from trellis.model.plans.shares import Shares
from trellis.spec.sections.base import Model
from trellis.spec.sections.values import Exact, Name, PathText, SharesField


class CrosswalkSpec(Model):
    """A public file that carries areas of the prior over to areas of the hierarchy."""

    source: PathText
    old: str = "old"
    new: str = "new"
    share: str | None = None


class PriorSpec(Model):
    """A public file of earlier or assumed counts."""

    source: PathText
    area: str | None = None
    count: str | None = None
    crosswalk: CrosswalkSpec | None = None
    missing: Literal["refuse", "zero"] = "refuse"

    @model_validator(mode="before")
    @classmethod
    def _file_name(cls, values: Any) -> Any:
        """`prior: counts.csv` is short for the file with its usual columns."""
        return {"source": values} if isinstance(values, str) else values


def _weights(values: Any) -> Any:
    if values is not None and not isinstance(values, list | tuple | Mapping):
        raise ValueError("write {level: number, ..}, or a number for each measured level in a list")
    if values is not None and not values:
        raise ValueError("give a weight to at least one level, or leave weights out")
    return values


def form_of_weights(value: Any) -> str:
    """Whether weights have names."""
    return "~named" if isinstance(value, Mapping) else "~"


LevelWeights = Annotated[
    Annotated[dict[Name, Exact], Tag("~named")] | Annotated[tuple[Exact, ...], Tag("~")],
    Discriminator(form_of_weights),
]


class OptimalSpec(Model):
    """What optimal shares are optimal for."""

    prior: PriorSpec | None = None
    weights: Annotated[LevelWeights | None, BeforeValidator(_weights)] = None


class OptimalSharesSpec(Model):
    """Shares that are computed: `optimal`, or `{optimal: {..}}`."""

    optimal: OptimalSpec = OptimalSpec()

    @model_validator(mode="before")
    @classmethod
    def _word(cls, values: Any) -> Any:
        return optimal_word(values)


def optimal_word(values: Any) -> Any:
    """`optimal` is short for `{optimal: {}}`."""
    if values == "optimal":
        return {"optimal": {}}
    if isinstance(values, dict) and values.get("optimal", 0) is None:
        return {**values, "optimal": {}}
    return values


def form_of_shares(value: Any) -> str:
    """Which of the two forms shares are written in."""
    is_optimal = value == "optimal" or hasattr(value, "optimal")
    return "~optimal" if is_optimal or (isinstance(value, dict) and "optimal" in value) else "~"


AnyShares = Annotated[
    Annotated[SharesField, Tag("~")] | Annotated[OptimalSharesSpec, Tag("~optimal")],
    Discriminator(form_of_shares),
]
"""Shares by level, or how to compute them."""

Wish = Shares | OptimalSharesSpec


class AccuracySpec(Model):
    """How near to the truth all areas of a level, or of a category of areas, must be, how often."""

    level: Name | None = None
    area: Name | None = None
    query: str = "total"
    within: Exact
    confidence: Exact = Fraction(19, 20)

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        if (self.level is None) == (self.area is None):
            raise ValueError("give either a level or an area of interest, not both")
        if self.within <= 0:
            raise ValueError("within must be positive; only numbers without noise are exact")
        if not 0 < self.confidence <= 1 - Fraction(1, 10**9):
            raise ValueError("confidence must lie above 0 and at most at 1 - 1e-9, such as 0.95")
        return self


def planning_faults(spec: Any) -> Iterator[str]:
    """What cannot be planned, whatever the areas turn out to be."""
    privacy, targets = spec.privacy, spec.accuracy
    is_optimal = isinstance(privacy.shares, OptimalSharesSpec)
    if not spec.can_be_planned and (targets or is_optimal):
        key = "accuracy" if targets else "privacy.shares.optimal"
        yield (
            f"{key} is not supported for kind: {spec.kind} yet. State budget and shares, or "
            "release counts or histograms."
        )
    if not targets and privacy.budget is None:
        yield (
            "Missing key 'privacy.budget': such as {rho: 1}, {epsilon: 2, delta: 1e-10} or "
            "{epsilon: 1}; it has no default. Or say under accuracy what must be reached."
        )
    elif not targets and privacy.budget.is_least:
        yield (
            "privacy.budget states a delta and nothing else: add rho or epsilon, or say under "
            "accuracy what the least budget must reach."
        )
    if targets and not spec.methods[spec.estimate.method].has_variances:
        able = " or ".join(name for name, method in spec.methods.items() if method.has_variances)
        yield (
            f"accuracy needs standard errors, but estimate.method {spec.estimate.method} has none. "
            f"Use {able}."
        )
