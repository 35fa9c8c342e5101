"""Runs the whole pipeline on public counts as if they were the truth.

Nothing is spent: the counts are public, so the noise protects nobody and the ledger is not asked.
The errors are those of the published numbers, after all that clipping and rounding do to them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.confidential.counts import TrueCounts
from trellis.errors import SpecError
from trellis.estimate.methods import estimate
from trellis.execution.progress import in_parts
from trellis.measure.counts import answers_on_spine, exact_answers
from trellis.model.plans.plan import Plan
from trellis.model.results.area_estimates import AreaEstimates
from trellis.model.results.estimates import Estimates
from trellis.model.results.exact_totals import ExactTotals, category_range, level_range
from trellis.model.results.measurements import Measurements
from trellis.model.tables.carried_bounds import Range
from trellis.planning.allocation.targets import Target
from trellis.privacy.bits import OsRandom, RandomBits
from trellis.release.tables.intervals import interval, interval_factor
from trellis.workflow.preparing.prepare import Prepared
from trellis.workflow.progress import Progress
from trellis.workflow.public.finishing import published_estimates

SIZE_CLASSES = (0, 1, 10, 100, 1_000, 10_000)
"""The least count of each class of size."""


@dataclass(slots=True)
class LevelOutcome:
    """Errors of the published cells of a level or category of areas, over simulated releases.

    `level` is the name of either, and `query` that of a table of a histogram. `linear_squares` are
    those of the best linear unbiased estimates, before anything is clipped. `by_size` has, for each
    class of size, how many cells it holds and the sum of their errors.
    """

    level: str
    is_area: bool = False
    query: str | None = None
    cells: int = 0
    squares: float = 0.0
    linear_squares: float = 0.0
    by_size: NDArray[np.float64] = field(default_factory=lambda: np.zeros((len(SIZE_CLASSES), 2)))
    zeros: int = 0
    false_positives: int = 0
    covered: int = 0
    has_intervals: bool = True

    @property
    def name(self) -> str:
        return self.level if self.query is None else f"{self.level}: {self.query}"

    def add(self, truth: NDArray, published: NDArray) -> None:
        """The published counts of another simulated release."""
        error = (published - truth).ravel().astype(np.float64)
        size_class = np.searchsorted(SIZE_CLASSES, truth.ravel(), side="right") - 1
        self.cells += error.size
        self.squares += float(error @ error)
        self.by_size[:, 0] += np.bincount(size_class, minlength=len(SIZE_CLASSES))
        self.by_size[:, 1] += np.bincount(size_class, error, minlength=len(SIZE_CLASSES))
        self.zeros += int((truth == 0).sum())
        self.false_positives += int(((truth == 0) & (published > 0)).sum())

    def add_intervals(
        self, truth: NDArray, centre: NDArray, lower: NDArray, upper: NDArray
    ) -> None:
        """Its linear estimates and intervals."""
        self.linear_squares += float(((centre - truth) ** 2).sum())
        self.covered += int(((lower <= truth) & (truth <= upper)).sum())

    @property
    def root_mean_square(self) -> float:
        return (self.squares / self.cells) ** 0.5

    @property
    def linear_root_mean_square(self) -> float | None:
        return (self.linear_squares / self.cells) ** 0.5 if self.has_intervals else None

    @property
    def bias(self) -> dict[int, float | None]:
        """The mean error by the least count of a class; None where no cell is of that size."""
        return {
            least: None if n == 0 else total / n
            for least, (n, total) in zip(SIZE_CLASSES, self.by_size.tolist(), strict=True)
        }

    @property
    def false_positive_rate(self) -> float | None:
        """How many of the cells that are empty were published as more than zero."""
        return None if self.zeros == 0 else self.false_positives / self.zeros

    @property
    def coverage(self) -> float | None:
        """How many intervals contain the truth; None for methods without intervals."""
        return self.covered / self.cells if self.has_intervals else None


@dataclass(frozen=True, slots=True)
class Simulation:
    """What came out of so many simulated releases; `within` is one number per target."""

    releases: int
    levels: tuple[LevelOutcome, ...]
    within: tuple[float, ...]


def simulate(
    prepared: Prepared,
    leaves: NDArray[np.int64],
    releases: int,
    targets: Sequence[Target] = (),
    *,
    progress: Progress,
    bits: RandomBits | None = None,
) -> Simulation:
    """Measure, estimate and compare, again and again, with `leaves` as the truth."""
    plan, hierarchy = prepared.plan, prepared.hierarchy
    spine, counts = prepared.interests.spine, TrueCounts(leaves)
    if spine is None:
        exact = exact_answers(plan, hierarchy, counts)
    else:
        exact = answers_on_spine(plan, hierarchy, counts, spine)
    truths = _TrueParts.of(prepared, leaves)
    outcomes = tuple(LevelOutcome(name, name not in plan.levels) for name in truths.counts)
    hits, factor = np.zeros(len(targets)), interval_factor(plan)
    bits = bits or OsRandom()
    for number in each_release(releases, progress):
        made = _release(prepared, exact, bits, number)
        parts = truths.of_release(plan, *made)
        for outcome in outcomes:
            _compare(outcome, parts[outcome.level], truths.counts[outcome.level], factor)
        hits += [_share_within(t, parts[t.name], truths.counts[t.name]) for t in targets]
    return Simulation(releases, outcomes, tuple((hits / releases).tolist()))


def each_release(releases: int, progress: Progress) -> Iterator[int]:
    """Numbers of releases, as parts of one stage."""
    if releases < 1:
        raise SpecError("--simulate takes the number of releases to simulate, 1 or more.")
    with progress.stage(f"simulate {releases}"):
        yield from in_parts(range(releases))


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
    def of(cls, prepared: Prepared, leaves: NDArray[np.int64]) -> _TrueParts:
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

    def of_release(
        self, plan: Plan, made: Estimates, areas: Sequence[AreaEstimates]
    ) -> dict[str, _Part]:
        """The same parts of a simulated release."""
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
    prepared: Prepared, exact: Sequence[NDArray[np.int64]], bits: RandomBits, seed: int
) -> tuple[Estimates, list[AreaEstimates]]:
    noisy = [
        answer
        if query.noise is None
        else answer + query.noise.sample(answer.size, bits).reshape(answer.shape)
        for query, answer in zip(prepared.plan.queries, exact, strict=True)
    ]
    plan, hierarchy, spine = prepared.plan, prepared.hierarchy, prepared.interests.spine
    tree = hierarchy if spine is None else spine.hierarchy
    measurements = Measurements(plan, tree, tuple(noisy), spine)
    made = estimate(measurements, seed)
    return published_estimates(measurements, hierarchy, prepared.interests, made)


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
