"""Settings of a spine for a spec, found without counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction

from trellis.errors import SpecError
from trellis.model.plans.shares import Shares
from trellis.planning.spine.search import Candidate, Search
from trellis.spec import Spec
from trellis.spec.counts import TabularSpec
from trellis.workflow.frames import NO_FRAMES, Frames
from trellis.workflow.preparing.prepare import prepare
from trellis.workflow.preparing.prepared import Prepared
from trellis.workflow.preparing.spines import steps_of


def suggest(
    spec: Spec,
    frames: Frames = NO_FRAMES,
    *,
    tick: Callable[[], None] = lambda: None,
) -> list[Candidate]:
    """Candidates by the weighted expected standard error of the areas of interest, best first."""
    prepared = prepare(spec, frames)
    search = search_of(prepared)
    return search.run(steps_of(prepared.spec.spine), tick)


def search_of(prepared: Prepared) -> Search:
    """What the search needs, from a spec that has areas of interest."""
    spec, hierarchy, interests = prepared.spec, prepared.hierarchy, prepared.interests
    if not isinstance(spec, TabularSpec) or not spec.areas or interests.conventional is None:
        raise SpecError("There is nothing to suggest: the spec has no areas of interest.")
    method, shares = prepared.plan.method, prepared.spec.privacy.shares
    if not method.has_variances:
        raise SpecError(f"estimate.method {method} has no variances to search by. Use gls_topdown.")
    if not isinstance(shares, Shares):  # computed for the published levels
        shares = Shares({q.level: q.share for q in interests.conventional.queries if q.share})
    exact, n_cells = prepared.plan.unprotected_totals, prepared.plan.schema.n_cells

    def level_shares(levels: tuple[str, ...]) -> Mapping[str, Fraction]:
        measurable = [name for name in levels if n_cells > 1 or name not in exact]
        if shares.values is None:
            return shares.over(levels, measurable)
        # A level of groups that the spec names may not be there.
        known = {k: v for k, v in shares.values.items() if k in levels}
        return Shares(known, are_weights=True).over(levels, measurable)

    return Search(
        hierarchy=hierarchy,
        categories={category.name: category for category in interests.categories},
        weights={name: area.weight for name, area in spec.areas.items()},
        conventional=interests.conventional,
        level_shares=level_shares,
    )
