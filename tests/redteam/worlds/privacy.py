"""Random privacy sections: unit, neighbours, bound on records, noise, budget, shares."""

from __future__ import annotations

from random import Random
from typing import Any

RHOS = ("1", "1/2", "3/7", "2", "1/10")
EPSILONS = ("1", "1/2", "5/3", "3")
PAIRS = (("1", "1e-6"), ("2", "1e-8"), ("1/2", "1e-5"))


def draw_privacy(chance: Random, neighbours: str | None = None) -> dict[str, Any]:
    drawn = chance.random()
    if drawn < 0.45:
        noise: dict[str, Any] = {"mechanism": "discrete_gaussian",
                                 "budget": {"rho": chance.choice(RHOS)}}  # fmt: skip
    elif drawn < 0.75:
        noise = {"mechanism": "discrete_laplace", "budget": {"epsilon": chance.choice(EPSILONS)}}
    else:
        epsilon, delta = chance.choice(PAIRS)
        noise = {"mechanism": "discrete_gaussian", "budget": {"epsilon": epsilon, "delta": delta}}
    return {
        "unit": chance.choice(("person", "household")),
        "neighbours": neighbours or chance.choice(("replace", "replace", "add_remove")),
        "max_contribution": chance.choice((1, 1, 2, 3)),
        **noise,
    }


def draw_shares(chance: Random, names: list[str]) -> dict[str, str]:
    """Exact fractions that sum to one."""
    weights = [chance.randint(1, 9) for _ in names]
    return {name: f"{w}/{sum(weights)}" for name, w in zip(names, weights, strict=True)}
