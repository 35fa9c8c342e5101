"""Malformed and malicious input, by name: each case makes a world and gives the arguments.

A case need not say what is wrong with it. Whatever it is, there are two good answers: one line
and nothing done, or a correct release. A few hundred cases are made by putting strange values in
the place of every key of a spec; the others are written out.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from worlds import AREAS, PEOPLE, SPEC, write_world

Case = Callable[[Path], list[str]]

FULL = {
    **SPEC,
    "unprotected": {"totals": ["nation"]},
    "estimate": {"method": "gls_topdown"},
    "output": {"confidence": "9/10", "csv": True},
    "ledger": {"path": "ledger.sqlite", "limit": {"rho": 4}, "units": {}},
}
STRANGE: dict[str, Any] = {
    "null": None, "list": [], "mapping": {}, "true": True, "minus one": -1, "huge": 10**40,
    "long": "x" * 5000, "nul": "a\0b", "newline": "a\nb", "island": "🏝️", "dots": "../../x",
    "not a number": ".nan", "deep": [[[[[{"a": [1]}]]]]], "sql": "x\"; DROP TABLE source; --",
    "text for a mapping": "rho", "zero": 0, "tiny": "1e-300",
}  # fmt: skip


def paths_in(spec: dict, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for key, value in spec.items():
        yield (*above, key)
        if isinstance(value, dict):
            yield from paths_in(value, (*above, key))


def with_value(path: tuple[str, ...], value: Any) -> Case:
    def make(folder: Path) -> list[str]:
        write_world(folder)
        spec = deepcopy(FULL)
        place: Any = spec
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value
        return run(folder, yaml.safe_dump(spec, allow_unicode=True))

    return make


def run(folder: Path, spec: str | bytes) -> list[str]:
    text = spec.encode() if isinstance(spec, str) else spec
    (folder / "spec.yaml").write_bytes(text)
    return ["run", str(folder / "spec.yaml")]


def text(spec: str | bytes) -> Case:
    """A spec of these very bytes."""

    def make(folder: Path) -> list[str]:
        write_world(folder)
        return run(folder, spec)

    return make


def world(**changes: Any) -> Case:
    return lambda folder: ["run", str(write_world(folder, **changes))]


def out(place: str) -> Case:
    return lambda folder: [
        "run", str(write_world(folder)), "--out", place.replace("{folder}", str(folder))
    ]  # fmt: skip


def data_file(name: str, content: bytes | None, **changes: Any) -> Case:
    """Records in a file of any name and content."""

    def make(folder: Path) -> list[str]:
        spec = write_world(folder, data__source=name, **changes)
        if content is not None:
            (folder / name).write_bytes(content)
        return ["run", str(spec)]

    return make


def data_table(**columns: Any) -> Case:
    """Records in a Parquet file of these columns."""

    def make(folder: Path) -> list[str]:
        spec = write_world(folder, data__source="people.parquet")
        pq.write_table(pa.table(columns), folder / "people.parquet")
        return ["run", str(spec)]

    return make


def special(prepare: Callable[[Path], object], **changes: Any) -> Case:
    """A world in which something is done by hand before the command."""

    def make(folder: Path) -> list[str]:
        spec = write_world(folder, **changes)
        prepare(folder)
        return ["run", str(spec)]

    return make


def codes(*towns: str, people: str = "") -> Case:
    """Towns of any names, each with some people."""

    def quoted(code: str) -> str:
        return '"' + code.replace('"', '""') + '"'

    areas = "nation,state,town\n" + "".join(f"r,s,{quoted(t)}\n" for t in towns)
    rows = people or "town,people\n" + "".join(f"{quoted(t)},7\n" for t in towns)
    return world(areas=areas, people=rows, output__csv=True)


PLAIN = yaml.safe_dump(SPEC)
LAUGHS = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{b}: &{b} [*{a},*{a},*{a},*{a},*{a},*{a},*{a},*{a},*{a}]\n"
    for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)

TEXTS = {
    "billion laughs": LAUGHS,
    "anchor and alias": PLAIN + "x: &a 1\ny: *a\n",
    "alias of itself": "x: &a [*a]\n",
    "merge key": PLAIN + "<<: {release: other}\n",
    "python object": "x: !!python/object/apply:os.system ['touch pwned']\n",
    "unknown tag": PLAIN.replace("towns", "!!binary towns", 1),
    "deep lists": "x: " + "[" * 5000,
    "deep mappings": "".join(" " * i + f"k{i}:\n" for i in range(500)),
    "flow bomb": "x: " + "{a: " * 3000,
    "tabs": PLAIN.replace("  ", "\t"),
    "two documents": PLAIN + "---\n" + PLAIN,
    "empty": "",
    "comment only": "# nothing\n",
    "list": "- a\n- b\n",
    "number": "42\n",
    "key twice": PLAIN + "release: again\n",
    "key is a number": PLAIN + "1: x\n",
    "key is a list": PLAIN + "? [a, b]\n: x\n",
    "byte order mark": b"\xef\xbb\xbf" + PLAIN.encode(),
    "utf-16": PLAIN.encode("utf-16"),
    "latin-1": PLAIN.replace("towns", "St\xe4dte").encode("latin-1"),
    "nul bytes": PLAIN.replace("towns", "to\0wns").encode(),
    "binary": bytes(range(256)) * 20,
    "too large": "# " + "x" * 1_100_000,
    "unclosed quote": PLAIN + 'x: "abc\n',
    "control characters": PLAIN.replace("towns", "\x1b[31mred"),
    "huge exponent": PLAIN.replace("rho: 1", "rho: 1e999999999"),
    "huge number": PLAIN.replace("rho: 1", "rho: " + "9" * 5000),
    "octal": PLAIN.replace("rho: 1", "rho: 010"),
    "base sixty": PLAIN.replace("rho: 1", "rho: 1:30"),
    "infinity": PLAIN.replace("rho: 1", "rho: .inf"),
    "division by zero": PLAIN.replace("rho: 1", "rho: 1/0"),
    "windows line ends": PLAIN.replace("\n", "\r\n"),
    "carriage returns": PLAIN.replace("\n", "\r"),
}

DATA_NAMES = [
    "../people.csv", "../../../../etc/passwd", "/etc/passwd", "/dev/null", "/dev/zero",
    "/dev/stdin", "*.csv", "peopl?.csv", "[p]eople.csv", "~/people.csv",
    "people.csv'; DROP TABLE leaves; --.csv",
    "https://example.invalid/people.csv", "s3://bucket/people.parquet", "file:///etc/passwd.csv",
    "people.csv#fragment", "people.csv\u202egpj.exe", "x" * 300 + ".csv", "people.CSV", ".csv", " ",
    "areas.csv", "ledger.sqlite", "spec.yaml", "people.csv/", "people.csv/x.csv", "./people.csv",
    "//people.csv", "runs/x.csv", "%s%n.csv", "$HOME/people.csv", "people.csv\0.parquet",
]  # fmt: skip

NAMES = ["..", ".", "", " ", "a/b", "a\\b", "-rf", "con", "a\nb", "x" * 81, "名前", "a b", "=cmd",
         "a\0b", ".hidden", "a.", "$(touch x)", "level=a", "%2e%2e", "a\u202eb"]  # fmt: skip

TOWNS = {
    "formulas": ["=cmd|'/C calc'!A0", "+1+1", "-2+3", "@SUM(A1)", "\t=1", "'quoted"],
    "line ends": ["a\nb", "c\r\nd", "e\rf", "\n"],
    "quotes": ['a"b', '""', "c'd", "`e`"],
    "separators": ["a,b", "c;d", "e\tf", "g|h"],
    "alphabets": ["北京", "Ærø", "한글", "مدينة", "עיר", "Żary", "ΑΘΗΝΑ", "ไทย", "🏝️"],
    "look-alikes": ["a", "а", "ａ", "a\u0301", "á"],
    "invisible": ["a", "a\u200b", "a\u00a0", " a", "a "],
    "right to left": ["\u202eabc", "\u2066x\u2069"],
    "private use and rare planes": ["\ue000", "\U0010ffff", "\U00020000"],
    "html": ["<script>alert(1)</script>", "&lt;", "</script>", "<img src=x onerror=y>"],
    "sql": ["'; DROP TABLE leaves; --", "NULL", "null", "1 OR 1=1"],
    "paths": ["..", "../x", "/etc/passwd", "a/b", "C:\\x", "."],
    "numbers in disguise": ["1", "01", "1.0", "1e0", "+1", "0x1", "½", "١"],
    "words": ["true", "nan", "inf", "None", "yes"],
    "long": ["x" * 10_000, "y" * 10_001],
    "escapes": ["%s", "{0}", "${x}", "\\n", "\x1b[31m"],
    "upper and lower case": ["a", "A"],
}

FILES: dict[str, Case] = {
    "empty csv": data_file("people.csv", b""),
    "header only": data_file("people.csv", b"town,people\n"),
    "blank lines": data_file("people.csv", b"\n\n\ntown,people\na1,1\n"),
    "no header": data_file("people.csv", b"a1,10\na2,0\n"),
    "column twice": data_file("people.csv", b"town,people,people\na1,1,2\n"),
    "column twice but for case": data_file("people.csv", b"town,people,People\na1,1,2\n"),
    "too few cells": data_file("people.csv", b"town,people\na1\na2,1\n"),
    "too many cells": data_file("people.csv", b"town,people\na1,1,2,3\n"),
    "unclosed quote": data_file("people.csv", b'town,people\n"a1,1\na2,2\n'),
    "quote inside": data_file("people.csv", b'town,people\na"1,1\n'),
    "nul bytes": data_file("people.csv", b"town,people\na1,1\0\n\0,2\n"),
    "random bytes": data_file("people.csv", bytes((i * 37) % 256 for i in range(4000))),
    "latin-1": data_file("people.csv", "town,people\nÄ,1\n".encode("latin-1")),
    "utf-16": data_file("people.csv", "town,people\na1,1\n".encode("utf-16")),
    "byte order mark": data_file("people.csv", b"\xef\xbb\xbf" + PEOPLE.encode()),
    "windows line ends": data_file("people.csv", PEOPLE.replace("\n", "\r\n").encode()),
    "old line ends": data_file("people.csv", PEOPLE.replace("\n", "\r").encode()),
    "one endless line": data_file("people.csv", b"town,people\n" + b"x" * 3_000_000),
    "thousand columns": data_file(
        "people.csv", (",".join(f"c{i}" for i in range(1000)) + ",town,people\n").encode()
    ),
    "formula in a count": data_file("people.csv", b"town,people\na1,=1+1\n"),
    "thousands separator": data_file("people.csv", b'town,people\na1,"1,000"\n'),
    "underscore": data_file("people.csv", b"town,people\na1,1_000\n"),
    "hexadecimal": data_file("people.csv", b"town,people\na1,0x10\n"),
    "not a number": data_file("people.csv", b"town,people\na1,NaN\n"),
    "infinite": data_file("people.csv", b"town,people\na1,inf\n"),
    "minus zero": data_file("people.csv", b"town,people\na1,-0\n"),
    "almost whole": data_file("people.csv", b"town,people\na1,0.99999999999999999999\n"),
    "huge exponent": data_file("people.csv", b"town,people\na1,1e400\n"),
    "sum too large": data_file("people.csv", b"town,people\n" + b"a1,281474976710656\n" * 3),
    "other digits": data_file("people.csv", "town,people\na1,١٢\n".encode()),
    "no gzip": data_file("people.csv.gz", b"town,people\na1,1\n"),
    "cut gzip": data_file("people.csv.gz", gzip.compress(PEOPLE.encode() * 50)[:-30]),
    "good gzip": data_file("people.csv.gz", gzip.compress(PEOPLE.encode())),
    "no parquet": data_file("people.parquet", b"town,people\na1,1\n"),
    "empty parquet": data_file("people.parquet", b""),
    "parquet magic only": data_file("people.parquet", b"PAR1PAR1"),
    "parquet in name only": data_file("people.csv", b"PAR1" + bytes(500) + b"PAR1"),
    "nested counts": data_table(town=["a1"], people=[[1, 2]]),
    "struct counts": data_table(town=["a1"], people=[{"a": 1}]),
    "binary codes": data_table(town=[b"\xff\xfe"], people=[1]),
    "dates": data_table(town=["a1"], people=pa.array([0], pa.timestamp("s"))),
    "truth values": data_table(town=["a1"], people=[True]),
    "null type": data_table(town=["a1"], people=pa.nulls(1)),
    "nulls": data_table(town=["a1", None], people=[1, None]),
    "floats": data_table(town=["a1"], people=[1.5]),
    "nan": data_table(town=["a1"], people=[float("nan")]),
    "largest unsigned": data_table(town=["a1"], people=pa.array([2**64 - 1], pa.uint64())),
    "decimals": data_table(town=["a1"], people=pa.array([1], pa.decimal128(38, 0))),
    "float codes": data_table(town=[1.0], people=[1]),
    "no columns": data_table(),
    "no rows": data_table(town=pa.array([], pa.string()), people=pa.array([], pa.int64())),
    "fields of one name inside columns": data_table(
        town=["a1"], people=[1], one=[{"a": 1}], two=[{"a": 1}], three=[[1]], four=[[2]]
    ),
    "pipe": special(lambda f: os.mkfifo(f / "pipe.csv"), data__source="pipe.csv"),
    "folder as file": special(lambda f: (f / "x.csv").mkdir(), data__source="x.csv"),
    "link to itself": special(
        lambda f: (f / "loop.csv").symlink_to("loop.csv"), data__source="loop.csv"
    ),
    "link to the records": special(
        lambda f: (f / "link.csv").symlink_to("people.csv"), hierarchy__source="link.csv"
    ),
    "second name of the records": special(
        lambda f: (f / "hard.csv").hardlink_to(f / "people.csv"), hierarchy__source="hard.csv"
    ),
    "dangling link": special(lambda f: (f / "x.csv").symlink_to("gone"), data__source="x.csv"),
}

TREES: dict[str, Case] = {
    "no column": world(areas="\n"),
    "one column": world(areas="nation\nr\n"),
    "column twice": world(areas="nation,state,town,town\nr,a,a1,a1\n"),
    "only gaps": world(areas="nation,state,town\n,,\n"),
    "gap at the root": world(areas=AREAS + ",a,a9\n"),
    "leaf with areas below": world(areas=AREAS + "r,a,\n"),
    "two roots": world(areas=AREAS + "q,z,z1\n"),
    "leaf twice": world(areas=AREAS + "r,a,a1\n"),
    "level in name only": world(areas="nation,state,town\nr,a,\nr,b,\n", people="town,people\n"),
    "one node": world(
        areas="nation,state,town\nr,r,r\n", people="town,people\nr,5\n",
    ),
    "ragged": world(areas=AREAS + "r,c,\n", people=PEOPLE + "c,4\n"),
    "wide": world(
        areas="nation,state,town\n" + "".join(f"r,s,t{i}\n" for i in range(3000)),
        people="town,people\nt7,3\n",
    ),
    "deep": world(
        hierarchy={"source": "areas.csv", "columns": [f"l{i}" for i in range(60)]},
        areas=",".join(f"l{i}" for i in range(60)) + "\n" + ",".join(f"c{i}" for i in range(60)),
        data__area="town", people="town,people\nc59,4\n",
    ),
    "column names a level twice": world(hierarchy__columns=["nation", "town", "town"]),
    "no level": world(hierarchy__columns=[]),
    "levels upside down": world(hierarchy__columns=["town", "state", "nation"]),
    "prefix of a prefix": world(
        hierarchy={"source": "areas.csv", "code": {"column": "town"}, "prefixes": {"a": 2, "b": 1}}
    ),
    "prefix of nothing": world(
        hierarchy={"source": "areas.csv", "code": {"column": "town"}, "prefixes": {"a": 0, "b": 2}}
    ),
    "prefix too long": world(
        hierarchy={"source": "areas.csv", "code": {"column": "town"}, "prefixes": {"a": 99}}
    ),
    **{
        f"parent-child: {name}": world(
            areas="child,parent\n" + rows,
            hierarchy={"parent_child": "areas.csv", "levels": ["nation", "state", "town"]},
        )
        for name, rows in {
            "empty": "", "own parent": "a,a\n", "cycle of two": "a,b\nb,a\n",
            "cycle beside a tree": "a,r\na1,a\nx,y\ny,x\n", "two parents": "a,r\nb,r\nx,a\nx,b\n",
            "listed twice": "a,r\na,r\n", "empty child": "a,r\n,r\n", "forest": "a,r\nb,q\n",
            "deeper than named": "a,r\nb,a\nc,b\nd,c\n", "good": "a,r\na1,a\na2,a\nb,r\nb1,b\n",
        }.items()
    },
    "long chain": world(
        areas="child,parent\n" + "".join(f"n{i + 1},n{i}\n" for i in range(3000)),
        hierarchy={"parent_child": "areas.csv"},
    ),
}  # fmt: skip

OUTS = [".", "..", "/", "", " ", "{folder}", "{folder}/people.csv", "{folder}/spec.yaml/x",
        "{folder}/a\nb", "{folder}/" + "x" * 300, "{folder}/" + "a/" * 80 + "x", "/dev/null",
        "/proc/self/x", "{folder}/new/run", "{folder}/名前"]  # fmt: skip

SPEC_CASES = "spec: "

CASES: dict[str, Case] = {
    **{
        f"{SPEC_CASES}{'.'.join(path)} is {name}": with_value(path, value)
        for path in paths_in(FULL)
        for name, value in STRANGE.items()
    },
    **{f"yaml: {name}": text(content) for name, content in TEXTS.items()},
    **{f"data from {name[:40]!r}": data_file(name, None) for name in DATA_NAMES},
    **{f"hierarchy from {n[:40]!r}": world(hierarchy__source=n) for n in DATA_NAMES},
    **{f"ledger at {name[:40]!r}": world(ledger__path=name) for name in DATA_NAMES},
    **{f"release {name[:40]!r}": world(release=name) for name in NAMES},
    **{f"level {n[:40]!r}": world(hierarchy__columns=["nation", "state", n]) for n in NAMES},
    **{
        f"cell {name[:40]!r}": world(data={"source": "people.csv", "area": "town",
                                           "cells": {name: "people"}})
        for name in NAMES
    },
    **{f"codes: {name}": codes(*towns) for name, towns in TOWNS.items()},
    **{f"file: {name}": case for name, case in FILES.items()},
    **{f"tree: {name}": case for name, case in TREES.items()},
    **{f"out {place[:40]!r}": out(place) for place in OUTS},
}  # fmt: skip
