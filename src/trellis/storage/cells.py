"""The columns that name the cells of a table."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from trellis.model.tables.schema import Schema


def cell_columns(schema: Schema, n_areas: int, n_cells: int | None = None) -> dict[str, pa.Array]:
    """One column per attribute, for areas x (the first `n_cells`) cells with the cells fastest."""
    positions = np.unravel_index(np.arange(n_cells or schema.n_cells), schema.shape)
    columns = {}
    for name, categories, position in zip(schema.names, schema.categories, positions, strict=True):
        indices = pa.array(np.tile(position.astype(np.int32), n_areas))
        columns[name] = pa.DictionaryArray.from_arrays(indices, pa.array(categories, pa.string()))
    return columns
