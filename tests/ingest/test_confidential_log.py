"""Rows at fault can be found from the confidential log, and from nothing else."""

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import flow_worlds
import size_worlds
import trellis
from histogram_release_worlds import write_histogram_world
from readers import READERS
from trellis.cli.app import app
from trellis.errors import InputError
from trellis.ingest.confidential_log import confidential_log
from trellis.ingest.engines import reading_with
from worlds import REMOVE, SPEC, changed, write_world

NAN = float("nan")
COUNTS = {"town": ["a1", "a2", "b1"], "people": [10, 0, 25]}
HISTOGRAM = {
    "data": {"area": "town", "count": "people"},
    "schema": {"sex": ["f", "m"]},
}
LONG = {**COUNTS, "sex": ["f", "f", "m"]}
RECORDS = {"home": ["h1", "h2", "h7"], "town": ["a1", "a1", "c"], "rooms": [1, 2, 3]}
QUANTITIES = {"data": {"group": "home", "area": "town", "quantity": "rooms", "max_quantity": 3}}
TABLE = size_worlds.TABLE.to_pydict()
TRIPS = flow_worlds.TRIPS.to_pydict()
BY_UNIT = {
    "data": {"origin": "home", "destination": "work", "unit": "person"},
    "attributes": {"mode": ["car", "bus"]},
    "trips": {"number": "at_most"},
    "privacy__max_contribution": 2,
}
PAIRS = flow_worlds.PAIRS.to_pydict()
WIDE = {"data__count": REMOVE, "data__cells": {"young": "u", "old": "n - u"}}


def counts(folder, records, **changes):
    places = {"data__source": REMOVE, "hierarchy__source": REMOVE}
    content = changed(SPEC, **places | changes)
    areas = pa.table({"nation": ["r"] * 3, "state": ["a", "a", "b"], "town": ["a1", "a2", "b1"]})
    trellis.check(trellis.Spec.parse(content, folder), data=records, hierarchy=areas)


def groups(folder, records, **changes):
    spec = size_worlds.spec_in(folder, **changes)
    register = (
        size_worlds.REGISTER if "group" in spec.data.model_fields_set else size_worlds.NUMBERS
    )
    trellis.check(spec, data=records, hierarchy=size_worlds.AREAS, register=register)


def flows(folder, records, **changes):
    spec = flow_worlds.spec_in(folder, **changes)
    trellis.check(spec, data=records, hierarchy=flow_worlds.AREAS)


