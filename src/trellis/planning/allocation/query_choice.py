"""What may be measured on each level of a histogram, and what its errors count for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from trellis.errors import SpecError
from trellis.model.plans.shares import Shares
from trellis.model.tables.queries import DETAILED, TOTAL, named_query, parse_query
from trellis.model.tables.schema import Schema
from trellis.model.trees.hierarchy import Hierarchy
from trellis.planning.allocation.choose import SlotKey
from trellis.planning.allocation.data_free import Aim
from trellis.planning.kinds.histograms import DEFAULT, check_levels, same_cells, within_level

Weights = Mapping[str, Fraction | Mapping[str, Fraction]]
"""By level, for all tables of it or by query."""


def candidates(
    schema: Schema,
    levels: Sequence[str],
    measured: Sequence[str],
    exact: Sequence[str],
    wish: Mapping[str, Sequence[str]] | None,
    useful: Sequence[str],
) -> tuple[SlotKey, ...]:
    """Queries that may get a share, by level; totals that are exact need none.

    Without a wish these are `useful` ones, such as those that are published somewhere, the total
    and all cells.
    """
    if wish is not None:
        check_levels("strategy.optimal.queries", wish, levels)
    slots: list[SlotKey] = []
    for level in measured:
        names = None if wish is None else wish.get(level, wish.get(DEFAULT))
        if names is not None:
            equal = Shares(dict.fromkeys(names, Fraction(1)), are_weights=True)
            kept = [parse_query(schema, name) for name in within_level(schema, level, equal)]
        else:
            kept = []
            for query in (parse_query(schema, name) for name in (TOTAL, *useful, DETAILED)):
                if not any(same_cells(query, other) for other in kept):
                    kept.append(query)
        slots += [(level, q.name) for q in kept if q.n_cells > 1 or level not in exact]
    return tuple(slots)


def needed(schema: Schema, method: str, slots: Sequence[SlotKey]) -> tuple[SlotKey, ...]:
    """Slots that must get a share: all cells on the last level; for topdown something on each."""
    finest: dict[str, tuple[int, SlotKey]] = {}
    for level, query in slots:
        cells = parse_query(schema, query).n_cells
        if cells > finest.get(level, (0, None))[0]:
            finest[level] = cells, (level, query)
    kept = [key for _, key in finest.values()]
    return tuple(kept) if method == "topdown" else tuple(kept[-1:])


def table_aims(
    hierarchy: Hierarchy,
    schema: Schema,
    tables: Sequence[SlotKey],
    weights: Weights | None,
    level_weights: Mapping[str, float] | None,
) -> tuple[Aim, ...]:
    """The squared errors of the published tables, summed over areas and cells, with weights."""
    given, levels = weights or {}, hierarchy.level_names
    check_levels("strategy.optimal.weights", given, levels)
    for level, by_query in given.items():
        if isinstance(by_query, Mapping):
            _check_queries(schema, level, by_query, tables)
    aims = []
    for level, query in tables:
        asked = parse_query(schema, query)
        weight = given.get(level, given.get(DEFAULT, Fraction(1)))
        if isinstance(weight, Mapping):
            named = {named_query(schema, name).name: value for name, value in weight.items()}
            weight = named.get(asked.name, Fraction(1))
        if weight < 0:
            raise SpecError("strategy.optimal.weights: weights must be 0 or more.")
        by_level = 1.0 if level_weights is None else level_weights.get(level, 0.0)
        aims.append(Aim(levels.index(level), asked, float(weight) * by_level))
    if not any(aim.weight for aim in aims):
        raise SpecError("strategy.optimal.weights: one of them must be positive.")
    return tuple(aim for aim in aims if aim.weight)


def _check_queries(
    schema: Schema, level: str, weights: Mapping[str, Fraction], tables: Sequence[SlotKey]
) -> None:
    published = [query for at, query in tables if level in (at, DEFAULT)]
    for name in weights:
        if named_query(schema, name).name not in published:
            raise SpecError(
                f"strategy.optimal.weights.{level} names {name!r}, which is not published there. "
                "List it under output.tables, or take it out."
            )
