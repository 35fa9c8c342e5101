"""Budget and shares of a spec: as stated, or computed from public facts alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import floor

import numpy as np
from numpy.typing import NDArray

from trellis.errors import SpecError
from trellis.ingest.public.priors import Crosswalk, Prior, read_prior
from trellis.model.plans.shares import Shares
from trellis.model.tables.queries import DETAILED, TOTAL
from trellis.model.tables.schema import Schema
from trellis.model.trees.areas import Category
from trellis.model.trees.hierarchy import Hierarchy
from trellis.planning.allocation.choose import Scene, Wish, area_weights, choose, level_weights
from trellis.planning.allocation.targets import Target
from trellis.planning.kinds.counts import measurable_levels
from trellis.planning.kinds.invariants import exact_levels
from trellis.planning.spine.measured import SpineTrees
from trellis.planning.spine.steps import check_steps
from trellis.privacy.budget import MOST, Budget
from trellis.privacy.mechanisms import DiscreteLaplace
from trellis.privacy.protection import Protection
from trellis.spec import Spec
from trellis.spec.counts import TabularSpec
from trellis.spec.histograms import HistogramsSpec
from trellis.spec.public_files import refuse_confidential
from trellis.spec.sections.cells import CellForm
from trellis.spec.sections.planning import OptimalSharesSpec, PriorSpec
from trellis.spec.sections.strategy import OptimalStrategySpec
from trellis.workflow.preparing.spines import steps_of


def chosen_split(
    spec: TabularSpec, hierarchy: Hierarchy, schema: Schema, categories: Mapping[str, Category]
) -> tuple[Budget, Shares]:
    """The budget and the shares of the levels that a spec with targets or a wish amounts to."""
    privacy, stated = spec.privacy, None
    if privacy.budget is not None and not privacy.budget.is_least:
        stated = privacy.budget.value()
    scene = scene_of(spec, hierarchy, schema, categories)
    choice = choose(scene, _wish(spec, scene, stated))
    return choice.budget, Shares({level: share for (level, _), share in choice.shares.items()})


def targets_decide(spec: Spec) -> bool:
    """Targets without a budget: that is then the least that meets them."""
    budget = spec.privacy.budget
    return bool(spec.accuracy) and (budget is None or budget.is_least)


def shares_are_open(spec: Spec) -> bool:
    """Whether shares are not stated, and chosen for the targets."""
    return targets_decide(spec) and "shares" not in spec.privacy.model_fields_set


def scene_of(
    spec: TabularSpec, hierarchy: Hierarchy, schema: Schema, categories: Mapping[str, Category]
) -> Scene:
    """Everything that decides on errors, as a release of counts has it."""
    privacy, levels = spec.privacy, hierarchy.level_names
    exact = exact_levels(levels, spec.unprotected.totals, privacy.neighbours, schema.n_cells)
    protection = Protection(privacy.unit, privacy.neighbours, privacy.max_contribution)
    query = TOTAL if schema.n_cells == 1 else DETAILED
    measurable, spine = measurable_levels(levels, exact, schema.n_cells, spec.estimate.method), None
    if spec.spine:
        steps, known = steps_of(spec.spine), [*categories, *levels[1:-1]]
        check_steps(hierarchy, steps, known, len(exact))
        without_noise = exact if schema.n_cells == 1 else ()
        spine = SpineTrees(hierarchy, steps, categories, without_noise, privacy.mechanism)
        measurable = spine.measurable
    slots = tuple((level, query) for level in measurable)
    return Scene(hierarchy, schema, protection, exact, privacy.mechanism, slots, categories, spine)


def targets_of(spec: Spec, scene: Scene) -> tuple[Target, ...]:
    """The targets of the spec, on levels of the hierarchy and on areas of interest."""
    targets = []
    for asked in spec.accuracy or ():
        if asked.within.denominator > 1 and spec.estimate.method != "gls":
            raise SpecError(
                f"accuracy: published counts are whole, so within {float(asked.within):g} means "
                f"within {floor(asked.within)}. Write a whole number, 1 or more; method gls "
                "publishes fractions."
            )
        make = scene.target if asked.level is not None else scene.area_target
        name = asked.level or asked.area or ""
        targets.append(make(name, asked.query, asked.within, asked.confidence))
    return tuple(targets)


def prior_counts(
    spec: TabularSpec, prior: PriorSpec, hierarchy: Hierarchy, schema: Schema
) -> NDArray[np.int64]:
    """Public counts of all leaves by cell; never the confidential ones."""
    refuse_confidential(spec, prior)
    forms = list(spec.data.cell_forms.values())
    if prior.count is not None or not forms:
        forms = [{prior.count or spec.data.count or "count": 1}]
    if len(forms) != schema.n_cells:
        raise SpecError(
            "The prior needs a count for every cell: leave prior.count out, and it is read like "
            "data.cells."
        )
    return read_prior(prior_place(spec, prior, forms), hierarchy, spec.hierarchy.code_width)


def prior_place(spec: TabularSpec, prior: PriorSpec, forms: Sequence[CellForm]) -> Prior:
    """Where a prior with these cells is, and how it is carried over."""
    walk = prior.crosswalk
    return Prior(
        spec.resolve(prior.source),
        prior.area or spec.data.area,
        forms,
        walk and Crosswalk(spec.resolve(walk.source), walk.old, walk.new, walk.share),
        missing_is_zero=prior.missing == "zero",
    )


def _wish(spec: TabularSpec, scene: Scene, budget: Budget | None) -> Wish:
    targets, shares, most = (
        targets_of(spec, scene),
        spec.privacy.shares,
        most_that_may_be_spent(spec),
    )
    if isinstance(shares, Shares) and not shares_are_open(spec):
        stated = shares.over(scene.levels, scene.measured_levels)
        query = dict(scene.slots)
        by_slot = {(name, query[name]): share for name, share in stated.items()}
        return Wish(budget, by_slot, targets=targets, most=most)
    is_topdown = spec.estimate.method == "topdown"
    needed = scene.slots if is_topdown else scene.slots[-1:]
    if not isinstance(shares, OptimalSharesSpec):
        return Wish(budget, targets=targets, keep=needed, most=most)
    optimal = shares.optimal
    prior = None
    refuse_few_levels(spec)
    if optimal.prior is not None:
        prior = prior_counts(spec, optimal.prior, scene.hierarchy, scene.schema)
    weights = level_weights(optimal.weights, scene.weighted_levels, scene.categories)
    of_areas = area_weights(optimal.weights, scene.categories)
    return Wish(budget, None, weights, of_areas, prior, targets, needed, most)


def rests_on_gls(spec: Spec) -> str | None:
    """The key whose shares foresee errors of gls_topdown, where the method is another."""
    shares = spec.privacy.shares
    strategy = spec.strategy if isinstance(spec, HistogramsSpec) else None
    of_levels = isinstance(shares, OptimalSharesSpec)
    if spec.estimate.method != "topdown" or (of_levels and shares.optimal.prior is not None):
        return None
    if of_levels:
        return "privacy.shares.optimal"
    return "strategy.optimal" if isinstance(strategy, OptimalStrategySpec) else None


def refuse_few_levels(spec: Spec) -> None:
    """Where the shares that are best for gls_topdown would starve levels that topdown needs."""
    key = rests_on_gls(spec)
    if key is not None and spec.privacy.mechanism == DiscreteLaplace.name:
        raise SpecError(
            f"{key} predicts the errors of gls_topdown. With Laplace noise these need few levels, "
            "but topdown needs all: name a prior, or state the shares."
        )


def most_that_may_be_spent(spec: Spec) -> Fraction:
    """The largest budget that may be chosen: what makes sense, and what the ledger allows."""
    limit = spec.ledger.limit
    if limit is None:
        return MOST
    pure = spec.privacy.mechanism == DiscreteLaplace.name
    return min(MOST, (limit.epsilon if pure else limit.rho) or MOST)
