"""The search for planted values, and the steps of it that every kind of release goes through."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pyarrow.parquet as pq
import pytest

from steps import replace_step
from trellis.errors import InputError
from trellis.privacy.ledger import Ledger

COUNT = 7_654_321
FRACTION = 7654.321
TEXT = "canary-4711"
PLANTED = (str(COUNT), TEXT, str(FRACTION))

Invoke = Callable[..., tuple[int, list[str]]]


def texts_in(folder: Path, leave_out: tuple[str, ...] = ()):
    """Everything in a folder as text, Parquet decoded and archives opened."""
    for path in folder.rglob("*"):
        yield path.name
        if not path.is_file() or path.name in leave_out:
            continue
        content = path.read_bytes()
        yield content.decode("latin-1")
        if path.suffix == ".parquet":
            table = pq.ParquetFile(path).read()
            yield f"{table.schema.metadata} " + " ".join(
                str(value) for column in table.columns for value in column.to_pylist()
            )
        if path.suffix == ".gz":
            yield gzip.decompress(content).decode("latin-1")


def found(texts) -> list[str]:
    return [planted for text in texts for planted in PLANTED if planted in text]


def crash(*_args: object, **_kwargs: object) -> None:
    raise RuntimeError("planned crash")


def crash_shows_no_planted_value(
    spec: Path, step: str, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unexpected failure keeps its traceback, which must not quote the records either."""
    with monkeypatch.context() as patch:
        replace_step(patch, step, crash)
        code, texts = invoke("run", spec)
    assert code == 1
    assert "planned crash" in "".join(texts)
    assert not found(texts)
    assert not found(texts_in(spec.parent, leave_out=("records.parquet",)))


def goes_on_without_a_second_charge(
    spec: Path, step: str, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        replace_step(patch, step, crash)
        assert invoke("run", spec)[0] == 1
    assert invoke("run", spec)[0] == 0
    assert invoke("verify", spec.parent / "runs" / "canary")[0] == 0
    (entry,) = Ledger(spec.parent / "ledger.sqlite").entries("canary")
    assert entry.is_settled


def quoting_error_is_found(
    spec: Path, ingest: ModuleType, end: str, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mutation: the check of a column quotes its least or greatest (`end`) value."""

    def quoting(reader, column, name, what="counts"):
        value = reader.query(f"SELECT {end}({column}) AS v FROM source")["v"][0]
        raise InputError(f"Bad value {value}.")

    monkeypatch.setattr(ingest, "number_faults", quoting)
    code, texts = invoke("check", spec)
    assert code == 2
    assert found(texts)
