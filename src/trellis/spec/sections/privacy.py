"""Who is protected, how much may be learned, and where spending is recorded."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from trellis.errors import PrivacyError
from trellis.model.plans.shares import Shares
from trellis.privacy.budget import Budget
from trellis.privacy.neighbours import Neighbours
from trellis.spec.sections.base import Model
from trellis.spec.sections.planning import AnyShares
from trellis.spec.sections.values import Exact, Name, PathText


class BudgetSpec(Model):
    """rho, or epsilon and delta, or epsilon alone."""

    rho: Exact | None = None
    epsilon: Exact | None = None
    delta: Exact | None = None

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        try:
            if self.is_least:
                Budget(epsilon=Fraction(1), delta=self.delta)
            else:
                self.value()
        except PrivacyError as error:
            raise ValueError(str(error)) from None
        return self

    @property
    def is_least(self) -> bool:
        """Only a delta is stated: as little as the targets of `accuracy` allow."""
        return self.rho is None and self.epsilon is None and self.delta is not None

    def value(self) -> Budget:
        return Budget(self.rho, self.epsilon, self.delta)


class LimitSpec(BudgetSpec):
    """The most that may ever be spent on a data set, for one unit: that of the release, if none."""

    unit: Name | None = None

    @model_validator(mode="after")
    def _no_delta(self) -> Self:
        if self.delta is not None:
            raise ValueError("a limit is rho, or epsilon alone for Laplace noise")
        return self


class PrivacySpec(Model):
    """Who is protected, and how much may be learned. Five keys have no default."""

    unit: Name
    neighbours: Neighbours
    max_contribution: int = Field(ge=1, le=1_000_000, strict=True)
    mechanism: Literal["discrete_gaussian", "discrete_laplace"]
    budget: BudgetSpec | None = None
    shares: AnyShares = Shares()

    @model_validator(mode="after")
    def _budget_fits(self) -> Self:
        if self.budget is None:
            return self
        if self.budget.is_least:
            if self.mechanism == "discrete_laplace":
                raise ValueError("a delta goes with discrete_gaussian; Laplace noise needs none")
            return self
        pure = self.budget.value().is_pure
        if self.mechanism == "discrete_laplace" and not pure:
            raise ValueError("discrete_laplace takes a budget of epsilon alone")
        if self.mechanism == "discrete_gaussian" and pure:
            raise ValueError("discrete_gaussian takes a budget of rho, or of epsilon with delta")
        return self


UnitNumber = Annotated[int, Field(ge=1, le=1_000_000, strict=True)]


class LedgerSpec(Model):
    """Where spending is recorded, and how much is allowed in all."""

    path: PathText = "ledger.sqlite"
    limit: LimitSpec | None = None
    units: dict[Name, UnitNumber] = {}  # noqa: RUF012 (pydantic copies it)
    part_of: dict[Name, UnitNumber] = {}  # noqa: RUF012 (pydantic copies it)
