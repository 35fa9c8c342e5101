"""`trellis estimate`: the public half, from the measurements alone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from trellis.cli.terminal import Quiet, RunPath
from trellis.errors import RunFolderError

NAME = "estimate"


def command(
    ctx: typer.Context,
    folder: RunPath,
    method: Annotated[
        str | None, typer.Option("--method", help="Another method, into another folder.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="The folder for --method.")] = None,
    quiet: Quiet = False,
) -> None:
    """Estimate and release from a measured run folder; no record is needed, nothing is spent."""
    from trellis.workflow.public_half import finish, left_out, reestimate
    from trellis.workflow.run_folder import RunFolder

    if (method is None) != (out is None):
        raise RunFolderError("--method and --out go together: name a new folder for the result.")
    terminal = ctx.obj.hushed(quiet)
    run = RunFolder(folder)
    run.require_started()
    if method is not None and out is not None:
        reestimate(run, method, out, terminal)
        if keys := left_out(run, method):
            terminal.say(f"Left out, since {method} keeps no rules: {', '.join(keys)}.")
    elif run.is_finished:
        terminal.say(f"{folder} is finished already; nothing was done.")
        return
    else:
        with run.held():
            finish(run, terminal)
    terminal.say(f"Released into {out or folder}.")
