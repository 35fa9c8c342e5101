"""Published marginals: one table per level and query, written a run of areas at a time.

release/county/hispanic,cenrace.parquet
    geocode, level, hispanic, cenrace, count, std_error, lower, upper
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from trellis.execution.progress import in_parts
from trellis.model.plans.kinds.histograms import HistogramDesign
from trellis.model.plans.plan import Plan
from trellis.model.results.histogram_estimates import HistogramEstimates
from trellis.model.results.histogram_facts import HistogramFacts
from trellis.model.tables.queries import Query, parse_query
from trellis.release.tables.counts import MOST_CSV_ROWS, for_csv
from trellis.release.tables.intervals import interval, interval_factor
from trellis.storage.codes import level_codes
from trellis.storage.histograms import factor_columns
from trellis.storage.parquet import repeated

ROWS_AT_ONCE = 1 << 20


def table_name(query: str) -> str:
    """A query as the name of a file: stars and blanks would be a nuisance."""
    return query.replace(" * ", ",")


def write_histogram_tables(
    folder: Path,
    plan: Plan,
    estimates: HistogramEstimates,
    facts: HistogramFacts | None,
    csv: bool | None,
) -> None:
    """`facts` are those that bind the records; tables without margins need none."""
    for level, name in in_parts(plan.design_as(HistogramDesign).tables):
        query = parse_query(plan.schema, name)
        target = folder / level / table_name(name)
        target.parent.mkdir(parents=True, exist_ok=True)
        schema, index = _arrow_schema(query, estimates.are_whole), plan.levels.index(level)
        n_rows = plan.areas[index] * query.n_cells
        with pq.ParquetWriter(f"{target}.parquet", schema, compression="zstd") as file:
            for table in _pieces(plan, estimates, facts, index, query, schema):
                file.write_table(table)
        if csv or (csv is None and n_rows <= MOST_CSV_ROWS):
            with pa_csv.CSVWriter(f"{target}.csv", _text_schema(schema)) as file:
                for table in _pieces(plan, estimates, facts, index, query, schema):
                    file.write_table(for_csv(table).cast(_text_schema(schema)))


def _pieces(
    plan: Plan,
    estimates: HistogramEstimates,
    facts: HistogramFacts | None,
    level: int,
    query: Query,
    schema: pa.Schema,
) -> Iterator[pa.Table]:
    """All areas of a level in runs; pass-through nodes of a ragged tree are left out."""
    hierarchy, name = estimates.hierarchy, plan.levels[level]
    shown, step = ~hierarchy.passes_through[level], max(1, ROWS_AT_ONCE // query.n_cells)
    codes = level_codes(hierarchy, level)
    margin = estimates.margins.get((name, query.name))
    factor = interval_factor(plan)
    for first in range(0, shown.size, step):
        areas = first + np.flatnonzero(shown[first : first + step])
        last = min(first + step, shown.size)
        counts = estimates.published((name, query.name), first, last)[areas - first]
        size = counts.size
        index = np.repeat(np.arange(areas.size, dtype=np.int32), query.n_cells)
        columns = [
            pa.DictionaryArray.from_arrays(pa.array(index), codes.take(pa.array(areas))),
            repeated(name, size, pa.string()).dictionary_encode(),
            *factor_columns(query, areas.size),
            pa.array(counts.reshape(-1)),
        ]
        if margin is None or facts is None:
            columns += [pa.nulls(size, pa.float64()), *(2 * [pa.nulls(size, pa.int64())])]
        else:
            std_error = margin.std_errors(areas)
            allowed = facts.allowed(level, query, first, last).rows(areas - first)
            lower, upper = interval(counts, margin.centre[areas], std_error, factor, allowed)
            columns += [pa.array(values.reshape(-1)) for values in (std_error, lower, upper)]
        yield pa.Table.from_arrays(columns, schema=schema)


def _arrow_schema(query: Query, whole: bool) -> pa.Schema:
    text = pa.dictionary(pa.int32(), pa.string())
    fields = [("geocode", text), ("level", text), *((f.name, text) for f in query.factors)]
    numbers = [("std_error", pa.float64()), ("lower", pa.int64()), ("upper", pa.int64())]
    return pa.schema([*fields, ("count", pa.int64() if whole else pa.float64()), *numbers])


def _text_schema(schema: pa.Schema) -> pa.Schema:
    """The CSV writer knows no dictionaries."""
    return pa.schema(
        [(f.name, pa.string() if pa.types.is_dictionary(f.type) else f.type) for f in schema]
    )
