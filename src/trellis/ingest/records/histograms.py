"""Tabulates confidential records into true histograms of the leaves."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from trellis.confidential.histograms import TrueHistograms
from trellis.ingest.long_tables import histograms_of_rows
from trellis.ingest.reader import Source
from trellis.ingest.records.counts import Form, tabulate
from trellis.model.tables.schema import Schema
from trellis.model.trees.hierarchy import Hierarchy


def tabulate_long(
    source: Source,
    hierarchy: Hierarchy,
    schema: Schema,
    area: str,
    columns: Mapping[str, str],
    count: str | None,
    width: int | None = None,
) -> TrueHistograms:
    """One column per attribute; a row counts as many as column `count` says, or one."""
    given = source, hierarchy, schema, area, columns, count, width
    return TrueHistograms(histograms_of_rows(*given))


def tabulate_wide(
    source: Source,
    hierarchy: Hierarchy,
    schema: Schema,
    area: str,
    cells: Mapping[int, tuple[str, Form]],
    width: int | None = None,
) -> TrueHistograms:
    """One expression of columns per cell, keyed by its position; others are empty."""
    forms = dict(cells.values())
    dense = tabulate(source, hierarchy, area, forms, width).leaves
    leaf, column = np.nonzero(dense)
    position = np.array(list(cells), dtype=np.int64)
    return TrueHistograms.of(
        dense.shape[0], schema.n_cells, leaf, position[column], dense[leaf, column]
    )
