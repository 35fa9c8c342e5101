"""The promises about areas of interest. Each check yields what is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from trellis.verify.run_files import RunFiles
from trellis.verify.tables import margins

_TOLERANCE = 1e-6
"""For real-valued methods only; whole numbers must agree exactly."""


def areas(run: RunFiles) -> Iterator[str]:
    """Areas of interest are the sums of their leaves, with margins of error that contain them."""
    listed, leaves = run.table("areas.parquet"), run.levels[-1]
    if not leaves.lists(listed["geocode"], np.arange(len(leaves)), 1):
        yield "areas.parquet does not list the leaves in order"
        return
    for planned in run.plan["areas"]:
        yield from _category(run, planned, listed[planned["name"]])


def _category(run: RunFiles, planned: dict[str, Any], entity: pa.ChunkedArray) -> Iterator[str]:
    name = f"release/areas/{planned['name']}.parquet"
    table = run.table(name)
    codes, sums = _sums(run, entity)
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
    if not run.names_cells(table, run.cells, len(codes)):
        yield f"{name} does not name the cells in order"
    gap = np.abs(table["count"].to_numpy() - sums.ravel())
    if gap.max() > (0 if run.is_whole else _TOLERANCE):
        yield f"{name} has counts that are not the sums of their leaves"
    yield from margins(run, name, table)
    kept = run.table(f"estimates/areas/{planned['name']}.parquet")
    for column in set(kept.column_names) - {"centre"}:
        if not np.array_equal(kept[column].to_numpy(), table[column].to_numpy()):
            yield f"{name} differs from the estimates in {column}"


def _sums(run: RunFiles, entity: pa.ChunkedArray) -> tuple[list[str], np.ndarray]:
    """Codes in order, and the published leaves of each added up; leaves that end early too."""
    encoded = entity.combine_chunks().cast(pa.string()).dictionary_encode()
    texts = encoded.dictionary.to_pylist()
    codes = sorted(texts)
    position = {code: i for i, code in enumerate(codes)}
    place = np.array([position[text] for text in texts], dtype=int)
    inside = entity.is_valid().to_numpy()
    leaves = run.leaf_counts()
    sums = np.zeros((len(codes), len(run.cells)), dtype=leaves.dtype)
    np.add.at(sums, place[encoded.indices.drop_null().to_numpy()], leaves[inside])
    return codes, sums
