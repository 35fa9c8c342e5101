"""What a plan, or another split of its budget, is expected to bring: all known without counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from trellis.errors import SpecError
from trellis.model.plans.plan import Plan
from trellis.model.tables.queries import DETAILED, TOTAL, parse_query
from trellis.model.trees.hierarchy import Hierarchy
from trellis.planning.allocation.choose import Scene, SlotKey, level_aims
from trellis.planning.allocation.data_free import Aim, optimal_budgets, weighted_error
from trellis.planning.budget.clipped import clipped_bias
from trellis.planning.forecast.expected_variance import VarianceModel, median

Floats = NDArray[np.float64]

SIZES = (100, 1_000, 10_000)
"""Sizes of areas, in people, for relative errors."""
SMALL_SIZES = (0, 1, 10, 100, 1_000)
"""Counts of this size, for the bias of clipping."""

CENSUS_SHARES = (165, 1256, 687, 447, 1440, 104)
"""The persons file of the 2020 US census: parts of 4099 by level, block first."""

_NEARLY_NONE = 1e-12
"""The share of a level that is not measured, where all levels are compared."""


def has_outlook(plan: Plan) -> bool:
    """Whether standard errors are those of linear estimates, known beforehand."""
    return plan.design.divides_records and plan.method.has_variances


@dataclass(frozen=True, slots=True)
class ErrorLine:
    """Standard errors of one query on one level; relative errors and biases are for the median.

    The bias of clipping is that of max(0, estimate) for a normal estimate, by the true count. A
    category of areas of interest can take the place of a level.
    """

    level: str
    query: str
    areas: int
    least: float
    median: float
    most: float
    is_area: bool = False

    @property
    def relative_errors(self) -> dict[int, float]:
        return {size: self.median / size for size in SIZES}

    @property
    def clipping_bias(self) -> dict[int, float]:
        if self.median == 0:
            return dict.fromkeys(SMALL_SIZES, 0.0)
        bias = clipped_bias("gaussian", self.median**2, SMALL_SIZES)
        return dict(zip(SMALL_SIZES, bias.tolist(), strict=True))


@dataclass(frozen=True, slots=True)
class StrategyLine:
    """A way to split the budget, and what it brings; errors are medians of what is published."""

    name: str
    shares: Mapping[str, float]
    std_errors: Mapping[str, float]
    squared_error: float


@dataclass(frozen=True, slots=True, eq=False)
class Outlook:
    """A plan on its tree, with the budget of every query that is measured.

    `tables` are the published tables of a histogram, and `aims` what their errors count for.
    """

    scene: Scene
    budgets: Floats
    tables: tuple[SlotKey, ...] = ()
    aims: tuple[Aim, ...] | None = None

    @classmethod
    def of(cls, plan: Plan, hierarchy: Hierarchy) -> Outlook | None:
        """None where errors are not known beforehand; on a spine, the plan itself has them."""
        if not has_outlook(plan) or plan.spine is not None:
            return None
        noisy = [query for query in plan.queries if query.noise is not None]
        slots = tuple((query.level, query.query) for query in noisy)
        laws = {query.noise.name for query in noisy if query.noise is not None}
        scene = Scene(
            hierarchy, plan.schema, plan.protection, plan.unprotected_totals, laws.pop(), slots
        )
        unit = scene.model().unit
        parameters = [float(q.noise.parameter) for q in noisy if q.noise is not None]
        tables = plan.design.published_tables()
        return cls(scene, unit / np.array(parameters), tables)

    @property
    def total(self) -> float:
        return float(self.budgets.sum())

    def with_budgets(self, budgets: Floats) -> Outlook:
        return replace(self, budgets=budgets)

    def over(self, slots: Sequence[SlotKey]) -> Outlook:
        """With all that could be measured; what the plan leaves out gets nearly none.

        Others may split the budget over levels that the plan leaves out.
        """
        own = dict(zip(self.scene.slots, self.budgets.tolist(), strict=True))
        budgets = [own.get(key, _NEARLY_NONE * self.total) for key in slots]
        scene = replace(self.scene, slots=tuple(slots))
        return replace(self, scene=scene, budgets=np.array(budgets))

    def errors(self) -> list[ErrorLine]:
        """A line for every level and query: what is published, then what else is measured."""
        model, levels = self.scene.model(), self.scene.hierarchy.level_names
        asked = []
        for name in levels:
            shown = [query for at, query in self.tables if at == name]
            if not self.tables:
                shown = [TOTAL, DETAILED] if self.scene.schema.n_cells > 1 else [TOTAL]
            measured = [query for at, query in self.scene.slots if at == name]
            asked += [(name, query) for query in dict.fromkeys([*shown, *measured])]
        return self._lines(model, asked)

    def _lines(self, model: VarianceModel, asked: Sequence[SlotKey]) -> list[ErrorLine]:
        schema, levels = self.scene.schema, self.scene.hierarchy.level_names
        parsed = [(levels.index(level), parse_query(schema, query)) for level, query in asked]
        found = model.variances(self.budgets, parsed)
        return [
            error_line(
                levels[level], query.name, v, model.shape.published[level], model.kinds(query).sizes
            )
            for (level, query), v in zip(parsed, found, strict=True)
        ]

    @property
    def published(self) -> tuple[SlotKey, ...]:
        """What is published: tables, or all cells of every level."""
        levels = self.scene.hierarchy.level_names
        return self.tables or tuple((level, DETAILED) for level in levels)

    def label(self, level: str, query: str) -> str:
        """How a published query is called: by its level, if there is one on each."""
        return f"{level}: {query}" if self.tables else level

    def std_errors(self) -> dict[str, float]:
        """The median standard error of all that is published."""
        lines = self._lines(self.scene.model(), self.published)
        labels = [self.label(*key) for key in self.published]
        return {label: line.median for label, line in zip(labels, lines, strict=True)}

    def root_mean_squares(self) -> dict[str, float]:
        """The root of the mean variance of all that is published."""
        model, schema, means = self.scene.model(), self.scene.schema, {}
        levels = self.scene.hierarchy.level_names
        parsed = [(levels.index(level), parse_query(schema, q)) for level, q in self.published]
        found = model.variances(self.budgets, parsed)
        for key, (level, query), variances in zip(self.published, parsed, found, strict=True):
            numbers = np.outer(model.shape.published[level], model.kinds(query).sizes)
            means[self.label(*key)] = float(np.average(variances, weights=numbers)) ** 0.5
        return means

    def squared_error(self, weights: Sequence[float] | None = None) -> float:
        """The expected squared error of what is published, summed with weights."""
        return weighted_error(self.scene.model(), self._aims(weights), self.budgets)

    def _aims(self, weights: Sequence[float] | None) -> Sequence[Aim]:
        return level_aims(self.scene, weights) if self.aims is None else self.aims

    def compare(
        self, names: Sequence[str], weights: Sequence[float] | None = None
    ) -> list[StrategyLine]:
        """The plan's own split next to others of the same budget."""
        lines = [self._strategy("spec", self.budgets / self.total, weights)]
        for name in names:
            if name not in STRATEGIES:
                raise SpecError(
                    f"There is no strategy {name!r} to compare with; use {', '.join(STRATEGIES)}."
                )
            lines.append(self._strategy(name, STRATEGIES[name](self, weights), weights))
        return lines

    def _strategy(self, name: str, shares: Floats, weights: Sequence[float] | None) -> StrategyLine:
        split = self.with_budgets(shares * self.total)
        by_level = dict.fromkeys(self.scene.measured_levels, 0.0)
        for (level, _), share in zip(self.scene.slots, shares.tolist(), strict=True):
            by_level[level] += share if share > 2 * _NEARLY_NONE else 0.0
        return StrategyLine(name, by_level, split.std_errors(), split.squared_error(weights))

    def _by_level(self, level_shares: Sequence[float]) -> Floats:
        """Level shares, split among the queries of a level as the plan does."""
        levels = self.scene.measured_levels
        position = np.array([levels.index(level) for level, _ in self.scene.slots])
        within = self.budgets / np.bincount(position, self.budgets)[position]
        shares = np.array(level_shares, dtype=np.float64)
        return (shares / shares.sum())[position] * within


