"""Budget, shares of levels and shares of queries of a histogram: as stated, or computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from trellis.errors import SpecError, StructureError
from trellis.model.plans.shares import Shares
from trellis.model.tables.queries import DETAILED, is_finer, parse_query
from trellis.model.tables.schema import Schema
from trellis.model.trees.hierarchy import Hierarchy
from trellis.planning.allocation.choose import Scene, SlotKey, Wish, choose, level_weights
from trellis.planning.allocation.data_free import Aim
from trellis.planning.allocation.query_choice import candidates, needed, table_aims
from trellis.planning.allocation.targets import Target
from trellis.planning.kinds.histograms import (
    DEFAULT,
    check_identifiable,
    check_size,
    published_tables,
    query_shares,
)
from trellis.planning.kinds.invariants import exact_levels
from trellis.privacy.budget import Budget
from trellis.privacy.protection import Protection
from trellis.spec.histograms import HistogramsSpec
from trellis.spec.sections.planning import OptimalSharesSpec
from trellis.spec.sections.strategy import OptimalStrategySpec
from trellis.workflow.outlook.choose_budget import (
    most_that_may_be_spent,
    refuse_few_levels,
    shares_are_open,
    targets_decide,
    targets_of,
)
from trellis.workflow.outlook.histogram_priors import prior_counts_by_cell
from trellis.workflow.preparing.kinds.histograms import machine_memory

_STATED = "strategy"
"""Stands for all queries of a level, where these have stated shares."""


@dataclass(frozen=True, slots=True)
class ChosenSplit:
    """A budget, shares of levels, and of queries on each level."""

    budget: Budget
    shares: Shares
    strategy: Mapping[str, Shares] | None


def chosen_strategy(spec: HistogramsSpec, hierarchy: Hierarchy) -> ChosenSplit:
    """What a spec with targets or a wish amounts to."""
    refuse_few_levels(spec)
    schema = spec.cell_schema()
    check_size(schema, hierarchy, machine_memory())
    question = _Question(spec, hierarchy, schema)
    try:
        scene = question.scene()
        choice = choose(scene, question.wish(scene))
    except StructureError as error:
        raise SpecError(str(error)) from None
    levels: dict[str, Fraction] = {}
    for (level, _), share in choice.shares.items():
        levels[level] = levels.get(level, Fraction(0)) + share
    strategy = question.stated
    if question.strategy_is_open:
        strategy = {
            level: Shares({q: s / whole for (at, q), s in choice.shares.items() if at == level})
            for level, whole in levels.items()
        }
    elif strategy is not None:
        strategy = {name: wish for name, wish in strategy.items() if name in (DEFAULT, *levels)}
    return ChosenSplit(choice.budget, Shares(levels), strategy)


def weighed_tables(spec: HistogramsSpec, hierarchy: Hierarchy) -> tuple[Aim, ...]:
    """What the errors of the published tables count for."""
    question = _Question(spec, hierarchy, spec.cell_schema())
    return question.aims(question.scene())


class _Question:
    """Which shares are stated, and which are open."""

    def __init__(self, spec: HistogramsSpec, hierarchy: Hierarchy, schema: Schema) -> None:
        self.spec, self.hierarchy, self.schema = spec, hierarchy, schema
        privacy, strategy = spec.privacy, spec.strategy
        self.exact = exact_levels(
            hierarchy.level_names,
            spec.unprotected.totals,
            privacy.neighbours,
            schema.n_cells,
            histogram=True,
        )
        self.measurable = [
            name for name in hierarchy.level_names if schema.n_cells > 1 or name not in self.exact
        ]
        self.optimal = strategy.optimal if isinstance(strategy, OptimalStrategySpec) else None
        self.stated = None if isinstance(strategy, OptimalStrategySpec) else strategy
        self.strategy_is_open = self.optimal is not None or (
            targets_decide(spec) and strategy is None
        )
        is_left_out = "shares" not in privacy.model_fields_set
        self.levels_are_open = (
            isinstance(privacy.shares, OptimalSharesSpec)
            or shares_are_open(spec)
            or (self.strategy_is_open and is_left_out)
        )

    def scene(self) -> Scene:
        """What may be measured: queries, or levels with stated queries as one."""
        privacy, mixes = self.spec.privacy, {}
        if self.strategy_is_open:
            slots = self._candidates()
        elif self.levels_are_open:
            mixes = self._mixes()
            slots = tuple(mixes)
        else:
            slots = tuple(self._stated_shares())
        asked = [(level, q) for level, name in slots for q in mixes.get((level, name), (name,))]
        method, levels = self.spec.estimate.method, self.hierarchy.level_names
        check_identifiable(self.schema, method, levels, self.measurable, asked)
        within = self.exact[-1] if len(self.exact) > 1 else None
        protection = Protection(privacy.unit, privacy.neighbours, privacy.max_contribution, within)
        return Scene(
            self.hierarchy, self.schema, protection, self.exact, privacy.mechanism, slots,
            mixes=mixes,
        )  # fmt: skip

    def _level_shares(self) -> dict[str, Fraction]:
        shares = self.spec.privacy.shares
        assert isinstance(shares, Shares)
        return shares.over(self.hierarchy.level_names, self.measurable)

    def _stated_shares(self) -> dict[SlotKey, Fraction]:
        levels = self.hierarchy.level_names
        return query_shares(self.schema, self.stated, self._level_shares(), levels)

    def _mixes(self) -> dict[SlotKey, dict[str, Fraction]]:
        """The stated queries of every level that has some."""
        stated, levels = self.stated, self.hierarchy.level_names
        named = self.measurable
        if stated is not None and DEFAULT not in stated:
            named = [level for level in self.measurable if level in stated]
        whole = dict.fromkeys(named, Fraction(1))
        parts = query_shares(self.schema, stated, whole, levels)
        return {
            (level, _STATED): {q: part for (at, q), part in parts.items() if at == level}
            for level in named
        }

    def _candidates(self) -> tuple[SlotKey, ...]:
        measured = self.measurable if self.levels_are_open else list(self._level_shares())
        wish = None if self.optimal is None else self.optimal.queries
        useful = [query for _, query in self.tables()]
        useful += [target.query for target in self.spec.accuracy or ()]
        return candidates(
            self.schema, self.hierarchy.level_names, measured, self.exact, wish, useful
        )

    def tables(self) -> tuple[SlotKey, ...]:
        """What is published; microdata are a table of all cells of the last level."""
        levels, output = self.hierarchy.level_names, self.spec.output
        tables = published_tables(self.schema, output.tables, levels)
        finest = (levels[-1], DETAILED)
        return (*tables, finest) if output.microdata and finest not in tables else tables

    def aims(self, scene: Scene) -> tuple[Aim, ...]:
        shares, by_level = self.spec.privacy.shares, None
        if isinstance(shares, OptimalSharesSpec) and shares.optimal.weights is not None:
            weights = level_weights(shares.optimal.weights, scene.measured_levels)
            assert weights is not None
            by_level = dict(zip(scene.measured_levels, weights, strict=True))
        wish = None if self.optimal is None else self.optimal.weights
        return table_aims(self.hierarchy, self.schema, self.tables(), wish, by_level)

    def wish(self, scene: Scene) -> Wish:
        privacy, budget = self.spec.privacy, None
        if privacy.budget is not None and not privacy.budget.is_least:
            budget = privacy.budget.value()
        targets, most = targets_of(self.spec, scene), most_that_may_be_spent(self.spec)
        for target in targets:
            self._check_published(target)
        if not self.strategy_is_open and not self.levels_are_open:
            return Wish(budget, self._stated_shares(), targets=targets, most=most)
        keep = needed(self.schema, self.spec.estimate.method, self._slots_to_keep(scene))
        answers, weights = self._answers(scene)
        level_shares = None if self.levels_are_open else self._level_shares()
        chosen_for_targets = bool(targets) and budget is None and level_shares is None
        are_weighed = not chosen_for_targets or self._has_weights()
        return Wish(
            budget,
            weights=weights,
            targets=targets,
            keep=self._keys_of(scene, keep),
            most=most,
            answers=answers,
            aims=self.aims(scene) if are_weighed and answers is None else None,
            level_shares=level_shares,
        )

    def _check_published(self, target: Target) -> None:
        """A target is for what readers see, or can add up: there, or on a level below."""
        levels = self.hierarchy.level_names
        shown = {q for at, q in self.tables() if levels.index(at) >= levels.index(target.name)}
        if not any(is_finer(parse_query(self.schema, q), target.query) for q in shown):
            raise SpecError(
                f"accuracy: {target.query.name!r} is not published on level {target.name!r}, and "
                "nothing that is published there or below adds up to it. List it under "
                "output.tables, or take the target out."
            )

    def _has_weights(self) -> bool:
        shares = self.spec.privacy.shares
        of_levels = isinstance(shares, OptimalSharesSpec) and shares.optimal.weights is not None
        return of_levels or (self.optimal is not None and self.optimal.weights is not None)

    def _slots_to_keep(self, scene: Scene) -> Sequence[SlotKey]:
        if not scene.mixes:
            return scene.slots
        return [(level, query) for (level, _), mix in scene.mixes.items() for query in mix]

    def _keys_of(self, scene: Scene, keep: Sequence[SlotKey]) -> tuple[SlotKey, ...]:
        return tuple((level, _STATED) for level, _ in keep) if scene.mixes else tuple(keep)

    def _answers(self, scene: Scene) -> tuple[list | None, list[float] | None]:
        """What a prior answers to every slot, and the weights of the levels."""
        shares = self.spec.privacy.shares
        if not isinstance(shares, OptimalSharesSpec) or shares.optimal.prior is None:
            return None, None
        queries = {key: scene.mixes.get(key, {key[1]: Fraction(1)}) for key in scene.slots}
        if any(len(mix) > 1 for mix in queries.values()):
            raise SpecError(
                "privacy.shares.optimal.prior chooses the share of every query, but strategy "
                "states some. Write strategy: optimal, or leave the prior out."
            )
        prior = shares.optimal.prior
        leaves = prior_counts_by_cell(self.spec, prior, self.hierarchy, self.schema)
        levels = leaves.by_level(self.hierarchy)
        answers = []
        for (level, _), mix in queries.items():
            index, query = self.hierarchy.index(level), parse_query(self.schema, next(iter(mix)))
            shown = ~self.hierarchy.passes_through[index]
            answers.append(levels[index].marginal(query.cell_of, query.n_cells)[shown])
        return answers, level_weights(shares.optimal.weights, scene.measured_levels)
