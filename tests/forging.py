"""A forger who knows Trellis: changes a run and makes everything else fit."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from trellis.verify import verify_run
from trellis.workflow.progress import Silent
from trellis.workflow.public.finishing import finish
from trellis.workflow.public.run_folder import RunFolder, spec_hash


def few(seeds: Iterable[int]) -> list[Any]:
    """The first four; `make slow` takes them all."""
    return [
        seed if number < 4 else pytest.param(seed, marks=pytest.mark.slow)
        for number, seed in enumerate(seeds)
    ]


def broken(run: Path) -> set[str]:
    """The checks that notice something."""
    return {finding.check for finding in verify_run(run) if not finding.holds}


def change_column(path: Path, column: str, change: Callable[[np.ndarray], np.ndarray]) -> None:
    table = pq.ParquetFile(path).read()
    field = table.schema.field(column)
    old = table[column].to_numpy(zero_copy_only=False)
    new = pa.array(change(old.copy()), field.type, from_pandas=True)
    pq.write_table(table.set_column(table.column_names.index(column), field, new), path)


def edit_footer(path: Path, old: bytes, new: bytes) -> None:
    """Other bytes of the same length, in what a Parquet file says about itself."""
    assert len(old) == len(new)
    content = path.read_bytes()
    start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    assert old in content[start:]
    path.write_bytes(content[:start] + content[start:].replace(old, new))


def publish_again(run: Path, *also: str) -> None:
    """Tables, documents and manifest made by the package from what is in the folder.

    `also` names stages that are made again, such as estimates.
    """
    for name in ("release", "report", *also):
        shutil.rmtree(run / name)
    (run / "manifest.json").unlink()
    finish(RunFolder(run), Silent())


def write_json(path: Path, content: Any) -> None:
    """As a run writes it."""
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def edit_json(path: Path, change: Callable[[Any], object]) -> None:
    content = json.loads(path.read_text(encoding="utf-8"))
    change(content)
    write_json(path, content)


def edit_spec(run: Path, change: Callable[[Any], object]) -> None:
    """Another spec, with the hash that run.json has of it."""
    spec = yaml.safe_load((run / "spec.yaml").read_text(encoding="utf-8"))
    change(spec)
    text = yaml.safe_dump(spec, sort_keys=False, allow_unicode=True)
    (run / "spec.yaml").write_text(text, encoding="utf-8")
    edit_json(run / "run.json", lambda own: own.update(spec_sha256=spec_hash(spec)))


def fit_manifest(run: Path) -> None:
    """All hashes made good, of whatever is there."""
    path = run / "manifest.json"
    files = [file for file in sorted(run.rglob("*")) if file.is_file() and file != path]
    digests = {
        file.relative_to(run).as_posix(): sha256(file.read_bytes()).hexdigest() for file in files
    }
    edit_json(path, lambda manifest: manifest.update(sha256=digests))


def parents(run: Path) -> list[np.ndarray]:
    """By level of the published tree, root first."""
    tree = pq.read_table(run / "hierarchy.parquet")
    level, parent = tree["level"].to_numpy(), tree["parent"].to_numpy()
    return [parent[level == index] for index in range(int(level.max()) + 1)]


def estimates(run: Path) -> list[Path]:
    """Files of the published levels, root first."""
    plan = json.loads((run / "plan.json").read_text())
    return [run / f"estimates/level={level['level']}.parquet" for level in plan["levels"]]


def n_cells(run: Path) -> int:
    plan = json.loads((run / "plan.json").read_text())
    return int(np.prod([len(categories) for categories in plan["schema"].values()]))


def column(path: Path, name: str, cells: int) -> np.ndarray:
    """Nodes x cells."""
    return pq.read_table(path)[name].to_numpy().reshape(-1, cells)


def siblings(run: Path, differ: str, least: float = -np.inf, apart: float = 0.5) -> tuple[int, int]:
    """Two leaves of one family whose first cells differ in a column, the first the greater."""
    parent, values = parents(run)[-1], column(estimates(run)[-1], differ, n_cells(run))[:, 0]
    for left in range(len(parent)):
        for right in np.flatnonzero(parent == parent[left]).tolist():
            if values[left] > values[right] + apart and values[left] >= least:
                return left, right
    raise AssertionError("no two siblings differ")


def move(run: Path, name: str, leaf: int, by: float, cell: int = 0) -> None:
    """Change a leaf, and all areas that hold it."""
    cells, node = n_cells(run), leaf
    for path, above in zip(reversed(estimates(run)), reversed(parents(run)), strict=True):
        add(path, name, node * cells + cell, by)
        node = above[node]
    if not (run / "areas.parquet").exists():
        return
    listed = pq.read_table(run / "areas.parquet")
    for category in listed.column_names[1:]:
        entity = listed[category].to_pylist()
        if entity[leaf] is not None:
            place = sorted({code for code in entity if code is not None}).index(entity[leaf])
            add(run / f"estimates/areas/{category}.parquet", name, place * cells + cell, by)


def add(path: Path, name: str, place: int, by: float) -> None:
    """Change one number of a file."""

    def added(values: np.ndarray) -> np.ndarray:
        values[place] += by
        return values

    change_column(path, name, added)
