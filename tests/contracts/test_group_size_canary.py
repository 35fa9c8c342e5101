"""Privacy contract of group sizes: planted values of the records turn up nowhere that people look.

As for counts: a full run, every error path and crashes in later steps, searched completely. The
register is public, so its names may appear; who is in which group, and how many, may not.
"""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from contracts.canary import (
    COUNT,
    FRACTION,
    TEXT,
    crash_shows_no_planted_value,
    found,
    goes_on_without_a_second_charge,
    quoting_error_is_found,
    texts_in,
)
from steps import replace_step
from trellis.model.plans.answers import answers

HOMES = ["h1", "h2", "h3"]
# The noise is far wider than the search: a noisy value equals COUNT with probability below 1e-5.
SPEC = {
    "release": "canary",
    "kind": "group_sizes",
    "dataset": "canary",
    "data": {"source": "records.parquet", "area": "area", "size": "size", "groups": "homes"},
    "group_register": {"source": "register.csv", "area": "area", "groups": "homes"},
    "sizes": {"cap": 3, "top_code": True},
    "hierarchy": {"source": "areas.csv", "columns": ["region", "area"]},
    "privacy": {
        "unit": "person",
        "neighbours": "replace",
        "max_contribution": 1000,
        "mechanism": "discrete_gaussian",
        "budget": {"rho": "1e-6"},
        "shares": "uniform",
    },
    "unprotected": {"groups": True},
}
AREAS = "region,area\nr,a1\nr,a2\n"
REGISTER = "area,homes\na1,9999999\na2,5000000\n"
"""Public numbers of groups; how they divide into sizes is not."""

GOOD = {"area": ["a1", "a1", "a2"], "size": [1, 2, 1], "homes": [COUNT, 9999999 - COUNT, 5000000]}


def world(folder, table=GOOD, **changes):
    folder.mkdir(exist_ok=True)
    note = [TEXT] * len(table["area"])
    pq.write_table(pa.table({**table, "note": note}), folder / "records.parquet")
    (folder / "areas.csv").write_text(AREAS)
    (folder / "register.csv").write_text(REGISTER)
    (folder / "spec.yaml").write_text(yaml.safe_dump(SPEC | changes))
    return folder / "spec.yaml"


@pytest.mark.parametrize("mechanism", ["histogram_exact", "cumulative_joint"])
def test_full_run_shows_no_planted_value(tmp_path, invoke, mechanism):
    spec = world(tmp_path / "w", estimate={"method": mechanism})
    for command in (["check", spec], ["plan", spec], ["account", spec], ["run", spec],
                    ["run", spec]):  # fmt: skip
        code, texts = invoke(*command)
        assert code == 0, texts
        assert not found(texts)
    code, texts = invoke("verify", spec.parent / "runs" / "canary")
    assert code == 0
    assert not found(texts)
    assert not found(texts_in(spec.parent, leave_out=("records.parquet",)))


BAD = {
    "negative": {"homes": [-COUNT, 1, 2]},
    "fractional": {"homes": [FRACTION, 1.0, 2.0]},
    "text": {"homes": [TEXT, "1", "2"]},
    "missing": {"homes": [COUNT, None, 2]},
    "size above the cap": {"size": [COUNT, 1, 2]},
    "fractional size": {"size": [FRACTION, 1.0, 2.0]},
    "unknown area": {"area": ["a1", TEXT, "a2"]},
    "other totals": {"homes": [COUNT, 1, 2]},
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("command", ["check", "run", "measure"])
def test_error_paths_show_no_planted_value(tmp_path, invoke, case, command):
    spec = world(tmp_path / "w", GOOD | BAD[case], sizes={"cap": 3})
    code, texts = invoke(command, spec)
    assert code == 2
    assert not found(texts)
    assert not found(texts_in(spec.parent, leave_out=("records.parquet",)))
    assert not (spec.parent / "runs").exists()


RECORDS = {
    "data": {"source": "records.parquet", "group": "home", "area": "area", "quantity": "trips",
             "max_quantity": 4},
    "group_register": {"source": "homes.csv", "area": "area", "group": "home"},
}  # fmt: skip
GOOD_RECORDS = {"home": HOMES, "area": ["a1", "a1", "a2"], "trips": [1, 2, 3]}
BAD_RECORDS = {
    "not in the register": {"home": ["h1", TEXT, "h3"]},
    "another area": {"area": ["a1", TEXT, "a2"]},
    "quantity above its bound": {"trips": [COUNT, 1, 1]},
    "fractional quantity": {"trips": [FRACTION, 1.0, 1.0]},
}


@pytest.mark.parametrize("case", BAD_RECORDS)
@pytest.mark.parametrize("command", ["check", "run"])
def test_error_paths_of_records_show_no_planted_value(tmp_path, invoke, case, command):
    spec = world(tmp_path / "w", GOOD_RECORDS | BAD_RECORDS[case], **RECORDS)
    homes = "".join(
        f"{home},{area}\n" for home, area in zip(HOMES, ("a1", "a1", "a2"), strict=True)
    )
    (spec.parent / "homes.csv").write_text("home,area\n" + homes)
    code, texts = invoke(command, spec)
    assert code == 2
    assert not found(texts)
    assert not found(texts_in(spec.parent, leave_out=("records.parquet",)))


@pytest.mark.parametrize("step", ["measure_counts", "write_measurements", "publish"])
def test_crash_in_every_later_step_shows_no_planted_value(tmp_path, invoke, monkeypatch, step):
    spec = world(tmp_path / "w")
    crash_shows_no_planted_value(spec, step, invoke, monkeypatch)


# -- spent once -----------------------------------------------------------------------------------


def test_a_run_that_broke_off_goes_on_without_a_second_charge(tmp_path, invoke, monkeypatch):
    spec = world(tmp_path / "w")
    goes_on_without_a_second_charge(spec, "write_measurements", invoke, monkeypatch)


# -- mutations: each must make the search above find something ------------------------------------


def test_mutation_measuring_without_noise_is_found(tmp_path, invoke, monkeypatch):
    from trellis.model import Measurements

    def bare(plan, hierarchy, counts, *rest):
        return Measurements(plan, hierarchy, tuple(answers(plan, hierarchy, counts.leaves)))

    replace_step(monkeypatch, "measure_counts", bare)
    spec = world(tmp_path / "w")
    assert invoke("run", spec)[0] == 0
    assert found(texts_in(spec.parent / "runs"))


def test_mutation_error_that_quotes_a_value_is_found(tmp_path, invoke, monkeypatch):
    from trellis.ingest.records import group_sizes

    spec = world(tmp_path / "w", GOOD | {"size": [COUNT] * 3})
    quoting_error_is_found(spec, group_sizes, "min", invoke, monkeypatch)
