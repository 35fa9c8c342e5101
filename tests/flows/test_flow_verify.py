"""Verification of flows: every promise has a lie that breaks it."""

import json
import shutil

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from flow_worlds import TRIPS, release_into
from forging import fit_manifest
from trellis.verify import verify_run


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    folder = tmp_path_factory.mktemp("honest")
    return release_into(
        folder, TRIPS, data={"origin": "home", "destination": "work"},
        attributes={"mode": ["car", "bus"]}, privacy__budget={"rho": 50},
    ).path  # fmt: skip


@pytest.fixture
def run(honest, tmp_path):
    shutil.copytree(honest, tmp_path / "run")
    return tmp_path / "run"


def broken(run):
    """The checks that fail, hashes aside: a forger would put those right."""
    fit_manifest(run)
    return {finding.check for finding in verify_run(run) if not finding.holds}


def rewrite(run, name, change):
    table = pq.ParquetFile(run / name).read()
    pq.write_table(change(table), run / name)


def set_column(name, function):
    def change(table):
        place = table.column_names.index(name)
        return table.set_column(place, name, function(table[name].combine_chunks()))

    return change


def test_an_honest_run_keeps_all_promises(run):
    assert not broken(run)


LEAF = "town-to-town"
LIES = {
    "a count": (f"release/{LEAF}.parquet", set_column("count", lambda c: pc.add(c, 1)),
                {"flow_tables", "flow_matrix"}),
    "a sum": (f"estimates/level={LEAF}.parquet", set_column("count", lambda c: pc.add(c, 1)),
              {"flow_sums", "flow_tables"}),
    "a missing flow": (f"estimates/level={LEAF}.parquet", lambda t: t.slice(1),
                       {"flow_sums", "flow_tables"}),
    "another area": (f"release/{LEAF}.parquet",
                     set_column("origin", lambda c: pa.array(["a2"] * len(c))), {"flow_tables"}),
    "an interval": (f"release/{LEAF}.parquet", set_column("upper", lambda c: pc.multiply(c, 0)),
                    {"flow_intervals"}),
    "a sibling left out": (f"measurements/level={LEAF}/query=pairs.parquet",
                           lambda t: t.slice(1), {"flow_measurements"}),
    "a variance": (f"measurements/level={LEAF}/query=pairs.parquet",
                   set_column("variance", lambda c: pc.multiply(c, 2)), {"flow_measurements"}),
    "the matrix": ("release/od_matrix.parquet", set_column("count", lambda c: pc.add(c, 1)),
                   {"flow_matrix"}),
    "the total": ("measurements/level=nation-to-nation/query=grand_total.parquet",
                  set_column("value", lambda c: pc.add(c, 1)), {"flow_margins"}),
    "a standard error": (f"estimates/level={LEAF}.parquet",
                         set_column("std_error", lambda c: pc.multiply(c, 0.99)),
                         {"flow_margins"}),
    "a centre": ("estimates/level=state-to-state.parquet",
                 set_column("centre", lambda c: pc.add(c, 0.01)), {"flow_margins"}),
    "a published standard error": ("release/state-to-state.parquet",
                                   set_column("std_error", lambda c: pc.multiply(c, 0.5)),
                                   {"flow_margins"}),
    "another interval": (f"release/{LEAF}.parquet", set_column("upper", lambda c: pc.add(c, 1)),
                         {"flow_intervals"}),
    "a measurement": ("measurements/level=state-to-town/query=pairs.parquet",
                      set_column("value", lambda c: pc.add(c, 1)), {"flow_margins"}),
    "a pair below none": ("measurements/level=state-to-town/query=pairs.parquet",
                          set_column("origin", lambda c: pc.subtract(2, c)),
                          {"flow_measurements", "flow_margins"}),
    "a category": (f"release/{LEAF}-by-mode.parquet",
                   set_column("mode", lambda c: pa.array(["bus"] * len(c))), {"flow_tables"}),
}  # fmt: skip


@pytest.mark.parametrize("lie", LIES)
def test_every_lie_is_found(run, lie):
    name, change, expected = LIES[lie]
    rewrite(run, name, change)
    assert expected <= broken(run)


def test_more_noise_than_planned_is_found(run):
    plan = json.loads((run / "plan.json").read_text())
    plan["queries"][1]["noise"]["parameter"] = "1/1000"
    (run / "plan.json").write_text(json.dumps(plan))
    assert "budget" in broken(run)


@pytest.mark.parametrize("estimator", ["chebyshev", "gls_l2"])
def test_the_margins_are_those_of_the_estimator(tmp_path, estimator):
    """A release by one estimator that says it was made by the other."""
    run = release_into(tmp_path, estimate__method=estimator).path
    assert not broken(run)
    plan = json.loads((run / "plan.json").read_text())
    plan["method"] = "gls_l2" if estimator == "chebyshev" else "chebyshev"
    (run / "plan.json").write_text(json.dumps(plan))
    assert "flow_margins" in broken(run)


def test_another_number_of_pairs_is_found(run):
    plan = json.loads((run / "plan.json").read_text())
    plan["levels"][2]["nodes"] += 1
    (run / "plan.json").write_text(json.dumps(plan))
    assert "flow_tree" in broken(run)


def test_a_csv_that_differs_is_found(run):
    path = run / "release" / f"{LEAF}.csv"
    path.write_text(path.read_text().replace("a1", "a9", 1))
    assert "csv" in broken(run)
