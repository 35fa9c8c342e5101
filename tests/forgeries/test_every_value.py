"""No value of any file can be forged unnoticed, but for those that are listed here.

One value of every column of every Parquet and CSV file is drawn, and every leaf of the plan, the
spec, the run and smaller JSON files. `tests/verify/test_documents.py` does the same with documents.
Hashes are left aside: a forger makes them good.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from forgeries.forgery import with_values
from forgeries.worlds import COVERED
from forging import edit_spec, write_json
from trellis.verify.files.inventory import strange
from trellis.verify.files.run_files import RunFiles
from trellis.verify.kinds import checks_of
from trellis.verify.verify import carry_out
from verify.test_documents import changed, leaves, with_leaf

MOST_LEAVES = 25
"""Of one file; of larger ones, as many are drawn."""

FREE: dict[str, tuple[str, ...]] = {
    "spec.yaml": (
        "data.", "hierarchy.public", "hierarchy.code.", "hierarchy.prefixes.",
        "areas.place.", "areas.zone.", "constraints.0.area", "constraints.0.facilities",
        "group_register.", "trips.above",
    ),
    "run.json": ("tie_seed", "run_id", "ledger_id"),
    "estimates/fit.json": ("distance",),
}  # fmt: skip
"""Places whose values no other file repeats; see "What nobody can notice" in `docs/trust.md`."""

FREE_COLUMNS = {("measurements", "value"), ("constraints.parquet", "bound")}
"""Noise, which cannot be computed again where no estimate uses it, and bounds of the office."""

UNUSED = "measurements/level=town-to-town/query=pairs.parquet", "expanded"
"""Below the last level there is nothing to measure, whatever it says."""


class Watch:
    """The checks of a run; those that noticed the last forgery come first."""

    def __init__(self, run: Path) -> None:
        self.run = run
        self._checks = [c for c in checks_of(RunFiles(run)) if c.__name__ != "hashes"]

    def notices(self, only: Path | None = None) -> bool:
        """Whether some check finds something; `only` is the one file that changed, if known."""
        files = RunFiles(self.run)
        if only is not None:
            name = only.relative_to(self.run).as_posix()
            files.__dict__["strange"] = strange(self.run, {name: files.sizes[name]}, files.plan)
        for check in self._checks:
            if not carry_out(check, files).holds:
                self._checks.remove(check)
                self._checks.insert(0, check)
                return True
        return False

    def unnoticed(self, path: Path, forgeries: Iterator[tuple[str, Callable[[], object]]]):
        """The names of forgeries of one file that pass; the file is as before afterwards."""
        kept = {file: file.read_bytes() for file in (path, self.run / "run.json")}
        for name, forge in forgeries:
            forge()
            if not self.notices(path if path.suffix in (".parquet", ".csv") else None):
                yield name
            for file, content in kept.items():
                file.write_bytes(content)


def other(value: Any, kind: pa.DataType) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, str):
        return f"{value}x"
    if value is None:
        return "x" if pa.types.is_string(kind) or pa.types.is_dictionary(kind) else 1
    return value + 1 if isinstance(value, int) else value * 1.01 + 0.01


def columns(run: Path, path: Path, draw: Random) -> Iterator[tuple[str, Callable[[], object]]]:
    """One value of each column of a Parquet file."""
    rows = pq.read_metadata(path).num_rows
    for field in pq.read_schema(path) if rows else ():
        place = path.relative_to(run).as_posix()
        if {(place.partition("/")[0], field.name), (place, field.name)} & {*FREE_COLUMNS, UNUSED}:
            continue
        at = draw.randrange(rows)

        def forge(field: pa.Field = field, at: int = at) -> None:
            with_values(
                path, field.name, lambda v: [*v[:at], other(v[at], field.type), *v[at + 1 :]]
            )

        yield f"{place}: {field.name} of row {at}", forge


def cells(path: Path, draw: Random) -> Iterator[tuple[str, Callable[[], object]]]:
    """One digit or letter of each column of a CSV file."""
    lines = [line.split(",") for line in path.read_text(encoding="utf-8").splitlines()]
    for column in range(len(lines[0])):
        at = draw.randrange(len(lines))
        text = lines[at][column]

        def forge(at: int = at, column: int = column, text: str = text) -> None:
            forged = [list(line) for line in lines]
            forged[at][column] = f'{text[:-1]}7"' if text.endswith('"') else f"{text}7"
            path.write_text("\n".join(map(",".join, forged)) + "\n", encoding="utf-8")

        yield f"{path.name}: column {column} of line {at}", forge


def places(run: Path, name: str, draw: Random) -> Iterator[tuple[str, Callable[[], object]]]:
    """Leaves of a JSON or YAML file."""
    text = (run / name).read_text(encoding="utf-8")
    content = yaml.safe_load(text) if name == "spec.yaml" else json.loads(text)
    found = list(leaves(content))
    for place in draw.sample(found, min(len(found), MOST_LEAVES)):
        title = ".".join(map(str, place))
        if title.startswith(FREE.get(name, ())):
            continue
        forged = with_leaf(content, place, noticeable)

        def forge(forged: Any = forged) -> None:
            if name == "spec.yaml":
                edit_spec(run, lambda spec: (spec.clear(), spec.update(forged)))
            else:
                write_json(run / name, forged)

        yield f"{name}: {title}", forge


def noticeable(value: Any) -> Any:
    """Forecasts are compared to six digits."""
    return value * 1.01 + 0.01 if isinstance(value, float) else changed(value)


JSON = ("plan.json", "run.json", "spec.yaml", "estimates/fit.json", "release/edit_rules.json")


@pytest.mark.parametrize("world", COVERED)
def test_no_value_can_be_forged_unnoticed(copied, world):
    run, draw, found = copied(world), Random(world), []
    watch = Watch(run)
    assert not watch.notices()
    for path in sorted(run.rglob("*.parquet")):
        found += watch.unnoticed(path, columns(run, path, draw))
    for path in sorted(run.rglob("*.csv")):
        found += watch.unnoticed(path, cells(path, draw))
    for name in JSON:
        if (run / name).exists():
            found += watch.unnoticed(run / name, places(run, name, draw))
    assert not watch.notices()
    assert found == []


@pytest.mark.parametrize("world", COVERED)
def test_no_file_can_be_taken_away_unnoticed(copied, world):
    run = copied(world)
    watch = Watch(run)
    for path in sorted(path for path in run.rglob("*") if path.is_file()):
        hidden = path.rename(run.parent / "hidden")
        assert watch.notices(), path
        hidden.rename(path)
    assert not watch.notices()


def without_columns(run: Path, path: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """A Parquet file without each of its columns."""
    table = pq.read_table(path)
    for name in table.column_names:
        yield (
            f"{path.relative_to(run).as_posix()}: without {name}",
            lambda name=name: pq.write_table(table.drop_columns(name), path),
        )


@pytest.mark.parametrize("world", COVERED)
def test_no_column_can_be_taken_away_unnoticed(copied, world):
    run = copied(world)
    watch = Watch(run)
    assert not watch.notices()
    paths = sorted(run.rglob("*.parquet"))
    assert [n for path in paths for n in watch.unnoticed(path, without_columns(run, path))] == []
