"""Reads areas of interest: which leaf belongs to which entity of a category. Public input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
from numpy.typing import NDArray

from trellis.errors import InputError, SpecError
from trellis.ingest.columns import code
from trellis.ingest.engines import open_source
from trellis.ingest.reader import Reader, Source
from trellis.model.trees.areas import OUTSIDE, Category, ancestors
from trellis.model.trees.codes import CODE, Codes, code_order
from trellis.model.trees.hierarchy import Hierarchy
from trellis.storage.codes import level_codes

pc: Any = pyarrow.compute  # made at import, so the type checker does not know its functions


@dataclass(frozen=True, slots=True)
class AreaColumns:
    """Where a file has area codes of a level, and the entity each belongs to.

    `within` names the level inside which entity codes are unique; `outside` are codes that mean
    no entity. Rows of areas that the hierarchy does not have are left out if `skip_unknown`.
    """

    area: str
    entity: str
    level: str
    width: int | None = None
    within: str | None = None
    outside: tuple[str, ...] = ()
    skip_unknown: bool = False


def read_category(
    source: Source,
    hierarchy: Hierarchy,
    name: str,
    columns: AreaColumns,
    *,
    confidential: bool = False,
) -> Category:
    """The category. Errors quote its areas and entities, which are public or declared so."""
    for level in (columns.level, columns.within):
        if level is not None and level not in hierarchy.level_names:
            raise SpecError(
                f"areas.{name} names level {level!r}; the hierarchy has "
                f"{', '.join(hierarchy.level_names)}."
            )
    with open_source(source, confidential=confidential) as reader:
        rows = _rows(reader, hierarchy, name, columns)
    return _category(hierarchy, name, columns, rows)


def _rows(reader: Reader, hierarchy: Hierarchy, name: str, columns: AreaColumns) -> pa.Table:
    """Columns node (position on the level) and entity, one row per area that has an entity."""
    area, entity = code(reader, columns.area, columns.width), code(reader, columns.entity)
    rows = reader.rows({"code": area, "entity": entity})
    none = pa.array(["", *columns.outside], pa.string())
    rows = rows.filter(pc.invert(pc.is_in(rows["entity"], none, skip_nulls=True)))
    rows = rows.filter(rows["entity"].is_valid())
    node = pc.index_in(rows["code"], level_codes(hierarchy, columns.level), skip_nulls=True)
    if node.null_count:
        _check_unknown(rows.filter(node.is_null()), reader.name, name, columns)
    rows = pa.table({"node": node.cast(pa.int64()), "entity": rows["entity"]})
    rows = rows.filter(node.is_valid())
    if not rows.num_rows:
        raise InputError(f"areas.{name} has no entities: {reader.name} lists no area that has one.")
    return rows


def _check_unknown(rows: pa.Table, source: str, name: str, columns: AreaColumns) -> None:
    """Rows without an area, and of areas that the hierarchy does not have."""
    for row in rows.filter(pc.equal(pc.fill_null(rows["code"], ""), ""))[:1].to_pylist():
        raise InputError(
            f"Entity {row['entity'][:80]!r} of areas.{name} has no leaves: a row of {source} "
            f"has nothing in column {columns.area!r}."
        )
    if columns.skip_unknown:
        return
    for row in rows[:1].to_pylist():
        raise InputError(
            f"Area {row['code'][:80]!r} of entity {row['entity'][:80]!r} in areas.{name} is not in "
            f"level {columns.level!r} of the hierarchy. Compare the codes (spelling, leading "
            "zeros), or write skip_unknown: true to leave such rows out."
        )


def _category(hierarchy: Hierarchy, name: str, columns: AreaColumns, rows: pa.Table) -> Category:
    level = hierarchy.index(columns.level)
    encoded = rows["entity"].combine_chunks().dictionary_encode()
    entity = encoded.indices.to_numpy().astype(np.int64)
    texts = np.array(encoded.dictionary.to_pylist(), dtype=CODE)
    node = rows["node"].to_numpy()
    _check_overlap(hierarchy, level, name, node, entity, texts)
    if columns.within is not None:
        entity, texts = _joined(hierarchy, level, columns.within, name, node, entity, texts)
    order = code_order(texts)
    rank = np.argsort(order)
    of_node = np.full(hierarchy.size(level), OUTSIDE, dtype=np.int32)
    of_node[node] = rank[entity]
    return Category(name, texts[order], of_node[ancestors(hierarchy, level)])


def _check_overlap(
    hierarchy: Hierarchy,
    level: int,
    name: str,
    node: NDArray[np.int64],
    entity: NDArray[np.int64],
    texts: Codes,
) -> None:
    """An area may be listed twice, but not with two entities."""
    first = np.full(hierarchy.size(level), OUTSIDE, dtype=np.int64)
    first[node] = entity
    if (other := np.flatnonzero(first[node] != entity)).size:
        row = other[0]
        code = str(hierarchy.codes(level)[node[row]])
        pair = sorted(str(texts[i])[:80] for i in (entity[row], first[node[row]]))
        raise InputError(
            f"Area {code[:80]!r} belongs to two entities of areas.{name}, {pair[0]!r} and "
            f"{pair[1]!r}. Entities of a category must not overlap: put those that do into a "
            "category of their own."
        )


def _joined(
    hierarchy: Hierarchy,
    level: int,
    within: str,
    name: str,
    node: NDArray[np.int64],
    entity: NDArray[np.int64],
    texts: Codes,
) -> tuple[NDArray[np.int64], Codes]:
    """Entities told apart by the area they lie in: the code of that area comes first."""
    top = hierarchy.index(within)
    if top > level:
        raise SpecError(
            f"areas.{name}.within must be a level above {hierarchy.level_names[level]!r}."
        )
    above = node
    for below in range(level, top, -1):
        above = hierarchy.parents(below)[above]
    pairs, number = np.unique(above * texts.size + entity, return_inverse=True)
    places = np.strings.add(hierarchy.codes(top)[pairs // texts.size], "-")
    return number, np.strings.add(places, texts[pairs % texts.size])
