"""What the noise of a plan costs, from its queries alone."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from trellis.privacy.accounting import Composition, Coordinates, WorstCase
from trellis.privacy.accounting.contributions import one_cell_is_worst
from trellis.privacy.mechanisms import mechanism
from trellis.verify.files.run_files import RunFiles


def budget(run: RunFiles) -> Iterator[str]:
    """Shares sum to one, and the noise costs no more than the budget: exactly, in fractions."""
    noisy = [q for q in run.plan["queries"] if q["noise"] is not None]
    for q in run.plan["queries"]:
        if q.get("table", expected := _table(run.plan, q)) != expected:
            yield f"plan.json prices {q['query']} of level {q['level']} as a table of another kind"
    paths = run.paths(noisy)
    if any(sum(Fraction(q["share"]) for q in path) != 1 for path in paths):
        yield "the shares of plan.json do not sum to one"
    total = {name: Fraction(value) for name, value in run.plan["budget"].items()}
    cost, kind = max(_cost(run.plan, path) for path in paths)
    if "delta" in total:
        if accountant(run.plan, paths).delta(total["epsilon"]) > total["delta"]:
            yield "the noise of plan.json does not keep its epsilon and delta"
    elif cost != total[kind]:
        yield f"the noise of plan.json costs {kind} = {cost}, not {total[kind]}"
    unit = cost / sum(Fraction(q["share"]) for q in paths[0])
    for q in noisy:
        if _cost(run.plan, [q])[0] != unit * Fraction(q["share"]):
            yield f"the noise of level {q['level']} does not fit its share"


def moves(plan: dict[str, Any], query: dict[str, Any]) -> dict[int, int]:
    """How many cells of a query's table move how far, for the worst neighbour of the plan."""
    m = plan["protection"]["max_contribution"]
    sides = {"add_remove": 1, "replace": 2}[plan["protection"]["neighbours"]]
    table = _table(plan, query)
    if table == "histogram":
        # Groups of equal size: what leaves and what joins meet in one cell.
        return {m: 2} if sides == 1 else {m: 2, 2 * m: 1}
    if table == "grand_total":
        return {m: 1}
    if table == "distinct_pairs":
        return {1: sides * m}
    if table == "cumulative":
        return {m: sides * query["max_quantity"]}
    return {m: sides}


def _table(plan: dict[str, Any], query: dict[str, Any]) -> str:
    """Which kind of table moves: the kind of release decides, names of attributes play no part."""
    priced = plan["kind"] in ("group_sizes", "flows") and query["query"] != "total"
    return query["query"] if priced else "partition"


def _cost(plan: dict[str, Any], queries: list[dict[str, Any]]) -> tuple[Fraction, str]:
    """Rho of Gaussian noise, or epsilon of Laplace noise, for the plan's neighbours."""
    cost, kind = Fraction(0), "rho"
    for q in queries:
        parameter, moved = Fraction(q["noise"]["parameter"]), moves(plan, q)
        if q["noise"]["law"] == "discrete_laplace":
            kind = "epsilon"
            cost += sum(distance * cells for distance, cells in moved.items()) / parameter
        else:
            squares = sum(distance**2 * cells for distance, cells in moved.items())
            cost += Fraction(squares) / (2 * parameter)
    return cost, kind


def highest_cost(run: RunFiles) -> tuple[Fraction, str]:
    """The cost of the plan, for the dearest path from the root to a leaf."""
    noisy = [q for q in run.plan["queries"] if q["noise"] is not None]
    return max(_cost(run.plan, path) for path in run.paths(noisy))


def accountant(plan: dict[str, Any], paths: list[list[dict[str, Any]]]) -> WorstCase:
    """The exact accountant, or zero-concentrated DP where the worst change is not certain.

    Where noise depends on the path, a replaced record moves half of what it moves on each of two.
    """
    if len(paths) == 1:
        return _one_path(plan, paths[0])
    m = plan["protection"]["max_contribution"]
    replaced = plan["protection"]["neighbours"] == "replace"
    noises = [[mechanism(q["noise"]["law"], q["noise"]["parameter"]) for q in p] for p in paths]
    changes = [a + b for a, b in combinations_with_replacement(noises, 2)] if replaced else noises
    cases = {Composition.of([Coordinates(noise, 1, m) for noise in c]) for c in changes}
    certain = all(one_cell_is_worst(noise, 1, m) for noises in changes for noise in noises)
    return WorstCase(tuple(cases), certain)


def _one_path(plan: dict[str, Any], queries: list[dict[str, Any]]) -> WorstCase:
    m, parts, certain = plan["protection"]["max_contribution"], [], True
    for q in queries:
        noise = mechanism(q["noise"]["law"], q["noise"]["parameter"])
        moved = moves(plan, q)
        parts += [Coordinates(noise, cells, distance) for distance, cells in moved.items()]
        runs = _table(plan, q) == "cumulative" and q["max_quantity"] > 1
        certain = certain and not ((len(moved) > 1 or runs) and m > 1)
        certain = certain and one_cell_is_worst(noise, 1, max(moved))
    return WorstCase((Composition.of(parts),), certain)


def noise_variance(noise: dict[str, Any]) -> float:
    """The variance of the discrete law, summed directly where it differs from sigma squared."""
    parameter = float(Fraction(noise["parameter"]))
    if noise["law"] == "discrete_laplace":
        return 2 * math.exp(-1 / parameter) / math.expm1(-1 / parameter) ** 2
    if parameter > 20:
        return parameter
    z = np.arange(1, 200.0)
    weight = np.exp(-(z**2) / (2 * parameter))
    return float(2 * (z**2 * weight).sum() / (1 + 2 * weight.sum()))
