"""Random forgeries of one file of a run folder, as `(what, new content)`; the manifest is extra."""

from __future__ import annotations

import copy
import csv
import json
import re
from collections.abc import Iterator
from hashlib import sha256
from io import BytesIO, StringIO
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

Forged = tuple[str, bytes]


class Nothing(Exception):
    """There is nothing to forge here."""


def forge(path: Path, chance: Random) -> Forged:
    """A change of one file that a reader could be misled by."""
    ways = {
        ".parquet": forge_parquet, ".json": forge_json, ".yaml": forge_yaml, ".csv": forge_csv
    }  # fmt: skip
    return ways.get(path.suffix, forge_text)(path, chance)


# -- Parquet --------------------------------------------------------------------------------------


def forge_parquet(path: Path, chance: Random) -> Forged:
    table = pq.ParquetFile(path).read()
    way = chance.choice((_value, _value, _value, _value, _more_columns, _fewer_columns, _metadata,
                         _fewer_rows))  # fmt: skip
    what, forged = way(table, chance)
    sink = BytesIO()
    pq.write_table(forged, sink)
    return what, sink.getvalue()


def _value(table: pa.Table, chance: Random) -> tuple[str, pa.Table]:
    if not table.num_rows:
        raise Nothing
    name = chance.choice(table.column_names)
    values = table[name].to_pylist()
    if all(value is None for value in values):
        raise Nothing
    at = chance.randrange(len(values))
    values[at] = _another(values[at], values, chance)
    field = table.schema.field(name)
    new = pa.array(values, pa.string() if pa.types.is_dictionary(field.type) else field.type)
    place = table.column_names.index(name)
    return f"value of {name}", table.set_column(place, field, new.cast(field.type))


def _another(value: Any, values: list[Any], chance: Random) -> Any:
    """Another value of the kind: a whole number moves by one or more, a real one by a part."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + chance.choice((-2, -1, 1, 3))
    if isinstance(value, float):
        return value * chance.choice((0.5, 0.9, 1.1, 2.0)) if value else 1.0
    others = [other for other in set(values) if other not in (value, None)]
    return chance.choice(sorted(others)) if others else f"{value}x"


def _more_columns(table: pa.Table, chance: Random) -> tuple[str, pa.Table]:
    numbers = [chance.randrange(100) for _ in range(table.num_rows)]
    return "a column more", table.append_column("truth", pa.array(numbers, pa.int64()))


def _fewer_columns(table: pa.Table, chance: Random) -> tuple[str, pa.Table]:
    if table.num_columns < 2:
        raise Nothing
    name = chance.choice(table.column_names)
    return f"without column {name}", table.drop_columns([name])


def _metadata(table: pa.Table, chance: Random) -> tuple[str, pa.Table]:
    known = table.schema.metadata or {}
    added = {**known, b"truth": str(chance.random()).encode()}
    return "metadata", table.replace_schema_metadata(added)


def _fewer_rows(table: pa.Table, chance: Random) -> tuple[str, pa.Table]:
    if not table.num_rows:
        raise Nothing
    gone = chance.randrange(table.num_rows)
    return "a row less", pa.concat_tables([table.slice(0, gone), table.slice(gone + 1)])


# -- JSON and YAML --------------------------------------------------------------------------------


def forge_json(path: Path, chance: Random) -> Forged:
    what, content = _forge_tree(json.loads(path.read_text()), chance)
    return what, (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode()


def forge_yaml(path: Path, chance: Random) -> Forged:
    what, content = _forge_tree(yaml.safe_load(path.read_text()), chance)
    return what, yaml.safe_dump(content, sort_keys=False, allow_unicode=True).encode()


def _forge_tree(content: Any, chance: Random) -> tuple[str, Any]:
    content = copy.deepcopy(content)
    leaves = list(_leaves(content))
    place, key = chance.choice(leaves)
    holder = content
    for step in place:
        holder = holder[step]
    name = ".".join(str(step) for step in (*place, key) if not isinstance(step, int))
    way = chance.random()
    if way < 0.7:
        holder[key] = _another_leaf(holder[key], chance)
        return f"value of {name}", content
    if way < 0.85:
        del holder[key]
        return f"without {name}", content
    chance.choice(list(_maps(content)))["truth"] = 17
    return "a key more", content


def _another_leaf(value: Any, chance: Random) -> Any:
    if isinstance(value, str):
        # Last digits of a long number say nothing.
        digits = [m.start() for m in re.finditer(r"\d", value)]
        if digits:
            at = chance.choice(digits[:4])
            return f"{value[:at]}{(int(value[at]) + chance.randint(1, 8)) % 10}{value[at + 1 :]}"
        return f"{value} not" if value else "x"
    if value is None:
        return "x"
    if isinstance(value, list | dict):
        return type(value)() if value else ["x"]
    return _another(value, [], chance)


def _leaves(content: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Places of all values that hold no others."""
    steps = content.items() if isinstance(content, dict) else enumerate(content)
    for key, value in steps:
        if isinstance(value, dict | list) and value:
            yield from _leaves(value, (*above, key))
        else:
            yield above, key


