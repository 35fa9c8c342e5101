"""Privacy contract of flows: planted values of the records turn up nowhere that people look.

As for counts: a full run, every error path and crashes in later steps, searched completely. And the
noise of a charge is drawn once.
"""

import numpy as np
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
    quoting_error_is_found,
    texts_in,
)
from steps import replace_step
from trellis.privacy.ledger import Ledger

# The noise is far wider than the search: a noisy value equals COUNT with probability below 1e-5.
SPEC = {
    "release": "canary",
    "kind": "flows",
    "dataset": "canary",
    "data": {"source": "records.parquet", "origin": "home", "destination": "work",
             "count": "people"},
    "hierarchy": {"source": "areas.csv", "columns": ["region", "area"]},
    "trips": {"number": "at_most"},
    "privacy": {
        "unit": "person",
        "neighbours": "replace",
        "max_contribution": 1000,
        "mechanism": "discrete_gaussian",
        "budget": {"rho": "1e-6"},
    },
}  # fmt: skip
AREAS = "region,area\nr,a1\nr,a2\nr,a3\n"
GOOD = {"home": ["a1", "a1", "a2"], "work": ["a2", "a3", "a2"], "people": [COUNT, 12, 31]}


def world(folder, table=GOOD, **changes):
    folder.mkdir(exist_ok=True)
    note = [TEXT] * len(table["home"])
    pq.write_table(pa.table({**table, "note": note}), folder / "records.parquet")
    (folder / "areas.csv").write_text(AREAS)
    (folder / "spec.yaml").write_text(yaml.safe_dump(SPEC | changes))
    return folder / "spec.yaml"


@pytest.mark.parametrize("estimator", ["chebyshev", "sparse"])
def test_full_run_shows_no_planted_value(tmp_path, invoke, estimator):
    spec = world(tmp_path / "w", estimate={"method": estimator})
    for command in (["check", spec], ["plan", spec], ["account", spec], ["run", spec],
                    ["run", spec]):  # fmt: skip
        code, texts = invoke(*command)
        assert code == 0, texts
        assert not found(texts)
    code, texts = invoke("verify", spec.parent / "runs" / "canary")
    assert code == 0, texts
    assert not found(texts)
    assert not found(texts_in(spec.parent, leave_out=("records.parquet",)))


BAD = {
    "negative": {"people": [-COUNT, 1, 2]},
    "fractional": {"people": [FRACTION, 1.0, 2.0]},
    "text": {"people": [TEXT, "1", "2"]},
    "missing count": {"people": [COUNT, None, 2]},
    "unknown origin": {"home": ["a1", TEXT, "a2"]},
    "unknown destination": {"work": ["a1", TEXT, "a2"]},
    "no destination": {"work": ["a1", None, "a2"]},
    "a region is no leaf": {"work": ["a1", "r", "a2"]},
    "too large": {"people": [2**60 + COUNT, 1, 2]},
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("command", ["check", "run"])
def test_error_paths_show_no_planted_value_and_spend_nothing(tmp_path, invoke, case, command):
    spec = world(tmp_path / "w", GOOD | BAD[case])
    code, texts = invoke(command, spec)
    assert code == 2
    assert not found(texts)
    assert not found(texts_in(spec.parent, leave_out=("records.parquet",)))
    assert not (spec.parent / "runs").exists()
    assert not Ledger(spec.parent / "ledger.sqlite").entries("canary")


UNITS = {"home": ["a1"] * 3, "work": ["a2", "a2", "a3"], "who": [TEXT, TEXT, "p"]}
BAD_UNITS = {
    "above m": ({}, 1, {"number": "at_most"}),
    "not exactly m": ({}, 2, {"number": "exactly"}),
    "not distinct": ({}, 2, {"number": "at_most", "distinct": True}),
    "no unit": ({"who": [TEXT, None, "p"]}, 2, {"number": "at_most"}),
}


@pytest.mark.parametrize("case", BAD_UNITS)
def test_contributions_above_the_bound_are_refused_without_a_name(tmp_path, invoke, case):
    changes, m, trips = BAD_UNITS[case]
    data = {"source": "records.parquet", "origin": "home", "destination": "work", "unit": "who"}
    privacy = SPEC["privacy"] | {"max_contribution": m}
    spec = world(tmp_path / "w", UNITS | changes, data=data, privacy=privacy, trips=trips)
    code, texts = invoke("run", spec)
    assert code == 2
    assert not found(texts)
    assert not (spec.parent / "runs").exists()


STEPS = ["measure_flows", "sync_tree", "folder_digest", "publish"]


@pytest.mark.parametrize("step", STEPS)
def test_crash_in_every_later_step_shows_no_planted_value(tmp_path, invoke, monkeypatch, step):
    spec = world(tmp_path / "w")
    crash_shows_no_planted_value(spec, step, invoke, monkeypatch)


# -- spent once -----------------------------------------------------------------------------------


def test_a_descent_that_broke_off_is_destroyed_unread_and_charged_once(
    tmp_path, invoke, monkeypatch
):
    """It breaks off after the second level was written; the next attempt starts from the root."""
    from trellis.workflow.confidential import flow_descent

    spec = world(tmp_path / "w")
    folder, real, seen = spec.parent / "runs" / "canary", flow_descent.table_writer, []

    def breaking(path):
        seen.append(path.parent.name)
        if len(seen) == 3:
            assert len(list(folder.glob(".measurements.*.partial/level=*"))) == 2
            raise RuntimeError("planned crash")
        return real(path)

    with monkeypatch.context() as patch:
        patch.setattr(flow_descent, "table_writer", breaking)
        assert invoke("run", spec)[0] == 1
    assert not (folder / "measurements").exists()
    assert not list(folder.glob(".measurements*"))
    assert invoke("run", spec)[0] == 0
    assert invoke("verify", folder)[0] == 0
    (entry,) = Ledger(spec.parent / "ledger.sqlite").entries("canary")
    assert entry.is_settled


def test_a_finished_run_never_draws_again(tmp_path, invoke, monkeypatch):
    spec = world(tmp_path / "w")
    assert invoke("run", spec)[0] == 0

    def fail(*_args, **_kwargs):
        raise AssertionError("drawn twice")

    replace_step(monkeypatch, "measure_flows", fail)
    assert invoke("run", spec)[0] == 0


# -- mutations: each must make the search above find something ------------------------------------


def test_mutation_measuring_without_noise_is_found(tmp_path, invoke, monkeypatch):
    from trellis.privacy.mechanisms import DiscreteGaussian

    nothing = lambda self, n, bits=None: np.zeros(n, dtype=np.int64)  # noqa: E731
    monkeypatch.setattr(DiscreteGaussian, "sample", nothing)
    spec = world(tmp_path / "w")
    assert invoke("run", spec)[0] == 0
    assert found(texts_in(spec.parent / "runs"))


def test_mutation_error_that_quotes_a_value_is_found(tmp_path, invoke, monkeypatch):
    from trellis.ingest.records import flows

    quoting_error_is_found(world(tmp_path / "w"), flows, "max", invoke, monkeypatch)
