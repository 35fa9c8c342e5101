"""The promises about plan, privacy and measurements. Each check yields what is wrong."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from hashlib import sha256
from itertools import combinations_with_replacement
from json import dumps
from typing import Any

import numpy as np
import pyarrow as pa

from trellis.privacy.accounting import Composition, Coordinates, WorstCase
from trellis.privacy.accounting.contributions import one_cell_is_worst
from trellis.privacy.mechanisms import mechanism
from trellis.verify.files.run_files import RunFiles
from trellis.verify.files.safe_files import digest


def inventory(run: RunFiles) -> Iterator[str]:
    """The folder holds what a run of its kind holds: no other file, column or metadata."""
    for problems in run.strange.values():
        yield from problems


def hashes(run: RunFiles) -> Iterator[str]:
    """Every file is the one that the manifest lists, and no other is there."""
    listed = run.manifest["sha256"]
    there = set(run.sizes) - {"manifest.json"}
    for name in sorted(set(listed) - there):
        yield f"{name} is missing"
    for name in sorted(there - set(listed)):
        yield f"{name} is not in the manifest"
    for name in sorted(there & set(listed)):
        if digest(run.path / name) != listed[name]:
            yield f"{name} has changed since it was released"


def identity(run: RunFiles) -> Iterator[str]:
    """All files speak of the same run of the same spec."""
    canonical = dumps(run.spec, sort_keys=True).encode()
    if sha256(canonical).hexdigest() != run.identity["spec_sha256"]:
        yield "spec.yaml is not the spec of run.json"
    if run.manifest["run_id"] != run.identity["run_id"]:
        yield "manifest.json and run.json name different runs"
    stated = {
        "release": run.spec["release"],
        "kind": run.spec["kind"],
        "dataset": run.spec["dataset"],
        "method": _stated_method(run),
        "confidence": run.spec["output"]["confidence"],
        "budget": _stated_budget(run),
    }
    for key, value in stated.items():
        if run.plan[key] != value:
            yield f"plan.json and spec.yaml differ in {key}"
    if "histogram" in run.plan and run.plan["histogram"]["passes"] != _stated_passes(run):
        yield "plan.json and spec.yaml differ in passes"


def _stated_passes(run: RunFiles) -> list[str]:
    names = run.spec["estimate"].get("passes", [])
    return [" * ".join(part.strip() for part in name.split("*")) for name in names]


def _stated_budget(run: RunFiles) -> dict[str, str]:
    """The budget of the spec; where its targets decide, what the plan made of them."""
    stated = run.spec["privacy"].get("budget", {})
    return run.plan["budget"] if set(stated) <= {"delta"} and run.spec.get("accuracy") else stated


def _stated_method(run: RunFiles) -> str:
    """The key had other names before."""
    for key in ("estimator", "mechanism"):
        if key in run.spec:
            return run.spec[key]
    return run.spec["estimate"]["method"]


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
        if _accountant(run.plan, paths).delta(total["epsilon"]) > total["delta"]:
            yield "the noise of plan.json does not keep its epsilon and delta"
    elif cost != total[kind]:
        yield f"the noise of plan.json costs {kind} = {cost}, not {total[kind]}"
    unit = cost / sum(Fraction(q["share"]) for q in paths[0])
    for q in noisy:
        if _cost(run.plan, [q])[0] != unit * Fraction(q["share"]):
            yield f"the noise of level {q['level']} does not fit its share"


def privacy(run: RunFiles) -> Iterator[str]:
    """The privacy record states what the plan says and what the noise costs."""
    record, protection = run.privacy, run.plan["protection"]
    if run.plan.get("format", 1) == 1:  # whose queries do not say what they cost
        levels = [{k: v for k, v in q.items() if k != "table"} for q in record["levels"]]
        record = {**record, "levels": levels}
    stated = {
        "release": run.plan["release"],
        "dataset": run.plan["dataset"],
        "unit_of_protection": protection["unit"],
        "neighbours": protection["neighbours"],
        "max_contribution": protection["max_contribution"],
        "protected_within_level": protection["within"],
        "budget": run.plan["budget"],
        "levels": run.plan["queries"],
    }
    for key, value in stated.items():
        if record[key] != value:
            yield f"privacy.json and plan.json differ in {key}"
    cost, kind = highest_cost(run)
    if Fraction(record["rho" if kind == "rho" else "epsilon_pure"]) != cost:
        yield f"privacy.json does not state the cost {kind} = {cost}"
    if protection["unit"] not in " ".join(record["guarantee"]):
        yield "privacy.json states no guarantee"
    for level in run.plan["unprotected_totals"]:
        if level not in " ".join(record["unprotected"]):
            yield f"privacy.json does not say that totals of {level} are unprotected"


def measurements(run: RunFiles) -> Iterator[str]:
    """There is one measurement of each planned query, with the planned noise."""
    expected = {run.measurement(q) for q in run.plan["queries"]}
    folder = run.path / "measurements"
    there = {f"measurements/{p.relative_to(folder).as_posix()}" for p in folder.rglob("*.parquet")}
    for name in sorted(there ^ expected):
        yield f"{name} is not both planned and there"
    for q in run.plan["queries"]:
        if (name := run.measurement(q)) not in there:
            continue
        table = run.table(name)
        cells = run.cells_of(q["query"])
        level, nodes = run.asked_of(q)
        if not level.lists(table["geocode"], nodes, len(cells)):
            yield f"{name} does not list the areas of its level in order"
        if q["query"] != "total" and not run.names_cells(table, cells, nodes.size):
            yield f"{name} does not name the cells in order"
        if table.schema.field("value").type != pa.int64() or table["value"].null_count:
            yield f"{name} holds values that are not whole numbers"
        variance = 0.0 if q["noise"] is None else noise_variance(q["noise"])
        if not np.allclose(table["variance"].to_numpy(), variance, rtol=1e-9, atol=0):
            yield f"{name} states another variance than its noise has"
        if q["noise"] is not None and not math.isclose(
            q["noise"]["variance"], variance, rel_tol=1e-9
        ):
            yield f"plan.json states another variance than the noise of {q['level']} has"


def _moves(plan: dict[str, Any], query: dict[str, Any]) -> dict[int, int]:
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
        parameter, moves = Fraction(q["noise"]["parameter"]), _moves(plan, q)
        if q["noise"]["law"] == "discrete_laplace":
            kind = "epsilon"
            cost += sum(distance * cells for distance, cells in moves.items()) / parameter
        else:
            squares = sum(distance**2 * cells for distance, cells in moves.items())
            cost += Fraction(squares) / (2 * parameter)
    return cost, kind


def highest_cost(run: RunFiles) -> tuple[Fraction, str]:
    """The cost of the plan, for the dearest path from the root to a leaf."""
    noisy = [q for q in run.plan["queries"] if q["noise"] is not None]
    return max(_cost(run.plan, path) for path in run.paths(noisy))


def _accountant(plan: dict[str, Any], paths: list[list[dict[str, Any]]]) -> WorstCase:
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
        moves = _moves(plan, q)
        parts += [Coordinates(noise, cells, distance) for distance, cells in moves.items()]
        meet = len(moves) > 1 or q.get("max_quantity", 1) > 1
        certain = certain and not (meet and m > 1) and one_cell_is_worst(noise, 1, max(moves))
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
