"""What comes out of simulated releases: errors of the published numbers.

Nothing is spent: the counts are public, so the noise protects no one and the ledger is not asked.
The errors are those after all that clipping and rounding do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from trellis.errors import SpecError
from trellis.execution.progress import in_parts
from trellis.workflow.progress import Progress

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
    """What came out of this many simulated releases; `within` is one number per target."""

    releases: int
    levels: tuple[LevelOutcome, ...]
    within: tuple[float, ...]


def each_release(releases: int, progress: Progress) -> Iterator[int]:
    """Numbers of releases, as parts of one stage."""
    if releases < 1:
        raise SpecError("--simulate takes the number of releases to simulate, 1 or more.")
    with progress.stage(f"simulate {releases}"):
        yield from in_parts(range(releases))
