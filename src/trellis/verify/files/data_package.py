"""What `datapackage.json` says about the tables beside it. Each check yields what is wrong."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from trellis.verify.files.run_files import RunFiles
from trellis.verify.files.safe_files import read_json

NAME = "release/datapackage.json"


def data_package(run: RunFiles) -> Iterator[str]:
    """The data package lists every table with its columns, their types and the confidence."""
    if NAME not in run.sizes:
        if run.plan.get("format", 1) > 1:
            yield f"{NAME} is missing"
        return
    content = read_json(run.path, NAME)
    listed = {f"release/{item['path']}": item for item in content["resources"]}
    there = [name for name in run.sizes if name.startswith("release/")]
    tables = {name for name in there if name.endswith((".parquet", ".csv"))}
    if len(listed) != len(content["resources"]) or set(listed) != tables:
        yield f"{NAME} lists other files than there are"
        return
    for name, item in {NAME: content, **listed}.items():
        schema = None if name == NAME else run.schema(f"{name.rpartition('.')[0]}.parquet")
        has_intervals = run.has_centres and (schema is None or "lower" in schema.names)
        if item.get("confidence") != (run.plan["confidence"] if has_intervals else None):
            yield f"{NAME} states another confidence for {name} than plan.json"
        if schema is not None and _types(schema) != [
            (field["name"], field["type"]) for field in item["schema"]["fields"]
        ]:
            yield f"{NAME} describes other columns than {name} has"


def _types(schema: pa.Schema) -> list[tuple[str, str]]:
    found = []
    for column in schema:
        number = "integer" if pa.types.is_integer(column.type) else "number"
        is_number = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
        found.append((column.name, number if is_number else "string"))
    return found
