"""`trellis verify`: an independent check of every promise."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from trellis.cli.terminal import BROKEN_PROMISE, Quiet, RunPath, one_line

NAME = "verify"
REDUCED = (
    "REDUCED CHECKS: the folder states an older format, another version or a poor fit, and not "
    "everything was verified. A forger can state that too."
)


def command(
    ctx: typer.Context,
    folder: RunPath,
    ledger: Annotated[
        Path | None,
        typer.Option("--ledger", help="The ledger that paid: compare measurements and cost."),
    ] = None,
    hierarchy: Annotated[
        Path | None,
        typer.Option("--hierarchy", help="The office's own file of areas: compare the tree."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print every promise with what breaks it as JSON.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Re-read all files of a run and check every promise. Exit code 1 if one is broken."""
    from trellis.verify import as_data, is_reduced, verify_run
    from trellis.verify.documents.withdrawn import notice

    terminal = ctx.obj.hushed(quiet)
    with terminal.stage("verify", line=False):
        findings = verify_run(folder, ledger, hierarchy)
    broken = sum(not finding.holds for finding in findings)
    if as_json:
        terminal.result(json.dumps(as_data(findings, notice(folder)), indent=2))
        raise typer.Exit(BROKEN_PROMISE if broken else 0)
    if said := notice(folder):
        terminal.result(one_line(said))
    if is_reduced(findings):
        terminal.result(REDUCED)
    for finding in findings:
        terminal.say(f"{'ok    ' if finding.holds else 'BROKEN'}  {finding.promise}")
        for problem in finding.problems:
            terminal.result(f"        {problem}")
        for note in finding.notes:
            (terminal.result if finding.is_reduced else terminal.say)(f"        note: {note}")
    if broken:
        terminal.result(f"{broken} of {len(findings)} promises are broken.")
        raise typer.Exit(BROKEN_PROMISE)
    if is_reduced(findings):
        terminal.result(f"All promises hold as far as they were checked: {REDUCED}")
    else:
        terminal.say("All promises hold.")
