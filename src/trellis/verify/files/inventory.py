"""What a run folder may hold: files, columns, kinds of values and rows, from its plan alone.

`docs/run-folder.md` says it in words. No code that writes a run folder is used here. `trellis
verify` reports what is not in the inventory; commands that read a folder refuse it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil, prod
from pathlib import Path
from typing import Any

from trellis.errors import RunFolderError
from trellis.verify.files.parquet_forms import FLAG, NUMBER, REAL, TEXT, WHOLE, Form, misfits
from trellis.verify.files.safe_files import Unreadable, read_json, read_yaml, walk

MOST_CELLS, MOST_LISTED = 1 << 26, 1 << 22
"""Of a schema, for histograms and for the other kinds: arrays or lists of this size are made."""

MOST_BOUNDS = 1 << 28
"""Rows of files whose size the plan does not tell."""

_ROWS_AT_ONCE, _GROUPS_PER_PART = 1 << 20, 16
_STATISTICS = 9

_TREE = {"level": WHOLE, "code": TEXT, "parent": WHOLE, "passes_through": FLAG}
_MARGINS = {"count": NUMBER, "std_error": REAL, "lower": WHOLE, "upper": WHOLE}
_OCCUPIED = {"area": WHOLE, "cell": WHOLE, "count": WHOLE}
_FILES = (
    "spec.yaml", "run.json", "plan.json", "privacy.json", "deployment.yaml", "manifest.json",
    "withdrawn.json",
    "report/index.html", "release/README.md", "release/datapackage.json",
)  # fmt: skip


@dataclass(slots=True)
class Inventory:
    """Tables by name, and the names of other files."""

    tables: dict[str, Form] = field(default_factory=dict)
    files: set[str] = field(default_factory=lambda: set(_FILES))

    def add(self, name: str, columns: Mapping[str, str], rows: int) -> None:
        """A table of just so many rows."""
        self.tables[f"{name}.parquet"] = Form(columns, rows, rows)

    def add_up_to(self, name: str, columns: Mapping[str, str], most: int) -> None:
        self.tables[f"{name}.parquet"] = Form(columns, most)

    def publish(self, name: str, columns: Mapping[str, str], most: int, least: int) -> None:
        """A table that may also be there as CSV."""
        self.tables[f"{name}.parquet"] = Form(columns, most, least)
        self.files.add(f"{name}.csv")


def inventory(plan: Mapping[str, Any]) -> Inventory:
    """From the content of plan.json; a plan of another form raises what its keys raise."""
    found = Inventory()
    names = tuple(level["level"] for level in plan["levels"])
    n_nodes = sum(level["nodes"] for level in plan["levels"])
    if _n_cells(plan) > (most := MOST_CELLS if "histogram" in plan else MOST_LISTED):
        raise Unreadable(f"plan.json has more than {most:,} cells for each area")
    if plan["kind"] == "flows":
        _flows(found, plan, n_nodes)
    else:
        found.tables["hierarchy.parquet"] = Form(_TREE, n_nodes, n_nodes, names)
        _histograms(found, plan) if "histogram" in plan else _counts(found, plan)
    for name in (*found.tables, *found.files):
        if any(part in ("", ".", "..") for part in name.split("/")) or "\0" in name:
            raise Unreadable("plan.json has a name that cannot be that of a file")
    return found


def _n_cells(plan: Mapping[str, Any]) -> int:
    return prod(len(categories) for categories in plan["schema"].values())


def _counts(found: Inventory, plan: Mapping[str, Any]) -> None:
    """Counts and group sizes: every area with every cell."""
    cells, n_cells = dict.fromkeys(plan["schema"], TEXT), _n_cells(plan)
    area = {"geocode": TEXT, "level": TEXT}
    estimate = {"count": NUMBER, "centre": REAL, "std_error": REAL}
    for level in plan["levels"]:
        name, nodes, areas = level["level"], level["nodes"], level["areas"]
        found.add(f"estimates/level={name}", estimate, nodes * n_cells)
        rows = areas * n_cells
        found.publish(f"release/{name}", {**area, **cells, **_MARGINS}, rows, rows)
        if plan["kind"] == "group_sizes":
            ends = {"statistic": TEXT, "value": REAL, "lower": REAL, "upper": REAL}
            rows = areas * _STATISTICS
            found.publish(f"release/statistics/{name}", {**area, **ends}, rows, rows)
    for category in plan.get("areas", ()):
        name, rows = category["name"], category["entities"] * n_cells
        found.add(f"estimates/areas/{name}", estimate, rows)
        found.publish(f"release/areas/{name}", {**area, **cells, **_MARGINS}, rows, rows)
    if plan.get("areas"):
        entities = {category["name"]: TEXT for category in plan["areas"]}
        found.add("areas", {"geocode": TEXT, **entities}, plan["levels"][-1]["nodes"])
    _measured_counts(found, plan, cells)


def _measured_counts(found: Inventory, plan: Mapping[str, Any], cells: Mapping[str, str]) -> None:
    spine = plan.get("spine")
    levels = {level["level"]: level for level in (spine or plan)["levels"]}
    if spine is not None:
        n_nodes = sum(level["nodes"] for level in spine["levels"])
        columns = {**_TREE, "class": WHOLE, "leaf": WHOLE}
        found.tables["spine.parquet"] = Form(columns, n_nodes, n_nodes, tuple(levels))
    answer, sizes = {"value": WHOLE, "variance": REAL}, plan["kind"] == "group_sizes"
    for q in plan["queries"]:
        level, of = levels.get(q["level"]), ""
        if level is None:  # exact totals of a published level
            level = next(x for x in plan["levels"] if x["level"] == q["level"])
        nodes = level["nodes"]
        if "class" in q:
            nodes, of = level["classes"][q["class"]]["nodes"], f"class={q['class']}/"
        total = q["query"] == "total"
        width = 1 if total else _n_cells(plan) - (q["query"] == "cumulative" and sizes)
        columns = {"geocode": TEXT, **({} if total else cells), **answer}
        found.add(f"measurements/level={q['level']}/{of}query={q['query']}", columns, nodes * width)


def _flows(found: Inventory, plan: Mapping[str, Any], n_nodes: int) -> None:
    """Pairs that are not zero; no side has more areas than there are pairs."""
    flow, cells = plan["flow"], dict.fromkeys(plan["flow"]["attributes"], TEXT)
    for name, side in (("hierarchy", "origin"), ("destinations", "destination")):
        found.tables[f"{name}.parquet"] = Form(_TREE, n_nodes, 1, tuple(flow[f"{side}_levels"]))
    last = plan["levels"][-1]["level"]
    for level, q in zip(plan["levels"], plan["queries"], strict=True):
        name, most = level["level"], level["nodes"]
        has_cells = bool(cells) and name == last
        node = {"origin": WHOLE, "destination": WHOLE, **({"cell": WHOLE} if has_cells else {})}
        measured = {**node, "value": WHOLE, "variance": REAL, "expanded": FLAG}
        found.add_up_to(f"measurements/level={name}/query={q['query']}", measured, most)
        estimate = {**node, "count": WHOLE, "centre": REAL, "std_error": REAL}
        found.add_up_to(f"estimates/level={name}", estimate, most)
        pair = {"origin": TEXT, "destination": TEXT, **(cells if has_cells else {})}
        found.publish(f"release/{name}", {**pair, **_MARGINS}, most, 0)
    matrix = {"origin": TEXT, "dest": TEXT, "count": WHOLE}
    found.add_up_to("release/od_matrix", matrix, plan["levels"][-1]["nodes"])


def _histograms(found: Inventory, plan: Mapping[str, Any]) -> None:
    histogram, n_cells = plan["histogram"], _n_cells(plan)
    levels = {level["level"]: level for level in plan["levels"]}
    for q in plan["queries"]:
        _measured_histogram(found, plan, q, levels[q["level"]]["nodes"])
    for name, level in levels.items():
        found.add_up_to(f"estimates/level={name}", _OCCUPIED, level["nodes"] * n_cells)
        if histogram["measurements"] == "used":
            found.add_up_to(
                f"measurements/_counts/level={name}", _OCCUPIED, level["nodes"] * n_cells
            )
    for name, query in histogram["tables"]:
        file, factors = query.replace(" * ", ","), _factors(plan, query)
        width = prod(_n_labels(plan, factor) for factor in factors)
        place = f"estimates/margins/level={name}/query={file}"
        rows = levels[name]["nodes"] * width
        found.add(place, {"centre": REAL, "class": WHOLE}, rows)
        found.add_up_to(f"{place},errors", {"std_error": REAL}, rows)
        area, rows = {"geocode": TEXT, "level": TEXT}, levels[name]["areas"] * width
        columns = {**area, **dict.fromkeys(factors, TEXT), **_MARGINS}
        found.publish(f"release/{name}/{file}", columns, rows, rows)
    found.files.add("estimates/fit.json")
    if histogram["edit_rules"]:
        found.files.add("release/edit_rules.json")
    if histogram["microdata"]:
        columns = dict.fromkeys((*levels, *plan["schema"]), TEXT)
        form = Form(columns, MOST_BOUNDS * _GROUPS_PER_PART, in_pieces=True)
        found.tables["release/microdata.parquet"] = form
    bound = {"label": TEXT, "level": TEXT, "query": TEXT, "sense": TEXT, "binds": TEXT,
             "unit": WHOLE, "cell": WHOLE, "bound": WHOLE}  # fmt: skip
    found.add_up_to("constraints", bound, MOST_BOUNDS)
    member = {"label": TEXT, "area": WHOLE, "unit": WHOLE}
    found.add_up_to("constraint_groups", member, MOST_BOUNDS)


def _measured_histogram(
    found: Inventory, plan: Mapping[str, Any], q: Mapping[str, Any], nodes: int
) -> None:
    factors = _factors(plan, q["query"])
    width = prod(_n_labels(plan, factor) for factor in factors)
    exact = ",exact" if q["noise"] is None else ""
    place = f"measurements/level={q['level']}/query={q['query'].replace(' * ', ',')}{exact}"
    columns = {"geocode": TEXT, **dict.fromkeys(factors, TEXT), "value": WHOLE, "variance": REAL}
    most = max(1, _ROWS_AT_ONCE // width) * width * _GROUPS_PER_PART
    for part in range(max(1, ceil(nodes * width / most))):
        found.tables[f"{place}/part-{part}.parquet"] = Form(columns, most, in_pieces=True)


def _factors(plan: Mapping[str, Any], query: str) -> list[str]:
    return {"total": [], "detailed": list(plan["schema"])}.get(query, query.split(" * "))


def _n_labels(plan: Mapping[str, Any], factor: str) -> int:
    known = plan["schema"].get(factor)
    return len(known if known is not None else plan["recodes"][factor]["groups"])


# -- folders --------------------------------------------------------------------------------------


def strange(
    folder: Path, sizes: Mapping[str, int], plan: Mapping[str, Any]
) -> dict[str, list[str]]:
    """What is wrong with files that the inventory does not have, or has in another form."""
    try:
        known = inventory(plan)
    except (AttributeError, IndexError, KeyError, StopIteration, TypeError, ValueError):
        raise Unreadable("plan.json does not have the promised form") from None
    found = {}
    for name, size in sizes.items():
        if (form := known.tables.get(name)) is not None:
            found[name] = list(misfits(folder, name, size, form))
        elif name not in known.files:
            found[name] = [f"{name} is not a file of a run of this kind"]
    return {name: problems for name, problems in found.items() if problems}


def refuse_strange(folder: Path) -> None:
    """One line for the first thing in a run folder that no run writes; leftovers are passed over.

    For commands that read a folder which somebody else may have made.
    """
    try:
        sizes = {name: size for name, size in walk(folder) if not _is_leftover(name)}
        read_yaml(folder, "spec.yaml")
        found = strange(folder, sizes, read_json(folder, "plan.json"))
        problem = next((problems[0] for problems in found.values()), None)
    except Unreadable as error:
        problem = str(error)
    if problem is not None:
        raise RunFolderError(f"{folder}: {problem}. Nothing was done.")


def refuse_strange_plan(path: Path) -> None:
    """The same for a plan by itself."""
    try:
        read_json(path.parent, path.name)
    except Unreadable as error:
        raise RunFolderError(f"{path.parent}: {error}. Name a plan.json of a run.") from None


def _is_leftover(name: str) -> bool:
    """Of a run that broke off."""
    first = name.partition("/")[0]
    return first.startswith(".") and first.endswith(".partial")
