"""Columns of trees that nothing is computed from: what no run writes there is noticed."""

import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import trellis
from contracts.test_forgeries import fit_manifest, problems
from kinds import WORLDS
from kinds.world import RHO
from spine_worlds import release
from worlds import write_world

AREAS = "nation,state,town\n" + "".join(f"r,{s},{s}{t}\n" for s in "ab" for t in "123")
NOBODY = "town,people\n" + "".join(f"{s}{t},0\n" for s in "ab" for t in "123")


def with_parents(run, change):
    path = run / "hierarchy.parquet"
    table = pq.ParquetFile(path).read()
    parents = change(table["parent"].to_pylist())
    place = table.column_names.index("parent")
    field = table.schema.field("parent")
    pq.write_table(table.set_column(place, field, pa.array(parents, field.type)), path)
    fit_manifest(run)


def test_a_child_among_those_of_another_parent_is_noticed(tmp_path):
    spec = write_world(tmp_path, areas=AREAS, people=NOBODY, estimate={"method": "topdown"},
                       privacy__budget={"rho": 1000})  # fmt: skip
    run = trellis.run(trellis.Spec.load(spec), tmp_path / "run").path
    assert problems(run) == set()
    # The search for where a family begins does not see it; with no one there, all counts add up.
    with_parents(run, lambda parents: [*parents[:4], 1, *parents[5:]])
    assert any("order of their parents" in problem for problem in problems(run))


@pytest.mark.parametrize("kind", WORLDS)
def test_a_parent_of_the_root_is_noticed(tmp_path, kind):
    spec = trellis.Spec.load(WORLDS[kind].write(tmp_path / kind, **RHO))
    run = shutil.copytree(trellis.run(spec, tmp_path / "out").path, tmp_path / "run")
    assert problems(run) == set()
    with_parents(run, lambda parents: [7, *parents[1:]])
    assert problems(run)


@pytest.mark.parametrize(("column", "new"), [("leaf", 4711), ("passes_through", True)])
def test_a_mark_on_an_inner_node_of_a_spine_is_noticed(tmp_path, column, new):
    run = release(tmp_path).path
    assert problems(run) == set()
    path = run / "spine.parquet"
    table = pq.ParquetFile(path).read()
    field, place = table.schema.field(column), table.column_names.index(column)
    values = [new, *table[column].to_pylist()[1:]]
    pq.write_table(table.set_column(place, field, pa.array(values, field.type)), path)
    fit_manifest(run)
    assert any("says more than a spine" in problem for problem in problems(run))
