"""Runs the whole pipeline of counts on public counts as if they were the truth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.model.plans.answers import answers
from trellis.model.plans.plan import Plan
from trellis.model.results.exact_totals import ExactTotals, category_range, level_range
from trellis.model.results.measurements import Measurements
from trellis.model.tables.carried_bounds import Range
from trellis.planning.allocation.targets import Target
from trellis.privacy.bits import RandomBits
from trellis.privacy.public_noise import PublicNoise
from trellis.release.tables.intervals import interval, interval_factor
from trellis.spec.counts import CountsSpec
from trellis.workflow.outlook.simulation import LevelOutcome, Simulation, each_release
from trellis.workflow.preparing.prepared import Prepared
from trellis.workflow.progress import Progress
from trellis.workflow.public.facts import PublicFacts
from trellis.workflow.public.kinds.tables import TableEstimates, estimate_tables

PreparedCounts = Prepared[CountsSpec, PublicFacts]


def simulate_counts(
    prepared: PreparedCounts,
    leaves: NDArray[np.int64],
    releases: int,
    targets: Sequence[Target] = (),
    *,
    progress: Progress,
    bits: RandomBits | None = None,
) -> Simulation:
    """Measure, estimate and compare, again and again, with `leaves` as the truth."""
    plan, hierarchy = prepared.plan, prepared.hierarchy
    exact = answers(plan, hierarchy, leaves, prepared.interests.spine)
    truths = _TrueParts.of(prepared, leaves)
    outcomes = tuple(LevelOutcome(name, name not in plan.levels) for name in truths.counts)
    hits, factor = np.zeros(len(targets)), interval_factor(plan)
    noise = PublicNoise(bits)
    for number in each_release(releases, progress):
        made = _release(prepared, exact, noise, number)
        parts = truths.of_release(plan, made)
        for outcome in outcomes:
            _compare(outcome, parts[outcome.level], truths.counts[outcome.level], factor)
        hits += [_share_within(t, parts[t.name], truths.counts[t.name]) for t in targets]
    return Simulation(releases, outcomes, tuple((hits / releases).tolist()))


@dataclass(frozen=True, slots=True)
class _Part:
    """Counts of a level or a category of areas, with what intervals are made of."""

    counts: NDArray[Any]
    centre: NDArray[np.float64] | None
    std_error: NDArray[np.float64] | None
    allowed: Range


@dataclass(frozen=True, slots=True)
class _TrueParts:
    """The true counts by level, of published areas, and by category of areas of interest."""

    counts: dict[str, NDArray[np.int64]]
    shown: dict[str, NDArray[np.bool_]]

    @classmethod
    def of(cls, prepared: PreparedCounts, leaves: NDArray[np.int64]) -> _TrueParts:
        tree = prepared.hierarchy
        shown = {
            name: ~passing
            for name, passing in zip(tree.level_names, tree.passes_through, strict=True)
        }
        counts = {
            name: all_counts[shown[name]]
            for name, all_counts in zip(tree.level_names, tree.sum_up(leaves), strict=True)
        }
        return cls(counts | {c.name: c.sums(leaves) for c in prepared.interests.categories}, shown)

    def of_release(self, plan: Plan, release: TableEstimates) -> dict[str, _Part]:
        """The same parts of a simulated release."""
        made, areas = release.levels, release.areas
        facts = ExactTotals.of_counts(plan, made)
        parts = {
            a.category.name: _Part(
                a.counts, a.centre, a.std_error, category_range(facts, a.category)
            )
            for a in areas
        }
        for level, (name, rows) in enumerate(self.shown.items()):
            centre = None if made.centre is None else made.centre[level][rows]
            error = None if made.std_error is None else made.std_error[level][rows]
            allowed = level_range(facts, level).rows(rows)
            parts[name] = _Part(made.counts[level][rows], centre, error, allowed)
        return parts


def _release(
    prepared: PreparedCounts, exact: Sequence[NDArray[np.int64]], noise: PublicNoise, seed: int
) -> TableEstimates:
    plan, hierarchy, interests = prepared.plan, prepared.hierarchy, prepared.interests
    asked = zip(plan.queries, exact, strict=True)
    noisy = tuple(noise.added_to(query.noise, answer) for query, answer in asked)
    tree = hierarchy if interests.spine is None else interests.spine.hierarchy
    measurements = Measurements(plan, tree, noisy, interests.spine)
    return estimate_tables(measurements, hierarchy, interests, seed)


def _compare(outcome: LevelOutcome, made: _Part, truth: NDArray[np.int64], factor: float) -> None:
    outcome.add(truth, made.counts)
    if made.centre is None or made.std_error is None:
        outcome.has_intervals = False
        return
    ends = interval(made.counts, made.centre, made.std_error, factor, made.allowed)
    outcome.add_intervals(truth, made.centre, *ends)


def _share_within(target: Target, made: _Part, truth: NDArray[np.int64]) -> float:
    """The part of the areas (and cells) of a target that came out within it."""
    error = target.query.answer(made.counts - truth)
    return float((np.abs(error) <= float(target.within) + 1e-9).mean())
