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

from trellis.model.rules import rule_cells
from trellis.model.schema import Recode, Schema
from trellis.verify.facts import Ends
from trellis.verify.histogram_files import Marginal, marginal, row_groups
from trellis.verify.run_files import RunFiles

pc: Any = pyarrow.compute  # made at import, so the type checker does not know its functions

_ROUNDS = 1000
_CELLS_AT_ONCE = 1 << 22

Sum = Callable[[np.ndarray], np.ndarray]
"""From parts to wholes, or from wholes back to each of their parts."""


@dataclass(frozen=True, slots=True)
class _Stated:
    """Ends by unit x cell of the query; `unit_of` has the group of each area, -1 for none."""

    query: str
    ends: Ends
    unit_of: np.ndarray | None

    def unit_numbers(self) -> np.ndarray:
        """Groups first, then one number for each area in none."""
        assert self.unit_of is not None
        alone = len(self.ends[0]) + np.cumsum(self.unit_of < 0) - 1
        return np.where(self.unit_of < 0, alone, self.unit_of)


class HistogramFacts:
    """Facts by level, carried up and handed down."""

    def __init__(self, run: RunFiles) -> None:
        self._run = run
        self._impossible = np.zeros(len(run.cells), dtype=bool)
        rules = run.plan["histogram"]
        if rules.get("zeros_bind_records", True):
            for rule in rules["structural_zeros"]:
                self._impossible |= rule_cells(schema_of(run), rules["ordered"], rule)
        self._stated = [list(_stated(run, level.name, len(level))) for level in run.levels]
        names = dict.fromkeys(fact.query for facts in self._stated for fact in facts)
        self._queries = {name: marginal(run.plan, name) for name in names}
        self._nested = [
            (fine, coarse, groups)
            for fine in names
            for coarse in names
            if fine != coarse
            and (groups := group_of(self._queries[fine], self._queries[coarse])) is not None
        ]
        self._levels = self._handed_down(self._carried_up())

    def allowed(self, index: int, query: Marginal) -> Ends:
        """Least and greatest answers to a query: all nodes of a level x cells."""
        known = self._levels[index]
        inside = {name: group_of(query, self._queries[name]) for name in known}
        found = self._possible(query, index, [n for n in known if inside[n] is None])
        for name, ends in known.items():
            if (made_of := group_of(self._queries[name], query)) is not None:
                add, _ = _cell_sums(made_of)
                found = _meet(found, (add(ends[0]), add(ends[1])))
        for name, within in inside.items():
            if within is not None:
                found = _meet(found, (found[0], known[name][1][:, within]))
        result = found
        for name, within in inside.items():
            if within is not None:
                result = _meet(result, _remainders(known[name], found, *_cell_sums(within)))
        return result

    def _possible(self, query: Marginal, index: int, crossing: list[str]) -> Ends:
        """0 where every cell of an answer is impossible, or in an answer that must be 0."""
        size = len(self._run.levels[index])
        order, first = _sorted(query.cell_of)
        most = np.empty((size, query.width))
        step = max(1, _CELLS_AT_ONCE // self._impossible.size) if crossing else size
        for begin in range(0, size, step):
            may = ~self._impossible[np.newaxis]
            for name in self._levels[index] if crossing else ():
                open_ = self._levels[index][name][1][begin : begin + step] > 0
                may = may & open_[:, self._queries[name].cell_of]
            any_of = np.logical_or.reduceat(may[:, order], first, axis=1)
            most[begin : begin + step] = np.where(any_of, np.inf, 0.0)
        return np.zeros(most.shape), most

    def _carried_up(self) -> list[dict[str, Ends]]:
        levels: list[dict[str, Ends]] = []
        for index in reversed(range(len(self._run.levels))):
            known: dict[str, Ends] = {}
            if levels:
                add, _ = self._child_sums(index + 1)
                for name, (least, most) in levels[-1].items():
                    _learn(known, name, (add(least), add(most)))
                for fact in self._stated[index + 1]:
                    if fact.unit_of is not None:
                        own = levels[-1].get(fact.query, self._free(index + 1, fact.query))
                        units, _, to_parents = self._units(index + 1, fact, own)
                        _learn(known, fact.query, (to_parents(units[0]), to_parents(units[1])))
            for fact in self._stated[index]:
                if fact.unit_of is None:
                    _learn(known, fact.query, fact.ends)
            for name in known:
                _learn(known, name, self._free(index, name))
            self._settle(known)
            levels.append(known)
        return levels[::-1]

    def _handed_down(self, up: list[dict[str, Ends]]) -> list[dict[str, Ends]]:
        levels = [up[0]]
        for index in range(1, len(up)):
            known: dict[str, Ends] = {}
            for name, above in levels[-1].items():
                own = up[index].get(name, self._free(index, name))
                _learn(known, name, own)
                _learn(known, name, _remainders(above, own, *self._child_sums(index)))
                for fact in self._stated[index]:
                    if fact.unit_of is not None and fact.query == name:
                        units, sums, to_parents = self._units(index, fact, own)
                        parent = self._parent_of_units(index, fact)
                        left = _remainders(above, units, to_parents, lambda v, p=parent: v[p])
                        _learn(known, name, _remainders(_meet(units, left), own, *sums))
            self._settle(known)
            levels.append(known)
        return levels

    def _settle(self, known: dict[str, Ends]) -> None:
        """Nested queries of a level, until nothing changes."""
        pairs = [(f, c, _cell_sums(g)) for f, c, g in self._nested if f in known and c in known]
        for _ in range(_ROUNDS):
            before = dict(known)
            for fine, coarse, (add, back) in pairs:
                _learn(known, coarse, (add(known[fine][0]), add(known[fine][1])))
                _learn(known, fine, _remainders(known[coarse], known[fine], add, back))
            if any((least > most).any() for least, most in known.values()):
                return  # facts that contradict each other; other checks say so
            if all(np.array_equal(before[n], known[n]) for n in known):
                return

    def _free(self, index: int, name: str) -> Ends:
        query, size = self._queries[name], len(self._run.levels[index])
        possible = np.zeros(query.width, dtype=bool)
        possible[query.cell_of[~self._impossible]] = True
        most = np.repeat(np.where(possible, np.inf, 0.0)[np.newaxis], size, axis=0)
        return np.zeros(most.shape), most

    def _child_sums(self, index: int) -> tuple[Sum, Sum]:
        parent = self._run.levels[index].parent
        first = np.searchsorted(parent, np.arange(parent[-1] + 1))
        return lambda v: np.add.reduceat(v, first, axis=0), lambda v: v[parent]

    def _parent_of_units(self, index: int, fact: _Stated) -> np.ndarray:
        number = fact.unit_numbers()
        parent = np.zeros(number.max() + 1, dtype=np.int64)
        parent[number] = self._run.levels[index].parent
        return parent

    def _units(self, index: int, fact: _Stated, own: Ends) -> tuple[Ends, tuple[Sum, Sum], Sum]:
        """What groups, and areas alone, may hold; sums from areas to them, and to parents."""
        number, parent = fact.unit_numbers(), self._parent_of_units(index, fact)

        def add(values: np.ndarray, into: np.ndarray = number, n: int = parent.size) -> np.ndarray:
            total = np.zeros((n, values.shape[1]))
            np.add.at(total, into, values)
            return total

        least, most = add(own[0]), add(own[1])
        used = np.unique(number[number < len(fact.ends[0])])
        least[used] = np.maximum(least[used], fact.ends[0][used])
        most[used] = np.minimum(most[used], fact.ends[1][used])
        n_above = len(self._run.levels[index - 1])
        here = np.unique(number)

        def to_parents(values: np.ndarray) -> np.ndarray:
            return add(values[here], parent[here], n_above)

        return (least, most), (add, lambda v: v[number]), to_parents


def schema_of(run: RunFiles) -> Schema:
    recodes = run.plan.get("recodes", {})
    return Schema(
        run.plan["schema"],
        {name: Recode(r["attribute"], r["groups"]) for name, r in recodes.items()},
    )


def group_of(fine: Marginal, coarse: Marginal) -> np.ndarray | None:
    """For each cell of the finer query its cell of the coarser one; None if it has several."""
    group = np.zeros(fine.width, dtype=np.int64)
    group[fine.cell_of] = coarse.cell_of
    return group if np.array_equal(group[fine.cell_of], coarse.cell_of) else None


def _stated(run: RunFiles, level: str, size: int) -> Iterator[_Stated]:
    """Exact answers of a level, and the constraints on it that bind the records."""
    for q in run.plan["queries"]:
        if q["level"] == level and q["noise"] is None:
            place = f"measurements/level={level}/query={q['query']},exact/part-0.parquet"
            values = np.concatenate([t["value"].to_numpy() for t in row_groups(run, place)])
            exact = values.astype(np.float64).reshape(size, -1)
            yield _Stated(q["query"], (exact, exact), None)
    if not (run.path / "constraints.parquet").exists():
        return
    table = run.table("constraints.parquet")
    here = table.filter(pc.equal(table["level"], level))
    for label in here["label"].unique().to_pylist():
        part = here.filter(pc.equal(here["label"], label))
        if "binds" not in part.column_names or part["binds"][0].as_py() == "records":
            yield _constraint(run, label, part.to_pydict(), size)


def _constraint(run: RunFiles, label: str, part: dict[str, list[Any]], size: int) -> _Stated:
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
    return _Stated(part["query"][0], (least, most), unit_of)


def _learn(known: dict[str, Ends], name: str, new: Ends) -> None:
    known[name] = _meet(known[name], new) if name in known else new


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


def _cell_sums(group: np.ndarray) -> tuple[Sum, Sum]:
    order, first = _sorted(group)
    return lambda v: np.add.reduceat(v[:, order], first, axis=1), lambda v: v[:, group]
