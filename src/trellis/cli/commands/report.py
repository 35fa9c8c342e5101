"""`trellis report`: the page about a release, made again."""

from __future__ import annotations

import typer

from trellis.cli.terminal import Quiet, RunPath

NAME = "report"


def command(ctx: typer.Context, folder: RunPath, quiet: Quiet = False) -> None:
    """Write the report of a finished run again, from its public files."""
    from trellis.workflow.public.finishing import remake_report
    from trellis.workflow.public.run_folder import RunFolder

    terminal = ctx.obj.hushed(quiet)
    with terminal.stage("report", line=False):
        path = remake_report(RunFolder(folder))
    terminal.say(f"Wrote {path}.")
