"""The promises about areas of interest. Each check yields what is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from trellis.verify.counts.facts import entity_facts
from trellis.verify.counts.tables import TOLERANCE, margins, stated_confidence
from trellis.verify.files.run_files import RunFiles


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
    codes, sums = _sums(entity, run.leaf_counts())
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
    if gap.max() > (0 if run.is_whole else TOLERANCE):
        yield f"{name} has counts that are not the sums of their leaves"
    yield from margins(run, name, table)
    kept = run.table(f"estimates/areas/{planned['name']}.parquet")
    if kept.column_names != (["count", "centre", "std_error"] if run.has_centres else ["count"]):
        yield f"estimates of {planned['name']} have other columns than the method gives"
        return
    for column in set(kept.column_names) - {"centre"}:
        if not np.array_equal(kept[column].to_numpy(), table[column].to_numpy()):
            yield f"{name} differs from the estimates in {column}"
    if run.has_centres:
        yield from _centres(run, planned["name"], entity, kept["centre"].to_numpy())


def _centres(
    run: RunFiles, category: str, entity: pa.ChunkedArray, centre: np.ndarray
) -> Iterator[str]:
    """Intervals lie around sums of the centres of leaves."""
    leaves = run.table(f"estimates/level={run.levels[-1].name}.parquet", ["centre"])["centre"]
    _, sums = _sums(entity, leaves.to_numpy().reshape(-1, len(run.cells)))
    if not np.allclose(centre, sums.ravel(), rtol=1e-11, atol=TOLERANCE):
        yield f"estimates of {category} lie around centres that are not the sums of their leaves"
    name = f"release/areas/{category}.parquet"
    table = run.table(name, ["count", "std_error", "lower", "upper"])
    least, most = (np.repeat(end[:, 0], len(run.cells)) for end in entity_facts(run, entity))
    yield from stated_confidence(run, name, table, centre, (least, most))


def entity_places(entity: pa.ChunkedArray) -> np.ndarray:
    """For each leaf, the place of its area among all codes in order, or -1."""
    encoded = entity.combine_chunks().cast(pa.string()).dictionary_encode()
    texts = encoded.dictionary.to_pylist()
    position = {code: i for i, code in enumerate(sorted(texts))}
    place = np.array([*(position[text] for text in texts), -1])
    return place[encoded.indices.fill_null(len(texts)).to_numpy()]


def _sums(entity: pa.ChunkedArray, leaves: np.ndarray) -> tuple[list[str], np.ndarray]:
    """Codes in order, and the values of the leaves of each added up."""
    place, codes = entity_places(entity), sorted(entity.drop_null().unique().to_pylist())
    sums = np.zeros((len(codes), leaves.shape[1]), dtype=leaves.dtype)
    np.add.at(sums, place[place >= 0], leaves[place >= 0])
    return codes, sums
