"""The promises about the published tables. Each check yields what is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from hashlib import sha256
from json import dumps
from math import log, sqrt
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv as pa_csv

from trellis.verify.facts import Ends, level_facts
from trellis.verify.files.histogram_files import tables as published
from trellis.verify.files.run_files import Level, RunFiles

pc: Any = pyarrow.compute  # made at import, so the type checker does not know its functions

TOLERANCE = 1e-6
"""For real-valued methods only; whole numbers must agree exactly."""

_CSV_BLOCK = 1 << 24
"""Bytes of a CSV file that are read at once."""

WHOLE = 1e-9
"""Counts this near to a whole number are taken for it where an interval must contain them."""


def hierarchy(run: RunFiles) -> Iterator[str]:
    """The tree is the planned one: sizes, unique codes, parents in range, no area left out."""
    above = 1
    for index, (level, planned) in enumerate(zip(run.levels, run.plan["levels"], strict=True)):
        if (len(level), level.shown.size) != (planned["nodes"], planned["areas"]):
            yield f"level {level.name} has another number of areas than planned"
        if not _are_unique(level.geocodes):
            yield f"level {level.name} has a code twice"
        if index and not np.array_equal(np.unique(level.parent), np.arange(above)):
            yield f"level {level.name} has areas without a parent, or leaves one without children"
        above = len(level)
    if run.levels[0].parent.tolist() != [-1]:
        yield "the root has a parent"
    elif _tree_digest(run.levels) != run.plan["hierarchy_sha256"]:
        yield "hierarchy.parquet is not the tree of plan.json"


def columns(run: RunFiles) -> Iterator[str]:
    """Each table lists the areas and cells of its level, in order and completely."""
    names = ["geocode", "level", *run.plan["schema"], "count", "std_error", "lower", "upper"]
    for level in run.levels:
        table, name = run.released(level.name), f"release/{level.name}.parquet"
        if table.column_names != names:
            yield f"{name} has other columns than promised"
            continue
        if not level.lists(table["geocode"], level.shown, len(run.cells)):
            yield f"{name} does not list the areas of its level in order"
        if table["level"].null_count or not pc.all(pc.equal(table["level"], level.name)).as_py():
            yield f"{name} names another level"
        if not run.names_cells(table, run.cells, level.shown.size):
            yield f"{name} does not name the cells in order"


def signs(run: RunFiles) -> Iterator[str]:
    """Counts are there, and whole and non-negative where the method promises it."""
    for level in run.levels:
        name = f"release/{level.name}.parquet"
        column = run.released(level.name, "count")["count"]
        if column.null_count:
            yield f"{name} has empty counts"
        elif run.is_whole and not pa.types.is_integer(column.type):
            yield f"{name} has counts that are not whole numbers"
        elif run.is_whole and (column.to_numpy() < 0).any():
            yield f"{name} has negative counts"


def sums(run: RunFiles) -> Iterator[str]:
    """Counts of areas add up to the count of the area above, in every cell."""
    if not run.adds_up:
        return
    for above, below in zip(run.levels, run.levels[1:], strict=False):
        upper, lower = run.counts(above), run.counts(below)
        total = np.zeros((len(above), len(run.cells)), dtype=lower.dtype)
        parents = below.parent[below.shown]
        np.add.at(total, parents, lower)
        # An area whose only child is padding has nothing below it to compare with.
        has_children = np.isin(above.shown, parents)
        gap = np.abs(total[above.shown] - upper)[has_children]
        if gap.size and gap.max() > (0 if run.is_whole else TOLERANCE):
            yield f"counts of level {below.name} do not add up to level {above.name}"


def intervals(run: RunFiles) -> Iterator[str]:
    """Margins of error are complete or absent, of the stated confidence, and contain the counts."""
    for level, ends in zip(run.levels, level_facts(run), strict=True):
        name = f"release/{level.name}.parquet"
        table = run.released(level.name, "count", "std_error", "lower", "upper")
        yield from margins(run, name, table)
        if not table["std_error"].null_count:
            estimated = run.table(f"estimates/level={level.name}.parquet", ["centre"])["centre"]
            centre = estimated.to_numpy()[_rows(run, level)]
            allowed = _by_cell((ends[0][level.shown], ends[1][level.shown]), centre.size)
            yield from stated_confidence(run, name, table, centre, allowed)


def margins(run: RunFiles, name: str, table: pa.Table) -> Iterator[str]:
    """What is wrong with the margins of error of one table."""
    columns = [table[key] for key in ("std_error", "lower", "upper")]
    empty = {column.null_count for column in columns}
    if empty == {len(table)} and not run.has_centres:
        return
    if empty != {0}:
        yield f"{name} has incomplete margins of error"
        return
    std_error, lower, upper = (column.to_numpy() for column in columns)
    counts = table["count"].to_numpy()
    if not (std_error >= 0).all():
        yield f"{name} has a negative standard error"
    if not ((lower <= counts + TOLERANCE) & (counts <= upper + TOLERANCE)).all():
        yield f"{name} has counts outside their interval"


def stated_confidence(
    run: RunFiles, name: str, table: pa.Table, centre: np.ndarray, allowed: Ends
) -> Iterator[str]:
    """The ends are those of an interval around the centre that the estimates have.

    `allowed` are the least and the greatest counts that the facts about the records leave. Runs of
    format 1 may not have used them.
    """
    counts, std_error, lower, upper = (column.to_numpy() for column in table.columns)
    reach = _factor(run.plan) * std_error + 0.5
    least, most = np.floor(counts + WHOLE), np.ceil(counts - WHOLE)
    is_old = run.plan.get("format", 1) == 1
    known = [allowed, (np.zeros(1), np.full(1, np.inf))] if is_old else [allowed]
    if not (
        _is_end(lower, centre - reach, np.ceil, known, np.minimum, least).all()
        and _is_end(upper, centre + reach, np.floor, known, np.maximum, most).all()
    ):
        yield f"{name} has intervals that do not have the stated confidence"
    if is_old:
        return
    is_known = (allowed[0] == allowed[1]) & (counts == allowed[0])
    if (std_error[is_known] != 0).any():
        yield f"{name} has a standard error where the exact facts leave one number"


def _by_cell(ends: Ends, size: int) -> Ends:
    """One number per row of a table, from areas x cells or areas x 1."""
    areas = max(1, len(ends[0]))
    least, most = (np.broadcast_to(end, (areas, size // areas)).ravel() for end in ends)
    return least, most


def _factor(plan: dict[str, Any]) -> float:
    """Half the width of an interval in standard errors; a Laplace variable has heavier tails."""
    confidence = float(Fraction(plan["confidence"]))
    laws = {q["noise"]["law"] for q in plan["queries"] if q["noise"] is not None}
    normal = NormalDist().inv_cdf((1 + confidence) / 2)
    return max(normal, -log(1 - confidence) / sqrt(2)) if "discrete_laplace" in laws else normal


def _is_end(
    end: np.ndarray,
    edge: np.ndarray,
    inwards: np.ufunc,
    allowed: Sequence[Ends],
    wider: np.ufunc,
    count: np.ndarray,
) -> np.ndarray:
    """The last whole number inside, moved to what is allowed; the count if that is further out."""
    close = (
        wider(np.minimum(np.maximum(inwards(edge + t), least), most), count)
        for t in (-TOLERANCE, TOLERANCE)
        for least, most in allowed
    )
    return np.logical_or.reduce([end == found for found in close])


def invariants(run: RunFiles) -> Iterator[str]:
    """What was to be published exactly is published exactly."""
    levels = {level.name: level for level in run.levels}
    for name in run.exact_totals:
        level = levels[name]
        exact = run.table(f"measurements/level={name}/query=total.parquet")
        promised = exact["value"].to_numpy()[level.shown]
        gap = np.abs(run.counts(level).sum(axis=1) - promised)
        if gap.max() > (0 if run.is_whole else TOLERANCE):
            yield f"totals of level {level.name} are not the exact ones"
    exact_levels = {q["level"] for q in run.plan["queries"] if q["noise"] is None}
    if exact_levels != set(run.plan["unprotected_totals"]):
        yield "plan.json measures other exact totals than it lists as unprotected"


def estimates(run: RunFiles) -> Iterator[str]:
    """The tables publish the estimates, and intervals lie around centres that add up."""
    above = None
    for level in run.levels:
        kept = run.table(f"estimates/level={level.name}.parquet")
        rows = _rows(run, level)
        for column in kept.column_names:
            if column == "centre":
                continue
            published = run.released(level.name, column)[column]
            if len(kept) != len(level) * len(run.cells) or not np.array_equal(
                kept[column].to_numpy()[rows], published.to_numpy()
            ):
                yield f"release/{level.name}.parquet differs from the estimates in {column}"
        if "centre" not in kept.column_names:
            continue
        centre = kept["centre"].to_numpy().reshape(len(level), len(run.cells))
        if above is not None and not add_up(centre, level.parent, above):
            yield f"estimates of level {level.name} lie around centres that do not add up"
        above = centre


def add_up(values: np.ndarray, group: np.ndarray, expected: np.ndarray) -> bool:
    """Whether real numbers, row by row, add up to those of their groups."""
    total = np.zeros_like(expected)
    np.add.at(total, group, values)
    return bool(np.allclose(total, expected, rtol=1e-11, atol=TOLERANCE))


def csv(run: RunFiles) -> Iterator[str]:
    """A CSV table says the same as the Parquet table."""
    levels = [level["level"] for level in run.plan["levels"]]
    names = [f"release/{level}" for level in levels]
    names += [f"release/areas/{area['name']}" for area in run.plan.get("areas", [])]
    if "histogram" in run.plan:
        names = [stem for _, _, stem in published(run)]
    elif run.has_sizes:
        names += [f"release/statistics/{level}" for level in levels]
    for stem in names:
        name, path = f"{stem}.csv", run.path / f"{stem}.csv"
        if not path.exists():
            continue
        yield from _compared(name, path, run.table(f"{stem}.parquet"))


def _compared(name: str, path: Path, table: pa.Table) -> Iterator[str]:
    """Piece by piece, since a stranger's file may have any length."""
    as_text, at, wrong = dict.fromkeys(table.column_names, pa.string()), 0, set()
    try:
        with pa_csv.open_csv(
            path,
            read_options=pa_csv.ReadOptions(block_size=_CSV_BLOCK),
            parse_options=pa_csv.ParseOptions(newlines_in_values=True),
            convert_options=pa_csv.ConvertOptions(column_types=as_text),
        ) as file:
            has_columns = file.schema.names == table.column_names
            for piece in file if has_columns else ():
                part = table.slice(at, piece.num_rows)
                at += piece.num_rows
                if at > len(table):
                    break
                wrong |= {c for c in as_text if not _same(piece[c], part[c], c, table)}
    except pa.ArrowException:
        yield f"{name} is damaged"
        return
    if not has_columns or at != len(table):
        yield f"{name} has another shape than the Parquet table"
    for column in sorted(wrong):
        yield f"{name} differs from the Parquet table in {column}"


