"""What a user calls in Python: the same as the command line, also with frames."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import trellis
from measuring import measure
from trellis.errors import InputError, LedgerError, RunFolderError, SpecError, StructureError
from trellis.model import Hierarchy
from worlds import REMOVE, SPEC, changed, write_world

AREAS = {"nation": ["r"] * 3, "state": ["a", "a", "b"], "town": ["a1", "a2", "b1"]}
PEOPLE = {"town": ["a1", "b1", "a1"], "people": [10, 25, 3]}
COLUMNS = ["geocode", "level", "cell", "count", "std_error", "lower", "upper"]


@pytest.fixture
def spec(tmp_path) -> trellis.Spec:
    """A spec that names no files."""
    content = changed(SPEC, data__source=REMOVE, hierarchy__source=REMOVE)
    return trellis.Spec.parse(content, tmp_path)


@pytest.mark.parametrize("frame", [pa.table, pl.DataFrame, pd.DataFrame])
def test_frames_stand_in_for_files(spec, tmp_path, frame):
    release = trellis.run(spec, tmp_path / "run", data=frame(PEOPLE), hierarchy=frame(AREAS))
    table = release.table("town")
    assert table.column_names == COLUMNS
    assert table["geocode"].to_pylist() == ["a1", "a2", "b1"]
    assert release.table("nation")["count"].to_pylist() == [38]  # exact under replace
    assert release.path == tmp_path / "run"
    assert "towns" in repr(release)


def test_without_files_or_frames_there_is_nothing_to_read(spec):
    with pytest.raises(SpecError, match=r"hierarchy\.source is missing"):
        trellis.plan(spec)
    with pytest.raises(SpecError, match=r"data\.source is missing"):
        trellis.check(spec, hierarchy=pa.table(AREAS))
    with pytest.raises(InputError, match="cannot be read as a table"):
        trellis.check(spec, hierarchy=pa.table(AREAS), data=5)


def test_a_frame_that_changed_is_a_changed_input(spec, tmp_path):
    areas, people = pa.table(AREAS), pa.table(PEOPLE)
    measure(spec, tmp_path / "one", data=people, hierarchy=areas)
    measure(spec, tmp_path / "two", data=people.slice(0), hierarchy=areas)
    in_pieces = pa.concat_tables([people.slice(0, 1), people.slice(1)])
    measure(spec, tmp_path / "three", data=in_pieces, hierarchy=areas)
    with pytest.raises(LedgerError, match="has changed since"):
        measure(spec, tmp_path / "four", data=people.slice(1), hierarchy=areas)
    assert not (tmp_path / "four").exists()


def test_areas_that_come_with_the_records_must_be_public_and_then_are_quoted(tmp_path):
    both = pa.table(AREAS | {"people": [7_654_321, 2, 3]})
    content = changed(SPEC, data__source=REMOVE, hierarchy__source=REMOVE)
    with pytest.raises(SpecError, match="comes from the confidential file"):
        trellis.check(trellis.Spec.parse(content, tmp_path), data=both, hierarchy=both)
    content["hierarchy"]["public"] = True
    spec = trellis.Spec.parse(content, tmp_path)
    trellis.check(spec, data=both, hierarchy=both)
    twice = pa.concat_tables([both, both])
    with pytest.raises(StructureError, match="'a1' occurs twice") as refused:
        trellis.check(spec, data=twice, hierarchy=twice)
    assert "7654321" not in "".join(refused.value.faults)


def test_plans_and_checks_are_those_of_the_run(tmp_path):
    spec = trellis.Spec.load(write_world(tmp_path))
    planned = trellis.plan(spec)
    assert trellis.check(spec).privacy == planned.privacy
    assert [error.level for error in planned.forecast.errors] == ["nation", "state", "town"]
    assert trellis.run(spec).plan == planned


def test_a_release_has_the_levels_it_has(tmp_path):
    release = trellis.run(trellis.Spec.load(write_world(tmp_path)))
    with pytest.raises(RunFolderError, match="no level 'county'; it has nation, state, town"):
        release.table("county")
    assert trellis.Release(release.path).table("state").num_rows == 2


def test_a_release_is_finished(tmp_path):
    folder = measure(trellis.Spec.load(write_world(tmp_path)))
    with pytest.raises(RunFolderError, match="no finished release"):
        trellis.Release(folder.path)


@pytest.mark.parametrize("content", [[], {}, {"run_id": "x"}, {"more": 1}, "text", None])
def test_a_run_that_lost_its_identity_is_refused(tmp_path, content):
    folder = measure(trellis.Spec.load(write_world(tmp_path)))
    identity = json.loads(folder.identity_file.read_text())
    if isinstance(content, dict) and "more" in content:
        content = identity | content
    folder.identity_file.write_text(json.dumps(content))
    with pytest.raises(RunFolderError, match=r"run\.json is damaged"):
        folder.identity()


def test_names_are_loaded_on_first_use():
    for name in trellis.__all__:
        assert callable(getattr(trellis, name))
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        trellis.nothing  # noqa: B018


def test_names_that_others_call():
    """The names of the issue, as written there."""
    from trellis.estimate import gls, project_l2, project_l2_families

    tree = Hierarchy.from_paths([("r", "a"), ("r", "b")], level_names=["x", "y"])
    assert tree.codes("y").tolist() == ["a", "b"]
    assert project_l2([0.4, 2.8], 3).tolist() == [0, 3]
    assert project_l2([1.0, 1.0], 2, weights=[1.0, 9.0]).dtype == np.int64
    assert project_l2_families([1, 2, 3], [0, 2, 3], [3, 3], weights=None).tolist() == [1, 2, 3]
    estimates, variances = gls(tree, [np.array([10.0]), np.array([4.0, 4.0])], [[1.0], [1.0, 1.0]])
    np.testing.assert_allclose(estimates[0], [10 - 2 / 3])
    np.testing.assert_allclose(variances[0], [2 / 3])
