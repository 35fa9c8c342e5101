"""Small worlds of histograms that several tests share."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

import trellis
from trellis.model import Hierarchy, Plan, Schema
from trellis.model.plans.shares import Shares
from trellis.model.tables.schema import Recode
from trellis.planning.kinds.counts import CountsRequest
from trellis.planning.kinds.histograms import HistogramRequest, plan_histograms
from trellis.verify import verify_run
from worlds import REQUEST, changed

TREE = Hierarchy.from_paths(
    [("r", "a", "a1"), ("r", "a", "a2"), ("r", "b", "b1"), ("r", "c")], ["nation", "state", "town"]
)
"""A family of two, one of one, and an area that ends early."""

SCHEMA = Schema(
    {"age": ["0", "1", "2", "3"], "sex": ["f", "m"]},
    {"adult": Recode("age", {"no": ["0"], "yes": ["1", "2", "3"]})},
)
STRATEGY = {
    "default": {"total": "1/4", "adult * sex": "1/4", "detailed": "1/2"},
    "town": {"sex": "1/3", "detailed": "2/3"},
}


def shares(strategy: dict[str, dict[str, str]]) -> dict[str, Shares]:
    return {
        level: Shares({query: Fraction(share) for query, share in queries.items()})
        for level, queries in strategy.items()
    }


def histogram_plan(hierarchy: Hierarchy = TREE, schema: Schema = SCHEMA, **changes: Any) -> Plan:
    """The plan of a request for rho = 1 in uniform shares, except for `changes`."""
    histogram = {
        "schema": schema,
        "ordered": ("age",),
        "strategy": shares(STRATEGY),
        "tables": None,
        "microdata": False,
        "structural_zeros": (),
        "edit_rules": (),
        "passes": (),
        "measurements": "complete",
    }
    request = CountsRequest(**{k: changes.get(k, v) for k, v in REQUEST.items()})
    wish = {k: changes.get(k, v) for k, v in histogram.items()}
    memory = changes.get("memory")
    return plan_histograms(HistogramRequest(counts=request, **wish), hierarchy, "digest", memory)


# -- specs on disk --------------------------------------------------------------------------------

SPEC: dict[str, Any] = {
    "release": "towns",
    "kind": "counts",
    "dataset": "towns",
    "data": {"source": "people.csv", "area": "town", "count": "people"},
    "hierarchy": {"source": "areas.csv", "columns": ["nation", "state", "town"]},
    "schema": {"age": {"range": [0, 3]}, "sex": ["f", "m"]},
    "recodes": {"adult": {"of": "age", "groups": {"no": [0], "yes": [1, 2, 3]}}},
    "strategy": STRATEGY,
    "privacy": {
        "unit": "person",
        "neighbours": "replace",
        "max_contribution": 1,
        "mechanism": "discrete_gaussian",
        "budget": {"rho": 1},
    },
    "output": {"tables": {"default": ["total", "adult * sex"]}, "microdata": True},
}
AREAS = "nation,state,town\nr,a,a1\nr,a,a2\nr,b,b1\nr,c,\n"
PEOPLE = (
    "town,age,sex,people\na1,0,m,10\na1,3,f,13\na2,2,f,0\nb1,3,m,25\nc,3,m,5\na1,0,m,1\na1,1,f,4\n"
)
FACILITIES = "town,age,homes\na1,0,2\na1,3,1\nb1,3,3\nc,3,1\n"


def write_histogram_world(
    folder: Path, people: str = PEOPLE, facilities: str = FACILITIES, **changes: Any
) -> Path:
    """A spec with its CSV files; returns the path of the spec."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "areas.csv").write_text(AREAS, encoding="utf-8")
    (folder / "people.csv").write_text(people, encoding="utf-8")
    (folder / "facilities.csv").write_text(facilities, encoding="utf-8")
    spec = folder / "spec.yaml"
    spec.write_text(yaml.safe_dump(changed(SPEC, **changes), sort_keys=False), encoding="utf-8")
    return spec


# -- run folders ----------------------------------------------------------------------------------


def problems(path: Path) -> dict[str, tuple[str, ...]]:
    """What verification finds, by the name of the check."""
    return {finding.check: finding.problems for finding in verify_run(path) if finding.problems}


def assert_resumes(spec: Path, run: Path) -> None:
    """Whatever of the public half is gone is made again, the same."""
    before = pq.read_table(run / "release" / "town" / "sex.parquet")
    for gone in ("manifest.json", "release", "report", "estimates"):
        path = run / gone
        shutil.rmtree(path) if path.is_dir() else path.unlink()
        (run / "manifest.json").unlink(missing_ok=True)
        trellis.run(trellis.Spec.load(spec), run)
        assert problems(run) == {}
    assert pq.read_table(run / "release" / "town" / "sex.parquet").equals(before)


def rewrite(path: Path, **columns: Callable[[list[Any]], list[Any]]) -> None:
    """Change columns of a Parquet file in place."""
    table = pq.ParquetFile(path).read()
    for name, change in columns.items():
        values = table[name].to_pylist()
        index = table.column_names.index(name)
        new = pa.array(change(values), table.schema.field(name).type)
        table = table.set_column(index, name, new)
    pq.write_table(table, path)


def bumped(values: list[Any], by: float = 1) -> list[Any]:
    return [values[0] + by, *values[1:]]
