"""What facts allow the answers of histograms to be, found again from the files of a run.

The rules are those of docs/histograms.md, "What margins know": facts go up the tree, down again,
and between the queries of a level until nothing changes. None of this is code of the estimators.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow.compute

from trellis.verify.counts.facts import Ends
from trellis.verify.files.histogram_files import Marginal, marginal, row_groups
from trellis.verify.files.run_files import RunFiles
from trellis.verify.histograms.rules import rule_cells

pc: Any = pyarrow.compute  # made at import, so the type checker does not know its functions

_ROUNDS = 1000
_CELLS_AT_ONCE = 1 << 22

Sum = Callable[[np.ndarray], np.ndarray]
"""From parts to wholes, or from wholes back to each of their parts."""


@dataclass(frozen=True, slots=True)
class Stated:
    """Ends by unit x cell of the query; `unit_of` has the group of each area, -1 for none."""

    query: str
    ends: Ends
    unit_of: np.ndarray | None


class Known(dict[str, Ends]):
    """What is known of each query for some nodes of a level."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size

    def learn(self, name: str, new: Ends) -> None:
        self[name] = _meet(self[name], new) if name in self else new

    @classmethod
    def joined(cls, parts: list[Known]) -> Known:
        out = cls(sum(part.size for part in parts))
        for name in parts[0]:
            least, most = (np.concatenate([p[name][i] for p in parts]) for i in (0, 1))
            out[name] = least, most
        return out


