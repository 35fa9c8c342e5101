"""What was measured, on the tree that it was measured on, read from the files of a run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from trellis.verify.counts.families import Families
from trellis.verify.files.run_files import RunFiles
from trellis.verify.files.safe_files import Unreadable
from trellis.verify.plan.price import noise_variance

LEAST_VARIANCE = 1e-9
"""What the variance of noise counts as at least where counts are estimated."""


@dataclass(frozen=True, eq=False)
class MeasuredTree:
    """By level, root first: values (nodes x columns) and their variances (one for each node).

    A variance of 0 marks what is known exactly, infinity what was not measured. `root_sum` is the
    exact sum of the root's columns, where it is known besides them.
    """

    names: list[str]
    families: list[Families]
    values: list[np.ndarray]
    variance: list[np.ndarray]
    root_sum: int | None

    @property
    def width(self) -> int:
        return self.values[0].shape[1]

    @cached_property
    def with_exact_root(self) -> MeasuredTree:
        """The same where the root is known; for the sum of the columns, if `root_sum` is."""
        variance = [np.zeros(1), *self.variance[1:]]
        return MeasuredTree(self.names, self.families, self.values, variance, None)


def measured_tree(run: RunFiles) -> MeasuredTree:
    """Noisy answers by column, exact ones where they are columns, and areas that hold nothing.

    An exact total of zero leaves nothing in the area and in all areas in it. Methods for group
    sizes that do not keep the numbers of groups of areas make no use of that.
    """
    found = plain_tree(run)
    if not run.has_sizes or run.plan["method"] in ("cumulative_joint", "cumulative_relaxed"):
        for index, is_empty in enumerate(_empty(run, found.families)):
            found.values[index][is_empty], found.variance[index][is_empty] = 0.0, 0.0
    return found


def plain_tree(run: RunFiles) -> MeasuredTree:
    """The same without what exact totals of zero say about areas."""
    families = Families.of(run.tree)
    noisy = [q for q in run.plan["queries"] if q["noise"] is not None]
    (query,) = {q["query"] for q in noisy}
    width = len(run.cells_of(query))
    values = [np.zeros((len(level), width)) for level in run.tree]
    variance = [np.full(len(level), np.inf) for level in run.tree]
    places = {level.name: index for index, level in enumerate(run.tree)}
    exact = exact_totals(run)
    for q in noisy:
        index, nodes = places[q["level"]], run.asked_of(q)[1]
        values[index][nodes] = _values(run, q, width)
        variance[index][nodes] = max(noise_variance(q["noise"]), LEAST_VARIANCE)
    if query == "total":
        for name, totals in exact.items():
            values[places[name]][:], variance[places[name]][:] = totals, 0.0
    known = query == "detailed" and run.tree[0].name in exact
    root_sum = int(exact[run.tree[0].name][0, 0]) if known else None
    return MeasuredTree([level.name for level in run.tree], families, values, variance, root_sum)


def _values(run: RunFiles, query: dict, width: int) -> np.ndarray:
    found = run.table(run.measurement(query), ["value"])["value"].to_numpy()
    if found.size != width * run.asked_of(query)[1].size:
        raise Unreadable(f"{run.measurement(query)} has a wrong number of rows")
    return found.astype(np.float64).reshape(-1, width)


def exact_totals(run: RunFiles) -> dict[str, np.ndarray]:
    """By level, nodes x 1."""
    return {q["level"]: _values(run, q, 1) for q in run.plan["queries"] if q["noise"] is None}


def _empty(run: RunFiles, families: list[Families]) -> Iterator[np.ndarray]:
    """By level, which nodes hold nothing."""
    exact, is_empty = exact_totals(run), np.zeros(1, dtype=bool)
    for index, level in enumerate(run.tree):
        if index:
            is_empty = is_empty[families[index - 1].parent]
        if level.name in exact:
            is_empty = is_empty | (exact[level.name][:, 0] == 0)
        yield is_empty
