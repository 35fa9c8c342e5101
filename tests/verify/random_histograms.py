"""Random releases of histograms: trees, schemas, recodes, strategies, rules and methods."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import trellis

LEVELS = ["nation", "state", "town"]


def random_release(folder: Path, rng: random.Random, **fixed: Any) -> Path:
    """A finished run of a random spec; `fixed` are top-level keys that are given."""
    while True:
        try:
            return _release(folder, rng, fixed)
        except trellis.errors.SpecError:  # two recodes that ask for the same cells: another one
            continue


def _release(folder: Path, rng: random.Random, fixed: dict[str, Any]) -> Path:
    areas, codes = _areas(rng)
    schema, recodes = _schema(rng)
    content = _spec(rng, schema, recodes) | fixed
    spec = trellis.Spec.parse({k: v for k, v in content.items() if v is not None}, folder)
    records = _records(rng, codes, schema, content.get("structural_zeros") or [])
    trellis.run(spec, folder / "run", data=records, hierarchy=areas)
    return folder / "run"


def _areas(rng: random.Random) -> tuple[pa.Table, list[str]]:
    rows = [
        ("r", f"s{state}", f"s{state}t{town}")
        for state in range(rng.randint(1, 4))
        for town in range(rng.randint(1, 5))
    ]
    columns = list(zip(*rows, strict=True))
    return pa.table(dict(zip(LEVELS, map(list, columns), strict=True))), [row[-1] for row in rows]


def _schema(rng: random.Random) -> tuple[dict[str, Any], dict[str, Any]]:
    schema = {"a": [f"a{i}" for i in range(rng.randint(3, 6))]}
    if rng.random() < 0.7:
        schema["b"] = [f"b{i}" for i in range(rng.randint(3, 4))]
    recodes = {}
    for name in ("one", "two")[: rng.randint(0, 2)]:
        of = rng.choice(list(schema))
        groups: dict[str, list[str]] = {}
        for i, category in enumerate(schema[of]):
            group = str(i if i < 2 else rng.randint(0, 1))
            groups.setdefault(f"{name}{group}", []).append(category)
        recodes[name] = {"of": of, "groups": groups}
    return schema, recodes


def _queries(rng: random.Random, schema: dict[str, Any], recodes: dict[str, Any]) -> list[str]:
    """Some queries, in the order of the schema, without the finest."""
    found = ["total"]
    for _ in range(rng.randint(1, 4)):
        names = []
        for attribute in schema:
            own = [name for name, recode in recodes.items() if recode["of"] == attribute]
            names += [n for n in [rng.choice([attribute, *own, None])] if n]
        if names and len(names) < len(schema) + 1:
            found.append(" * ".join(names))
    return [name for name in dict.fromkeys(found) if name != " * ".join(schema)]


def _split(rng: random.Random, names: list[str]) -> dict[str, str]:
    weights = [rng.randint(1, 9) for _ in names]
    return {name: f"{w}/{sum(weights)}" for name, w in zip(names, weights, strict=True)}


def _spec(rng: random.Random, schema: dict[str, Any], recodes: dict[str, Any]) -> dict[str, Any]:
    method = rng.choice(["gls_topdown", "gls_topdown", "topdown", "gls"])
    used = method == "topdown" and rng.random() < 0.5
    strategy, tables = {}, {}
    for level in LEVELS:
        names = [n for n in _queries(rng, schema, recodes) if rng.random() < 0.7]
        strategy[level] = _split(rng, [*names, "detailed"])
        tables[level] = list(dict.fromkeys([*_queries(rng, schema, recodes), "detailed"]))
    exact = rng.choice([[], ["nation"], ["nation", "state"], ["nation", "state", "town"]])
    whole = method != "gls"
    first = schema["a"]
    zeros = [f"a = {first[0]}"] if whole and not recodes and rng.random() < 0.3 else None
    rules = [f"a = {first[-1]} requires a != {first[-1]}"] if whole and rng.random() < 0.3 else None
    return {
        "release": "random",
        "kind": "histograms",
        "dataset": "random",
        "data": {"area": "town", "count": "people"},
        "hierarchy": {"columns": LEVELS},
        "schema": schema,
        "recodes": recodes or None,
        "strategy": strategy,
        "privacy": {
            "unit": "person",
            "neighbours": "replace",
            "max_contribution": 1,
            "mechanism": rng.choice(["discrete_gaussian", "discrete_laplace"]),
            "budget": None,
        }
        | _budget(rng),
        "unprotected": {"totals": exact} if exact else None,
        "structural_zeros": zeros,
        "edit_rules": rules,
        "estimate": {"method": method},
        "output": {
            "tables": tables,
            "microdata": whole,
            "measurements": "used" if used else "complete",
        },
    }


def _budget(rng: random.Random) -> dict[str, Any]:
    amount = rng.choice(["1/50", "1/2", "10"])
    if rng.random() < 0.5:
        return {"mechanism": "discrete_gaussian", "budget": {"rho": amount}}
    return {"mechanism": "discrete_laplace", "budget": {"epsilon": amount}}


def _records(
    rng: random.Random, codes: list[str], schema: dict[str, Any], zeros: list[str]
) -> pa.Table:
    rows = []
    for code in codes:
        scale = rng.choice([0, 3, 40, 400])
        for _ in range(rng.randint(1, 6)):
            cell = [rng.choice(categories) for categories in schema.values()]
            if zeros:
                cell[0] = rng.choice(schema["a"][1:])
            rows.append((code, *cell, rng.randint(0, scale)))
    names = ["town", *schema, "people"]
    return pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))


def bounded_release(folder: Path, rng: random.Random) -> Path:
    """A finished run under constraints that its records keep, with passes and rules as well."""
    areas, codes = _areas(rng)
    schema, recodes = _schema(rng)
    content = _spec(rng, schema, recodes)
    records = _records(rng, codes, schema, content["structural_zeros"] or [])
    queries = [name for name in _queries(rng, schema, {}) if "*" not in name]
    method = rng.choice(["gls_topdown", "topdown"])
    passes = rng.sample(queries, rng.randint(1, len(queries))) if rng.random() < 0.4 else []
    content["estimate"] = {"method": method, "passes": passes}
    if method == "gls_topdown":
        content["output"]["measurements"] = "complete"
    content["output"]["microdata"] = True
    if rng.random() < 0.5:
        first = schema["a"]
        content["edit_rules"] = [f"a = {first[-1]} requires a in [{first[1]}, {first[-2]}]"]
    content["constraints"] = [
        _constraint(rng, folder, number, areas, records, rng.choice(queries))
        for number in range(rng.randint(0, 3))
    ] or None
    spec = trellis.Spec.parse({k: v for k, v in content.items() if v is not None}, folder)
    trellis.run(spec, folder / "run", data=records, hierarchy=areas)
    return folder / "run"


def _constraint(
    rng: random.Random, folder: Path, number: int, areas: pa.Table, records: pa.Table, query: str
) -> dict[str, Any]:
    """What the records show, loosened here and there, of a query on a level, or of groups there."""
    level = rng.choice(LEVELS)
    unit_of = _units(areas, level, grouped=level != "nation" and rng.random() < 0.3)
    code_of = dict(zip(areas["town"].to_pylist(), areas[level].to_pylist(), strict=True))
    names = [] if query == "total" else [query]
    answers: dict[tuple[str, ...], int] = {}
    for row in records.to_pylist():
        key = unit_of[code_of[row["town"]]], *(row[name] for name in names)
        answers[key] = answers.get(key, 0) + row["people"]
    sense = rng.choice(["equal", "at_most", "at_least"])
    side = {"equal": 0, "at_most": 1, "at_least": -1}[sense]
    bounds = {
        key: max(0, answer + side * rng.choice([0, 1, 9]))
        for place, (key, answer) in enumerate(answers.items())
        if place == 0 or rng.random() < 0.6
    }
    rows = [
        (code, *labels, bound, unit)
        for (unit, *labels), bound in bounds.items()
        for code, own in unit_of.items()
        if own == unit
    ]
    names = ["area", *names, "bound", "unit"]
    columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    pq.write_table(pa.table(columns), folder / f"bounds{number}.parquet")
    return {
        "name": f"bound {number}",
        "source": f"bounds{number}.parquet",
        "level": level,
        "area": "area",
        "query": query,
        sense: "bound",
        "binds": rng.choice(["records", "output"]),
    } | ({} if all(unit == code for code, unit in unit_of.items()) else {"group": "unit"})


def _units(areas: pa.Table, level: str, *, grouped: bool) -> dict[str, str]:
    """Of each area of a level: itself, or half of its siblings."""
    above = LEVELS[max(0, LEVELS.index(level) - 1)]
    pairs = sorted(set(zip(areas[level].to_pylist(), areas[above].to_pylist(), strict=True)))
    if not grouped:
        return {code: code for code, _ in pairs}
    return {code: f"{parent} half {place % 2}" for place, (code, parent) in enumerate(pairs)}
