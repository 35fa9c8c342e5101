"""`trellis estimate`: the public half, from the measurements alone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from trellis.cli.terminal import Quiet, RunPath

NAME = "estimate"


def command(
    ctx: typer.Context,
    folder: RunPath,
    method: Annotated[
        str | None, typer.Option("--method", help="Another method, into another folder.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="The folder for --method.")] = None,
    penalty: Annotated[
        str | None, typer.Option("--penalty", help="For the methods sparse and gls_sparse.")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Estimate and release from measurements. No records are needed; nothing is spent."""
    from trellis.api.releases import Release
    from trellis.workflow.public.finishing import finish
    from trellis.workflow.public.reestimating import asked_penalty, left_out, reestimate
    from trellis.workflow.public.run_folder import RunFolder

    price = asked_penalty(method, out, penalty)
    terminal = ctx.obj.hushed(quiet)
    run = RunFolder(folder)
    run.require_started()
    if method is not None and out is not None:
        reestimate(run, method, out, terminal, price)
        if keys := left_out(run, method):
            terminal.say(f"Left out, since {method} keeps no rules: {', '.join(keys)}.")
    elif run.is_finished:
        terminal.say(f"{folder} is finished already; nothing was done.")
        return
    else:
        with run.held():
            finish(run, terminal)
    terminal.say(f"Released into {out or folder}.")
    terminal.say_fit(Release(out or folder).loose_fit)
