"""Guarantees for changes smaller than a whole record: of location only, or of one attribute.

They hold in addition to the guarantee of the release, which covers every change, and are stronger.
They are stated where they say something: under `replace`, for counts of records by cell.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trellis.model.plans.plan import Plan
from trellis.model.tables.queries import parse_query
from trellis.privacy.accounting.curves import simple_epsilons
from trellis.privacy.accounting.privacy_curve import WorstCase
from trellis.privacy.accounting.profiles import (
    Profile,
    Query,
    location_within,
    one_attribute,
)
from trellis.privacy.neighbours import Neighbours
from trellis.wording import privacy as words


@dataclass(frozen=True, slots=True)
class SmallerChange:
    """A change, and the curve of what it reveals; without one, it reveals nothing at all."""

    change: str
    in_words: str
    curve: WorstCase | None

    def epsilon(self, delta: float) -> float:
        return 0.0 if self.curve is None else self.curve.epsilon(delta)

    def bound(self, delta: float) -> float:
        """A safe epsilon at once, by the tight conversion from zero-concentrated DP."""
        if self.curve is None:
            return 0.0
        return max(float(simple_epsilons(c, np.array([delta]))[0]) for c in self.curve.cases)


def smaller_changes(plan: Plan) -> list[SmallerChange]:
    """One for each level above the leaves, and one for each attribute if there are several."""
    if not plan.design.divides_records or plan.protection.neighbours is not Neighbours.REPLACE:
        return []
    profiles, records = _profiles(plan), plan.protection.max_contribution
    levels = plan.tree_levels
    kept = words.STILL_KEPT if plan.protection.required else ""
    changes = []
    # Exact totals show a change of location between areas of their level.
    first = 0 if plan.protection.within is None else plan.levels.index(plan.protection.within)
    for position, level in enumerate(plan.levels[:-1]):
        if position < first:
            continue
        # On a spine, a change inside a published area costs the levels that divide it.
        whole = position + 1 if plan.spine is None else plan.spine.keeps_whole[position]
        costs = any(query.level in levels[whole:] for profile in profiles for query in profile)
        curve = location_within(profiles, levels, levels[whole - 1], records) if costs else None
        name = words.LOCATION.format(level=level)
        changes.append(SmallerChange(name, words.LOCATION_IN_WORDS + kept, curve))
    if len(plan.schema.names) > 1:
        for attribute in plan.schema.names:
            costs = any(attribute in q.separates for profile in profiles for q in profile)
            curve = one_attribute(profiles, attribute, records) if costs else None
            name = words.ATTRIBUTE.format(attribute=attribute)
            changes.append(SmallerChange(name, words.ATTRIBUTE_IN_WORDS + kept, curve))
    return changes


def _profiles(plan: Plan) -> list[Profile]:
    """What is measured on the path of one record, for every kind of path."""
    queries = [
        Query(planned.level, planned.noise, separates=_separated(plan, planned.query))
        for planned in plan.queries
        if planned.noise is not None
    ]
    paths = plan.privacy.paths or (range(len(queries)),)
    return [tuple(queries[i] for i in path) for path in paths]


def _separated(plan: Plan, query: str) -> frozenset[str]:
    factors = parse_query(plan.schema, query).factors
    return frozenset(plan.schema.names[f.attribute] for f in factors if len(f.labels) > 1)
