"""Histograms: what spec.yaml asks for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from trellis.verify.files.run_files import RunFiles
from trellis.verify.files.safe_files import Unreadable
from trellis.verify.plan.kinds.counts import exact_levels, level_shares, protection
from trellis.verify.plan.noise import Asked
from trellis.verify.plan.reading import Spec, is_searched, shares_over


def histograms(run: RunFiles, levels: list[str]) -> tuple[dict[str, Any], list[Asked]]:
    """What plan.json must say, and what is asked."""
    spec, exact = run.spec, exact_levels(run.spec, levels)
    stated = {
        "schema": {name: _categories(attribute) for name, attribute in spec["schema"].items()},
        "unprotected_totals": exact,
        "protection": protection(spec, exact[-1] if len(exact) > 1 else None, _required(run)),
        "histogram": _design(spec, levels),
    }
    if spec.get("recodes"):
        stated["recodes"] = {
            name: {"attribute": recode["of"], "groups": recode["groups"]}
            for name, recode in spec["recodes"].items()
        }
    return stated, [Asked(level, "total") for level in exact] + _measured(run, levels, exact)


def _measured(run: RunFiles, levels: list[str], exact: list[str]) -> list[Asked]:
    """Level share x query share; searched ones are those of plan.json, each query once."""
    spec, one_cell = run.spec, _n_cells(run.spec) == 1
    measurable = [name for name in levels if not (one_cell and name in exact)]
    strategy = spec.get("strategy") or {"default": {"detailed": "1"}}
    if is_searched(strategy) or spec.get("accuracy") or is_searched(spec["privacy"]["shares"]):
        return _planned(run, measurable)
    asked = []
    for level, share in level_shares(run, measurable).items():
        wish = strategy[level] if level in strategy else strategy["default"]
        named = list(wish["weights"] if list(wish) == ["weights"] else wish)
        for query, part in shares_over(wish, named).items():
            asked.append(Asked(level, canonical(spec, query), share * part))
    return asked


def _planned(run: RunFiles, measurable: Sequence[str]) -> list[Asked]:
    asked = []
    for q in run.plan["queries"]:
        if q["noise"] is None:
            continue
        if q["level"] not in measurable or canonical(run.spec, q["query"]) != q["query"]:
            raise Unreadable("plan.json measures a query that spec.yaml cannot ask for")
        asked.append(Asked(q["level"], q["query"], Fraction(q["share"])))
    return asked


def _design(spec: Spec, levels: list[str]) -> dict[str, Any]:
    output, estimate, zeros = spec["output"], spec["estimate"], spec.get("structural_zeros") or []
    rules, binds = (zeros["rules"], zeros["binds"]) if isinstance(zeros, Mapping) else (zeros, None)
    tables = output.get("tables", {"default": ["total"]})
    return {
        "tables": [
            [level, canonical(spec, query)]
            for level in levels
            for query in tables.get(level, tables.get("default", ()))
        ],
        "microdata": bool(output.get("microdata")),
        "ordered": [name for name, a in spec["schema"].items() if isinstance(a, Mapping)],
        "structural_zeros": list(rules),
        "zeros_bind_records": binds != "output",
        "edit_rules": list(spec.get("edit_rules") or []),
        "enforce_edit_rules": estimate.get("edit_rules") != "audit",
        "passes": [canonical(spec, query) for query in estimate.get("passes") or []],
        "measurements": output.get("measurements", "complete"),
    }


def _required(run: RunFiles) -> list[str]:
    """The rules that bind the records, and those that estimates made again have left out.

    A run that was estimated again keeps what its measurements required, though its spec may have no
    rules any more. More requirements promise less.
    """
    stated, planned = list(_rules(run.spec)), run.plan["protection"]["required"]
    if planned == stated or not set(stated) <= set(planned) or not all(map(_is_rule, planned)):
        return stated
    run.notes.append("requirements of the records were taken from plan.json: rules were left out")
    return planned


def _rules(spec: Spec) -> Iterator[str]:
    zeros = spec.get("structural_zeros")
    if zeros is not None and not (isinstance(zeros, Mapping) and zeros["binds"] == "output"):
        yield "the structural zeros"
    for constraint in spec.get("constraints") or ():
        if constraint.get("binds") != "output":
            yield f"the bounds of constraint {constraint['name']!r}"


def _is_rule(what: str) -> bool:
    return what == "the structural zeros" or what.startswith("the bounds of constraint '")


def canonical(spec: Spec, query: str) -> str:
    """The one name of a query: its attributes in the order of the schema."""
    attributes = list(spec["schema"])
    if query in ("total", "detailed"):
        return query
    recodes = {name: recode["of"] for name, recode in (spec.get("recodes") or {}).items()}
    parts = [part.strip() for part in query.split("*")]
    ordered = sorted(
        parts, key=lambda part: attributes.index(part if part in attributes else recodes[part])
    )
    return " * ".join(ordered)


def _categories(attribute: Any) -> list[str]:
    return list(attribute["ordered"] if isinstance(attribute, Mapping) else attribute)


def _n_cells(spec: Spec) -> int:
    product = 1
    for attribute in spec["schema"].values():
        product *= len(_categories(attribute))
    return product
