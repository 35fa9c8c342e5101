"""Shells complete commands, options and choices."""

import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from trellis.cli.app import app

CASES = {
    "trellis ch": "check",
    "trellis init --ki": "--kind",
    "trellis init --kind fl": "flows",
    "trellis run --conf": "--confidential-log",
}


@pytest.mark.parametrize("typed", CASES)
def test_bash_completes(typed):
    environment = {
        **os.environ,
        "_TRELLIS_COMPLETE": "complete_bash",
        "COMP_WORDS": typed,
        "COMP_CWORD": str(len(typed.split()) - 1),
    }
    program = "from trellis.cli import main; import sys; sys.argv = ['trellis']; main()"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == [CASES[typed]]
    assert done.stderr == ""


def test_the_script_is_shown():
    done = CliRunner().invoke(app, ["--show-completion", "bash"])
    assert "complete -o default -F _trellis_completion trellis" in done.stdout
