"""The reading guide of a release of histograms, made again."""

from __future__ import annotations

from math import prod
from typing import Any

from trellis.verify.documents import guide_parts as parts
from trellis.verify.documents.markdown import code, plain
from trellis.verify.files.run_files import RunFiles
from trellis.verify.files.safe_files import load_json
from trellis.wording import guides as words

Plan = dict[str, Any]


def histogram_guide(run: RunFiles) -> str:
    plan = run.plan
    return words.HISTOGRAMS.format(
        release=plain(plan["release"]),
        files=_files(plan),
        microdata=words.MICRODATA if plan["histogram"]["microdata"] else "",
        factors=_factors(plan),
        errors=parts.errors(run),
        fit=_fit(run),
        rules=_rules(run),
        bounds=_bounds(run),
        audit=_audit(run),
        codes=_codes(plan),
        protected=parts.protected(run),
    )


def factors_of(plan: Plan, query: str) -> list[str]:
    """The attributes and recodes that a query keeps."""
    return {"total": [], "detailed": list(plan["schema"])}.get(query, query.split(" * "))


def width(plan: Plan, query: str) -> int:
    """The cells of a query."""
    labels = [
        plan["schema"].get(name) or plan["recodes"][name]["groups"]
        for name in factors_of(plan, query)
    ]
    return prod(map(len, labels))


def _files(plan: Plan) -> str:
    rows = [words.TABLES_HEAD]
    for level in plan["levels"]:
        name = level["level"]
        queries = [query for of, query in plan["histogram"]["tables"] if of == name]
        rows += [
            words.TABLE.format(
                level=plain(name),
                areas=level["areas"],
                file=code(f"{name}/{query.replace(' * ', ',')}.parquet"),
                cells=width(plan, query),
            )
            for query in queries
        ]
        if not queries:
            rows.append(words.NO_TABLE.format(level=plain(name), areas=level["areas"]))
    return "\n".join(rows)


def described_factors(plan: Plan) -> dict[str, str]:
    """Attributes with their categories, and recodes with their groups."""
    described = {name: _listed(categories) for name, categories in plan["schema"].items()}
    for name, recode in plan.get("recodes", {}).items():
        groups = "; ".join(
            words.GROUP.format(group=group, members=_listed(members))
            for group, members in recode["groups"].items()
        )
        described[name] = words.RECODE.format(attribute=recode["attribute"], groups=groups)
    return described


def _listed(categories: list[str]) -> str:
    if len(categories) > words.MOST_NAMED:
        return words.RANGE.format(number=len(categories), first=categories[0], last=categories[-1])
    return ", ".join(categories)


def _factors(plan: Plan) -> str:
    return "\n".join(
        words.FACTOR.format(name=code(name), text=plain(text))
        for name, text in described_factors(plan).items()
    )


def _codes(plan: Plan) -> str:
    if not plan["histogram"]["tables"]:
        return ""
    level, query = plan["histogram"]["tables"][0]
    file = f"{level}/{query.replace(' * ', ',')}.csv"
    columns = ["geocode", *factors_of(plan, query)]
    return words.HISTOGRAM_CODES.format(codes=parts.codes(file, columns))


def _fit(run: RunFiles) -> str:
    """What is said where a solver stopped early."""
    if not run.is_whole:
        return ""
    distance = load_json(run.path, "estimates/fit.json")["distance"]
    if distance <= words.USUAL_FIT:
        return ""
    return words.FIT.format(
        distance=distance,
        usual=words.USUAL_FIT,
        errors=words.FIT_ERRORS if run.has_centres else "",
    )


def _rules(run: RunFiles) -> str:
    zeros = run.plan["histogram"]["structural_zeros"]
    if not run.is_whole:
        return words.NO_RULES
    return words.ZEROS.format(rules=parts.lines(map(code, zeros))) if zeros else ""


def stated_bounds(run: RunFiles) -> list[str]:
    """One sentence for each constraint, in the order of its rows; real estimates keep none."""
    if not run.is_whole or "constraints.parquet" not in run.sizes:
        return []
    table = run.table("constraints.parquet", ["label", "level", "query", "sense"])
    grouped: set[str] = set()
    if "constraint_groups.parquet" in run.sizes:
        labels = run.table("constraint_groups.parquet", ["label"])["label"]
        grouped = set(labels.unique().to_pylist())
    distinct = table.group_by(table.column_names, use_threads=False).aggregate([]).to_pylist()
    first = {row["label"]: row for row in reversed(distinct)}
    return [
        words.BOUND.format(
            query=row["query"],
            level=row["level"],
            grouped=words.GROUPED if row["label"] in grouped else "",
            sense=words.SENSES[row["sense"]],
            label=row["label"],
        )
        for row in distinct
        if first[row["label"]] is row
    ]


def _bounds(run: RunFiles) -> str:
    bounds = stated_bounds(run)
    return words.BOUNDS.format(bounds=parts.lines(map(plain, bounds))) if bounds else ""


def audited_rules(run: RunFiles) -> list[dict[str, Any]]:
    """What edit_rules.json says; another check counts the areas again."""
    there = bool(run.plan["histogram"]["edit_rules"])
    return load_json(run.path, "release/edit_rules.json") if there else []


def _audit(run: RunFiles) -> str:
    rows = [
        words.AUDITED.format(
            rule=code(line["rule"]),
            level=plain(line["level"]),
            applies_to=line["applies_to"],
            broken_in=line["broken_in"],
        )
        for line in audited_rules(run)
    ]
    enforced = run.plan["histogram"]["enforce_edit_rules"]
    about = words.ENFORCED if enforced else words.NOT_ENFORCED
    return words.AUDIT.format(about=about, rows="\n".join(rows)) if rows else ""
