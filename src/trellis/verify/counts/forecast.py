"""The standard errors that plan.json foresees: they follow from noise and tree alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from trellis.verify.counts.area_errors import entity_variances
from trellis.verify.counts.conventional import conventional_tree
from trellis.verify.counts.distances import distances
from trellis.verify.counts.families import Families
from trellis.verify.counts.linear import final_variances
from trellis.verify.counts.measured_tree import MeasuredTree, plain_tree
from trellis.verify.counts.recomputed import entity_places, is_too_old
from trellis.verify.files.run_files import RunFiles, ancestors
from trellis.verify.plan.forecast import same_lines

MOST_LEAVES = 1 << 20
"""With more leaves, effects of a spine are not computed again."""


def forecast(run: RunFiles) -> Iterator[str]:
    """The errors that the plan foresees follow from its noise and its tree."""
    if is_too_old(run):
        return
    stated, effects = run.plan["expected_standard_errors"], run.plan.get("effects")
    if not run.has_centres:
        if stated is not None or effects is not None:
            yield "plan.json foresees errors, and its method has none"
        return
    tree = plain_tree(run)
    special = "spine" in run.plan or "areas" in run.plan
    if special != (effects is not None):
        yield "plan.json foresees effects without areas, or none with them"
    found = list(_level_errors(run, tree))
    if not same_lines(stated, [_line(run, index, e) for index, e in enumerate(found)]):
        yield "plan.json foresees other standard errors than its noise gives"
    if special and not _holds_effects(run, tree, found, effects or []):
        yield "plan.json states other effects of areas and spine than its noise and tree have"


def _level_errors(run: RunFiles, tree: MeasuredTree) -> Iterator[np.ndarray]:
    """Of every node of every published level."""
    if "spine" not in run.plan:
        # A count by size is the difference of two cumulative ones, except at the ends.
        factor = 2 if run.has_sizes and run.plan["method"].startswith("cumulative") else 1
        yield from (np.sqrt(factor * variance) for variance in final_variances(tree))
        return
    for index in range(len(run.levels)):
        yield _errors(run, tree, ancestors(run.levels, len(run.levels) - 1, index))


def _errors(run: RunFiles, tree: MeasuredTree, member: np.ndarray) -> np.ndarray:
    of = member if "spine" not in run.plan else member[run.spine_leaves]
    return np.sqrt(entity_variances(tree, of, np.arange(int(member.max()) + 1))[0])


def _line(run: RunFiles, index: int, errors: np.ndarray) -> dict[str, Any]:
    level = run.levels[index]
    shown = errors[level.shown]
    least, median, most = (float(f(shown)) for f in (np.min, np.median, np.max))
    return {"level": level.name, "areas": shown.size, "least": least, "median": median,
            "most": most}  # fmt: skip


def _holds_effects(
    run: RunFiles, tree: MeasuredTree, levels: Sequence[np.ndarray], stated: list[dict[str, Any]]
) -> bool:
    """Means over levels and categories, on the spine and on the tree as published."""
    if len(run.levels[-1]) > MOST_LEAVES:
        run.notes.append("effects of areas and spine were not computed again: too many leaves")
        return True
    names = [level.name for level in run.levels]
    planned = [area["name"] for area in run.plan.get("areas", ())]
    if [effect["name"] for effect in stated] != names + planned:
        return False
    before = conventional_tree(run) if "spine" in run.plan else tree
    if before is None:
        run.notes.append("errors without the spine were not computed again: shares were searched")
    last, published = len(run.levels) - 1, Families.of(run.levels)
    expected = []
    for index, name in enumerate(names + planned):
        is_level = index <= last
        if is_level:
            member = ancestors(run.levels, last, index)
            errors = levels[index]
        else:
            member = entity_places(run.table("areas.parquet", [name])[name])
            errors = _errors(run, tree, member)
        after = member if "spine" not in run.plan else member[run.spine_leaves]
        size = int(member.max()) + 1
        expected.append({
            "name": name,
            "is_level": is_level,
            "entities": size,
            "distance_before": float(np.mean(distances(published, member))),
            "distance_after": float(np.mean(distances(tree.families, after))),
            "error_before": stated[index]["error_before"] if before is None else float(
                np.mean(np.sqrt(entity_variances(before, member, np.arange(size))[0]))),
            "error_after": float(np.mean(errors)),
        })  # fmt: skip
    return same_lines(stated, expected)
