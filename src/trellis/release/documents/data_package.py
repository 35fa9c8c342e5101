"""`datapackage.json`: what the tables of a release hold, for programs that read Data Packages.

One resource for each file, with the type of every column. Codes are text: a program that follows
the types keeps the zero of 01.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from trellis.model.plans.percent import in_percent
from trellis.model.plans.plan import Plan
from trellis.storage.atomic import write_json
from trellis.wording import data_package as words

FILE = "datapackage.json"


def write_data_package(folder: Path, plan: Plan) -> None:
    """Describe the tables that a release folder holds."""
    write_json(folder / FILE, data_package(folder, plan))


def data_package(folder: Path, plan: Plan) -> dict[str, Any]:
    intervals = {"confidence": str(plan.confidence)} if plan.method.has_variances else {}
    stems = sorted(p.relative_to(folder).with_suffix("") for p in folder.rglob("*.parquet"))
    return {
        "profile": words.PROFILE,
        "name": _slug(plan.release),
        "title": plan.release,
        "description": words.DESCRIPTION,
        **intervals,
        "resources": [
            _resource(folder, plan, stem, ending)
            for stem in stems
            for ending in words.MEDIA_TYPES
            if folder.joinpath(f"{stem}.{ending}").exists()
        ],
    }


def _resource(folder: Path, plan: Plan, stem: Path, ending: str) -> dict[str, Any]:
    schema = pq.read_schema(folder / f"{stem}.parquet")
    has_intervals = plan.method.has_variances and "lower" in schema.names
    intervals = {"confidence": str(plan.confidence)} if has_intervals else {}
    return {
        "name": _slug(f"{stem.as_posix()}.{ending}"),
        "path": f"{stem.as_posix()}.{ending}",
        "title": words.TABLE_TITLE.format(release=plan.release, table=stem.as_posix()),
        "format": ending,
        "mediatype": words.MEDIA_TYPES[ending],
        **({"encoding": "utf-8"} if ending == "csv" else {}),
        **intervals,
        "schema": {
            "fields": [_field(plan, schema, column) for column in schema],
            "missingValues": [""],
        },
    }


def _field(plan: Plan, schema: pa.Schema, column: pa.Field) -> dict[str, str]:
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    whole = "integer" if pa.types.is_integer(kind) else "number"
    described = {"name": column.name, "type": "string" if pa.types.is_string(kind) else whole}
    if described["type"] == "string":
        return described | {"description": words.CODES.get(column.name, words.OTHER_TEXT)}
    described["description"] = _of_number(plan, column.name)
    return (
        described if "statistic" in schema.names else described | {"unit": plan.design.counted_in}
    )


def _of_number(plan: Plan, name: str) -> str:
    if not plan.method.has_variances and name in ("std_error", "lower", "upper"):
        return words.NO_VARIANCES
    return words.NUMBERS[name].format(confidence=in_percent(plan.confidence))


def _slug(text: str) -> str:
    """As names of packages and resources are: lower case, with few signs."""
    return re.sub(r"[^a-z0-9._/-]+", "-", text.lower()).strip("-") or "release"
