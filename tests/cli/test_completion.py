"""Shells complete commands, options and choices."""

import os
import subprocess
import sys

import pytest

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
    """Which shell is asked is found from the processes above, so there must be one."""
    program = "import sys; sys.argv[0] = 'trellis'; from trellis.cli import main; main()"
    script = f'{sys.executable} -c "{program}" --show-completion; exit $?'
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert "complete -o default -F _trellis_completion trellis" in done.stdout
