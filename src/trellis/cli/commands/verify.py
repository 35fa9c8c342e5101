"""`trellis verify`: an independent check of every promise."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from trellis.cli.terminal import BROKEN_PROMISE, Quiet, RunPath, one_line

NAME = "verify"


def command(
    ctx: typer.Context,
    folder: RunPath,
    ledger: Annotated[
        Path | None,
        typer.Option("--ledger", help="The ledger that paid: compare measurements and cost."),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Re-read all files of a run and check every promise. Exit code 1 if one is broken."""
    from trellis.verify import verify_run
    from trellis.verify.files.withdrawn import notice

    terminal = ctx.obj.hushed(quiet)
    with terminal.stage("verify", line=False):
        findings = verify_run(folder, ledger)
    if said := notice(folder):
        terminal.result(one_line(said))
    for finding in findings:
        terminal.say(f"{'ok    ' if finding.holds else 'BROKEN'}  {finding.promise}")
        for problem in finding.problems:
            terminal.result(f"        {problem}")
    broken = sum(not finding.holds for finding in findings)
    if broken:
        terminal.result(f"{broken} of {len(findings)} promises are broken.")
        raise typer.Exit(BROKEN_PROMISE)
    terminal.say(f"All {len(findings)} promises hold.")
