"""The promises of a release of histograms. Each check yields what is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa

from trellis.verify.counts.tables import margins, stated_confidence
from trellis.verify.files.histogram_files import (
    centres,
    kept,
    marginal,
    names_in_order,
    row_groups,
    standard_errors,
    tables,
)
from trellis.verify.files.run_files import Level, RunFiles, ancestors
from trellis.verify.files.safe_files import Unreadable, load_json
from trellis.verify.histograms.facts import HistogramFacts
from trellis.verify.histograms.rules import edit_rule_cells, rule_cells

_AUDITED = ["rule", "level", "applies_to", "broken_in"]


def histogram_columns(run: RunFiles) -> Iterator[str]:
    """Each table lists the areas of its level and the cells of its query, in order."""
    for level, name, stem in tables(run):
        query, table = marginal(run.plan, name), run.table(f"{stem}.parquet")
        names = ["geocode", "level", *query.names, "count", "std_error", "lower", "upper"]
        n_areas = level.shown.size
        if table.column_names != names or table.num_rows != n_areas * query.width:
            yield f"{stem}.parquet has other columns or rows than promised"
            continue
        codes = level.geocodes.take(pa.array(level.shown)).to_pylist()
        if not names_in_order(table["geocode"], codes, np.repeat(np.arange(n_areas), query.width)):
            yield f"{stem}.parquet does not list the areas of its level in order"
        if not names_in_order(table["level"], [level.name], np.zeros(table.num_rows, np.int64)):
            yield f"{stem}.parquet names another level"
        for factor, labels, position in zip(
            query.names, query.labels, query.positions(), strict=True
        ):
            if not names_in_order(table[factor], labels, np.tile(position, n_areas)):
                yield f"{stem}.parquet does not name the cells in order"


def histogram_counts(run: RunFiles) -> Iterator[str]:
    """Whole, non-negative counts that add up over areas and over cells, in every table."""
    n_cells = run.n_cells
    for above, below in pairwise(run.levels):
        upper, lower = kept(run, above), kept(run, below)
        key = below.parent[lower.area].astype(np.int64) * n_cells + lower.cell
        order = np.argsort(key, kind="stable")
        places, first = np.unique(key[order], return_index=True)
        sums = np.add.reduceat(lower.count[order], first) if key.size else lower.count
        if not (np.array_equal(places, upper.key(n_cells)) and np.array_equal(sums, upper.count)):
            yield f"counts of level {below.name} do not add up to level {above.name}"
    for level in run.levels:
        counts = kept(run, level)
        keys = counts.key(n_cells)
        if (counts.count <= 0).any() or (np.diff(keys) <= 0).any():
            yield f"estimates of level {level.name} are not positive, or name a cell twice"
    for level, name, stem in tables(run):
        query, column = marginal(run.plan, name), run.table(f"{stem}.parquet")["count"]
        if column.null_count or not pa.types.is_integer(column.type):
            yield f"{stem}.parquet has counts that are not whole numbers"
            continue
        expected = kept(run, level).marginal(query, len(level))[level.shown]
        if not np.array_equal(column.to_numpy(), expected.ravel()):
            yield f"{stem}.parquet differs from the estimates"


def histogram_margins(run: RunFiles) -> Iterator[str]:
    """Margins of error are complete or absent, of the stated confidence, and contain the counts."""
    facts = HistogramFacts(run) if run.has_centres else None
    index = {level.name: i for i, level in enumerate(run.levels)}
    for level, name, stem in tables(run):
        table = run.table(f"{stem}.parquet", ["count", "std_error", "lower", "upper"])
        yield from margins(run, f"{stem}.parquet", table)
        if table["std_error"].null_count or facts is None:
            continue
        query = marginal(run.plan, name)
        errors = standard_errors(run, level, query, name)[level.shown]
        if not np.array_equal(table["std_error"].to_numpy(), errors.ravel()):
            yield f"{stem}.parquet differs from the estimates in std_error"
        centre = centres(run, level, query, name)[level.shown].ravel()
        least, most = (end[level.shown].ravel() for end in facts.allowed(index[level.name], query))
        yield from stated_confidence(run, f"{stem}.parquet", table, centre, (least, most))


def exact_totals(run: RunFiles) -> Iterator[str]:
    """What was to be published exactly is published exactly."""
    total = marginal(run.plan, "total")
    exact = [q for q in run.plan["queries"] if q["noise"] is None]
    levels = {level.name: level for level in run.levels}
    for q in exact:
        level = levels[q["level"]]
        place = f"measurements/level={level.name}/query={q['query']},exact/part-0.parquet"
        promised = np.concatenate([t["value"].to_numpy() for t in row_groups(run, place)])
        if not np.array_equal(kept(run, level).marginal(total, len(level))[:, 0], promised):
            yield f"totals of level {level.name} are not the exact ones"
    if [q["level"] for q in exact] != run.plan["unprotected_totals"]:
        yield "plan.json measures other exact totals than it lists as unprotected"


def structural_zeros(run: RunFiles) -> Iterator[str]:
    """Nobody is counted in a cell that a rule calls impossible."""
    rules = run.plan["histogram"]
    stated = run.spec.get("structural_zeros", [])
    listed, binds = (stated["rules"], stated["binds"]) if isinstance(stated, dict) else (stated, "")
    if rules["structural_zeros"] != listed:
        yield "plan.json and spec.yaml differ in structural_zeros"
    if rules.get("zeros_bind_records", True) != (binds != "output"):
        yield "plan.json and spec.yaml differ in what structural_zeros bind"
    for rule in rules["structural_zeros"]:
        impossible = rule_cells(run.plan, rule)
        for level in run.levels:
            if impossible[kept(run, level).cell].any():
                yield f"level {level.name} counts someone in {rule}"


def constraints(run: RunFiles) -> Iterator[str]:
    """Published counts keep every constraint that was stated."""
    stated = [entry["name"] for entry in run.spec.get("constraints", [])]
    path = run.path / "constraints.parquet"
    if bool(stated) != path.exists():
        yield "constraints.parquet is not both stated and there"
    if not path.exists():
        return
    table = run.table("constraints.parquet")
    labels = np.array(table["label"].to_pylist())
    every = (
        table["binds"].to_pylist() if "binds" in table.column_names else ["records"] * len(table)
    )
    for entry in run.spec.get("constraints", []):
        name, binds = entry["name"], entry.get("binds") or "records"
        own = [label == name or label.startswith(f"{name}: ") for label in labels]
        if not any(own):
            yield f"constraints.parquet has no bounds of {name}"
        elif {b for b, of in zip(every, own, strict=True) if of} != {binds}:
            yield f"constraints.parquet and spec.yaml differ in what {name} binds"
    levels = {level.name: level for level in run.levels}
    for label in dict.fromkeys(labels):
        part = table.filter(pa.array(labels == label))
        level = levels[part["level"][0].as_py()]
        query = marginal(run.plan, part["query"][0].as_py())
        answer = kept(run, level).marginal(query, len(level))
        group_of = _groups(run, str(label))
        if group_of is not None:
            area, group = group_of
            total = np.zeros((int(group.max()) + 1, query.width), dtype=np.int64)
            np.add.at(total, group, answer[area])
            answer = total
        found = answer[part["unit"].to_numpy(), part["cell"].to_numpy()]
        bound, sense = part["bound"].to_numpy(), part["sense"][0].as_py()
        wrong = {"=": found != bound, "<=": found > bound, ">=": found < bound}[sense]
        if wrong.any():
            yield f"constraint {label} is broken in {int(wrong.sum())} places"


def _groups(run: RunFiles, label: str) -> tuple[np.ndarray, np.ndarray] | None:
    """Areas and groups of a constraint on groups of areas."""
    if not (run.path / "constraint_groups.parquet").exists():
        return None
    table = run.table("constraint_groups.parquet")
    part = table.filter(pa.array([text == label for text in table["label"].to_pylist()]))
    return (part["area"].to_numpy(), part["unit"].to_numpy()) if len(part) else None


def edit_rules(run: RunFiles) -> Iterator[str]:
    """The audit of edit rules states what the published counts show; rules are kept as promised."""
    rules = run.plan["histogram"]
    if not rules["edit_rules"]:
        return
    enforced = run.spec.get("estimate", {}).get("edit_rules") != "audit"
    if enforced != rules["enforce_edit_rules"]:
        yield "plan.json and spec.yaml differ in estimate.edit_rules"
    audit = load_json(run.path, "release/edit_rules.json")
    places = [(rule, level.name) for rule in rules["edit_rules"] for level in run.levels]
    if [list(line) for line in audit] != [_AUDITED] * len(places):
        yield "release/edit_rules.json has other lines than an audit has"
    elif [(line["rule"], line["level"]) for line in audit] != places:
        yield "release/edit_rules.json is not about each rule on each level, in order"
    stated = {(line["rule"], line["level"]): line for line in audit}
    broken = [np.zeros(len(level), dtype=bool) for level in run.levels]
    for rule in rules["edit_rules"]:
        sides = edit_rule_cells(run.plan, rule)
        for level, wrong in zip(run.levels, broken, strict=True):
            counts = kept(run, level)
            given, needed = (np.unique(counts.area[side[counts.cell]]) for side in sides)
            breaking = np.setdiff1d(given, needed)
            wrong[breaking] = True
            found = (np.isin(given, level.shown).sum(), np.isin(breaking, level.shown).sum())
            line = stated.get((rule, level.name), {})
            if (line.get("applies_to"), line.get("broken_in")) != found:
                yield f"release/edit_rules.json is wrong about {rule} on level {level.name}"
    if enforced and not _is_bounded(run):
        for (above, wrong_above), (below, wrong) in pairwise(zip(run.levels, broken, strict=True)):
            if (wrong & ~wrong_above[below.parent]).any():
                yield f"an area of {below.name} breaks an edit rule, its area of {above.name} none"


def _is_bounded(run: RunFiles) -> bool:
    """Whether constraints, passes or exact totals below the root may leave no room for rules."""
    exact_below = set(run.plan["unprotected_totals"]) - {run.levels[0].name}
    return bool(run.spec.get("constraints") or run.plan["histogram"]["passes"] or exact_below)


def microdata(run: RunFiles) -> Iterator[str]:
    """The rows of the microdata count to the published estimates of the last level."""
    name = "release/microdata.parquet"
    if not run.plan["histogram"]["microdata"]:
        if (run.path / name).exists():
            yield f"{name} is there and was not planned"
        return
    leaves, n_cells = run.levels[-1], run.n_cells
    last = len(run.levels) - 1
    lineage = [ancestors(run.levels, last, top) for top in range(last + 1)]
    schema = run.plan["schema"]
    counted = []
    for table in row_groups(run, name):
        if table.column_names != [*(level.name for level in run.levels), *schema]:
            yield f"{name} has other columns than promised"
            return
        cell = np.zeros(table.num_rows, dtype=np.int64)
        for attribute, categories in schema.items():
            cell = cell * len(categories) + _positions(table[attribute], categories)
        areas = [_positions(table[level.name], level.codes) for level in run.levels]
        leaf = _leaf(areas, run.levels)
        for level, area, ancestor in zip(run.levels, areas, lineage, strict=True):
            wanted = np.where(level.padding[ancestor[leaf]], -1, ancestor[leaf])
            if not np.array_equal(area, wanted):
                yield f"{name} has a row whose areas do not lie in one another"
                return
        counted.append(np.unique(leaf * n_cells + cell, return_counts=True))
    keys = np.concatenate([key for key, _ in counted]) if counted else np.zeros(0, np.int64)
    numbers = np.concatenate([n for _, n in counted]) if counted else np.zeros(0, np.int64)
    places, inverse = np.unique(keys, return_inverse=True)
    total = np.zeros(places.size, dtype=np.int64)
    np.add.at(total, inverse, numbers)
    expected = kept(run, leaves)
    if not (
        np.array_equal(places, expected.key(n_cells)) and np.array_equal(total, expected.count)
    ):
        yield f"{name} does not count to the published estimates"


def _leaf(areas: list[np.ndarray], levels: list[Level]) -> np.ndarray:
    """The leaf of each row: its last code, looked up among the codes of the last level."""
    leaf = areas[-1].copy()
    codes = {code: i for i, code in enumerate(levels[-1].codes)}
    for level, area in zip(reversed(levels[:-1]), reversed(areas[:-1]), strict=True):
        open_ = leaf < 0
        if not open_.any():
            break
        # A leaf that ended early has its code on every deeper level.
        passed = np.array([codes.get(code, -1) for code in level.codes], dtype=np.int64)
        leaf[open_] = np.where(area[open_] >= 0, passed[area[open_]], -1)
    if (leaf < 0).any():
        raise Unreadable("release/microdata.parquet has a row without an area")
    return leaf


def _positions(column: pa.ChunkedArray, labels: list[str]) -> np.ndarray:
    """The position of each text among `labels`, -1 where it is empty."""
    array = column.combine_chunks()
    if not pa.types.is_dictionary(array.type):
        array = array.dictionary_encode()
    place = {label: i for i, label in enumerate(labels)}
    known = np.array([place[text] for text in array.dictionary.to_pylist()], dtype=np.int64)
    index = array.indices.fill_null(-1).to_numpy()
    return np.where(index < 0, -1, np.append(known, -1)[index])
