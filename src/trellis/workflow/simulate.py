"""Runs the whole pipeline on public counts as if they were the truth.

Nothing is spent: the counts are public, so the noise protects nobody and the ledger is not asked.
The errors are those of the published numbers, after all that clipping and rounding do to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from trellis.confidential.counts import TrueCounts
from trellis.errors import SpecError
from trellis.estimate.methods import estimate
from trellis.measure.counts import answers_on_spine, exact_answers
from trellis.model.estimates import Estimates
from trellis.model.measurements import Measurements
from trellis.planning.targets import Target
from trellis.privacy.bits import OsRandom, RandomBits
from trellis.release.intervals import interval, interval_factor
from trellis.workflow.prepare import Prepared
from trellis.workflow.progress import Progress
from trellis.workflow.public_half import published_estimates

SIZE_CLASSES = (0, 1, 10, 100, 1_000, 10_000)
"""The least count of each class of size."""
_MARKS = 10


@dataclass(slots=True)
class LevelOutcome:
    """Errors of the published cells of one level, over all simulated releases.

    `linear_squares` are those of the best linear unbiased estimates, before anything is clipped.
    `by_size` has, for each class of size, how many cells it holds and the sum of their errors.
    """

    level: str
    cells: int = 0
    squares: float = 0.0
    linear_squares: float = 0.0
    by_size: NDArray[np.float64] = field(default_factory=lambda: np.zeros((len(SIZE_CLASSES), 2)))
    zeros: int = 0
    false_positives: int = 0
    covered: int = 0
    has_intervals: bool = True

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
    if releases < 1:
        raise SpecError("--simulate takes the number of releases to simulate, 1 or more.")
    plan, hierarchy = prepared.plan, prepared.hierarchy
    spine, counts = prepared.interests.spine, TrueCounts(leaves)
    if spine is None:
        exact = exact_answers(plan, hierarchy, counts)
    else:
        exact = answers_on_spine(plan, hierarchy, counts, spine)
    truth = hierarchy.sum_up(leaves)
    shown = [~passing for passing in hierarchy.passes_through]
    outcomes = tuple(LevelOutcome(name) for name in plan.levels)
    hits, factor = np.zeros(len(targets)), interval_factor(plan)
    bits = bits or OsRandom()
    for chunk in np.array_split(np.arange(releases), min(_MARKS, releases)):
        with progress.stage(f"simulate {chunk[0] + 1} to {chunk[-1] + 1} of {releases}"):
            for number in chunk.tolist():
                made = _release(prepared, exact, bits, number)
                for level, outcome in enumerate(outcomes):
                    _compare(outcome, made, level, truth[level], shown[level], factor)
                hits += [_share_within(t, made, truth, shown) for t in targets]
    return Simulation(releases, outcomes, tuple((hits / releases).tolist()))


def _release(
    prepared: Prepared, exact: Sequence[NDArray[np.int64]], bits: RandomBits, seed: int
) -> Estimates:
    noisy = [
        answer
        if query.noise is None
        else answer + query.noise.sample(answer.size, bits).reshape(answer.shape)
        for query, answer in zip(prepared.plan.queries, exact, strict=True)
    ]
    plan, hierarchy, spine = prepared.plan, prepared.hierarchy, prepared.interests.spine
    tree = hierarchy if spine is None else spine.hierarchy
    made = estimate(Measurements(plan, tree, tuple(noisy), spine), seed)
    return published_estimates(plan, hierarchy, prepared.interests, made)[0]


def _compare(
    outcome: LevelOutcome,
    made: Estimates,
    level: int,
    truth: NDArray[np.int64],
    rows: NDArray[np.bool_],
    factor: float,
) -> None:
    counts = made.counts[level][rows]
    outcome.add(truth[rows], counts)
    if made.centre is None or made.std_error is None:
        outcome.has_intervals = False
        return
    centre = made.centre[level][rows]
    ends = interval(counts, centre, made.std_error[level][rows], factor)
    outcome.add_intervals(truth[rows], centre, *ends)


def _share_within(
    target: Target,
    made: Estimates,
    truth: Sequence[NDArray[np.int64]],
    shown: Sequence[NDArray[np.bool_]],
) -> float:
    """The part of the areas (and cells) of a target that came out within it."""
    rows = shown[target.level]
    error = made.counts[target.level][rows] - truth[target.level][rows]
    return float((np.abs(target.query.answer(error)) <= float(target.within) + 1e-9).mean())
