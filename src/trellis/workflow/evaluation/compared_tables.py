"""What a comparison with the truth reads of a release, whatever its kind."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trellis.confidential.metrics import Ends
from trellis.errors import InputError, RunFolderError
from trellis.model.trees.codes import Codes
from trellis.storage.codes import codes_from_arrow
from trellis.storage.parquet import read_table


def read_published(path: Path, codes: Codes, n_cells: int) -> tuple[NDArray, Ends | None]:
    """Counts of a released table, areas x cells, and the ends of their intervals."""
    table = read_table(path, ["geocode", "count", "lower", "upper"])
    if not np.array_equal(codes_from_arrow(table["geocode"]), np.repeat(codes, n_cells)):
        raise RunFolderError(f"{path} does not list the areas of the release. Run trellis verify.")
    count, lower, upper = (
        table[column].to_numpy().reshape(-1, n_cells) for column in ("count", "lower", "upper")
    )
    return count, None if table["lower"].null_count else (lower, upper)


def require_same_totals(exact: NDArray[np.int64], true: NDArray[np.int64]) -> None:
    """Other records than those of the release would give an evaluation of nothing."""
    if not np.array_equal(exact, true):
        raise InputError(
            "The truth does not have the totals that the release publishes exactly: these are "
            "other records, or another edition of them."
        )
