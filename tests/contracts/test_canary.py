"""Privacy contract: planted values of the records turn up nowhere that people look.

A recognisable count and recognisable texts are planted in the records. After a full run, a failed
run and every error path, everything written or said is searched: standard output and error, logs,
tracebacks, the run folder (Parquet decoded), the ledger, temporary files. Every kind of release
joins through its world; what only one kind has is in `test_canary_of_kinds.py`.
"""

from __future__ import annotations

import tempfile

import numpy as np
import pytest

from contracts.canary import crash, found, found_beside, texts_in
from kinds import WITH_TOYS
from steps import replace_step
from trellis.errors import InputError
from trellis.privacy.ledger import Ledger
from trellis.privacy.mechanisms import DiscreteGaussian

PLANTED = {kind: world.planted for kind, world in WITH_TOYS.items()}


@pytest.fixture
def planted(request, monkeypatch):
    WITH_TOYS[request.param].register(monkeypatch)
    return PLANTED[request.param]


def over(*columns, **of):
    """Parametrise over kinds, and over what each of them has."""
    rows = [(kind, *row) for kind, one in PLANTED.items() for row in of["each"](one)]
    return pytest.mark.parametrize(("planted", *columns), rows, indirect=["planted"], ids=str)


EVERY_KIND = pytest.mark.parametrize("planted", PLANTED, indirect=True)


@over("changes", each=lambda one: [(way,) for way in one.ways])
def test_full_run_shows_no_planted_value(tmp_path, invoke, planted, changes):
    spec = planted.write(tmp_path / "w", **changes)
    for command in ("check", "plan", "account", "run", "run"):
        code, texts = invoke(command, spec)
        assert code == 0, texts
        assert not found(texts)
    code, texts = invoke("verify", spec.parent / "runs" / "canary")
    assert code == (1 if planted.spec["kind"] == "means" else 0), texts  # see fifth_kind
    assert not found(texts)
    assert not found_beside(spec)


@over("case", each=lambda one: [(case,) for case in one.bad])
@pytest.mark.parametrize("command", ["check", "run", "measure"])
def test_error_paths_show_no_planted_value_and_spend_nothing(
    tmp_path, invoke, planted, case, command
):
    spec = planted.write(tmp_path / "w", {**planted.good, **planted.bad[case]}, **planted.bad_ways)
    code, texts = invoke(command, spec)
    assert code == 2, texts
    assert not found(texts)
    assert not found_beside(spec)
    assert not (spec.parent / "runs").exists()
    assert not Ledger(spec.parent / "ledger.sqlite").entries("canary")


@over("step", "changes", each=lambda one: one.crashes)
def test_crash_in_every_later_step_shows_no_planted_value(
    tmp_path, invoke, monkeypatch, planted, step, changes
):
    """An unexpected failure keeps its traceback, which must not quote the records either."""
    spec = planted.write(tmp_path / "w", **changes)
    with monkeypatch.context() as patch:
        replace_step(patch, step, crash)
        code, texts = invoke("run", spec)
    assert code == 1
    assert "planned crash" in "".join(texts)
    assert not found(texts)
    assert not found_beside(spec)


# -- spent once -----------------------------------------------------------------------------------


@over("step", "changes", each=lambda one: one.crashes)
def test_a_run_that_broke_off_goes_on_without_a_second_charge(
    tmp_path, invoke, monkeypatch, planted, step, changes
):
    spec = planted.write(tmp_path / "w", **changes)
    with monkeypatch.context() as patch:
        replace_step(patch, step, crash)
        assert invoke("run", spec)[0] == 1
    assert invoke("run", spec)[0] == 0
    (entry,) = Ledger(spec.parent / "ledger.sqlite").entries("canary")
    assert entry.is_settled


@EVERY_KIND
def test_a_finished_run_never_draws_again(tmp_path, invoke, monkeypatch, planted):
    spec = planted.write(tmp_path / "w")
    assert invoke("run", spec)[0] == 0
    replace_step(monkeypatch, planted.measuring, crash)
    assert invoke("run", spec)[0] == 0


# -- mutations: each must make the search above find something ------------------------------------


@over("changes", each=lambda one: [(way,) for way in one.ways])
def test_mutation_measuring_without_noise_is_found(tmp_path, invoke, monkeypatch, planted, changes):
    nothing = lambda _self, n, _bits=None: np.zeros(n, dtype=np.int64)  # noqa: E731
    monkeypatch.setattr(DiscreteGaussian, "sample", nothing)
    spec = planted.write(tmp_path / "w", **changes)
    assert invoke("run", spec)[0] == 0
    assert found(texts_in(spec.parent / "runs"))


@EVERY_KIND
def test_mutation_error_that_quotes_a_value_is_found(tmp_path, invoke, monkeypatch, planted):
    """The check of a column quotes its least or greatest value."""

    def quoting(reader, column, name, what="counts"):
        query = f"SELECT {planted.quoted_end}({column}) AS v FROM source"
        raise InputError(f"Bad value {reader.query(query)['v'][0]}.")

    monkeypatch.setattr(planted.quoted, "number_faults", quoting)
    spec = planted.write(tmp_path / "w", {**planted.good, **planted.quoted_records})
    code, texts = invoke("check", spec)
    assert code == 2
    assert found(texts)


@EVERY_KIND
def test_mutation_temporary_file_is_found(tmp_path, invoke, monkeypatch, planted):
    def spilling(*given, **_):
        with tempfile.NamedTemporaryFile("w", delete=False) as file:
            file.write(" ".join(numbers_in(given)))
        raise RuntimeError("planned crash")

    replace_step(monkeypatch, planted.measuring, spilling)
    _, texts = invoke("run", planted.write(tmp_path / "w"))
    assert found(texts)


def numbers_in(given):
    """Whatever a measuring step is handed of true counts."""
    for counts in given:
        leaves = getattr(counts, "leaves", counts)
        for name in ("count", "leaves"):
            if isinstance(array := getattr(leaves, name, leaves), np.ndarray):
                yield str(array.tolist())
