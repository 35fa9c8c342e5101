"""The public tree of areas, in one of four layouts."""

from __future__ import annotations

from typing import Any, Self

from pydantic import Field, model_validator

from trellis.spec.sections.base import Model
from trellis.spec.sections.sources import SourceField, SqlSource
from trellis.spec.sections.values import Name, PathText


class CodeSpec(Model):
    """A column of codes; codes of digits are zero-padded to the width."""

    column: str
    width: int | None = Field(default=None, ge=1, le=200)


class ParentChildSpec(Model):
    """A file with one row per area and its parent."""

    source: SourceField | None = None
    child: str = "child"
    parent: str = "parent"
    width: int | None = Field(default=None, ge=1, le=200)


class HrcSpec(Model):
    """A tau-Argus file: one code a line, `lead` in front once for each level down."""

    source: PathText | None = None
    lead: str = Field(default="@", min_length=1, max_length=20)


class HierarchySpec(Model):
    """The public tree of areas, in one of four layouts."""

    source: SourceField | None = None
    public: bool = False
    code: CodeSpec | None = None
    prefixes: dict[Name, int] | None = None
    columns: tuple[Name, ...] | None = None
    parent_child: ParentChildSpec | None = None
    hrc: HrcSpec | None = None
    levels: tuple[Name, ...] | None = None
    root: dict[Name, str] | None = None

    @model_validator(mode="before")
    @classmethod
    def _file_name(cls, values: Any) -> Any:
        """`parent_child: areas.csv` is short for the file with its usual columns; so is `hrc`."""
        if not isinstance(values, dict):
            return values
        short = {k: {"source": values[k]} for k in ("parent_child", "hrc")
                 if isinstance(values.get(k), str)}  # fmt: skip
        return {**values, **short}

    @model_validator(mode="after")
    def _one_layout(self) -> Self:
        layouts = [self.prefixes, self.columns, self.parent_child, self.hrc]
        if sum(layout is not None for layout in layouts) != 1:
            raise ValueError("give exactly one of prefixes (with code), columns, parent_child, hrc")
        if self.prefixes is not None:
            self._check_prefixes(self.prefixes)
        elif self.code is not None:
            raise ValueError("code goes with prefixes")
        if self.columns is not None and len(set(self.columns)) != len(self.columns):
            raise ValueError("columns names a column twice")
        inside = self.parent_child or self.hrc
        if self.levels is not None and inside is None:
            raise ValueError(
                "levels goes with parent_child or hrc; elsewhere the keys name the levels"
            )
        if inside is not None and self.source is not None:
            raise ValueError("with parent_child or hrc, the file goes there, not into source")
        if self.root is not None and (len(self.root) != 1 or not all(self.root.values())):
            raise ValueError("root holds one level and its code, such as {nation: US}")
        return self

    def _check_prefixes(self, prefixes: dict[str, int]) -> None:
        if self.code is None:
            raise ValueError("prefixes need code: {column: ..}")
        lengths = list(prefixes.values())
        if not lengths or lengths[0] < 1 or sorted(set(lengths)) != lengths:
            raise ValueError("prefixes must grow from level to level: {state: 2, county: 5}")
        if self.code.width is not None and self.code.width != lengths[-1]:
            raise ValueError(
                f"the last prefix ({lengths[-1]}) must be the whole code (width {self.code.width})"
            )

    @property
    def file(self) -> str | SqlSource | None:
        inside = self.parent_child or self.hrc
        return inside.source if inside else self.source

    @property
    def code_width(self) -> int | None:
        """The width to which codes of digits are padded, in the records too."""
        if self.parent_child is not None:
            return self.parent_child.width
        return self.code.width if self.code is not None else None
