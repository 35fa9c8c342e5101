"""The tree of an office's own file, in the layout that spec.yaml states, to compare with a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from trellis.errors import SourceError
from trellis.verify.files.run_files import Level, RunFiles, ancestors
from trellis.verify.files.trees import read_tree

pc: Any = pyarrow.compute  # made at import, so the type checker does not know its functions

BETWEEN = "\x1f"
"""Between the codes of a path; codes are printable."""


def like_the_office(path: Path) -> Callable[[RunFiles], Iterator[str]]:
    """The check of a run's tree against the file at `path`."""
    if not path.is_file():
        raise SourceError(f"There is no file {path}. Name the hierarchy that the office has.")

    def office_tree(run: RunFiles) -> Iterator[str]:
        """The tree is that of the office's own file: the same areas, in the same places."""
        stated = run.spec["hierarchy"]
        own = _paths_of_file(path, stated)
        if root := "".join(stated.get("root", {}).values()):
            own = _joined([_text(root), own])
        if not _sorted(own).equals(_sorted(_paths_of_run(read_tree(run, "hierarchy.parquet")))):
            yield "hierarchy.parquet has other areas, or other parents, than the office's file"

    return office_tree


def _sorted(paths: pa.Array) -> pa.Array:
    distinct = pc.unique(paths)
    return distinct.take(pc.array_sort_indices(distinct))


def _paths_of_run(levels: list[Level]) -> pa.Array:
    """The codes from the root to each leaf; where a leaf ends early, nothing below it."""
    last, parts = len(levels) - 1, []
    for index, level in enumerate(levels):
        node = ancestors(levels, last, index)
        codes = level.geocodes.cast(pa.large_string()).take(pa.array(node))
        parts.append(pc.if_else(pa.array(~level.padding[node]), codes, _text("")))
    return _joined(parts)


def _joined(parts: list[pa.Array]) -> pa.Array:
    return pc.utf8_rtrim(pc.binary_join_element_wise(*parts, _text(BETWEEN)), BETWEEN)


def _text(text: str) -> pa.Scalar:
    return pa.scalar(text, pa.large_string())


def _paths_of_file(path: Path, stated: Mapping[str, Any]) -> pa.Array:
    if "hrc" in stated:
        return pa.array(_outline(path, stated["hrc"]["lead"]), pa.large_string())
    if "parent_child" in stated:
        keys = stated["parent_child"]
        table = _columns(path, [keys["child"], keys["parent"]], keys.get("width"))
        return pa.array(_chains(*(column.to_pylist() for column in table)), pa.large_string())
    if "columns" in stated:
        return _joined(_columns(path, stated["columns"], None))
    (codes,) = _columns(path, [stated["code"]["column"]], stated["code"].get("width"))
    ends = stated["prefixes"].values()
    return _joined([pc.utf8_slice_codeunits(codes, 0, end) for end in ends])


def _columns(path: Path, names: list[str], width: int | None) -> list[pa.Array]:
    """Columns of text, trimmed; codes of digits are padded to the width."""
    try:
        if path.suffix.lower() == ".parquet":
            table = pq.read_table(path, columns=names)
        else:
            text = pa_csv.ConvertOptions(
                include_columns=names,
                column_types=dict.fromkeys(names, pa.string()),
                strings_can_be_null=False,
            )
            table = pa_csv.read_csv(path, convert_options=text)
        columns = [table[name].cast(pa.large_string()).combine_chunks() for name in names]
    except (OSError, KeyError, pa.ArrowException):
        listed = ", ".join(map(repr, names))
        raise SourceError(f"{path.name} could not be read with the columns {listed}.") from None
    return [_padded(pc.fill_null(pc.utf8_trim_whitespace(c), ""), width) for c in columns]


def _padded(codes: pa.Array, width: int | None) -> pa.Array:
    if width is None:
        return codes
    return pc.if_else(pc.utf8_is_digit(codes), pc.utf8_lpad(codes, width, "0"), codes)


def _chains(children: list[str], parents: list[str]) -> list[str]:
    """The path of each area that is nobody's parent; a parent without a row is a root."""
    above = dict(zip(children, parents, strict=True))
    found = []
    for area in set(above) - set(parents):
        chain = [area]
        while (parent := above.get(chain[-1], "")) and len(chain) <= len(above):
            chain.append(parent)
        found.append(BETWEEN.join(reversed(chain)))
    return found


def _outline(path: Path, lead: str) -> list[str]:
    """The paths of a file with one code a line, `lead` in front once for each level down."""
    branch: list[str] = []
    found = []
    for line in path.read_text(encoding="utf-8-sig").splitlines():
        code, depth = line.strip(), 0
        while code.startswith(lead):
            code, depth = code[len(lead) :], depth + 1
        if code:
            branch[depth:] = [code.strip()]
            found.append(BETWEEN.join(branch))
    inner = {path.rpartition(BETWEEN)[0] for path in found}
    return [path for path in found if path not in inner]
