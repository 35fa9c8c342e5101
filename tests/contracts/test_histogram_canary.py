"""Privacy contract of histograms: planted values of the records turn up nowhere people look.

As for counts: a full run, every error path and crashes in later steps, searched completely.
"""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from contracts.canary import (
    COUNT,
    FRACTION,
    TEXT,
    crash,
    crash_shows_no_planted_value,
    found,
    goes_on_without_a_second_charge,
    quoting_error_is_found,
    texts_in,
)
from trellis.privacy.ledger import Ledger
from trellis.workflow.confidential import histogram_descent

# The noise is far wider than the search: a noisy value equals COUNT with probability below 1e-4.
SPEC = {
    "release": "canary",
    "kind": "counts",
    "dataset": "canary",
    "data": {"source": "records.parquet", "area": "area", "count": "people"},
    "hierarchy": {"source": "areas.csv", "columns": ["region", "area"]},
    "schema": {"age": {"range": [0, 2]}, "sex": ["f", "m"]},
    "strategy": {"default": {"weights": {"total": 1, "sex": 1, "detailed": 2}}},
    "structural_zeros": ["age = 0 and sex = f"],
    "constraints": [
        {"name": "beds", "source": "beds.csv", "area": "area", "query": "sex", "at_most": "beds"}
    ],
    "edit_rules": ["age = 0 requires age > 0"],
    "output": {"tables": {"default": ["total", "sex"]}, "microdata": False},
    "privacy": {
        "unit": "person",
        "neighbours": "replace",
        "max_contribution": 1000,
        "mechanism": "discrete_gaussian",
        "budget": {"rho": "1e-6"},
    },
}
AREAS = "region,area\nr,a1\nr,a2\nr,a3\n"
BEDS = "area,sex,beds\na1,m,90000000\n"
GOOD = {
    "area": ["a1", "a2", "a3"],
    "age": [1, 2, 1],
    "sex": ["m", "f", "m"],
    "people": [COUNT, 5_000_000, 2_000_000],
}


def world(folder, table=GOOD, **changes):
    folder.mkdir(exist_ok=True)
    note = [TEXT] * len(table["area"])
    pq.write_table(pa.table({**table, "note": note}), folder / "records.parquet")
    (folder / "areas.csv").write_text(AREAS)
    (folder / "beds.csv").write_text(BEDS)
    (folder / "spec.yaml").write_text(yaml.safe_dump(SPEC | changes))
    return folder / "spec.yaml"


USED = {"estimate": {"method": "topdown"}, "output": {"measurements": "used"}}
NO_RULES = {"structural_zeros": None, "constraints": None, "edit_rules": None}
WAYS = [
    {"estimate": {"method": "gls_topdown"}},
    {"estimate": {"method": "topdown"}},
    {"estimate": {"method": "gls"}, **NO_RULES},
    USED,
]


@pytest.mark.parametrize("changes", WAYS, ids=str)
def test_full_run_shows_no_planted_value(tmp_path, invoke, changes):
    spec = world(tmp_path / "w", **changes)
    for command in (["check", spec], ["plan", spec], ["run", spec], ["run", spec]):
        code, texts = invoke(*command)
        assert code == 0, texts
        assert not found(texts)
    code, texts = invoke("verify", spec.parent / "runs" / "canary")
    assert code == 0
    assert not found(texts)
    assert not found(texts_in(spec.parent, leave_out=("records.parquet",)))


