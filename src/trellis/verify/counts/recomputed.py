"""Promises about real-valued estimates: they follow from the measurements, and so do their errors.

Nothing is estimated again here. Centres are shown to be optimal (see `linear`), standard errors are
computed on a path of their own.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trellis.verify.counts.area_errors import draw, entity_variances
from trellis.verify.counts.areas import entity_places
from trellis.verify.counts.facts import Ends, entity_facts, level_facts
from trellis.verify.counts.families import sums_up
from trellis.verify.counts.linear import final_variances, level_fits, subtree_variances
from trellis.verify.counts.measured_tree import MeasuredTree, exact_totals, measured_tree
from trellis.verify.files.run_files import RunFiles, ancestors
from trellis.verify.files.safe_files import Unreadable

FIRST_FORMAT = 3
"""Of plans whose estimates are computed again; earlier versions assumed other facts."""


def is_too_old(run: RunFiles) -> bool:
    """Whether nothing is computed again; if so, it is noted."""
    if run.plan.get("format", 1) >= FIRST_FORMAT:
        return False
    run.leave_out(f"Not computed again: the run has a format before {FIRST_FORMAT}.")
    return True


def linear_estimates(run: RunFiles) -> Iterator[str]:
    """Estimates are the best linear unbiased ones of the measurements."""
    if is_too_old(run):
        return
    if not run.has_centres:
        yield from _no_margins(run)
        return
    tree = measured_tree(run)
    centres = on_tree(run, tree, "centre")
    if tree.width < run.n_cells:  # the last cumulative count is public
        yield from _ends(run, centres)
        centres = [np.cumsum(centre, axis=1)[:, :-1] for centre in centres]
    for fit in level_fits(tree, centres):
        if not fit.is_optimal:
            yield f"estimates of level {tree.names[fit.index]} are not those of the measurements"
    if not run.is_whole:
        yield from _published_as_they_are(run)


def _ends(run: RunFiles, centres: list[np.ndarray]) -> Iterator[str]:
    """Estimates of groups by size add up to the public numbers of groups."""
    exact = exact_totals(run)
    for level, centre in zip(run.levels, centres, strict=True):
        if not np.allclose(centre.sum(axis=1), exact[level.name][:, 0], rtol=1e-11, atol=1e-8):
            yield f"estimates of level {level.name} do not add up to the numbers of groups"


def standard_errors(run: RunFiles) -> Iterator[str]:
    """Standard errors follow from the noise of the measurements."""
    if is_too_old(run) or not run.has_centres:
        return
    tree, facts = measured_tree(run), level_facts(run)
    found = _on_spine(run, tree) if "spine" in run.plan else _on_levels(tree)
    for level, variances, ends in zip(run.levels, found, facts, strict=True):
        yield from _compared(run, f"estimates/level={level.name}.parquet", variances, ends)
    for planned in run.plan.get("areas", ()):
        entity = run.table("areas.parquet", [planned["name"]])[planned["name"]]
        member = entity_places(entity)
        found = _of_entities(run, tree, member, f"areas of {planned['name']}")
        name = f"estimates/areas/{planned['name']}.parquet"
        yield from _compared(run, name, found, entity_facts(run, entity))


def on_tree(run: RunFiles, tree: MeasuredTree, column: str) -> list[np.ndarray]:
    """A column of the estimates, nodes x cells, for every level of the tree that was measured."""
    if "spine" not in run.plan:
        return [estimated(run, level.name, column) for level in run.levels]
    leaves = estimated(run, run.levels[-1].name, column)
    return sums_up(tree.families, leaves[run.spine_leaves])


def estimated(run: RunFiles, level: str, column: str) -> np.ndarray:
    """A column of the estimates of a published level, nodes x cells."""
    values = run.table(f"estimates/level={level}.parquet", [column])[column].to_numpy()
    if not np.isfinite(values).all():
        raise Unreadable(f"estimates/level={level}.parquet has an empty {column}")
    return values.reshape(-1, run.n_cells)


Recomputed = tuple[np.ndarray, np.ndarray, float | np.ndarray]
"""Which areas, their variances, and the size of the numbers that these were computed from."""


def _on_levels(tree: MeasuredTree) -> Iterator[Recomputed]:
    for variance, inside in zip(final_variances(tree), subtree_variances(tree), strict=True):
        size = inside[np.isfinite(inside)].max(initial=0.0)
        yield np.arange(variance.size), variance, size


def _on_spine(run: RunFiles, tree: MeasuredTree) -> Iterator[Recomputed]:
    """Published areas need not be nodes of the spine; its root and its leaves are."""
    first, *_, (nodes, of_leaves, size) = _on_levels(tree)
    yield first
    for index, level in list(enumerate(run.levels))[1:-1]:
        member = ancestors(run.levels, len(run.levels) - 1, index)
        yield _of_entities(run, tree, member, f"areas of level {level.name}")
    yield nodes, of_leaves[np.argsort(run.spine_leaves)], size


def _of_entities(run: RunFiles, tree: MeasuredTree, member: np.ndarray, what: str) -> Recomputed:
    """Variances of sums of published leaves; a sample, if there are many."""
    chosen = draw(run, member, what)
    of = member if "spine" not in run.plan else member[run.spine_leaves]
    return chosen, *entity_variances(tree, of, chosen)


def _compared(run: RunFiles, name: str, found: Recomputed, facts: Ends) -> Iterator[str]:
    areas, variance, size = found
    table = run.table(name, ["count", "std_error"])
    counts, stated = (c.to_numpy().reshape(-1, run.n_cells)[areas] for c in table.columns)
    least, most = (np.broadcast_to(end, (len(end), run.n_cells))[areas] for end in facts)
    is_known = (least == most) & (counts == least)
    expected = np.where(is_known, 0.0, column_variances(run, variance))
    slack = 1e-12 * np.broadcast_to(size, variance.shape)[:, np.newaxis]
    if not (np.abs(stated**2 - expected) <= 1e-6 * expected + slack).all():
        yield f"{name} has standard errors that the noise of the measurements does not give"


def column_variances(run: RunFiles, variance: np.ndarray) -> np.ndarray:
    """Areas x cells. An inner size is the difference of two measured cumulative counts."""
    terms = np.ones(run.n_cells)
    if run.has_sizes and run.plan["method"].startswith("cumulative"):
        terms[1:-1] = 2
    return variance[:, np.newaxis] * terms


def _no_margins(run: RunFiles) -> Iterator[str]:
    """A method without variances states none."""
    names = [f"level={level.name}" for level in run.levels]
    names += [f"areas/{planned['name']}" for planned in run.plan.get("areas", ())]
    for name in names:
        if run.schema(f"estimates/{name}.parquet").names != ["count"]:
            yield f"estimates/{name}.parquet has margins of error, which the method does not give"
    for name in [level.name for level in run.levels] + [n for n in names if n[:6] == "areas/"]:
        table = run.table(f"release/{name}.parquet", ["std_error", "lower", "upper"])
        if any(column.null_count < len(table) for column in table.columns):
            yield f"release/{name}.parquet has margins of error, which the method does not give"


def _published_as_they_are(run: RunFiles) -> Iterator[str]:
    for level in run.levels:
        count, centre = (estimated(run, level.name, column) for column in ("count", "centre"))
        if not np.array_equal(count, centre):
            yield f"counts of level {level.name} are not the estimates"
