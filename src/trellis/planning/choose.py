"""Chooses shares, and where asked the budget itself, without touching a count.

Shares come from one of: what is stated, an earlier release (`budget.allocation`), targets
(`targets`), or the expected errors alone (`data_free`). They leave here as fractions that sum to
one; a budget is rounded up to six digits, and then meets every target.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from trellis.errors import SpecError
from trellis.model.hierarchy import Hierarchy
from trellis.model.queries import parse_query
from trellis.model.schema import Schema
from trellis.numerics.histograms.commuting import Algebra
from trellis.planning.budget.allocation import split_budget
from trellis.planning.data_free import Aim, Split, optimal_budgets
from trellis.planning.expected_variance import Slot, VarianceModel
from trellis.planning.rational_shares import DENOMINATOR, rational_shares
from trellis.planning.spine_shape import SpineShape
from trellis.planning.targets import Met, Target, how_far_met, least_budgets, least_total
from trellis.privacy.accounting.zcdp import zcdp_rho
from trellis.privacy.budget import LEAST, MOST, Budget
from trellis.privacy.mechanisms import DiscreteLaplace
from trellis.privacy.protection import Protection

SlotKey = tuple[str, str]
"""Level and query."""


@dataclass(frozen=True, slots=True, eq=False)
class Scene:
    """The public facts that decide on errors: areas, cells, who is protected, what is measured."""

    hierarchy: Hierarchy
    schema: Schema
    protection: Protection
    exact: tuple[str, ...]
    mechanism: str
    slots: tuple[SlotKey, ...]
    mixes: Mapping[SlotKey, Mapping[str, Fraction]] = field(default_factory=dict)
    """Slots that stand for several queries in stated parts."""

    def model(self) -> VarianceModel:
        """Variances as a function of budgets: epsilon for Laplace noise, rho for Gaussian."""
        pure = self.mechanism == DiscreteLaplace.name
        unit = self.protection.l1 if pure else self.protection.l2_squared / 2
        levels = self.hierarchy.level_names
        slots, names = [], dict.fromkeys(name for name, _ in self.schema.recodes)
        for key in self.slots:
            mix = self.mixes.get(key, {key[1]: Fraction(1)})
            parts = tuple((parse_query(self.schema, q), float(part)) for q, part in mix.items())
            slots.append(Slot(levels.index(key[0]), parts))
            names |= dict.fromkeys(mix)
        return VarianceModel(
            SpineShape.of(self.hierarchy),
            Algebra.of(self.schema.shape, [parse_query(self.schema, name) for name in names]),
            tuple(slots),
            tuple(levels.index(name) for name in self.exact),
            self.mechanism,
            float(unit),
        )

    @property
    def measured_levels(self) -> list[str]:
        return list(dict.fromkeys(level for level, _ in self.slots))

    def target(self, level: str, query: str, within: Fraction, confidence: Fraction) -> Target:
        names = self.hierarchy.level_names
        if level not in names:
            raise SpecError(f"accuracy names level {level!r}; the hierarchy has {_listed(names)}.")
        asked = parse_query(self.schema, query)
        if level in self.exact and asked.n_cells == 1:
            raise SpecError(
                f"accuracy: totals of level {level!r} are published exactly, so that no target is "
                "needed. Take it out."
            )
        return Target(names.index(level), level, asked, within, confidence)


@dataclass(frozen=True, slots=True, eq=False)
class Wish:
    """What shares are to be good for.

    `shares` are stated ones, and `level_shares` leave those within levels open. `prior` holds the
    public answers to the query of each slot. `weights` go with the measured levels, and count all
    cells, unless `aims` say what counts. `keep` are slots that must not be rounded to nothing.
    `most` is the largest budget that may be chosen.
    """

    budget: Budget | None
    shares: Mapping[SlotKey, Fraction] | None = None
    weights: Sequence[float] | None = None
    prior: Sequence[NDArray[np.int64]] | None = None
    targets: tuple[Target, ...] = ()
    keep: tuple[SlotKey, ...] = ()
    most: Fraction = MOST
    aims: tuple[Aim, ...] | None = None
    level_shares: Mapping[str, Fraction] | None = None
    denominator: int = DENOMINATOR


@dataclass(frozen=True, slots=True)
class Choice:
    """A budget and exact shares of it."""

    budget: Budget
    shares: Mapping[SlotKey, Fraction]


def choose(scene: Scene, wish: Wish) -> Choice:
    """Shares that suit the wish; without a budget, the least one that meets the targets."""
    model = scene.model()
    if wish.budget is not None:
        return Choice(wish.budget, _shares(scene, model, wish, total_of(wish.budget)))
    # Shares depend a little on the budget, and the budget on the shares.
    total = _least_for(scene, model, wish, _shares(scene, model, wish, 1.0))
    shares = _shares(scene, model, wish, total)
    total = _least_for(scene, model, wish, shares)
    return Choice(_rounded_up(total, pure=model.kind == DiscreteLaplace.name), shares)


def total_of(budget: Budget) -> float:
    """The budget as one number: epsilon if pure, else rho, or about the rho it amounts to."""
    if budget.is_pure:
        return float(budget.epsilon or 0)
    if budget.rho is not None:
        return float(budget.rho)
    assert budget.epsilon is not None
    assert budget.delta is not None
    return float(zcdp_rho(float(budget.epsilon), float(budget.delta)))


def level_weights(
    given: Mapping[str, Fraction] | Sequence[Fraction] | None, levels: Sequence[str]
) -> list[float] | None:
    """One weight for each measured level, from a mapping or a list."""
    key = "privacy.shares.optimal.weights"
    if given is None:
        return None
    if isinstance(given, Mapping):
        if unknown := [name for name in given if name not in levels]:
            raise SpecError(
                f"{key} names level {unknown[0]!r}, which is not measured or does not exist; there "
                f"are {_listed(levels)}."
            )
        if missing := [name for name in levels if name not in given]:
            raise SpecError(f"{key}: level {missing[0]!r} has no weight. Give it one, 0 or more.")
        given = [given[name] for name in levels]
    if len(given) != len(levels):
        raise SpecError(
            f"{key}: {len(given)} weights for {len(levels)} measured levels ({_listed(levels)}). "
            "Give one for each."
        )
    if any(weight < 0 for weight in given) or not any(given):
        raise SpecError(f"{key}: weights must be 0 or more, and one of them positive.")
    return [float(weight) for weight in given]


def _shares(
    scene: Scene, model: VarianceModel, wish: Wish, total: float
) -> Mapping[SlotKey, Fraction]:
    if wish.shares is not None:
        return wish.shares
    levels = scene.measured_levels
    if wish.prior is not None:
        weights = None if wish.weights is None else dict(zip(levels, wish.weights, strict=True))
        by_slot = None if weights is None else [weights[level] for level, _ in scene.slots]
        budgets = split_budget(model.kind, model.unit, wish.prior, total, by_slot)
    elif wish.targets and wish.weights is None and wish.aims is None:
        budgets = least_budgets(model, wish.targets)
    else:
        aims = wish.aims if wish.aims is not None else level_aims(scene, wish.weights)
        budgets = optimal_budgets(model, aims, total, _split(scene, wish))
    by_key = dict(zip(scene.slots, budgets.tolist(), strict=True))
    if wish.level_shares is None:
        return rational_shares(by_key, wish.keep, wish.denominator)
    shares = {}
    for level, part in wish.level_shares.items():
        within = {key: budget for key, budget in by_key.items() if key[0] == level}
        rational = rational_shares(within, wish.keep, wish.denominator)
        shares |= {key: part * share for key, share in rational.items()}
    return shares


def _split(scene: Scene, wish: Wish) -> Split | None:
    if wish.level_shares is None:
        return None
    levels = list(wish.level_shares)
    group = np.array([levels.index(level) for level, _ in scene.slots], dtype=np.int64)
    return Split(group, np.array([float(part) for part in wish.level_shares.values()]))


def level_aims(scene: Scene, weights: Sequence[float] | None) -> list[Aim]:
    """The squared errors of all cells of a level, summed, times its weight."""
    levels = scene.measured_levels
    cells = parse_query(scene.schema, "detailed")
    return [
        Aim(scene.hierarchy.level_names.index(level), cells, weight)
        for level, weight in zip(levels, weights or [1.0] * len(levels), strict=True)
    ]


def _least_for(
    scene: Scene, model: VarianceModel, wish: Wish, shares: Mapping[SlotKey, Fraction]
) -> float:
    """The least budget in these shares; beyond the most that there may be, an error."""
    parts = np.array([max(float(shares.get(key, 0)), 1e-12) for key in scene.slots])
    total = least_total(model, wish.targets, parts)
    if total <= float(wish.most):
        return max(total, float(LEAST))
    name = "epsilon" if model.kind == DiscreteLaplace.name else "rho"
    best = how_far_met(model, wish.targets, parts * float(wish.most))
    missed = next(met for met in best if not met.is_met)
    raise SpecError(
        f"accuracy: {missed.target.label} cannot be reached. It takes {name} = {total:.4g}; the "
        f"most that may be spent, {name} = {wish.most}, reaches {missed.reached:.3g}."
    )


def met_targets(scene: Scene, targets: Sequence[Target], budgets: Sequence[float]) -> list[Met]:
    """How far targets are met when every slot has this budget."""
    return how_far_met(scene.model(), targets, np.array(budgets))


def _rounded_up(total: float, *, pure: bool) -> Budget:
    digits = Context(prec=6, rounding=ROUND_CEILING).create_decimal(Decimal(total))
    exact = min(Fraction(digits), MOST)
    return Budget(epsilon=exact) if pure else Budget(rho=exact)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)