BAD = {
    "negative": {"people": [-COUNT, 1, 2]},
    "fractional": {"people": [FRACTION, 1.0, 2.0]},
    "text": {"people": [TEXT, "1", "2"]},
    "missing": {"people": [COUNT, None, 2]},
    "unknown category": {"sex": ["m", TEXT, "f"]},
    "unknown number": {"age": [COUNT, 1, 2]},
    "real category": {"age": [FRACTION, 1.0, 2.0]},
    "missing category": {"sex": ["m", None, "f"]},
    "unknown area": {"area": ["a1", TEXT, "a2"]},
    "structural zero": {"age": [1, 0, 1]},
    "constraint": {"people": [100 * COUNT, 1, 2]},
    "no column": {"sex_": ["m", "f", "m"]},
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("command", ["check", "run"])
def test_error_paths_show_no_planted_value(tmp_path, invoke, case, command):
    table = GOOD | BAD[case]
    if case == "no column":
        del table["sex"]
    spec = world(tmp_path / "w", table)
    code, texts = invoke(command, spec)
    assert code == 2
    assert not found(texts)
    assert not found(texts_in(spec.parent, leave_out=("records.parquet",)))
    assert not (spec.parent / "runs").exists()
    assert not Ledger(spec.parent / "ledger.sqlite").entries("canary")


def test_the_rule_that_records_break_is_named_in_the_confidential_log_only(tmp_path, invoke):
    spec = world(tmp_path / "w", GOOD | BAD["structural zero"])
    log = tmp_path / "log.txt"
    code, texts = invoke("run", spec, "--confidential-log", log)
    assert code == 2
    assert not any("age = 0 and sex = f" in text for text in texts)
    assert "5000000 records" in log.read_text()
    (tmp_path / "w" / "run.json").write_text("{}")
    inside = tmp_path / "w" / "log.txt"
    code, texts = invoke("run", spec, "--confidential-log", inside)
    assert code == 2
    assert any("run folder" in text for text in texts)
    assert not inside.exists()


STEPS = [
    ("measure_histograms", {}),
    ("sync_tree", {}),
    ("publish", {}),
    ("measure_used_histograms", USED),
    ("publish", USED),
]


@pytest.mark.parametrize(("step", "changes"), STEPS, ids=str)
def test_crash_in_every_later_step_shows_no_planted_value(
    tmp_path, invoke, monkeypatch, step, changes
):
    spec = world(tmp_path / "w", **changes)
    crash_shows_no_planted_value(spec, step, invoke, monkeypatch)


def test_a_descent_that_breaks_off_leaves_nothing(tmp_path, invoke, monkeypatch):
    """The first level is on disk, and nothing of it is said, left behind, or used again."""
    spec = world(tmp_path / "w", **USED)
    with monkeypatch.context() as patch:
        patch.setattr(histogram_descent, "write_counts", crash)
        code, texts = invoke("run", spec)
    assert code == 1
    assert not found(texts)
    assert not any("level" in text for text in texts[:2])
    run = spec.parent / "runs" / "canary"
    assert not [path for path in run.rglob("*") if "measurements" in path.as_posix()]
    assert invoke("run", spec)[0] == 0
    assert invoke("verify", run)[0] == 0
    (entry,) = Ledger(spec.parent / "ledger.sqlite").entries("canary")
    assert entry.is_settled


# -- spent once -----------------------------------------------------------------------------------


def test_a_run_that_broke_off_goes_on_without_a_second_charge(tmp_path, invoke, monkeypatch):
    spec = world(tmp_path / "w")
    goes_on_without_a_second_charge(spec, "sync_tree", invoke, monkeypatch)


# -- mutations: each must make the search above find something ------------------------------------


def test_mutation_measuring_without_noise_is_found(tmp_path, invoke, monkeypatch):
    from trellis.measure import histograms

    def bare(planned, query, cells, first, last, bits):
        return cells.marginal(query.cell_of, query.n_cells, first, last)

    monkeypatch.setattr(histograms, "noisy_answer", bare)
    spec = world(tmp_path / "w")
    assert invoke("run", spec)[0] == 0
    assert found(texts_in(spec.parent / "runs"))


def test_mutation_measuring_used_rows_without_noise_is_found(tmp_path, invoke, monkeypatch):
    from trellis.measure import histograms

    def bare(planned, query, cells, area, cell, bits):
        return cells.marginal_rows(query.cell_of, query.n_cells, area, cell)

    monkeypatch.setattr(histograms, "noisy_rows", bare)
    spec = world(tmp_path / "w", **USED)
    assert invoke("run", spec)[0] == 0
    assert found(texts_in(spec.parent / "runs"))


def test_mutation_error_that_quotes_a_value_is_found(tmp_path, invoke, monkeypatch):
    from trellis.ingest import long_tables

    quoting_error_is_found(world(tmp_path / "w"), long_tables, "max", invoke, monkeypatch)
