"""A command under watch, for the search for planted values in every kind of release."""

import logging
import traceback

import pytest
from typer.testing import CliRunner

from contracts.canary import texts_in
from trellis.cli.app import app


@pytest.fixture
def invoke(tmp_path, monkeypatch, caplog):
    """Run a command; return its exit code and all that it said or logged or left in temp."""
    temp = tmp_path / "temp"
    temp.mkdir()
    monkeypatch.setenv("TMPDIR", str(temp))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.chdir(temp)
    caplog.set_level(logging.DEBUG)

    def run(*arguments) -> tuple[int, list[str]]:
        result = CliRunner().invoke(app, [str(a) for a in arguments])
        said = [result.output, result.stderr, caplog.text]
        if result.exception is not None:
            said += traceback.format_exception(result.exception)
        return result.exit_code, [*said, *texts_in(temp)]

    return run
