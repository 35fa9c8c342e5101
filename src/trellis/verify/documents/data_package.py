"""`release/datapackage.json`: what it says about the tables beside it. Yields what is wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from trellis.verify.documents.differences import differences
from trellis.verify.documents.formats import require_known_kind
from trellis.verify.documents.methods import confidence
from trellis.verify.files.run_files import RunFiles
from trellis.verify.files.safe_files import read_json
from trellis.wording import data_package as words
from trellis.wording.kinds import KINDS

NAME = "release/datapackage.json"


def data_package(run: RunFiles) -> Iterator[str]:
    """The data package describes every table: its columns, types, units and the confidence."""
    require_known_kind(run)
    if NAME not in run.sizes:
        if run.plan.get("format", 1) > 1:
            yield f"{NAME} is missing"
        return
    content, expected = read_json(run.path, NAME), _package(run)
    tables = [name for name in run.sizes if name.endswith((".csv", ".parquet"))]
    there = {name.removeprefix("release/") for name in tables if name.startswith("release/")}
    listed, described = ([item["path"] for item in x["resources"]] for x in (content, expected))
    if listed != described or set(described) != there:
        yield f"{NAME} lists other files than there are"
        return
    for place in sorted(differences(content, expected)):
        yield f"{NAME} does not state what follows from the plan and the tables in {place}"


def _package(run: RunFiles) -> dict[str, Any]:
    tables = [name.removeprefix("release/") for name in run.sizes if name.startswith("release/")]
    stems = [name.removesuffix(".parquet") for name in tables if name.endswith(".parquet")]
    return {
        "profile": words.PROFILE,
        "name": _slug(run.plan["release"]),
        "title": run.plan["release"],
        "description": words.DESCRIPTION,
        **_confidence(run),
        "resources": [
            _resource(run, stem, ending)
            for stem in sorted(stems, key=lambda stem: stem.split("/"))
            for ending in words.MEDIA_TYPES
            if f"{stem}.{ending}" in tables
        ],
    }


def _confidence(run: RunFiles) -> dict[str, str]:
    return {"confidence": run.plan["confidence"]} if run.has_centres else {}


def _resource(run: RunFiles, stem: str, ending: str) -> dict[str, Any]:
    schema = run.schema(f"release/{stem}.parquet")
    return {
        "name": _slug(f"{stem}.{ending}"),
        "path": f"{stem}.{ending}",
        "title": words.TABLE_TITLE.format(release=run.plan["release"], table=stem),
        "format": ending,
        "mediatype": words.MEDIA_TYPES[ending],
        **({"encoding": "utf-8"} if ending == "csv" else {}),
        **(_confidence(run) if "lower" in schema.names else {}),
        "schema": {
            "fields": [_field(run, column, schema) for column in schema],
            "missingValues": [""],
        },
    }


def _field(run: RunFiles, column: pa.Field, schema: pa.Schema) -> dict[str, str]:
    name = column.name
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        described = words.CODES.get(name, words.OTHER_TEXT)
        return {"name": name, "type": "string", "description": described}
    empty = not run.has_centres and name in ("std_error", "lower", "upper")
    described = words.NO_VARIANCES if empty else words.NUMBERS[name]
    return {
        "name": name,
        "type": "integer" if pa.types.is_integer(column.type) else "number",
        "description": described.format(confidence=confidence(run.plan)),
        **({} if "statistic" in schema.names else {"unit": KINDS[run.plan["kind"]]["counted_in"]}),
    }


def _slug(text: str) -> str:
    """A name in lower case; whatever is not a letter, digit, dot, slash or hyphen is a hyphen."""
    return re.sub(r"[^a-z0-9._/-]+", "-", text.lower()).strip("-") or "release"
