"""The arguments of `solve_family` and `round_family`, checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from trellis.errors import StructureError
from trellis.estimate.histograms.family.bounds import FamilyBound
from trellis.model.arrays import Floats, Ints, Marks
from trellis.model.tables.queries import parse_query
from trellis.model.tables.schema import Schema

LARGEST = 2**50
"""Counts and answers up to which the distances between them are kept exactly enough."""

Tables = Mapping[str, ArrayLike] | Sequence[ArrayLike]


def whole_parent(parent: ArrayLike, n_cells: int) -> Ints:
    values = numbers(parent, "The parent's counts")
    if values.shape != (n_cells,):
        raise StructureError(f"The parent needs one whole number for each of {n_cells} cells.")
    if not ((values >= 0) & (values <= LARGEST) & (values == np.rint(values))).all():
        raise StructureError(
            "The parent's counts must be whole numbers, none below 0 and none above 2^50."
        )
    return values.astype(np.int64)


def numbers(given: ArrayLike, what: str) -> Floats:
    """An array of numbers, whatever their shape."""
    try:
        return np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise StructureError(f"{what} must be numbers, with rows of one length.") from None


def check_marks(impossible: Marks | None, shape: tuple[int, int]) -> None:
    """Marks of cells, or of children x cells."""
    if impossible is not None and np.shape(impossible) not in (shape, (1, shape[1]), shape[1:]):
        raise StructureError(
            f"Impossible cells must be marked for {shape[1]} cells, or {shape[0]} children x "
            f"{shape[1]} cells."
        )


def tables_by_query(queries: Sequence[str], tables: Tables) -> list[ArrayLike]:
    if isinstance(tables, Mapping):
        if missing := [name for name in queries if name not in tables]:
            raise StructureError(f"There are no values for query {missing[0]!r}.")
        return [tables[name] for name in queries]
    if len(tables) != len(queries):
        raise StructureError(f"{len(tables)} tables for {len(queries)} queries.")
    return list(tables)


def number_of_children(tables: Sequence[ArrayLike], queries: Sequence[str]) -> int:
    sizes = {
        len(np.atleast_1d(numbers(table, f"Values of {name!r}")))
        for name, table in zip(queries, tables, strict=True)
    }
    if len(sizes) != 1 or sizes == {0}:
        raise StructureError(
            "Values need one row for each child, at least one child and at least one query."
        )
    return sizes.pop()


def shaped(table: ArrayLike, shape: tuple[int, int], what: str) -> Floats:
    values = numbers(table, what)
    if values.ndim == 1 and shape[1] == 1:
        values = values[:, np.newaxis]
    if values.shape != shape:
        raise StructureError(f"{what} must have {shape[0]} children x {shape[1]} cells.")
    return values


def shaped_variance(given: ArrayLike, shape: tuple[int, int], name: str) -> Floats:
    variance = numbers(given, f"Variances of {name!r}")
    if variance.ndim == 1 and variance.size == shape[0]:
        variance = variance[:, np.newaxis]
    if variance.ndim and variance.shape not in (shape, (shape[0], 1)):
        raise StructureError(
            f"Variances of {name!r} must be one number, one for each child, or {shape[0]} x "
            f"{shape[1]}."
        )
    if not (variance >= 0).all():
        raise StructureError(f"A variance of {name!r} is negative or missing.")
    return np.broadcast_to(variance, shape)


def canonical_bound(schema: Schema, bound: FamilyBound) -> FamilyBound:
    """A bound by the name that its query has in the schema, with sides that are arrays."""
    query = parse_query(schema, bound.query)
    lower, upper = (np.asarray(side, dtype=np.float64) for side in (bound.lower, bound.upper))
    return FamilyBound(query.name, lower, upper, bound.group_of)
