"""What the margins of error of flows rest on, made again from the measurements.

An estimator that looks at the levels below has the best linear unbiased estimates of all that was
measured; any other has each pair's own measurement. Here the former come from whole levels in
memory, with no code of the estimators. Each check yields what is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from trellis.verify.counts.facts import flow_facts
from trellis.verify.counts.tables import margins, stated_confidence
from trellis.verify.files.flow_files import NODE, estimated, level_names, node_keys, parents_of
from trellis.verify.files.run_files import RunFiles
from trellis.verify.files.safe_files import Unreadable

_TOLERANCE = 1e-6
"""Of sums in another order."""


@dataclass(slots=True)
class Linear:
    """Estimates of all measured nodes of a level, and the place of each one's parent above."""

    keys: np.ndarray
    value: np.ndarray
    variance: np.ndarray
    parent: np.ndarray


def flow_margins(run: RunFiles) -> Iterator[str]:
    """Standard errors and the total are those of the measurements."""
    levels = measured(run)
    if run.plan["method"].startswith("gls_"):
        _best_linear(levels)
    names, facts = level_names(run), flow_facts(run)
    for level, (name, linear, allowed) in enumerate(zip(names, levels, facts, strict=True)):
        kept = run.table(f"estimates/level={name}.parquet", ["centre", "std_error"])
        centre, std_error = (column.to_numpy() for column in kept.columns)
        place = places(node_keys(run, level, estimated(run, level)), linear.keys)
        if (place < 0).any():
            yield f"estimates of level {name} hold a flow that was not measured"
            continue
        is_known = allowed[0] == allowed[1]
        expected = 0.0 if is_known else np.sqrt(linear.variance[place])
        if not np.allclose(std_error, expected, rtol=1e-9, atol=_TOLERANCE):
            yield f"standard errors of level {name} are not those of the measurements"
        if not np.allclose(centre, linear.value[place], rtol=1e-9, atol=_TOLERANCE):
            yield f"estimates of level {name} are not centred where the measurements are"
        if not np.array_equal(run.released(name)["std_error"].to_numpy(), std_error):
            yield f"release/{name}.parquet differs from the estimates in std_error"
    total = int(estimated(run, 0)["count"].sum())
    if abs(total - max(0.0, float(levels[0].value[0]))) > 0.5 + _TOLERANCE:
        yield f"the total of level {level_names(run)[0]} is not the measured one"


def flow_intervals(run: RunFiles) -> Iterator[str]:
    """Intervals are complete, never negative, of the stated confidence, and contain the counts."""
    for name, allowed in zip(level_names(run), flow_facts(run), strict=True):
        file = f"release/{name}.parquet"
        table = run.released(name, "count", "std_error", "lower", "upper")
        wrong = list(margins(run, file, table))
        yield from wrong
        if wrong:
            continue
        centre = run.table(f"estimates/level={name}.parquet", ["centre"])["centre"].to_numpy()
        if (table["lower"].to_numpy() < 0).any():
            yield f"{file} has intervals that begin below zero"
        if centre.size != len(table):
            yield f"{file} has other rows than the estimates"
        else:
            yield from stated_confidence(run, file, table, centre, allowed)


def measured(run: RunFiles) -> list[Linear]:
    """Each node's own measurement."""
    levels: list[Linear] = []
    for level, query in enumerate(run.plan["queries"]):
        table = run.table(run.measurement(query))
        nodes = {key: table[key].to_numpy() for key in NODE if key in table.column_names}
        parent = np.zeros(len(table), dtype=np.int64)
        if level:
            parents = node_keys(run, level - 1, parents_of(run, level, nodes))
            parent = places(parents, levels[-1].keys)
            if (parent < 0).any():
                raise Unreadable(f"{run.measurement(query)} has pairs below unmeasured ones")
        value = table["value"].to_numpy().astype(np.float64)
        variance = table["variance"].to_numpy().copy()
        levels.append(Linear(node_keys(run, level, nodes), value, variance, parent))
    return levels


def _best_linear(levels: list[Linear]) -> None:
    """Put those of the whole tree in place of the measurements: up, then down."""
    sums = upwards(levels)
    for above, below, (total, variance) in zip(
        levels[:-1], levels[1:], reversed(sums), strict=True
    ):
        share = below.variance / variance[below.parent]
        below.value += share * (above.value - total)[below.parent]
        below.variance *= 1 - share
        below.variance += share**2 * above.variance[below.parent]


def upwards(levels: list[Linear]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Put those of subtrees in place of the measurements; returns what they add up to.

    These are sums and their variances for the parents of each level, the last level first.
    """
    sums = []
    for above, below in zip(reversed(levels[:-1]), reversed(levels[1:]), strict=True):
        size = above.value.size
        total = np.bincount(below.parent, below.value, size)
        variance = np.bincount(below.parent, below.variance, size)
        both = np.flatnonzero(variance)  # the others have nothing below them
        precision = 1 / variance[both]
        own = above.variance[both]
        exact = own == 0
        own = np.where(exact, 1.0, own)
        mean = (above.value[both] / own + total[both] * precision) / (1 / own + precision)
        above.value[both] = np.where(exact, above.value[both], mean)
        above.variance[both] = np.where(exact, 0.0, 1 / (1 / own + precision))
        sums.append((total, variance))
    return sums


def places(keys: np.ndarray, among: np.ndarray) -> np.ndarray:
    """Where each key is, or -1."""
    if not among.size:
        return np.full(keys.size, -1)
    order = np.argsort(among)
    place = order[np.minimum(np.searchsorted(among, keys, sorter=order), among.size - 1)]
    return np.where(among[place] == keys, place, -1)
