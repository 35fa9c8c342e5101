"""The promises about measurements. Each check yields what is wrong."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from trellis.verify.files.run_files import RunFiles
from trellis.verify.plan.price import noise_variance


def measurements(run: RunFiles) -> Iterator[str]:
    """There is one measurement of each planned query, with the planned noise."""
    expected = {run.measurement(q) for q in run.plan["queries"]}
    folder = run.path / "measurements"
    there = {f"measurements/{p.relative_to(folder).as_posix()}" for p in folder.rglob("*.parquet")}
    for name in sorted(there ^ expected):
        yield f"{name} is not both planned and there"
    for q in run.plan["queries"]:
        if (name := run.measurement(q)) not in there:
            continue
        table = run.table(name)
        cells = run.cells_of(q["query"])
        level, nodes = run.asked_of(q)
        if not level.lists(table["geocode"], nodes, len(cells)):
            yield f"{name} does not list the areas of its level in order"
        if q["query"] != "total" and not run.names_cells(table, cells, nodes.size):
            yield f"{name} does not name the cells in order"
        if table.schema.field("value").type != pa.int64() or table["value"].null_count:
            yield f"{name} holds values that are not whole numbers"
        variance = 0.0 if q["noise"] is None else noise_variance(q["noise"])
        if not np.allclose(table["variance"].to_numpy(), variance, rtol=1e-9, atol=0):
            yield f"{name} states another variance than its noise has"
        if q["noise"] is not None and not math.isclose(
            q["noise"]["variance"], variance, rel_tol=1e-9
        ):
            yield f"plan.json states another variance than the noise of {q['level']} has"
