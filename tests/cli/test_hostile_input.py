"""Malformed and malicious input: one line and nothing done, or a correct release. Never more."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow.csv as pa_csv
import pytest
from typer.testing import CliRunner

from cli.hostile_cases import CASES
from trellis.cli.app import app
from trellis.privacy.ledger import Ledger
from trellis.verify import verify_run


def things_in(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def assert_good_answer(folder: Path, arguments: list[str]) -> int:
    """Carry out a command; returns its exit code, 0 or 2."""
    before = things_in(folder)
    result = CliRunner().invoke(app, ["--quiet", *arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception  # a traceback, which users would see
    made = {name for name in things_in(folder) - before if "ledger.sqlite" not in name}
    if result.exit_code == 0:
        [manifest] = [name for name in made if name.endswith("manifest.json")]
        assert all(finding.holds for finding in verify_run((folder / manifest).parent))
        return 0
    assert result.exit_code == 2
    assert result.stdout == ""
    [line] = result.stderr.splitlines()
    assert line.startswith("error: ")
    assert line.isprintable()
    assert len(line) < 900
    assert made == set()
    ledger = folder / "ledger.sqlite"
    if ledger.is_file():
        assert all(Ledger(ledger).entries(name) == [] for name in Ledger(ledger).datasets())
    return 2


@pytest.fixture
def inside(tmp_path, monkeypatch):
    """A folder to be in, so that what escapes from a world is seen."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "world").mkdir()
    return tmp_path / "world"


@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", CASES)
def test_hostile_input(inside, name):
    arguments = CASES[name](inside)
    assert_good_answer(inside, arguments)
    assert os.listdir(inside.parent) == ["world"]  # nothing escaped