def error_line(
    level: str,
    query: str,
    variances: Floats,
    areas: NDArray[np.int64],
    sizes: NDArray[np.int64] | None = None,
    *,
    is_area: bool = False,
) -> ErrorLine:
    """From the variance of every entry, and how many published areas it stands for.

    With `sizes`, entries have a column for each kind of cell, which stands for that many cells.
    """
    errors = np.sqrt(variances[areas > 0])
    shown = areas[areas > 0]
    middle = median(errors, shown if sizes is None else np.outer(shown, sizes))
    least, most = float(errors.min()), float(errors.max())
    return ErrorLine(level, query, int(areas.sum()), least, middle, most, is_area)


Strategy = Callable[[Outlook, Sequence[float] | None], Floats]


def _uniform(outlook: Outlook, _: object) -> Floats:
    return outlook._by_level([1.0] * len(outlook.scene.measured_levels))


def _bottom_heavy(outlook: Outlook, _: object) -> Floats:
    return outlook._by_level([2.0**i for i in range(len(outlook.scene.measured_levels))])


def _top_heavy(outlook: Outlook, _: object) -> Floats:
    return outlook._by_level([0.5**i for i in range(len(outlook.scene.measured_levels))])


def _proportional(outlook: Outlook, _: object) -> Floats:
    tree = outlook.scene.hierarchy
    areas = dict(zip(tree.level_names, tree.areas, strict=True))
    return outlook._by_level([areas[name] for name in outlook.scene.measured_levels])


def _fan_out(outlook: Outlook, _: object) -> Floats:
    """In proportion to the mean number of children that each level has in the one above it."""
    tree = outlook.scene.hierarchy
    above = (1, *tree.areas[:-1])
    fan_out = dict(zip(tree.level_names, np.divide(tree.areas, above), strict=True))
    return outlook._by_level([fan_out[name] for name in outlook.scene.measured_levels])


def _census(outlook: Outlook, _: object) -> Floats:
    n_levels = len(outlook.scene.measured_levels)
    if n_levels > len(CENSUS_SHARES):
        raise SpecError(f"The strategy census is for {len(CENSUS_SHARES)} levels at most.")
    return outlook._by_level(CENSUS_SHARES[:n_levels][::-1])


def _optimal(outlook: Outlook, weights: Sequence[float] | None) -> Floats:
    aims = outlook._aims(weights)
    return optimal_budgets(outlook.scene.model(), aims, outlook.total) / outlook.total


STRATEGIES: dict[str, Strategy] = {
    "uniform": _uniform,
    "optimal": _optimal,
    "bottom-heavy": _bottom_heavy,
    "top-heavy": _top_heavy,
    "proportional": _proportional,
    "fan-out": _fan_out,
    "census": _census,
}
"""Each gives the share of every query that the plan measures."""
