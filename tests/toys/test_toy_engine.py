"""An engine that the package does not have: the plain reader reads a release of every kind."""

import pytest

import flow_worlds
import size_worlds
import trellis as tr
from histogram_release_worlds import write_histogram_world
from oracles.plain_reader import open_plainly
from trellis.ingest.duckdb import reader as duckdb_reader
from trellis.ingest.engines import reading_with
from trellis.workflow.confidential.measuring import tabulate
from trellis.workflow.frames import Frames
from trellis.workflow.preparing.prepare import prepare
from worlds import write_world

WORLDS = {
    "counts": write_world,
    "histograms": write_histogram_world,
    "group_sizes": size_worlds.write_size_world,
    "flows": flow_worlds.write_flow_world,
}


@pytest.mark.parametrize("kind", WORLDS)
def test_a_release_is_read_by_another_engine(tmp_path, monkeypatch, kind):
    spec, opened = tr.load(WORLDS[kind](tmp_path)), []
    prepared = prepare(spec, Frames())
    truth = tabulate(prepared, spec.resolve(spec.data.source), None)

    def toy(source, *, confidential=False):
        opened.append(confidential)
        return open_plainly(source, confidential=confidential)

    monkeypatch.setattr(duckdb_reader, "open_with_duckdb", None)
    monkeypatch.setattr(duckdb_reader.duckdb, "connect", None)
    with reading_with(toy):
        again = tabulate(prepare(spec, Frames()), spec.resolve(spec.data.source), None)
        release = tr.run(spec)
    assert {True, False} <= set(opened)
    assert same(again, truth)
    assert release.verify().holds


def same(one, other) -> bool:
    if not hasattr(one, "leaves"):  # flows, in any order of their pairs
        return flows(one) == flows(other)
    parts = [one.leaves, other.leaves]
    if hasattr(parts[0], "by_level"):  # sparse
        parts = [part.dense() for part in parts]
    return (parts[0] == parts[1]).all()


def flows(found) -> list[tuple[int, int, int]]:
    columns = (found.origin, found.destination, found.count)
    return sorted(zip(*(column.tolist() for column in columns), strict=True))
