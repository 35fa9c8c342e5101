"""Simulated releases of histograms: errors by level and published table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from trellis.errors import SpecError
from trellis.estimate.histograms.evidence import EvidenceInMemory
from trellis.model.plans.answers import histogram_answers
from trellis.model.plans.kinds.histograms import HistogramDesign
from trellis.model.results.histogram_estimates import HistogramEstimates
from trellis.model.results.histogram_facts import HistogramFacts
from trellis.model.tables.queries import Query, parse_query
from trellis.model.tables.sparse_counts import SparseCounts
from trellis.planning.allocation.targets import Target
from trellis.privacy.bits import RandomBits
from trellis.privacy.public_noise import PublicNoise
from trellis.release.tables.intervals import interval, interval_factor
from trellis.workflow.outlook.simulation import LevelOutcome, Simulation, each_release
from trellis.workflow.preparing.kept_rules import (
    PreparedHistograms,
    broken_constraints,
    check_against_totals,
    contradicted_zeros,
    impossible_lines,
)
from trellis.workflow.preparing.kinds.histograms import machine_memory
from trellis.workflow.progress import Progress
from trellis.workflow.public.kinds.histograms import estimate_histograms, facts_for_margins

_AREAS_AT_ONCE = 1 << 20
"""Cells of a table that are compared at once."""


def simulate_histograms(
    prepared: PreparedHistograms,
    leaves: SparseCounts,
    releases: int,
    targets: Sequence[Target] = (),
    *,
    progress: Progress,
    bits: RandomBits | None = None,
) -> Simulation:
    """Measure, estimate and compare, again and again, with `leaves` as the truth."""
    plan, hierarchy = prepared.plan, prepared.hierarchy
    _check_memory(prepared)
    for target in targets:
        if (
            not plan.method.whole
            and (target.name, target.query.name) not in plan.design_as(HistogramDesign).tables
        ):
            raise SpecError(
                f"--simulate: {target.label} is not a published table, and gls estimates no "
                "others. List it under output.tables."
            )
    _check_rules(prepared, leaves)
    truth = leaves.by_level(hierarchy)
    exact = histogram_answers(plan, hierarchy, leaves)
    outcomes = [
        LevelOutcome(level, query=query) for level, query in plan.design_as(HistogramDesign).tables
    ]
    hits, noise = np.zeros(len(targets)), PublicNoise(bits)
    for number in each_release(releases, progress):
        made, facts = _release(prepared, exact, noise, number)
        for outcome in outcomes:
            _compare(outcome, made, truth[hierarchy.index(outcome.level)], facts, prepared)
        hits += [_share_within(target, made, truth) for target in targets]
    return Simulation(releases, tuple(outcomes), tuple((hits / releases).tolist()))


def _check_rules(prepared: PreparedHistograms, leaves: SparseCounts) -> None:
    """A prior that breaks a rule is not an example of records that must keep it."""
    lines = broken_constraints(prepared, leaves)
    if faults := contradicted_zeros(prepared, leaves):
        lines = [*impossible_lines(prepared, leaves, faults), *lines]
    if lines:
        raise SpecError(f"--simulate: the prior breaks a rule that binds the records: {lines[0]}.")
    check_against_totals(prepared, leaves)


def _check_memory(prepared: PreparedHistograms) -> None:
    plan, memory = prepared.plan, machine_memory()
    cells = sum(
        prepared.hierarchy.size(q.level) * parse_query(plan.schema, q.query).n_cells
        for q in plan.queries
    )
    if memory is not None and 20 * cells > memory:  # true and noisy answers, 8 bytes each
        raise SpecError(
            f"--simulate holds all {cells:,} answers in memory, about {20 * cells / 1e9:,.1f} GB, "
            f"but this machine has {memory / 1e9:,.1f} GB. Simulate with fewer areas or cells."
        )


def _release(
    prepared: PreparedHistograms, exact: Sequence[NDArray[np.int64]], noise: PublicNoise, seed: int
) -> tuple[HistogramEstimates, HistogramFacts | None]:
    plan, hierarchy = prepared.plan, prepared.hierarchy
    answers: list[dict[str, NDArray[np.int64]]] = [{} for _ in plan.levels]
    measured: list[dict[str, float]] = [{} for _ in plan.levels]
    # An exact answer comes first in the plan and stands for a noisy one of the same query.
    for planned, answer in reversed(list(zip(plan.queries, exact, strict=True))):
        level = hierarchy.index(planned.level)
        answers[level][planned.query] = noise.added_to(planned.noise, answer)
        measured[level][planned.query] = planned.assumed_variance
    evidence = EvidenceInMemory(hierarchy, plan.schema, measured, answers)
    bounds = prepared.facts.constraints
    facts = facts_for_margins(plan, evidence, bounds)
    return estimate_histograms(plan, evidence, bounds, facts, seed), facts


def _compare(
    outcome: LevelOutcome,
    made: HistogramEstimates,
    truth: SparseCounts,
    facts: HistogramFacts | None,
    prepared: PreparedHistograms,
) -> None:
    """Add the errors of one table, a run of areas at a time."""
    assert outcome.query is not None
    level = prepared.hierarchy.index(outcome.level)
    query = parse_query(prepared.plan.schema, outcome.query)
    margin = made.margins.get((outcome.level, outcome.query))
    outcome.has_intervals = margin is not None
    factor = interval_factor(prepared.plan)
    for areas in _published(prepared, level, query):
        real = _answers(truth, query, areas)
        found = _published_answers(made, outcome.level, query, areas)
        outcome.add(real, found)
        if margin is not None and facts is not None and areas.size:
            centre, first = margin.centre[areas], int(areas[0])
            allowed = facts.allowed(level, query, first, int(areas[-1]) + 1).rows(areas - first)
            ends = interval(found, centre, margin.std_errors(areas), factor, allowed)
            outcome.add_intervals(real, centre, *ends)


def _published(
    prepared: PreparedHistograms, level: int, query: Query
) -> Iterator[NDArray[np.int64]]:
    """Runs of published areas of a level."""
    size, step = prepared.hierarchy.size(level), max(1, _AREAS_AT_ONCE // query.n_cells)
    shown = ~prepared.hierarchy.passes_through[level]
    for first in range(0, size, step):
        yield first + np.flatnonzero(shown[first : first + step])


def _published_answers(
    made: HistogramEstimates, level: str, query: Query, areas: NDArray[np.int64]
) -> NDArray:
    """What a simulated release says about some areas that follow one another."""
    if not areas.size:
        return np.zeros((0, query.n_cells))
    first, last = int(areas[0]), int(areas[-1]) + 1
    return made.published((level, query.name), first, last)[areas - first]


def _answers(counts: SparseCounts, query: Query, areas: NDArray[np.int64]) -> NDArray[np.int64]:
    if not areas.size:
        return np.zeros((0, query.n_cells), dtype=np.int64)
    first, last = int(areas[0]), int(areas[-1]) + 1
    return counts.marginal(query.cell_of, query.n_cells, first, last)[areas - first]


def _share_within(target: Target, made: HistogramEstimates, truth: Sequence[SparseCounts]) -> float:
    """The part of the areas and cells of a target that came out within it."""
    assert target.level is not None
    query, level = target.query, target.level
    areas = np.flatnonzero(~made.hierarchy.passes_through[level])
    found = _published_answers(made, target.name, query, areas)
    real = _answers(truth[level], query, areas)
    return float((np.abs(found - real) <= float(target.within) + 1e-9).mean())
