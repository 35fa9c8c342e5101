"""Reads the public tree of areas, in whichever layout the spec describes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trellis.errors import SpecError
from trellis.ingest.adbc import read_sql
from trellis.ingest.frames import as_table
from trellis.ingest.public import hierarchies
from trellis.ingest.reader import Source
from trellis.model.trees.hierarchy import Hierarchy
from trellis.spec import Spec
from trellis.spec.public_files import undeclared_areas
from trellis.spec.sections.hierarchies import HierarchySpec
from trellis.spec.sections.sources import SqlSource
from trellis.workflow.preparing.sources import is_frame_of_records, resolve_source


def read_hierarchy(spec: Spec, areas: Any = None, records: Any = None) -> Hierarchy:
    """The tree of areas, of the origins for flows."""
    return read_areas(spec, spec.hierarchy, areas, records, "hierarchy")


def read_areas(spec: Spec, layout: HierarchySpec, areas: Any, records: Any, key: str) -> Hierarchy:
    """A tree of areas. Errors quote its codes, which are public.

    If it comes with the records, the codes are declared public, and nothing is told about other
    columns.
    """
    source = resolve_source(spec, layout.file, areas, f"{key}.source")
    together = is_frame_of_records(areas, records, key) if areas is not None else (
        records is None and spec.comes_with_records(layout.file)
    )  # fmt: skip
    if together and not layout.public:
        raise SpecError(undeclared_areas(key))
    return _read_layout(layout, source, confidential=together)


def read_layout(layout: HierarchySpec, frame: Any, source: Any) -> Hierarchy:
    """A tree of public areas, apart from any spec: from a frame, a path or a database."""
    if frame is not None:
        return _read_layout(layout, as_table(frame), confidential=False)
    if isinstance(source, Mapping):
        named = SqlSource(**source)
        rows = read_sql(named.address(Path), named.table, named.query, named.name)
        return _read_layout(layout, rows, confidential=False)
    return _read_layout(layout, Path(source), confidential=False)


def _read_layout(layout: HierarchySpec, source: Source, *, confidential: bool) -> Hierarchy:
    root = next(iter(layout.root.items())) if layout.root else None
    if layout.prefixes is not None:
        assert layout.code is not None
        column, width = layout.code.column, layout.code.width
        return hierarchies.from_prefixes(
            source, column, layout.prefixes, width, root, confidential=confidential
        )
    if layout.columns is not None:
        return hierarchies.from_level_columns(
            source, layout.columns, root, confidential=confidential
        )
    if layout.hrc is not None:
        return hierarchies.from_hrc(source, layout.hrc.lead, layout.levels, root)
    assert layout.parent_child is not None
    return hierarchies.from_parent_child(
        source,
        layout.parent_child.child,
        layout.parent_child.parent,
        layout.levels,
        layout.parent_child.width,
        root,
        confidential=confidential,
    )
