"""What is measured of some records: the real ingest and the real measuring step, without noise."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import trellis as tr
from flow_worlds import dense
from trellis.model.plans.plan import Plan
from trellis.model.plans.query import PlannedQuery
from trellis.privacy.accounting import Composition, Coordinates, WorstCase
from trellis.privacy.mechanisms import DiscreteLaplace
from trellis.workflow.confidential.measuring import tabulate
from trellis.workflow.kinds import confidential_kind
from trellis.workflow.preparing.prepare import prepare
from trellis.workflow.preparing.prepared import Prepared

Cells = dict[tuple[Any, ...], int]
"""The numbers of one query; a cell that is not there is zero."""
Answers = Mapping[str, Cells]
"""By the label of the query."""

NOT_PLACES = ("value", "variance", "expanded")


def prepared(spec: Path) -> Prepared:
    return prepare(tr.Spec.load(spec))


class NoNoise:
    """In the place of `ChargedNoise`: the truth is written as it is."""

    def added_to(self, query: PlannedQuery, answer: np.ndarray) -> np.ndarray:
        del query
        return answer

    def sample(self, query: PlannedQuery, size: int) -> np.ndarray:
        del query
        return np.zeros(size, dtype=np.int64)


def measured(made: Prepared, records: pa.Table) -> Answers:
    """True answers to all planned queries; refused records raise `TrellisError`.

    Flows are measured below what noise leaves, so their truth is written out here.
    """
    counts = tabulate(made, records)
    return _flows(made, counts) if made.plan.kind == "flows" else answered(made, counts, NoNoise())


def answered(made: Prepared, counts: Any, noise: Any) -> Answers:
    """Tabulated records, measured with some noise."""
    with tempfile.TemporaryDirectory(prefix="redteam-") as place:
        folder = Path(place)
        confidential_kind(made.plan.kind).measure(folder, made, counts, noise, 0)
        return {query.label: _read(folder, query) for query in made.plan.queries}


def _flows(made: Any, flows: Any) -> Answers:
    tree = made.facts.tree(made.plan)
    found = {}
    for level, query in enumerate(made.plan.queries):
        table = dense(flows, tree, level)
        ends = 3 if level > tree.shape.leaf_pairs else 2
        cells = zip(*(places.tolist() for places in np.nonzero(table)), strict=True)
        found[query.label] = {cell[:ends]: int(table[cell]) for cell in cells}
    return found


def _read(folder: Path, query: PlannedQuery) -> Cells:
    level = folder / f"level={query.level}"
    if query.share_class is not None:
        level /= f"class={query.share_class}"
    cells: Cells = {}
    for path in _files(level, query):
        table = pq.ParquetFile(path).read()
        variance = table["variance"].to_numpy()
        assert np.allclose(variance, query.variance), f"{path} has another variance than planned"
        names = [name for name in table.column_names if name not in NOT_PLACES]
        places = zip(*(table[name].to_pylist() for name in names), strict=True)
        cells.update(zip(places, table["value"].to_pylist(), strict=True))
    return cells


def _files(level: Path, query: PlannedQuery) -> list[Path]:
    """A file, or a folder with parts; an exact answer beside a noisy one has a name of its own."""
    name = f"query={query.query.replace(' * ', ',')}"
    for stem in ([f"{name},exact"] if query.noise is None else []) + [name]:
        if (level / stem).is_dir():
            return sorted((level / stem).glob("*.parquet"))
        if (level / f"{stem}.parquet").is_file():
            return [level / f"{stem}.parquet"]
    raise FileNotFoundError(f"{query.label} was not measured")


@dataclass(frozen=True)
class Moved:
    """How far each noisy number moves between two data sets, and which exact ones do."""

    parts: tuple[Coordinates, ...]
    exact: tuple[str, ...]

    @property
    def rho(self) -> Fraction:
        return sum((p.count * p.mechanism.rho(p.shift**2) for p in self.parts), Fraction(0))

    @property
    def epsilon(self) -> Fraction | None:
        """Pure; None with Gaussian noise."""
        total = Fraction(0)
        for part in self.parts:
            if not isinstance(part.mechanism, DiscreteLaplace):
                return None
            total += part.count * part.mechanism.epsilon(part.shift)
        return total

    @property
    def curve(self) -> WorstCase | None:
        return WorstCase((Composition.of(self.parts),), True) if self.parts else None

    def delta(self, epsilon: float | Fraction) -> tuple[float, float]:
        """By the accountant, on this very change: certainly so much, and certainly no more."""
        return (0.0, 0.0) if (curve := self.curve) is None else curve.delta_bounds(epsilon)


def moved(plan: Plan, left: Answers, right: Answers) -> Moved:
    parts: Counter[tuple[Any, int]] = Counter()
    exact = []
    for query in plan.queries:
        a, b = left[query.label], right[query.label]
        shifts = [abs(a.get(cell, 0) - b.get(cell, 0)) for cell in a.keys() | b.keys()]
        if query.noise is None:
            exact += [query.label] if any(shifts) else []
        else:
            parts.update((query.noise, shift) for shift in shifts if shift)
    return Moved(
        Composition.of(Coordinates(noise, n, shift) for (noise, shift), n in parts.items()).parts
        if parts else (),
        tuple(exact),
    )  # fmt: skip


def farthest(moves: Iterable[Moved]) -> list[Moved]:
    """Different changes, the dearest first."""
    by_parts = {move.parts: move for move in moves}
    return sorted(by_parts.values(), key=lambda move: move.rho, reverse=True)
