"""The promises about areas of interest. Each check yields what is wrong."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from trellis.verify.run_files import RunFiles

_TOLERANCE = 1e-6
"""For real-valued methods only; whole numbers must agree exactly."""


def areas(run: RunFiles) -> Iterator[str]:
    """Areas of interest are the sums of their leaves, with margins of error that contain them."""
    listed = run.table("areas.parquet")
    if listed["geocode"].to_pylist() != run.levels[-1].codes:
        yield "areas.parquet does not list the leaves in order"
        return
    for planned in run.plan["areas"]:
        yield from _category(run, planned, listed)


def _category(run: RunFiles, planned: dict, listed: pa.Table) -> Iterator[str]:
    name = f"release/areas/{planned['name']}.parquet"
    table = run.table(name)
    codes, sums = _sums(run, listed[planned["name"]].to_pylist())
    if len(codes) != planned["entities"]:
        yield f"areas.parquet has another number of {planned['name']} than planned"
    columns = ["geocode", "level", *run.plan["schema"], "count", "std_error", "lower", "upper"]
    if table.column_names != columns:
        yield f"{name} has other columns than promised"
        return
    if table["geocode"].to_pylist() != [code for code in codes for _ in run.cells]:
        yield f"{name} does not list its areas in order"
        return
    if set(table["level"].to_pylist()) != {planned["name"]}:
        yield f"{name} names another category"
    for axis, attribute in enumerate(run.plan["schema"]):
        if table[attribute].to_pylist() != [cell[axis] for cell in run.cells] * len(codes):
            yield f"{name} does not name the cells in order"
    counts = table["count"].to_numpy()
    if np.abs(counts - sums.ravel()).max() > (0 if run.is_whole else _TOLERANCE):
        yield f"{name} has counts that are not the sums of their leaves"
    yield from _margins(run, name, table, counts)
    kept = run.table(f"estimates/areas/{planned['name']}.parquet")
    for column in set(kept.column_names) - {"centre"}:
        if not np.array_equal(kept[column].to_numpy(), table[column].to_numpy()):
            yield f"{name} differs from the estimates in {column}"


def _sums(run: RunFiles, entity: list[str | None]) -> tuple[list[str], np.ndarray]:
    """Codes in order, and the published leaves of each added up; leaves that end early too."""
    codes = sorted({code for code in entity if code is not None})
    position = {code: i for i, code in enumerate(codes)}
    leaves = run.leaf_counts()
    sums = np.zeros((len(codes), len(run.cells)), dtype=leaves.dtype)
    for row, code in enumerate(entity):
        if code is not None:
            sums[position[code]] += leaves[row]
    return codes, sums


def _margins(run: RunFiles, name: str, table: pa.Table, counts: np.ndarray) -> Iterator[str]:
    margins = [table[key] for key in ("std_error", "lower", "upper")]
    empty = {column.null_count for column in margins}
    if empty == {len(table)} and run.plan["method"] in ("topdown", "bottomup"):
        return
    if empty != {0}:
        yield f"{name} has incomplete margins of error"
        return
    std_error, lower, upper = (column.to_numpy() for column in margins)
    if not (std_error >= 0).all():
        yield f"{name} has a negative standard error"
    if not ((lower <= counts + _TOLERANCE) & (counts <= upper + _TOLERANCE)).all():
        yield f"{name} has counts outside their interval"
