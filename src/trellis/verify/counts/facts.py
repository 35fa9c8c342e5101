"""What exact totals say about the true counts, found again from the files of a run.

A fact is a pair of arrays, the least and the greatest count that it leaves possible.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from trellis.verify.files.run_files import RunFiles, ancestors

Ends = tuple[np.ndarray, np.ndarray]


def level_facts(run: RunFiles) -> list[Ends]:
    """By level, for all nodes x 1: an exact total, or what the area above leaves."""
    exact = {q["level"] for q in run.plan["queries"] if q["noise"] is None}
    found: list[Ends] = []
    least, most = np.zeros(1), np.full(1, np.inf)
    for index, level in enumerate(run.levels):
        if index:
            only = np.bincount(level.parent)[level.parent] == 1
            least, most = np.where(only, least[level.parent], 0.0), most[level.parent]
        if level.name in exact:
            most = _totals(run, level.name)
            least = most if len(run.cells) == 1 else np.zeros(most.size)
        found.append((least[:, np.newaxis], most[:, np.newaxis]))
    return found


def entity_facts(run: RunFiles, entity: pa.ChunkedArray) -> Ends:
    """For areas of interest in the order of their codes: whole areas count, parts may."""
    encoded = entity.combine_chunks().cast(pa.string()).dictionary_encode()
    texts = encoded.dictionary.to_pylist()
    place = {code: i for i, code in enumerate(sorted(texts))}
    exact = [i for i, level in enumerate(run.levels) if level.name in run.exact_totals]
    least, most = np.zeros((len(texts), 1)), np.full((len(texts), 1), np.inf)
    if not exact:
        return least, most
    totals = _totals(run, run.levels[exact[-1]].name)
    area = ancestors(run.levels, len(run.levels) - 1, exact[-1])
    pairs = pa.table({"entity": encoded.indices, "area": area}).filter(entity.is_valid())
    found = pairs.group_by(["entity", "area"]).aggregate([([], "count_all")])
    of, leaves = found["area"].to_numpy(), found["count_all"].to_numpy()
    own = np.array([place[text] for text in texts])[found["entity"].to_numpy()]
    most[:, 0] = np.bincount(own, totals[of], len(texts))
    if len(run.cells) == 1:
        is_whole = leaves == np.bincount(area)[of]
        least[:, 0] = np.bincount(own, totals[of] * is_whole, len(texts))
    return least, most


def flow_facts(run: RunFiles) -> list[Ends]:
    """By level: no flow is above an exact number of all trips, and a lone pair has them all."""
    first, found = run.plan["queries"][0], []
    for level in run.plan["levels"]:
        least, most = 0.0, np.inf
        if first["noise"] is None:
            most = float(run.table(run.measurement(first))["value"].to_numpy().sum())
            least = most if level["nodes"] == 1 else 0.0
        found.append((np.array(least), np.array(most)))
    return found


def _totals(run: RunFiles, level: str) -> np.ndarray:
    table = run.table(f"measurements/level={level}/query=total.parquet")
    return table["value"].to_numpy().astype(np.float64)
