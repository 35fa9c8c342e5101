"""What exact totals say about the true counts, found again from the files of a run.

A fact is a pair of arrays, the least and the greatest count that it leaves possible.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from trellis.verify.run_files import RunFiles, ancestors

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
    codes = sorted(set(entity.drop_null().to_pylist()))
    exact = [i for i, level in enumerate(run.levels) if level.name in run.exact_totals]
    if not exact:
        return np.zeros((len(codes), 1)), np.full((len(codes), 1), np.inf)
    totals = _totals(run, run.levels[exact[-1]].name)
    area = ancestors(run.levels, len(run.levels) - 1, exact[-1])
    place = {code: i for i, code in enumerate(codes)}
    own = np.array([place.get(code, -1) for code in entity.to_pylist()])
    pairs, leaves = np.unique(np.stack([own, area])[:, own >= 0], axis=1, return_counts=True)
    is_whole = leaves == np.bincount(area)[pairs[1]]
    most = np.bincount(pairs[0], totals[pairs[1]], len(codes))
    least = np.bincount(pairs[0], totals[pairs[1]] * is_whole, len(codes))
    return least[:, np.newaxis] * (len(run.cells) == 1), most[:, np.newaxis]


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
