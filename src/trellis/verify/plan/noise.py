"""The noise that each query must have: price and share decide, in fractions.

A table that one unit moves by `l1` and `l2` (squared), with a share s of the budget, has noise

    Laplace:   scale   = l1 / (epsilon s)
    Gaussian:  sigma^2 = l2 / (2 rho s)

With a budget of epsilon and delta, rho is what calibration found: one number for all queries. That
it keeps the budget is checked by the accountant; a hundredth more must break it.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from trellis.verify.plan.price import moves, noise_variance


@dataclass(frozen=True, slots=True)
class Asked:
    """A query as the spec asks for it; without a share it is published exactly."""

    level: str
    query: str
    share: Fraction = Fraction(0)
    table: str = "partition"
    bound_name: str = ""
    bound: int = 1
    share_class: int | None = None

    def to_json(self, noise: dict[str, Any] | None) -> dict[str, Any]:
        """As plan.json writes it."""
        bound = {self.bound_name: self.bound} if self.bound_name else {}
        of = {} if self.share_class is None else {"class": self.share_class}
        return {
            "level": self.level, "query": self.query, "share": str(self.share), "noise": noise,
            "table": self.table, **bound, **of,
        }  # fmt: skip


def with_noise(plan: dict[str, Any], asked: list[Asked]) -> list[dict[str, Any]]:
    """The queries of a plan with their noise; `plan` has the budget and the protection."""
    return [query.to_json(_noise(plan, query, asked)) for query in asked]


def _noise(plan: dict[str, Any], query: Asked, asked: list[Asked]) -> dict[str, Any] | None:
    if not query.share:
        return None
    moved = moves(plan, query.to_json(None))
    budget = {name: Fraction(value) for name, value in plan["budget"].items()}
    if set(budget) == {"epsilon"}:
        l1 = sum(distance * cells for distance, cells in moved.items())
        law, parameter = "discrete_laplace", l1 / (budget["epsilon"] * query.share)
    else:
        l2 = sum(distance**2 * cells for distance, cells in moved.items())
        rho = budget["rho"] if "rho" in budget else _calibrated(plan, asked)
        law, parameter = "discrete_gaussian", Fraction(l2) / (2 * rho * query.share)
    noise = {"law": law, "parameter": str(parameter)}
    return {**noise, "variance": noise_variance(noise)}


def _calibrated(plan: dict[str, Any], asked: list[Asked]) -> Fraction:
    """The rho that the first measured query of plan.json amounts to."""
    first = next(query for query in asked if query.share)
    noise = next(q["noise"] for q in plan["queries"] if q["noise"] is not None)
    moved = moves(plan, first.to_json(None))
    l2 = sum(distance**2 * cells for distance, cells in moved.items())
    return Fraction(l2) / (2 * Fraction(noise["parameter"]) * first.share)
