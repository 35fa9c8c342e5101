"""A plan as JSON; fractions are text such as 1/15, so nothing is rounded."""

from __future__ import annotations

from dataclasses import asdict
from fractions import Fraction
from pathlib import Path
from typing import Any

from trellis.errors import RunFolderError, TrellisError
from trellis.model.plans.design import Design
from trellis.model.plans.designs import DESIGNS
from trellis.model.plans.forecast import ExpectedError, Forecast
from trellis.model.plans.kinds.histograms import HistogramDesign
from trellis.model.plans.plan import Plan
from trellis.model.plans.query import PlannedQuery
from trellis.model.tables.schema import Recode, Schema
from trellis.model.trees.areas import Effect
from trellis.privacy.budget import Budget
from trellis.privacy.changes import Table
from trellis.privacy.mechanisms import Mechanism, mechanism
from trellis.privacy.neighbours import Neighbours
from trellis.privacy.protection import NOT_KNOWN, Protection
from trellis.privacy.tables import PARTITION_NAME, read_table, written
from trellis.storage.atomic import read_json
from trellis.storage.formats import FORMAT, without_format
from trellis.storage.spines import spine_from_json, spine_to_json

_BOUNDS = ("max_quantity", "trips", "bound")
"""What tables call their bound; a query has one of them, or none."""


def plan_to_json(plan: Plan) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "release": plan.release,
        "kind": plan.kind,
        "dataset": plan.dataset,
        "levels": [
            {"level": name, "areas": areas, "nodes": nodes}
            for name, areas, nodes in zip(plan.levels, plan.areas, plan.sizes, strict=True)
        ],
        "schema": dict(zip(plan.schema.names, map(list, plan.schema.categories), strict=True)),
        "protection": asdict(plan.protection),
        "budget": {k: str(v) for k, v in asdict(plan.budget).items() if v is not None},
        "queries": [query_to_json(query) for query in plan.queries],
        "unprotected_totals": list(plan.unprotected_totals),
        "method": plan.method.name,
        "confidence": str(plan.confidence),
        "hierarchy_sha256": plan.hierarchy_digest,
        "expected_standard_errors": (
            None if plan.forecast.errors is None else [asdict(e) for e in plan.forecast.errors]
        ),
        **({"recodes": _recodes_to_json(plan.schema)} if plan.schema.recodes else {}),
        **plan.design.to_json(),
        **spine_to_json(plan),
        **_effects_to_json(plan.forecast),
    }


def read_plan(path: Path) -> Plan:
    content = read_json(path)
    if isinstance(content, dict):
        content = without_format(content, path)
    try:
        return plan_from_json(content)
    except (KeyError, TypeError, ValueError, ArithmeticError, AttributeError, TrellisError):
        raise RunFolderError(f"{path} is damaged: it holds no complete plan.") from None


def plan_from_json(content: dict[str, Any]) -> Plan:
    protection = content["protection"]
    design = _design_from_json(content)
    return Plan(
        release=content["release"],
        dataset=content["dataset"],
        levels=tuple(level["level"] for level in content["levels"]),
        sizes=tuple(level["nodes"] for level in content["levels"]),
        areas=tuple(level["areas"] for level in content["levels"]),
        schema=Schema(content["schema"], _recodes_from_json(content.get("recodes", {}))),
        protection=Protection(
            protection["unit"],
            Neighbours(protection["neighbours"]),
            protection["max_contribution"],
            protection["within"],
            tuple(protection.get("required", (NOT_KNOWN,))),
        ),
        budget=Budget(**{name: Fraction(value) for name, value in content["budget"].items()}),
        queries=tuple(_query_from_json(query) for query in content["queries"]),
        unprotected_totals=tuple(content["unprotected_totals"]),
        method=design.method(content["method"]),
        design=design,
        confidence=Fraction(content["confidence"]),
        hierarchy_digest=content["hierarchy_sha256"],
        forecast=_forecast_from_json(content),
        **spine_from_json(content),
    )


def _design_from_json(content: dict[str, Any]) -> Design:
    """What the kind adds. Before histograms were a kind, they were counts with one more key."""
    kind = HistogramDesign.kind if "histogram" in content else content["kind"]
    return DESIGNS[kind].from_json(content)


def _effects_to_json(forecast: Forecast) -> dict[str, Any]:
    effects = forecast.effects
    return {} if effects is None else {"effects": [asdict(effect) for effect in effects]}


def _forecast_from_json(content: dict[str, Any]) -> Forecast:
    errors, effects = content["expected_standard_errors"], content.get("effects")
    return Forecast(
        None if errors is None else tuple(ExpectedError(**e) for e in errors),
        None if effects is None else tuple(Effect(**effect) for effect in effects),
    )


def _recodes_to_json(schema: Schema) -> dict[str, Any]:
    return {
        name: {
            "attribute": recode.attribute,
            "groups": dict(zip(recode.names, map(list, recode.groups), strict=True)),
        }
        for name, recode in schema.recodes
    }


def _recodes_from_json(content: dict[str, Any]) -> dict[str, Recode]:
    return {name: Recode(item["attribute"], item["groups"]) for name, item in content.items()}


def query_to_json(query: PlannedQuery) -> dict[str, Any]:
    """Level, query, exact share, exact noise; where there is one, the bound that it rests on."""
    noise = None if query.noise is None else noise_to_json(query.noise)
    content = {"level": query.level, "query": query.query, "share": str(query.share)}
    of = {} if query.share_class is None else {"class": query.share_class}
    return {**content, "noise": noise, **_table_to_json(query.table), **of}


def _query_from_json(content: dict[str, Any]) -> PlannedQuery:
    noise = content["noise"]
    return PlannedQuery(
        content["level"],
        content["query"],
        Fraction(content["share"]),
        None if noise is None else mechanism(noise["law"], noise["parameter"]),
        _table_from_json(content),
        content.get("class"),
    )


def _table_to_json(table: Table) -> dict[str, Any]:
    form = written(table)
    return {"table": form.name, **({form.bound_name: form.bound} if form.bound_name else {})}


def _table_from_json(content: dict[str, Any]) -> Table:
    """What a query costs. Before there was a key `table`, the bound that it rests on told it."""
    bounds = [content[key] for key in _BOUNDS if key in content]
    return read_table(content.get("table", content["query"] if bounds else PARTITION_NAME), *bounds)


def noise_to_json(noise: Mechanism) -> dict[str, Any]:
    """The exact parameter (sigma squared, or the scale) and the variance it amounts to."""
    return {"law": noise.name, "parameter": str(noise.parameter), "variance": noise.variance}