def _tree_digest(levels: list[Level]) -> str:
    """SHA-256 over names, and per level over codes, where families begin, and padding."""
    digest = sha256(dumps([level.name for level in levels]).encode())
    for index, level in enumerate(levels):
        lengths = pc.binary_length(level.geocodes).to_numpy()
        digest.update(np.concatenate([[0], np.cumsum(lengths)]).astype("<i4").tobytes())
        for start in range(0, len(level), 1 << 16):
            text = level.geocodes[start : start + (1 << 16)]
            digest.update("".join(text.to_pylist()).encode())
        if index + 1 < len(levels):
            begins = np.searchsorted(levels[index + 1].parent, np.arange(len(level) + 1))
            digest.update(begins.astype("<i8").tobytes())
        digest.update(np.packbits(level.padding).tobytes())
    return digest.hexdigest()


def _are_unique(codes: pa.Array) -> bool:
    """Codes that only grow are, and looking at neighbours is quick."""
    grow = pc.all(pc.greater(codes[1:], codes[:-1])).as_py()
    return not codes.null_count and (grow or len(pc.unique(codes)) == len(codes))


def _same(text: pa.Array, values: pa.ChunkedArray, name: str, table: pa.Table) -> bool:
    column = values.combine_chunks()
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_string(column.type):
        # A spreadsheet would carry out what begins like a formula; an apostrophe prevents it.
        formula = pc.match_substring_regex(column, r"\A[=+@\t\r\n-]")
        guard = pc.if_else(formula, "'", "")
        return text.equals(pc.binary_join_element_wise(guard, column, ""))
    try:
        numbers = pc.if_else(pc.equal(text, ""), None, text).cast(pa.float64())
    except pa.ArrowInvalid:
        return False
    full = column.cast(pa.float64(), safe=False)
    if numbers.equals(full):
        return True
    if not numbers.is_null().equals(full.is_null()):
        return False
    return _is_rounded(numbers.drop_null().to_numpy(), full.drop_null().to_numpy(), name, table)


def _is_rounded(short: np.ndarray, full: np.ndarray, name: str, table: pa.Table) -> bool:
    """Standard errors to four significant digits, statistics to six decimals; nothing else."""
    if name == "std_error":
        pairs = np.unique(np.column_stack([short, full]), axis=0).tolist()
        return all(float(f"{s:.4g}") == s and abs(s - f) <= 5.001e-4 * f for s, f in pairs)
    if "statistic" in table.column_names:
        return bool((np.abs(short - full) <= 5.001e-7 + 1e-15 * np.abs(full)).all())
    return False


def _rows(run: RunFiles, level: Level) -> np.ndarray:
    """Rows of the shown areas in a table of all nodes, cells fastest."""
    n_cells = len(run.cells)
    return (level.shown[:, np.newaxis] * n_cells + np.arange(n_cells)).ravel()
