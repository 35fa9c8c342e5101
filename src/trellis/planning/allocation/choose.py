"""Chooses shares, and where asked the budget itself, without touching a count.

Shares come from one of: what is stated, an earlier release (`budget.allocation`), targets
(`targets`), or the expected errors alone (`data_free`). They leave here as fractions that sum to
one; a budget is rounded up to six digits, and then meets every target.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from trellis.errors import SpecError
from trellis.model.tables.queries import named_query, parse_query
from trellis.model.tables.schema import Schema
from trellis.model.trees.areas import Category
from trellis.model.trees.hierarchy import Hierarchy
from trellis.numerics.histograms.algebra.query_algebra import Algebra
from trellis.planning.allocation.components import components
from trellis.planning.allocation.data_free import Aim, Split, least_error, optimal_budgets
from trellis.planning.allocation.rational_shares import rational_shares, shares_rounded_up
from trellis.planning.allocation.targets import (
    Forecast,
    LevelForecast,
    Met,
    Target,
    how_far_met,
    least_budgets,
    least_total,
)
from trellis.planning.budget.allocation import split_budget
from trellis.planning.forecast.area_variance import AreaAim, AreaModel, MeasuredTree
from trellis.planning.forecast.expected_variance import Slot, VarianceModel
from trellis.planning.forecast.tree_shape import TreeShape
from trellis.planning.spine.measured import SpineTrees
from trellis.privacy.accounting.zcdp import zcdp_rho
from trellis.privacy.budget import LEAST, MOST, Budget
from trellis.privacy.mechanisms import DiscreteLaplace
from trellis.privacy.protection import Protection

SlotKey = tuple[str, str]
"""Level and query."""

_WEIGHTS = "privacy.shares.optimal.weights"

_KNOWN = 1e-9
"""With a budget of one, no noisy answer has so small a variance."""


@dataclass(frozen=True, slots=True, eq=False)
class Scene:
    """The public facts that decide on errors: areas, cells, who is protected, what is measured.

    `categories` are areas of interest. On a spine, slots are levels of `spine`.
    """

    hierarchy: Hierarchy
    schema: Schema
    protection: Protection
    exact: tuple[str, ...]
    mechanism: str
    slots: tuple[SlotKey, ...]
    categories: Mapping[str, Category] = field(default_factory=dict)
    spine: SpineTrees | None = None
    mixes: Mapping[SlotKey, Mapping[str, Fraction]] = field(default_factory=dict)
    """Slots that stand for several queries in stated parts."""

    @property
    def unit(self) -> float:
        """The parameter of the noise times the budget."""
        pure = self.mechanism == DiscreteLaplace.name
        return float(self.protection.l1 if pure else self.protection.l2_squared / 2)

    def model(self) -> VarianceModel:
        """Variances as a function of budgets: epsilon for Laplace noise, rho for Gaussian."""
        levels = self.hierarchy.level_names
        slots, names = [], dict.fromkeys(name for name, _ in self.schema.recodes)
        for key in self.slots:
            mix = self.mixes.get(key, {key[1]: Fraction(1)})
            parts = tuple((parse_query(self.schema, q), float(part)) for q, part in mix.items())
            slots.append(Slot(levels.index(key[0]), parts))
            names |= dict.fromkeys(mix)
        return VarianceModel(
            TreeShape.of(self.hierarchy),
            Algebra.of(self.schema.shape, [parse_query(self.schema, name) for name in names]),
            tuple(slots),
            tuple(levels.index(name) for name in self.exact),
            self.mechanism,
            self.unit,
        )

    def area_model(self, names: Sequence[str], measured: MeasuredTree | None = None) -> AreaModel:
        """Variances of these levels and categories, on the tree that is measured."""
        if measured is None and self.spine is not None:
            measured = self.spine.by_level
        elif measured is None:
            measured = MeasuredTree.conventional(self.hierarchy, self.measured_levels)
        return AreaModel.of(
            self.hierarchy,
            measured,
            [self.categories.get(name, name) for name in names],
            components(self.schema),
            self.exact,
            self.mechanism,
            self.unit,
        )

    def forecast(self, targets: Sequence[Target]) -> Forecast:
        """What the errors of these targets depend on."""
        if self.spine is None and all(target.level is not None for target in targets):
            return LevelForecast(self.model())
        return self.area_model([target.name for target in targets])

    @property
    def measured_levels(self) -> list[str]:
        return list(dict.fromkeys(level for level, _ in self.slots))

    @property
    def levels(self) -> Sequence[str]:
        """All levels of the tree that is measured."""
        return self.hierarchy.level_names if self.spine is None else self.spine.levels

    @property
    def weighted_levels(self) -> list[str]:
        """The published levels whose errors can be weighed."""
        if self.spine is None:
            return self.measured_levels
        several = self.schema.n_cells > 1
        return [name for name in self.hierarchy.level_names if several or name not in self.exact]

    def target(self, level: str, query: str, within: Fraction, confidence: Fraction) -> Target:
        names = self.hierarchy.level_names
        if level not in names:
            raise SpecError(f"accuracy names level {level!r}; the hierarchy has {_listed(names)}.")
        asked = named_query(self.schema, query)
        if level in self.exact and asked.n_cells == 1:
            raise SpecError(
                f"accuracy: totals of level {level!r} are published exactly, so no target is "
                "needed. Take it out."
            )
        return Target(names.index(level), level, asked, within, confidence)

    def area_target(self, area: str, query: str, within: Fraction, confidence: Fraction) -> Target:
        if area in self.hierarchy.level_names:
            raise SpecError(f"accuracy: {area!r} is a level. Write level: {area} in place of area.")
        if area not in self.categories:
            there = f"there are {_listed(list(self.categories))}" if self.categories else "none is"
            raise SpecError(
                f"accuracy names areas {area!r}; {there} declared under areas. Declare them there."
            )
        return Target(None, area, named_query(self.schema, query), within, confidence)


@dataclass(frozen=True, slots=True, eq=False)
class Wish:
    """What shares are to be good for.

    `shares` are stated ones; `prior` holds public counts of the leaves by cell; `weights` go with
    the levels that can be weighed, `area_weights` with categories of areas. `keep` are slots that
    must not be rounded to nothing. `most` is the largest budget that may be chosen.

    For histograms, `answers` holds what a prior answers to each slot, `aims` are the published
    tables, and `level_shares` are stated ones that leave the shares within levels open.
    """

    budget: Budget | None
    shares: Mapping[SlotKey, Fraction] | None = None
    weights: Sequence[float] | None = None
    area_weights: Mapping[str, float] = field(default_factory=dict)
    prior: NDArray[np.int64] | None = None
    targets: tuple[Target, ...] = ()
    keep: tuple[SlotKey, ...] = ()
    most: Fraction = MOST
    answers: Sequence[NDArray[np.int64]] | None = None
    aims: tuple[Aim, ...] | None = None
    level_shares: Mapping[str, Fraction] | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """A budget and exact shares of it."""

    budget: Budget
    shares: Mapping[SlotKey, Fraction]


def choose(scene: Scene, wish: Wish) -> Choice:
    """Shares that suit the wish; without a budget, the least one that meets the targets."""
    _refuse_known(scene, wish.targets)
    if wish.budget is not None:
        return Choice(wish.budget, _shares(scene, wish, total_of(wish.budget)))
    shares = _shares(scene, wish, 1.0)
    total = _least_for(scene, wish, shares)
    if any(given is not None for given in (wish.answers, wish.prior, wish.aims, wish.weights)):
        # Shares depend a little on the budget, and the budget on the shares.
        shares = _shares(scene, wish, total)
        total = _least_for(scene, wish, shares)
    return Choice(_rounded_up(total, pure=scene.mechanism == DiscreteLaplace.name), shares)


def _refuse_known(scene: Scene, targets: Sequence[Target]) -> None:
    """Targets on what exact totals tell, such as the only area below one: no budget is least."""
    if not targets:
        return
    even = {key: Fraction(1, len(scene.slots)) for key in scene.slots}
    forecast, parts = _in_shares(scene, targets, even)
    for target, variances in zip(targets, forecast.variances(targets, parts), strict=True):
        if variances.max() <= _KNOWN:
            raise SpecError(
                f"accuracy: {target.query.name!r} of {target.name!r} is known from totals that are "
                "published exactly, so no target is needed. Take it out."
            )


def total_of(budget: Budget) -> float:
    """The budget as one number: epsilon if pure, else rho, or about the rho it amounts to."""
    if budget.is_pure:
        return float(budget.epsilon or 0)
    if budget.rho is not None:
        return float(budget.rho)
    assert budget.epsilon is not None
    assert budget.delta is not None
    return float(zcdp_rho(float(budget.epsilon), float(budget.delta)))


Weights = Mapping[str, Fraction] | Sequence[Fraction]


def level_weights(
    given: Weights | None, levels: Sequence[str], categories: Collection[str] = ()
) -> list[float] | None:
    """One weight for each level, from a list, or from a mapping that may name categories too."""
    if given is None:
        return None
    if isinstance(given, Mapping):
        if unknown := [name for name in given if name not in levels and name not in categories]:
            raise SpecError(
                f"{_WEIGHTS} names level {unknown[0]!r}, which is not measured or does not exist; "
                f"there are {_listed([*levels, *categories])}."
            )
        if missing := [name for name in levels if name not in given]:
            raise SpecError(
                f"{_WEIGHTS}: level {missing[0]!r} has no weight. Give it one, 0 or more."
            )
        if any(weight < 0 for weight in given.values()) or not any(given.values()):
            raise SpecError(f"{_WEIGHTS}: weights must be 0 or more, and one of them positive.")
        return [float(given[name]) for name in levels]
    if len(given) != len(levels):
        raise SpecError(
            f"{_WEIGHTS}: {len(given)} weights for {len(levels)} measured levels "
            f"({_listed(levels)}). Give one for each."
        )
    if any(weight < 0 for weight in given) or not any(given):
        raise SpecError(f"{_WEIGHTS}: weights must be 0 or more, and one of them positive.")
    return [float(weight) for weight in given]


def area_weights(given: Weights | None, categories: Collection[str]) -> dict[str, float]:
    """The weights that go with categories of areas of interest."""
    if not isinstance(given, Mapping):
        return {}
    return {name: float(weight) for name, weight in given.items() if name in categories and weight}


def _shares(scene: Scene, wish: Wish, total: float) -> Mapping[SlotKey, Fraction]:
    if wish.shares is not None:
        return wish.shares
    if wish.answers is not None:
        weights = None
        if wish.weights is not None:
            by_level = dict(zip(scene.measured_levels, wish.weights, strict=True))
            weights = [by_level[level] for level, _ in scene.slots]
        budgets = split_budget(scene.mechanism, scene.unit, wish.answers, total, weights)
    elif wish.prior is not None:
        if wish.area_weights:
            raise SpecError(
                f"{_WEIGHTS}: a prior predicts errors of measured numbers, and areas of interest "
                "are not measured. Leave out the prior, or the weight of "
                f"{next(iter(wish.area_weights))!r}."
            )
        budgets = _from_prior(scene, wish.prior, total, wish.weights)
    elif wish.budget is None and wish.targets and wish.weights is None and wish.aims is None:
        return _for_targets(scene, wish)
    elif scene.spine is not None or wish.area_weights:
        budgets = _optimal_for_areas(scene, wish, total)
    else:
        aims = wish.aims if wish.aims is not None else level_aims(scene, wish.weights)
        budgets = optimal_budgets(scene.model(), aims, total, _split(scene, wish))
    return _rational(wish, dict(zip(scene.slots, budgets.tolist(), strict=True)))


def _for_targets(scene: Scene, wish: Wish) -> Mapping[SlotKey, Fraction]:
    """The shares of the least budget, in the rounding that costs less."""
    budgets = least_budgets(scene.forecast(wish.targets), wish.targets)
    by_slot = dict(zip(scene.slots, budgets.tolist(), strict=True))

    def cost(shares: Mapping[SlotKey, Fraction]) -> float:
        forecast, parts = _in_shares(scene, wish.targets, shares)
        return least_total(forecast, wish.targets, parts)

    nearest, raised = (to(by_slot, wish.keep) for to in (rational_shares, shares_rounded_up))
    return min(nearest, raised, key=cost)


def _rational(wish: Wish, budgets: Mapping[SlotKey, float]) -> Mapping[SlotKey, Fraction]:
    """Exact shares; those of levels stay as stated."""
    if wish.level_shares is None:
        return rational_shares(budgets, wish.keep)
    shares = {}
    for level, part in wish.level_shares.items():
        within = {key: budget for key, budget in budgets.items() if key[0] == level}
        keep = [key for key in wish.keep if key[0] == level]
        found = rational_shares(within, keep)
        shares |= {key: part * share for key, share in found.items()}
    return shares


def _split(scene: Scene, wish: Wish) -> Split | None:
    if wish.level_shares is None:
        return None
    levels = list(wish.level_shares)
    group = np.array([levels.index(level) for level, _ in scene.slots], dtype=np.int64)
    return Split(group, np.array([float(part) for part in wish.level_shares.values()]))


def _optimal_for_areas(scene: Scene, wish: Wish, total: float) -> NDArray[np.float64]:
    """The least weighted squared error of levels and areas of interest, on any tree."""
    levels, cells = scene.weighted_levels, parse_query(scene.schema, "detailed")
    weights = dict(zip(levels, wish.weights or [1.0] * len(levels), strict=True))
    aims = [
        AreaAim(name, cells, weight)
        for name, weight in {**weights, **wish.area_weights}.items()
        if weight
    ]
    model = scene.area_model([aim.name for aim in aims])
    return least_error(
        lambda budgets: model.weighted_error(aims, budgets),
        model.kind,
        Split.free(model.n_slots),
        total,
    )


def level_aims(scene: Scene, weights: Sequence[float] | None) -> list[Aim]:
    """The squared errors of all cells of a level, summed, times its weight."""
    levels = scene.measured_levels
    cells = parse_query(scene.schema, "detailed")
    return [
        Aim(scene.hierarchy.level_names.index(level), cells, weight)
        for level, weight in zip(levels, weights or [1.0] * len(levels), strict=True)
    ]


def _from_prior(
    scene: Scene,
    leaves: NDArray[np.int64],
    total: float,
    weights: Sequence[float] | None,
) -> NDArray[np.float64]:
    if len(scene.slots) != len(scene.measured_levels):
        raise SpecError(
            "privacy.shares.optimal.prior is for one query on each level. Leave the prior out to "
            "have the shares of several queries computed, or state the shares."
        )
    if scene.spine is None:
        tree = scene.hierarchy
    else:  # measured are nodes of the spine; what is not published has no weight
        redrawn = scene.spine.redrawn()
        tree, leaves = redrawn.hierarchy, leaves[redrawn.leaf_order]
        given = weights or [1.0] * len(scene.weighted_levels)
        published = dict(zip(scene.weighted_levels, given, strict=True))
        weights = [published.get(level, 0.0) for level, _ in scene.slots]
    counts, level_counts = tree.sum_up(leaves), []
    for level, query in scene.slots:
        shown = ~tree.passes_through[tree.index(level)]
        answers = parse_query(scene.schema, query).answer(counts[tree.index(level)][shown])
        level_counts.append(answers)
    return split_budget(scene.mechanism, scene.unit, level_counts, total, weights)


def _in_shares(
    scene: Scene, targets: Sequence[Target], shares: Mapping[SlotKey, Fraction]
) -> tuple[Forecast, NDArray[np.float64]]:
    """What a budget in these shares brings, and the part of it that each of its slots has."""
    if scene.spine is None:
        parts = np.array([max(float(shares.get(key, 0)), 1e-12) for key in scene.slots])
        return scene.forecast(targets), parts
    measured = scene.spine.in_shares({level: share for (level, _), share in shares.items()})
    return scene.area_model([target.name for target in targets], measured), np.ones(1)


def _least_for(scene: Scene, wish: Wish, shares: Mapping[SlotKey, Fraction]) -> float:
    """The least budget in these shares; beyond the most that there may be, an error."""
    forecast, parts = _in_shares(scene, wish.targets, shares)
    total = least_total(forecast, wish.targets, parts)
    if total <= float(wish.most):
        return max(total, float(LEAST))
    name = "epsilon" if forecast.kind == DiscreteLaplace.name else "rho"
    best = how_far_met(forecast, wish.targets, parts * float(wish.most))
    missed = max(best, key=lambda met: met.reached / float(met.target.within))
    raise SpecError(
        f"accuracy: {missed.target.label} cannot be reached. It takes {name} = {total:.4g}; the "
        f"most that may be spent, {name} = {wish.most}, reaches {missed.reached:.3g}."
    )


def met_targets(scene: Scene, targets: Sequence[Target], budgets: Sequence[float]) -> list[Met]:
    """How far targets are met when every slot has this budget."""
    return how_far_met(scene.forecast(targets), targets, np.array(budgets))


def _rounded_up(total: float, *, pure: bool) -> Budget:
    digits = Context(prec=6, rounding=ROUND_CEILING).create_decimal(Decimal(total))
    exact = min(Fraction(digits), MOST)
    return Budget(epsilon=exact) if pure else Budget(rho=exact)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)