FAULTS = {
    "unknown area": (counts, COUNTS | {"town": ["a1", "zz", "b1"]}, {}, "row 2, area 'zz'"),
    "no area": (counts, COUNTS | {"town": ["a1", "a2", None]}, {}, "row 3, area None"),
    "negative": (counts, COUNTS | {"people": [1, 2, -4711]}, {}, "row 3, people -4711"),
    "fraction": (counts, COUNTS | {"people": [1, 2.5, 3]}, {}, "row 2, people 2.5"),
    "missing": (counts, COUNTS | {"people": [None, 2, 3]}, {}, "row 1, people None"),
    "unreadable": (counts, COUNTS | {"people": ["1", "x", "3"]}, {}, "row 2, people 'x'"),
    "NaN": (counts, COUNTS | {"people": [1.0, NAN, 1.0]}, {}, "row 2, people nan"),
    "too large": (counts, COUNTS | {"people": [1, 2, 2**60]}, {}, f"row 3, people {2**60}"),
    "together": (counts, COUNTS | {"people": [2**48, 2**47, 2**47]}, {}, "row 1, number"),
    "negative cell": (
        counts,
        {"town": ["a1", "b1"], "n": [5, 5], "u": [1, 6]},
        WIDE,
        "row 2, n 5, u 6",
    ),
    "histogram: area": (counts, LONG | {"town": ["a1", "zz", "b1"]}, HISTOGRAM, "row 2, area 'zz'"),
    "histogram: category": (
        counts,
        LONG | {"sex": ["f", "x", "m"]},
        HISTOGRAM,
        "row 2, area 'a2', sex 'x'",
    ),
    "histogram: NaN": (counts, LONG | {"people": [1.0, NAN, 1.0]}, HISTOGRAM, "row 2, people nan"),
    "histogram: together": (
        counts,
        LONG | {"people": [2**48, 2**47, 2**47]},
        HISTOGRAM,
        "row 1, number",
    ),
    "sizes: unknown group": (groups, {"home": ["h1", "h99"]}, {}, "row 2, home 'h99'"),
    "sizes: another area": (
        groups,
        RECORDS | {"town": ["a1", "b1", "c"]},
        QUANTITIES,
        "row 2, home 'h2', town 'b1'",
    ),
    "sizes: quantity": (
        groups,
        RECORDS | {"rooms": [1, 2, 4]},
        QUANTITIES,
        "row 3, home 'h7', rooms 4",
    ),
    "sizes: NaN": (groups, RECORDS | {"rooms": [1.0, NAN, 1.0]}, QUANTITIES, "row 2, rooms nan"),
    "sizes: above the cap": (
        groups,
        {"home": ["h1", "h2", "h2", "h2"]},
        {"sizes": {"cap": 2}},
        "size 3, groups 1, group 'h2', rows [2, 3, 4]",
    ),
    "sizes: a table above the cap": (
        groups,
        TABLE | {"size": [1, 1, 1, 9, 1, 1, 1]},
        {**size_worlds.TABLE_FORM, "sizes": {"cap": 4}},
        "size 9, groups 1, area 'a2', rows 4",
    ),
    "sizes: NaN in a table": (
        groups,
        TABLE | {"size": [1.0] * 6 + [NAN]},
        size_worlds.TABLE_FORM,
        "row 7, size nan",
    ),
    "sizes: not the declared number": (
        groups,
        TABLE | {"homes": [1, 1, 1, 1, 1, 1, 5]},
        size_worlds.TABLE_FORM,
        "area 'c', groups 6, declared 2",
    ),
    "flows: origin": (flows, PAIRS | {"home": ["zz"] + ["a1"] * 5}, {}, "row 1, home 'zz'"),
    "flows: destination": (flows, PAIRS | {"work": ["a1"] * 5 + ["zz"]}, {}, "row 6, work 'zz'"),
    "flows: NaN": (flows, PAIRS | {"workers": [1.0] * 5 + [NAN]}, {}, "row 6, workers nan"),
    "flows: together": (flows, PAIRS | {"workers": [2**48] * 6}, {}, "row 1, number"),
    "flows: category": (
        flows,
        TRIPS | {"mode": ["car", "bus", "foot", "car", "bus"]},
        BY_UNIT,
        "row 3, mode 'foot'",
    ),
    "flows: unit": (flows, TRIPS | {"person": ["p", None, "q", "r", "r"]}, BY_UNIT, "row 2"),
    "flows: trips": (
        flows,
        TRIPS | {"person": ["p", "q", "p", "r", "p"]},
        BY_UNIT,
        "person 'p', trips 3, rows [1, 3, 5]",
    ),
    "flows: pair twice": (
        flows,
        TRIPS | {"work": ["a1", "a1", "a1", "c", "c"]},
        {**BY_UNIT, "trips": {"number": "at_most", "distinct": True}},
        "person 'p', home 'a1', work 'a1', trips 2, rows [1, 2]",
    ),
}  # fmt: skip


@pytest.fixture(params=READERS)
def reader(request):
    with reading_with(READERS[request.param]):
        yield


@pytest.mark.usefixtures("reader")
@pytest.mark.parametrize("case", FAULTS)
def test_rows_at_fault_are_listed(tmp_path, case):
    read, columns, changes, line = FAULTS[case]
    with pytest.raises(InputError, match="use confidential_log FILE") as silent:
        read(tmp_path, pa.table(columns), **changes)
    log = tmp_path / "log.txt"
    with confidential_log(log), pytest.raises(InputError, match=r"see .*log\.txt") as logged:
        read(tmp_path, pa.table(columns), **changes)
    lines = log.read_text().splitlines()
    assert lines[1].startswith(f"  {line}")
    assert lines[0] in silent.value.faults[0]
    for words in (*silent.value.faults, *logged.value.faults):
        assert "zz" not in words
        assert "4711" not in words
        assert line not in words
    assert log.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("command", ["check", "run", "measure"])
def test_the_option_works_for_areas_that_are_not_listed(tmp_path, form, command):
    people = pa.table({"town": ["a1", "zz", "b1"], "people": [1, 2, 4711]})
    spec = write_world(tmp_path, data__source=f"records.{form}")
    if form == "csv":
        pa_csv.write_csv(people, tmp_path / "records.csv")
    else:
        pq.write_table(people, tmp_path / "records.parquet")
    log = tmp_path / "log.txt"
    done = CliRunner().invoke(app, [command, str(spec), "--confidential-log", str(log)])
    assert done.exit_code == 2
    assert "zz" not in done.output
    assert "log.txt" in done.stderr
    assert "  row 2, area 'zz'" in log.read_text()
    assert not (tmp_path / "runs").exists()


