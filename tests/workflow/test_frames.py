"""The records are not their own register or list of areas, in whatever wrapper they come."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import flow_worlds
import size_worlds
import trellis
from trellis.errors import ConfidentialWarning, SpecError, StructureError
from trellis.ingest.frames import are_one, is_copy
from worlds import REMOVE, SPEC, changed

COLUMNS = {
    "nation": ["r"] * 30,
    "state": ["a"] * 20 + ["b"] * 10,
    "town": [f"t{i}" for i in range(30)],
    "people": list(range(7_654_300, 7_654_330)),
}
ARROW = pa.table(COLUMNS)
POLARS = pl.DataFrame(COLUMNS)
PANDAS = pd.DataFrame(COLUMNS)
OBJECTS = PANDAS.astype(dict.fromkeys(COLUMNS, object))
CODES = ["nation", "state", "town"]

SAME = {
    "Arrow": (ARROW, ARROW),
    "Arrow, in pieces": (ARROW, pa.concat_tables([ARROW.slice(0, 5), ARROW.slice(5)])),
    "Arrow, columns": (ARROW, ARROW.select(CODES)),
    "Arrow, renamed": (ARROW, ARROW.rename_columns(["a", "b", "c", "d"])),
    "Polars": (POLARS, POLARS),
    "Polars, clone": (POLARS, POLARS.clone()),
    "Polars, columns": (POLARS, POLARS.select(CODES)),
    "Polars, slice": (POLARS, POLARS[3:]),
    "Polars, as Arrow": (POLARS, POLARS.to_arrow()),
    "pandas": (PANDAS, PANDAS),
    "pandas, shallow copy": (PANDAS, PANDAS.copy(deep=False)),
    "pandas, columns": (PANDAS, PANDAS[CODES]),
    "pandas, slice": (PANDAS, PANDAS.iloc[3:]),
    "pandas, reversed": (PANDAS, PANDAS.iloc[::-1]),
    "pandas, as Arrow": (PANDAS, pa.table(PANDAS)),
    "objects": (OBJECTS, OBJECTS),
    "objects, columns": (OBJECTS, OBJECTS[CODES]),
    "objects, one column": (OBJECTS[["town"]], OBJECTS[["town"]].copy(deep=False)),
    "objects, slice": (OBJECTS, OBJECTS.iloc[3:]),
}
COPIED = {
    "Arrow": (ARROW, pa.table(COLUMNS)),
    "Polars": (POLARS, pl.DataFrame(COLUMNS)),
    "pandas": (PANDAS, pd.DataFrame(COLUMNS)),
    "objects": (OBJECTS, OBJECTS.copy()),
    "fewer columns": (ARROW, pd.DataFrame(COLUMNS)[CODES]),
}


@pytest.mark.parametrize("case", SAME)
def test_views_of_one_frame_are_one(case):
    one, other = SAME[case]
    assert are_one(one, other)
    assert are_one(other, one)


@pytest.mark.parametrize("case", COPIED)
def test_frames_of_the_same_content_are_two(case):
    one, other = COPIED[case]
    assert not are_one(one, other)
    assert is_copy(other, one)


def test_other_content_is_no_copy():
    assert not is_copy(ARROW.slice(1), ARROW)
    assert not is_copy(pa.table({"town": ["t0"] * 30}), ARROW)
    assert not is_copy(pa.table({"village": ["t0"] * 30}), ARROW)
    assert not is_copy(ARROW, ARROW.select(CODES))
    assert not is_copy(ARROW.slice(0, 0), ARROW.slice(0, 0))
    assert is_copy(pa.table({"x": [b"\xff"]}), pa.table({"x": [b"\xff"]}))


def test_memory_that_is_used_again_does_not_count():
    for _ in range(50):  # a frame that is gone leaves its memory to the next one
        assert not are_one({"x": np.arange(1000.0)}, {"x": np.arange(1000.0)})


def spec_of(folder, **changes):
    return trellis.Spec.parse(
        changed(SPEC, data__source=REMOVE, hierarchy__source=REMOVE, **changes), folder
    )


@pytest.mark.parametrize("case", SAME)
def test_areas_from_the_frame_of_the_records_must_be_declared_public(tmp_path, case):
    records, areas = SAME[case]
    for use in (trellis.check, trellis.run):
        with pytest.raises(SpecError, match=r"say so with hierarchy: \{public: true\}"):
            use(spec_of(tmp_path), data=records, hierarchy=areas)
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("frame", [ARROW, POLARS, PANDAS, OBJECTS], ids=["A", "L", "P", "O"])
def test_declared_areas_are_read_from_any_frame(tmp_path, frame):
    spec = spec_of(tmp_path, hierarchy__public=True)
    assert trellis.check(spec, data=frame, hierarchy=frame).areas[-1] == 30


@pytest.mark.filterwarnings("error")
def test_equal_content_warns_and_is_not_refused(tmp_path):
    areas = pa.table({name: COLUMNS[name] for name in CODES})
    with pytest.warns(ConfidentialWarning, match="hierarchy: this frame has the same rows") as said:
        trellis.check(spec_of(tmp_path), data=ARROW, hierarchy=areas)
    assert "76543" not in str(said[0].message)
    trellis.check(spec_of(tmp_path), data=ARROW.slice(1), hierarchy=areas)


@pytest.mark.parametrize("kind", [pa.table, pl.DataFrame, pd.DataFrame])
def test_the_register_is_not_the_records(tmp_path, kind):
    records = kind({"home": ["h1", "h2"], "town": ["a1", "a2"]})
    for register in (records, records[["home", "town"]] if kind is not pa.table else records):
        for use in (trellis.check, trellis.run):
            with pytest.raises(SpecError, match="register of groups comes from the confidential"):
                use(
                    size_worlds.spec_in(tmp_path),
                    data=records,
                    register=register,
                    hierarchy=size_worlds.AREAS,
                )
    assert not (tmp_path / "runs").exists()


def test_destinations_and_areas_of_interest_are_not_the_records(tmp_path):
    pairs = flow_worlds.PAIRS.to_pandas()
    spec = flow_worlds.spec_in(tmp_path, destinations={"columns": ["work"]})
    with pytest.raises(SpecError, match=r"destinations: \{public: true\}"):
        trellis.check(spec, data=pairs, hierarchy=flow_worlds.AREAS, destinations=pairs)
    schools = {"area": "town", "entity": "people"}
    areas = pa.table({name: COLUMNS[name] for name in CODES})
    spec = spec_of(tmp_path, areas={"school": schools})
    with pytest.raises(SpecError, match=r"areas\.school comes from the confidential file"):
        trellis.check(spec, data=PANDAS.iloc[::-1], hierarchy=areas, areas={"school": PANDAS})


def test_faults_of_declared_areas_name_codes_and_nothing_else(tmp_path):
    twice = pd.concat([PANDAS, PANDAS.iloc[:2]])
    spec = spec_of(tmp_path, hierarchy__public=True)
    with pytest.raises(StructureError) as refused:
        trellis.check(spec, data=twice, hierarchy=twice)
    assert refused.value.faults == (
        "Leaf 't0' occurs twice in the hierarchy. Drop one row.",
        "Leaf 't1' occurs twice in the hierarchy. Drop one row.",
    )