class HistogramFacts:
    """Facts by level, carried up and handed down.

    With `every`, bounds that the published counts alone keep count as facts too.
    """

    def __init__(self, run: RunFiles, *, every: bool = False) -> None:
        self._run = run
        self._impossible = np.zeros(len(run.cells), dtype=bool)
        rules = run.plan["histogram"]
        if every or rules.get("zeros_bind_records", True):
            for rule in rules["structural_zeros"]:
                self._impossible |= rule_cells(run.plan, rule)
        self._stated = [
            list(_stated(run, level.name, len(level), every=every)) for level in run.levels
        ]
        names = dict.fromkeys(fact.query for facts in self._stated for fact in facts)
        self._queries = {name: marginal(run.plan, name) for name in names}
        self._nested = [
            (fine, coarse, groups)
            for fine in names
            for coarse in names
            if fine != coarse
            and (groups := group_of(self._queries[fine], self._queries[coarse])) is not None
        ]
        self._up = self._carried_up()
        self._above = {0: self._up[0]}

    def bounds(self, index: int) -> tuple[Known, list[Stated]]:
        """What areas of a level must keep for themselves and what is below, and groups of them."""
        return self._up[index], [fact for fact in self._stated[index] if fact.unit_of is not None]

    def mixes_below(self, index: int) -> bool:
        """Whether several queries, or groups, are bounded below a level."""
        return any(
            len(self._up[below]) > 1 or any(f.unit_of is not None for f in self._stated[below])
            for below in range(index + 1, len(self._up))
        )

    def allowed(self, index: int, query: Marginal) -> Ends:
        """Least and greatest answers to a query: all nodes of a level x cells."""
        parts = [self._allowed(known, query) for known in self._handed_down(index)]
        least, most = (np.concatenate(ends) for ends in zip(*parts, strict=True))
        return least, most

    def _allowed(self, known: Known, query: Marginal) -> Ends:
        inside = {name: group_of(query, self._queries[name]) for name in known}
        found = self._possible(query, known, [n for n in known if inside[n] is None])
        for name, ends in known.items():
            if (made_of := group_of(self._queries[name], query)) is not None:
                add, _ = _sums(made_of, 1)
                found = _meet(found, (add(ends[0]), add(ends[1])))
        for name, within in inside.items():
            if within is not None:
                found = _meet(found, (found[0], known[name][1][:, within]))
        result = found
        for name, within in inside.items():
            if within is not None:
                result = _meet(result, _remainders(known[name], found, *_sums(within, 1)))
        return result

    def _possible(self, query: Marginal, known: Known, crossing: list[str]) -> Ends:
        """0 where every cell of an answer is impossible, or in an answer that must be 0."""
        order, first = _sorted(query.cell_of)
        may = np.repeat(~self._impossible[np.newaxis], known.size if crossing else 1, axis=0)
        for name in known if crossing else ():
            may &= (known[name][1] > 0)[:, self._queries[name].cell_of]
        any_of = np.logical_or.reduceat(may[:, order], first, axis=1)
        most = np.repeat(np.where(any_of, np.inf, 0.0), known.size // len(may), axis=0)
        return np.zeros(most.shape), most

    def _carried_up(self) -> list[Known]:
        levels: list[Known] = []
        for index in reversed(range(len(self._run.levels))):
            known = Known(len(self._run.levels[index]))
            if levels:
                below, every = levels[-1], slice(0, levels[-1].size)
                parent = self._run.levels[index + 1].parent
                add, _ = _sums(parent, 0)
                for name, (least, most) in below.items():
                    known.learn(name, (add(least), add(most)))
                for fact in self._stated[index + 1]:
                    if fact.unit_of is not None:
                        own = below.get(fact.query, self._free(below.size, fact.query))
                        units, _, (add_units, _) = _units(fact, own, every, parent)
                        known.learn(fact.query, (add_units(units[0]), add_units(units[1])))
            for fact in self._stated[index]:
                if fact.unit_of is None:
                    known.learn(fact.query, fact.ends)
            for name in known:
                known.learn(name, self._free(known.size, name))
            self._settle(known)
            levels.append(known)
        return levels[::-1]

    def _handed_down(self, index: int) -> Iterator[Known]:
        """What is known of the nodes of a level, a run of families at a time."""
        if index in self._above:
            yield self._above[index]
            return
        if index - 1 not in self._above:
            runs = list(self._handed_down(index - 1))
            self._above[index - 1] = Known.joined(runs)
        widest = max((query.width for query in self._queries.values()), default=1)
        most = max(1, _CELLS_AT_ONCE // max(widest, self._impossible.size))
        parent, begin = self._run.levels[index].parent, 0
        while begin < parent.size:
            # As many whole families as fit, and at least one.
            last = parent[min(begin + most, parent.size) - 1]
            if last > parent[begin] and begin + most < parent.size:
                last -= 1
            end = int(np.searchsorted(parent, last, "right"))
            yield self._children(index, slice(begin, end))
            begin = end

    def _children(self, index: int, rows: slice) -> Known:
        parent = self._run.levels[index].parent[rows]
        families, parent = slice(parent[0], parent[-1] + 1), parent - parent[0]
        known = Known(parent.size)
        for name, ends in self._above[index - 1].items():
            above = ends[0][families], ends[1][families]
            own = self._free(parent.size, name)
            if name in self._up[index]:
                least, most = self._up[index][name]
                own = least[rows], most[rows]
            known.learn(name, own)
            known.learn(name, _remainders(above, own, *_sums(parent, 0)))
            for fact in self._stated[index]:
                if fact.unit_of is not None and fact.query == name:
                    units, to_units, to_parents = _units(fact, own, rows, parent)
                    units = _meet(units, _remainders(above, units, *to_parents))
                    known.learn(name, _remainders(units, own, *to_units))
        self._settle(known)
        return known

    def _settle(self, known: Known) -> None:
        """Nested queries of a level, until nothing changes."""
        pairs = [(f, c, _sums(g, 1)) for f, c, g in self._nested if f in known and c in known]
        for _ in range(_ROUNDS):
            before = dict(known)
            for fine, coarse, (add, back) in pairs:
                known.learn(coarse, (add(known[fine][0]), add(known[fine][1])))
                known.learn(fine, _remainders(known[coarse], known[fine], add, back))
            if any((least > most).any() for least, most in known.values()):
                return  # facts that contradict each other; other checks say so
            if all(np.array_equal(before[n], known[n]) for n in known):
                return

    def _free(self, size: int, name: str) -> Ends:
        query = self._queries[name]
        possible = np.zeros(query.width, dtype=bool)
        possible[query.cell_of[~self._impossible]] = True
        most = np.repeat(np.where(possible, np.inf, 0.0)[np.newaxis], size, axis=0)
        return np.zeros(most.shape), most


def _units(
    fact: Stated, own: Ends, rows: slice, parent: np.ndarray
) -> tuple[Ends, tuple[Sum, Sum], tuple[Sum, Sum]]:
    """What groups, and areas alone, may hold; sums from areas to them, and from them to parents."""
    assert fact.unit_of is not None
    unit_of, n_groups = fact.unit_of[rows], len(fact.ends[0])
    key = np.where(unit_of < 0, n_groups + np.arange(unit_of.size), unit_of)
    used, number = np.unique(key, return_inverse=True)
    to_units = _sums(number, 0)
    least, most = to_units[0](own[0]), to_units[0](own[1])
    groups = used[used < n_groups]  # they come first
    least[: groups.size] = np.maximum(least[: groups.size], fact.ends[0][groups])
    most[: groups.size] = np.minimum(most[: groups.size], fact.ends[1][groups])
    parent_of = np.zeros(used.size, dtype=np.int64)
    parent_of[number] = parent
    return (least, most), to_units, _sums(parent_of, 0)


def group_of(fine: Marginal, coarse: Marginal) -> np.ndarray | None:
    """For each cell of the finer query its cell of the coarser one; None if it has several."""
    group = np.zeros(fine.width, dtype=np.int64)
    group[fine.cell_of] = coarse.cell_of
    return group if np.array_equal(group[fine.cell_of], coarse.cell_of) else None


def _stated(run: RunFiles, level: str, size: int, *, every: bool) -> Iterator[Stated]:
    """Exact answers of a level, and the constraints on it, or those that bind the records."""
    for q in run.plan["queries"]:
        if q["level"] == level and q["noise"] is None:
            place = f"measurements/level={level}/query={q['query']},exact/part-0.parquet"
            values = np.concatenate([t["value"].to_numpy() for t in row_groups(run, place)])
            exact = values.astype(np.float64).reshape(size, -1)
            yield Stated(q["query"], (exact, exact), None)
    if not (run.path / "constraints.parquet").exists():
        return
    table = run.table("constraints.parquet")
    here = table.filter(pc.equal(table["level"], level))
    for label in here["label"].unique().to_pylist():
        part = here.filter(pc.equal(here["label"], label))
        binds = "binds" not in part.column_names or part["binds"][0].as_py() == "records"
        if every or binds:
            yield _constraint(run, label, part.to_pydict(), size)


def _constraint(run: RunFiles, label: str, part: dict[str, list[Any]], size: int) -> Stated:
    query, unit_of, n_units = marginal(run.plan, part["query"][0]), None, size
    if (run.path / "constraint_groups.parquet").exists():
        rows = run.table("constraint_groups.parquet").to_pydict()
        own = [i for i, text in enumerate(rows["label"]) if text == label]
        if own:
            unit_of = np.full(size, -1)
            unit_of[[rows["area"][i] for i in own]] = [rows["unit"][i] for i in own]
            n_units = int(unit_of.max()) + 1
    least, most = np.zeros((n_units, query.width)), np.full((n_units, query.width), np.inf)
    place, bound = (part["unit"], part["cell"]), part["bound"]
    if part["sense"][0] in ("=", ">="):
        least[place] = bound
    if part["sense"][0] in ("=", "<="):
        most[place] = bound
    return Stated(part["query"][0], (least, most), unit_of)


def _meet(one: Ends, other: Ends) -> Ends:
    return np.maximum(one[0], other[0]), np.minimum(one[1], other[1])


def _remainders(whole: Ends, part: Ends, add: Sum, back: Sum) -> Ends:
    """What a whole leaves to each of its parts when the others take their most, or their least."""
    least, most = part
    endless = np.isinf(most)
    finite = np.where(endless, 0.0, most)
    others_endless = back(add(endless.astype(np.float64))) - endless
    others_most = np.where(others_endless > 0, np.inf, back(add(finite)) - finite)
    others_least = back(add(least)) - least
    return back(whole[0]) - others_most, back(whole[1]) - others_least


def _sorted(group: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    order = np.argsort(group, kind="stable")
    return order, np.searchsorted(group[order], np.arange(group.max() + 1))


def _sums(group: np.ndarray, axis: int) -> tuple[Sum, Sum]:
    """From parts to wholes and back; every whole has a part."""
    order, first = _sorted(group)
    return (
        lambda v: np.add.reduceat(np.take(v, order, axis), first, axis=axis),
        lambda v: np.take(v, group, axis),
    )
