"""`topdown`, `gls_topdown` and `gls` for histograms.

The first two make whole histograms from the root down. `topdown` fits each family to what was
measured on the children; `gls_topdown` fits it to the best linear unbiased estimates of the
children's subtrees, so that what was measured further down informs the upper levels, and gives the
estimates and standard errors of any marginal. `gls` gives these alone.

Reference: Cumings-Menon et al., arXiv:2203.16654, sections 2 and 3, for queries on a spine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trellis.errors import SpecError
from trellis.estimate.histograms.best_linear import BestLinear, answer_columns, runs
from trellis.estimate.histograms.descent import Descent
from trellis.estimate.histograms.evidence import HistogramEvidence
from trellis.estimate.histograms.family.least_squares import TOLERANCE
from trellis.estimate.histograms.known import MarginalErrors, Occupied, settled_errors
from trellis.estimate.histograms.level_bounds import level_bounds
from trellis.estimate.histograms.objectives import OwnMeasurements, SubtreeEstimates
from trellis.execution.executor import in_threads, map_families, using
from trellis.execution.progress import part
from trellis.execution.tasks import Fill
from trellis.execution.threads import Threads
from trellis.model.arrays import Floats, Ints
from trellis.model.plans.kinds.histograms import MOST_PASS_CELLS
from trellis.model.results.histogram_estimates import HistogramEstimates, Margin, Table
from trellis.model.results.histogram_facts import HistogramFacts
from trellis.model.tables.constraints import Constraints
from trellis.model.tables.queries import Query, parse_query
from trellis.model.tables.rules import RuleSides
from trellis.model.tables.schema import Schema
from trellis.model.tables.sparse_counts import SparseCounts
from trellis.model.trees.hierarchy import Hierarchy
from trellis.numerics.histograms.tree_covariances import (
    TreeCovariances,
    finals,
    query_variances,
)

Unbiased = tuple[Floats, MarginalErrors]
"""Best linear unbiased estimates of a query on a level, areas x query cells, and their errors."""


def estimate_topdown(
    evidence: HistogramEvidence,
    tie_seed: int,
    *,
    constraints: Constraints | None = None,
    edit_rules: Sequence[RuleSides] = (),
    passes: Sequence[str] = (),
    tolerance: float = TOLERANCE,
    workers: int | None = None,
    known: Sequence[SparseCounts] = (),
) -> HistogramEstimates:
    """Least squares family by family on the children's own measurements.

    `passes` names marginals of few cells that each family fixes first, in this order. `edit_rules`
    are kept where sums, constraints and passes allow. Levels that are `known`, root first, are
    taken as they are.
    """
    descent = _descent(evidence, (), tie_seed, constraints, edit_rules, passes, tolerance)
    with in_threads(workers):
        counts, distance = descent.run(_own_measurements(descent), known)
    return HistogramEstimates(evidence.hierarchy, evidence.schema, tuple(counts), distance=distance)


def topdown_levels(
    evidence: HistogramEvidence,
    tie_seed: int,
    *,
    constraints: Constraints | None = None,
    edit_rules: Sequence[RuleSides] = (),
    passes: Sequence[str] = (),
    workers: int | None = None,
) -> Iterator[SparseCounts]:
    """The counts of `estimate_topdown` one level at a time, root first.

    A level is read when it is asked for, so that what was found above may decide what is measured.
    Exact answers of all levels are read first. What is found decides on noise that is yet to be
    drawn, so it does not leave this process: it is fitted in threads.
    """
    descent = _descent(evidence, (), tie_seed, constraints, edit_rules, passes, TOLERANCE)
    levels = descent.levels(_own_measurements(descent))
    while True:
        with using(Threads(workers)):  # not while the caller goes on
            found = next(levels, None)
        if found is None:
            return
        yield found[0]


def _own_measurements(descent: Descent) -> Callable[[int], OwnMeasurements]:
    """What `topdown` fits the nodes of a level to."""
    evidence = descent.evidence

    def own(level: int) -> OwnMeasurements:
        bounded = descent.bounded(level)
        name = evidence.hierarchy.level_names[level]
        if not any(0 <= v < np.inf for v in evidence.measured[level].values()):
            raise SpecError(
                f"Method topdown works on measured levels only, but level {name!r} was not "
                "measured. Use gls_topdown."
            )
        return OwnMeasurements(evidence, level, descent.queries, bounded)

    return own


def estimate_gls_topdown(
    evidence: HistogramEvidence,
    tie_seed: int,
    *,
    marginals: Sequence[Table] = (),
    constraints: Constraints | None = None,
    edit_rules: Sequence[RuleSides] = (),
    passes: Sequence[str] = (),
    facts: HistogramFacts | None = None,
    tolerance: float = TOLERANCE,
    workers: int | None = None,
) -> HistogramEstimates:
    """Best linear unbiased estimates first, then whole numbers downwards.

    `passes` names marginals of few cells that each family fixes first, in this order. `edit_rules`
    are kept where sums, constraints and passes allow. `facts` are those that margins may use.
    """
    descent = _descent(evidence, marginals, tie_seed, constraints, edit_rules, passes, tolerance)
    occupied = Occupied.of(evidence, facts)
    with part(0.0, 0.2), in_threads(workers):
        best = _best_linear(occupied.evidence, descent.queries)

    def objective(level: int) -> OwnMeasurements | SubtreeEstimates:
        bounded = descent.bounded(level)
        u = best.subtree[level]
        if u is None:  # a leaf's subtree is the leaf
            return OwnMeasurements(evidence, level, descent.queries, bounded)
        own = [descent.queries[name] for name in bounded]
        covariances, up = best.covariances, best.covariances.up[level]
        # Empty areas are bounded to 0, whatever they are fitted to.
        up = up._replace(class_of=occupied.spread(level, up.class_of))
        u = occupied.spread(level, u.T).T
        return SubtreeEstimates(covariances.algebra, covariances.levels[level], up, u, own)

    with part(0.2, 0.9), in_threads(workers):
        counts, distance = descent.run(objective)
    with part(0.9, 1.0), in_threads(workers):
        found = _marginal_estimates(occupied.evidence, best, marginals)
    margins = _with_facts(found, occupied, facts)
    return HistogramEstimates(evidence.hierarchy, evidence.schema, tuple(counts), margins, distance)


def estimate_gls(
    evidence: HistogramEvidence,
    *,
    marginals: Sequence[Table],
    facts: HistogramFacts | None = None,
) -> dict[Table, Margin]:
    """The best linear unbiased estimates themselves: real numbers that add up."""
    queries = _queries(evidence.schema, evidence.measured, marginals)
    occupied = Occupied.of(evidence, facts)
    best = _best_linear(occupied.evidence, queries)
    found = _marginal_estimates(occupied.evidence, best, marginals)
    for centre, errors in found.values():
        _round_exact(centre, errors)
    return _with_facts(found, occupied, facts)


def _best_linear(evidence: HistogramEvidence, queries: Mapping[str, Query]) -> BestLinear:
    shape, measured = evidence.schema.shape, evidence.measured
    covariances = TreeCovariances.of(evidence.hierarchy, shape, queries, measured)
    return BestLinear(evidence, covariances)


def _round_exact(centre: Floats, errors: MarginalErrors) -> None:
    """What is known exactly is whole; the passes leave rounding errors of floating point in it."""
    of_class = errors.std_errors == 0
    if of_class.any():
        exact = of_class[errors.class_of]
        centre[exact] = np.rint(centre[exact])


def marginal_errors(
    hierarchy: Hierarchy,
    schema: Schema,
    measured: Sequence[Mapping[str, float]],
    requests: Sequence[Table],
) -> dict[Table, MarginalErrors]:
    """Standard errors of marginals before any data: they depend on the plan alone.

    `measured` has for each level, root first, the variance of each query measured there.
    """
    queries = _queries(schema, measured, requests)
    covariances = TreeCovariances.of(hierarchy, schema.shape, queries, measured)
    return _errors(hierarchy, covariances, requests)


def _errors(
    hierarchy: Hierarchy, covariances: TreeCovariances, requests: Sequence[Table]
) -> dict[Table, MarginalErrors]:
    final = finals(hierarchy, covariances.levels, covariances.up)
    out = {}
    for level, name in requests:
        at = final[hierarchy.index(level)]
        variances = query_variances(covariances.algebra, at, covariances.queries[name])
        out[level, name] = MarginalErrors(at.class_of, np.sqrt(variances))
    return out


def _with_facts(
    found: Mapping[Table, Unbiased], occupied: Occupied, facts: HistogramFacts | None
) -> dict[Table, Margin]:
    """For all areas, with no error where facts alone fix an answer."""
    out = {}
    for (name, query), (centre, errors) in found.items():
        if facts is not None:
            level, parsed = (
                facts.hierarchy.index(name),
                parse_query(occupied.evidence.schema, query),
            )
            errors = occupied.spread_errors(level, errors)
            errors = settled_errors(errors, facts, level, parsed)
            centre = occupied.spread(level, centre)
            centre = 0 * centre if occupied.is_void else centre
        out[name, query] = Margin(centre, errors.class_of, errors.std_errors)
    return out


def _queries(
    schema: Schema, measured: Sequence[Mapping[str, float]], requests: Sequence[Table]
) -> dict[str, Query]:
    names = [name for level in measured for name in level] + [name for _, name in requests]
    return {name: parse_query(schema, name) for name in dict.fromkeys(names)}


def _descent(
    evidence: HistogramEvidence,
    requests: Sequence[Table],
    tie_seed: int,
    constraints: Constraints | None,
    edit_rules: Sequence[RuleSides],
    passes: Sequence[str],
    tolerance: float,
) -> Descent:
    bounds, below = level_bounds(evidence, constraints)
    queries = _queries(evidence.schema, evidence.measured, requests)
    for level in bounds:
        for name in level.queries:
            queries.setdefault(name, parse_query(evidence.schema, name))
    if below.is_needed:
        queries.setdefault(below.kinds.name, below.kinds)
    fixed = [parse_query(evidence.schema, name) for name in passes]
    for query in fixed:
        if query.n_cells > MOST_PASS_CELLS:
            raise SpecError(
                f"A pass may fix marginals of at most {MOST_PASS_CELLS} cells; {query.name!r} "
                f"has {query.n_cells}."
            )
        queries.setdefault(query.name, query)
    n_cells = evidence.schema.n_cells
    impossible = np.zeros(n_cells, dtype=bool) if constraints is None else constraints.impossible
    return Descent(
        evidence,
        queries,
        bounds,
        below,
        impossible,
        tie_seed,
        tuple(edit_rules),
        tuple(query.name for query in fixed),
        tolerance,
    )


def _marginal_estimates(
    evidence: HistogramEvidence,
    best: BestLinear,
    requests: Sequence[Table],
) -> dict[Table, Unbiased]:
    """Centres level by level, the leaves in runs of families."""
    if not requests:
        return {}
    hierarchy, n_cells = evidence.hierarchy, evidence.schema.n_cells
    wanted: dict[int, list[Table]] = {}
    for request in requests:
        wanted.setdefault(hierarchy.index(request[0]), []).append(request)
    centres: dict[Table, Floats] = {}
    above = best.subtree_of(0, 0, 1)
    for level in range(max(wanted) + 1):
        asked = wanted.get(level, [])
        queries = {request: best.covariances.queries[request[1]] for request in asked}
        if level and best.subtree[level] is None:
            for request, query in queries.items():
                centres[request] = np.empty((hierarchy.sizes[level], query.n_cells))
            start = hierarchy.child_start[level - 1]
            answers = _FinalAnswers(best, level, start, above, tuple(queries.values()))
            fills = [Fill(centres[request], start) for request in asked]
            map_families(answers, start * n_cells, fills)
            break
        if level:
            above = best.final(level, above, 0, above.shape[1])
        for request, query in queries.items():
            centres[request] = answer_columns(query, above)
    errors = _errors(hierarchy, best.covariances, requests)
    return {table: (centres[table], errors[table]) for table in requests}


@dataclass(frozen=True, slots=True, eq=False)
class _FinalAnswers:
    """Answers of queries from the final estimates of the children of runs of parents."""

    best: BestLinear
    level: int
    start: Ints
    above: Floats
    queries: tuple[Query, ...]

    def __call__(self, *filled_and_run: Any) -> None:
        *centres, first, last = filled_and_run
        start = self.start
        for begin, end in runs(start, first, last, self.above.shape[0]):
            n = self.best.final(self.level, self.above[:, begin:end], begin, end)
            for query, centre in zip(self.queries, centres, strict=True):
                centre[start[begin] : start[end]] = answer_columns(query, n)