def _maps(content: Any) -> Iterator[dict[str, Any]]:
    if isinstance(content, dict):
        yield content
    for value in content.values() if isinstance(content, dict) else content:
        if isinstance(value, dict | list):
            yield from _maps(value)


# -- text -----------------------------------------------------------------------------------------


def forge_csv(path: Path, chance: Random) -> Forged:
    rows = list(csv.reader(StringIO(path.read_text(), newline="")))
    if len(rows) < 2:
        raise Nothing
    row, column = chance.randrange(1, len(rows)), chance.randrange(len(rows[0]))
    rows[row][column] = _another_leaf(rows[row][column], chance)
    text = StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return f"value of {rows[0][column]}", text.getvalue().encode()


def forge_text(path: Path, chance: Random) -> Forged:
    """One digit of a page becomes another; dates can be any."""
    text = path.read_text()
    undated = re.sub(r"\d{4}-\d\d-\d\d", "....-..-..", text)
    digits = [m.start() for m in re.finditer(r"\d", undated)]
    if not digits:
        raise Nothing
    at = chance.choice(digits)
    new = str((int(text[at]) + chance.randint(1, 8)) % 10)
    return "a digit", f"{text[:at]}{new}{text[at + 1 :]}".encode()


# -- the whole folder -----------------------------------------------------------------------------


def swap_siblings(run: Path, chance: Random) -> str:
    """Two areas change places in all tables of a release, and in its estimates."""
    codes = sorted(set(_leaf_codes(run)))
    if len(codes) < 2:
        raise Nothing
    a, b = chance.sample(codes, 2)
    swap = {a: b, b: a}
    for path in sorted(run.rglob("*.parquet")):
        if path.parts[len(run.parts)] in ("release", "estimates", "measurements"):
            table = pq.ParquetFile(path).read()
            if "geocode" in table.column_names:
                field, at = table.schema.field("geocode"), table.column_names.index("geocode")
                new = [swap.get(code, code) for code in table["geocode"].to_pylist()]
                column = pa.array(new, pa.string()).cast(field.type)
                pq.write_table(table.set_column(at, field, column), path)
    for path in sorted((run / "release").rglob("*.csv")):
        rows = list(csv.reader(StringIO(path.read_text(), newline="")))
        text = StringIO()
        changed = [[swap.get(cell, cell) for cell in row] for row in rows]
        csv.writer(text, lineterminator="\n").writerows(changed)
        path.write_text(text.getvalue())
    return "siblings swapped"


def _leaf_codes(run: Path) -> list[str]:
    tables = [p for p in (run / "release").rglob("*.parquet")
              if "geocode" in pq.read_schema(p).names]  # fmt: skip
    found = [pq.ParquetFile(p).read()["geocode"].to_pylist() for p in tables]
    return max(found, key=lambda codes: len(set(codes)), default=[])


def make_good(run: Path) -> None:
    """The manifest as a forger would write it: every file that is there, with its hash."""
    path = run / "manifest.json"
    manifest = json.loads(path.read_text())
    there = [p.relative_to(run).as_posix() for p in sorted(run.rglob("*")) if p.is_file()]
    manifest["sha256"] = {
        name: sha256((run / name).read_bytes()).hexdigest()
        for name in there
        if name != "manifest.json"
    }
    path.write_text(json.dumps(manifest, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