NANS = {
    "counts": (COUNTS, {}, "people"),
    "histograms": (LONG, HISTOGRAM, "people"),
    "sizes": (RECORDS, QUANTITIES, "rooms"),
    "sizes, a table": (TABLE, size_worlds.TABLE_FORM, "homes"),
    "flows": (PAIRS, {}, "workers"),
}


@pytest.mark.usefixtures("reader")
@pytest.mark.parametrize("kind", NANS)
def test_nan_in_a_parquet_file_is_missing(tmp_path, kind):
    """The statistics of the file leave NaN out, and a filter may be answered from them alone."""
    columns, changes, column = NANS[kind]
    n = len(columns[column])
    pq.write_table(
        pa.table({**columns, column: [1.0] * (n - 1) + [NAN]}), tmp_path / "records.parquet"
    )
    read = flows if kind == "flows" else groups if kind.startswith("sizes") else counts
    form = dict(changes)
    if "data" in form:
        form["data"] = {**form["data"], "source": "records.parquet"}
    else:
        form["data__source"] = "records.parquet"
    log = tmp_path / "log.txt"
    with confidential_log(log), pytest.raises(InputError, match="missing or unreadable"):
        read(tmp_path, None, **form)
    assert f"  row {n}, {column} nan" in log.read_text()


def test_structural_zeros_and_constraints_name_areas_and_cells(tmp_path):
    log = tmp_path / "log.txt"
    spec = write_histogram_world(tmp_path, structural_zeros=["age >= 2 and sex = m"])
    with confidential_log(log), pytest.raises(InputError, match="contradict a structural zero"):
        trellis.check(trellis.Spec.load(spec))
    assert "  area 'b1', 3, m: 25 records" in log.read_text()
    bound = {"name": "few", "source": "few.csv", "area": "town", "query": "sex", "at_most": "n"}
    spec = write_histogram_world(tmp_path, constraints=[bound])
    (tmp_path / "few.csv").write_text("town,sex,n\na1,f,0\nb1,m,1\n")
    with confidential_log(log), pytest.raises(InputError, match="contradict a constraint"):
        trellis.check(trellis.Spec.load(spec))
    assert "  'b1', m: 25 records, <= 1 stated" in log.read_text()


def test_an_existing_log_is_closed_to_others_and_continued(tmp_path):
    log = tmp_path / "log.txt"
    log.write_text("before\n")
    log.chmod(0o644)
    _, columns, changes, _ = FAULTS["negative"]
    with confidential_log(log), pytest.raises(InputError):
        counts(tmp_path, pa.table(columns), **changes)
    assert log.stat().st_mode & 0o777 == 0o600
    assert log.read_text().startswith("before\n")


def test_rows_are_counted_in_the_order_of_the_file(tmp_path):
    towns = ["a1"] * 200_000
    towns[150_000] = "zz"
    spec = write_world(tmp_path, data__count=REMOVE)
    (tmp_path / "people.csv").write_text("town\n" + "\n".join(towns) + "\n")
    log = tmp_path / "log.txt"
    with confidential_log(log), pytest.raises(InputError):
        trellis.check(trellis.Spec.load(spec))
    assert log.read_text().splitlines()[1:] == ["  row 150001, area 'zz'"]


def test_a_log_does_not_grow_without_bound(tmp_path, monkeypatch):
    monkeypatch.setattr("trellis.ingest.checks.MOST_LOGGED", 2)
    log = tmp_path / "log.txt"
    with confidential_log(log), pytest.raises(InputError):
        counts(tmp_path, pa.table(COUNTS | {"people": [-1, -2, -3]}))
    assert log.read_text().splitlines()[1:] == [
        "  row 1, people -1",
        "  row 2, people -2",
        "  (the first 2)",
    ]


def test_several_faults_are_told_together(tmp_path):
    faulty = pa.table(
        LONG | {"sex": ["f", "x", "m"], "town": ["zz", "a2", "b1"], "people": [1, 2, -3]}
    )
    with pytest.raises(InputError) as refused:
        counts(tmp_path, faulty, **HISTOGRAM)
    assert len(refused.value.faults) == 3
