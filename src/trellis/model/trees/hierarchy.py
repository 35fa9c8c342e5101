"""A rooted tree of public areas, stored level by level."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from trellis.errors import StructureError
from trellis.model.trees.codes import CODE, Codes, code_order, first_repeated

Marks = NDArray[np.bool_]

MOST_SHOWN = 20
"""Areas that are named for one fault."""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)  # arrays have no truth value
class Hierarchy:
    """Levels of nodes, root first.

    Node `i` of level `l` has children `child_start[l][i] : child_start[l][i + 1]` in level
    `l + 1` (the row pointer of a CSR matrix). Siblings are contiguous, so a parent's total is a
    segment sum and a run of families is a slice. Nodes are ordered by their codes from the root
    down, whatever the order of the input.

    A ragged tree is filled up: an area that ends early gets one node on each deeper level that
    carries its code and is marked in `passes_through`. Such nodes are measured and estimated like
    any other and left out of everything that is published.
    """

    level_names: tuple[str, ...]
    node_codes: tuple[Codes, ...]
    child_start: tuple[NDArray[np.int64], ...]
    passes_through: tuple[NDArray[np.bool_], ...]

    def __post_init__(self) -> None:
        names = self.level_names
        if not names or len(set(names)) != len(names):
            raise StructureError(f"Level names {list(names)} must be distinct, and at least one.")
        if len(self.child_start) != len(names) - 1:
            raise StructureError("There must be one child_start for each level but the last.")
        if not len(self.node_codes) == len(self.passes_through) == len(names):
            raise StructureError("There must be codes and marks for each level.")
        n_nodes, faults = 1, []
        for level, name in enumerate(names):
            codes, passing = self.node_codes[level], self.passes_through[level]
            if codes.shape != (n_nodes,) or passing.shape != (n_nodes,):
                raise StructureError(f"Level {name!r} needs codes and marks for {n_nodes} nodes.")
            if (twice := first_repeated(codes)) is not None:
                faults.append(
                    f"Area {twice!r} occurs twice on level {name!r}. An area has one parent, and "
                    "codes are unique within a level: join the parent's code to it, or drop one."
                )
            if passing.all():
                raise StructureError(f"Level {name!r} has no areas of its own. Leave it out.")
            if level:
                self._check_passing(level)
            if level + 1 < len(names):
                n_nodes = _check_children(name, self.child_start[level], n_nodes)
        if faults:
            raise StructureError(*faults)

    def _check_passing(self, level: int) -> None:
        """Below an area that has ended there is one node on each level, with its code."""
        passing, above = self.passes_through[level], self.passes_through[level - 1]
        if not (passing.any() or above.any()):
            return
        parents = self.parents(level)
        only = np.diff(self.child_start[level - 1])[parents] == 1
        here = np.flatnonzero(passing)
        same = self.node_codes[level][here] == self.node_codes[level - 1][parents[here]]
        if (above[parents] & ~passing).any() or not only[here].all() or not same.all():
            raise StructureError(
                f"A pass-through node of level {self.level_names[level]!r}, or one below such a "
                "node, is not the only child of an area with its code."
            )

    # -- construction ---------------------------------------------------------------------------

    @classmethod
    def from_paths(
        cls, rows: Iterable[Sequence[str | None]], level_names: Sequence[str] | None = None
    ) -> Self:
        """Build from one tuple of codes per leaf, root first; shorter tuples end early."""
        paths = [tuple(row) for row in rows]
        if not paths:
            raise StructureError("The hierarchy is empty: give at least one leaf.")
        depth = max(map(len, paths))
        if level_names is None:
            level_names = [f"level_{i}" for i in range(depth)]
        if len(level_names) < depth:
            raise StructureError(f"{len(level_names)} level names for paths of {depth} codes.")
        for code in chain(*paths):
            if not isinstance(code, str | None):
                raise StructureError(f"Codes are text; {code!r} is not. Convert it, keeping zeros.")
        columns = [
            np.array([(p[i] if i < len(p) else None) or "" for p in paths], dtype=CODE)
            for i in range(len(level_names))
        ]
        return cls.from_columns(level_names, columns)

    @classmethod
    def from_columns(cls, level_names: Sequence[str], columns: Sequence[Codes]) -> Self:
        """Build from one array of codes per level, one entry per leaf; "" where a leaf has ended.

        Sorting is skipped when the rows arrive in order.
        """
        if len({column.shape for column in columns}) > 1:
            raise StructureError("Give one column for each level name, all of one length.")
        if columns and columns[0].size and (order := _row_order(columns)) is not None:
            columns = [column[order] for column in columns]
        return cls.from_sorted_rows(
            level_names,
            [column[1:] != column[:-1] for column in columns],
            [column == "" for column in columns],
            lambda level, rows: columns[level][rows],
        )

    @classmethod
    def from_sorted_rows(
        cls,
        level_names: Sequence[str],
        changes: Sequence[Marks],
        ended: Sequence[Marks],
        codes_at: Callable[[int, NDArray[np.intp]], Codes],
    ) -> Self:
        """Build from rows, one per leaf, in the order of their codes, root first.

        Per level, `changes` marks each row but the first whose code differs from that of the row
        before it, and `ended` the rows that have none since their leaf has ended above. Codes are
        asked for only where a node begins, so text of every row and level is never held at once.
        """
        if not ended or not ended[0].size:
            raise StructureError("The hierarchy is empty: give at least one leaf.")
        if not len(level_names) == len(changes) == len(ended):
            raise StructureError("Give one column for each level name, all of one length.")

        def marked(level: int, marks: Marks) -> list[str]:
            codes = codes_at(level, np.flatnonzero(marks)[:MOST_SHOWN]).tolist()
            return list(dict.fromkeys(map(str, codes)))

        faults = list(_gaps(level_names, ended, marked))
        faults = faults or list(_repeats(level_names, changes, ended, marked))
        if faults:
            raise StructureError(*faults)

        starts, codes, passing = [], [], []
        is_first = np.zeros(ended[0].size, dtype=bool)  # first row of a node of this level
        is_first[0] = True
        firsts = np.empty(0, dtype=np.intp)
        for level, changed in enumerate(changes):
            is_first[1:] |= changed
            above, firsts = firsts, np.flatnonzero(is_first)
            here, gone = codes_at(level, firsts), ended[level][firsts]
            if level:
                starts.append(np.append(np.searchsorted(firsts, above), firsts.size))
            if gone.any():  # carry the last code of a leaf that ends early down
                parents = np.searchsorted(above, firsts[gone], side="right") - 1
                here[gone] = codes[-1][parents]
            codes.append(here)
            passing.append(gone)
        if codes[0].size != 1:
            raise StructureError(
                f"The hierarchy has {codes[0].size} roots on level {level_names[0]!r}, among them "
                f"{codes[0][:2].tolist()}. Add one level above that holds them all."
            )
        return cls(tuple(level_names), tuple(codes), tuple(starts), tuple(passing))

    # -- reading --------------------------------------------------------------------------------

    @property
    def n_levels(self) -> int:
        return len(self.level_names)

    @property
    def leaf_level(self) -> int:
        return self.n_levels - 1

    def index(self, level: int | str) -> int:
        """The position of a level given by position or name."""
        if isinstance(level, int):
            return range(self.n_levels)[level]
        if level not in self.level_names:
            raise StructureError(f"No level {level!r}; there are {list(self.level_names)}.")
        return self.level_names.index(level)

    def codes(self, level: int | str) -> Codes:
        """Codes of a level in node order."""
        return self.node_codes[self.index(level)]

    def size(self, level: int | str) -> int:
        return self.codes(level).size

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(codes.size for codes in self.node_codes)

    @property
    def areas(self) -> tuple[int, ...]:
        """Nodes by level that are areas of their own."""
        return tuple(int((~passing).sum()) for passing in self.passes_through)

    def parents(self, level: int) -> NDArray[np.int64]:
        """For each node of `level`, the position of its parent in `level - 1`."""
        start = self.child_start[level - 1]
        return np.repeat(np.arange(start.size - 1), np.diff(start))

    def sum_children(self, level: int, values: NDArray[Any]) -> NDArray[Any]:
        """Add up `values` of level `level + 1` within each parent of `level`."""
        return np.add.reduceat(values, self.child_start[level][:-1], axis=0)

    def sum_up(self, leaf_values: NDArray[Any]) -> list[NDArray[Any]]:
        """Totals of every level, root first, from values of the leaves."""
        levels = [leaf_values]
        for level in reversed(range(self.n_levels - 1)):
            levels.append(self.sum_children(level, levels[-1]))
        return levels[::-1]


def _check_children(name: str, start: NDArray[np.int64], n_nodes: int) -> int:
    """Validate the row pointer of one level; return the size of the next."""
    if start.shape != (n_nodes + 1,) or start[0] != 0:
        raise StructureError(f"child_start of level {name!r} must hold 0 and {n_nodes} ends.")
    # reduceat returns a wrong value, silently, for an empty segment.
    if childless := np.flatnonzero(np.diff(start) < 1)[:3].tolist():
        raise StructureError(
            f"Nodes {childless} of level {name!r} have no children. "
            "Give each a single pass-through child or drop it."
        )
    return int(start[-1])


def _gaps(
    names: Sequence[str], ended: Sequence[Marks], marked: Callable[[int, Marks], list[str]]
) -> Iterator[str]:
    """A code below a gap is an error."""
    if ended[0].any():
        yield f"A row has no code on the first level, {names[0]!r}."
    for level in range(1, len(ended)):
        for code in marked(level, ended[level - 1] & ~ended[level]):
            yield (
                f"Area {code!r} of level {names[level]!r} has no code on level "
                f"{names[level - 1]!r}. Give the missing area a code of its own."
            )


def _row_order(columns: Sequence[Codes]) -> NDArray[np.intp] | None:
    """The order that sorts rows by their codes, root first; None if they are in order."""
    equal = np.ones(columns[0].size - 1, dtype=bool)
    ascending = np.zeros_like(equal)
    for column in columns:
        ascending |= equal & (column[:-1] < column[1:])
        equal &= column[:-1] == column[1:]
    if np.all(ascending | equal):
        return None
    order = np.arange(columns[0].size)
    for column in reversed(columns):
        order = order[code_order(column[order])]
    return order


def _repeats(
    names: Sequence[str],
    changes: Sequence[Marks],
    ended: Sequence[Marks],
    marked: Callable[[int, Marks], list[str]],
) -> Iterator[str]:
    """Rows are sorted: leaves occur once, and an area that ends early has nothing below it."""
    equal = np.ones(ended[0].size - 1, dtype=bool)
    for level, changed in enumerate(changes):
        if ended[level].any():
            clash = equal & (ended[level][1:] | ended[level][:-1])
            for code in marked(max(level - 1, 0), clash):
                yield (
                    f"Area {code!r} of level {names[level - 1]!r} occurs twice: as a leaf and "
                    "again, or with areas below it. Drop the repeated row."
                )
            equal &= ~clash
        equal &= ~changed
    for code in marked(len(names) - 1, equal):
        yield f"Leaf {code!r} occurs twice in the hierarchy. Drop one row."
