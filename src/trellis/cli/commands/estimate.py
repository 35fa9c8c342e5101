"""`trellis estimate`: the public half, from the measurements alone."""

from __future__ import annotations

from fractions import Fraction
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
    penalty: Annotated[
        str | None, typer.Option("--penalty", help="Of the methods sparse and gls_sparse.")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Estimate and release from measurements. No record is needed, nothing is spent."""
    from trellis.api.releases import Release
    from trellis.workflow.public.finishing import finish
    from trellis.workflow.public.reestimating import left_out, reestimate
    from trellis.workflow.public.run_folder import RunFolder

    if (method is None) != (out is None):
        raise RunFolderError("--method and --out go together: name a new folder for the result.")
    if penalty is not None and method is None:
        raise RunFolderError("--penalty goes with --method sparse or gls_sparse.")
    terminal = ctx.obj.hushed(quiet)
    run = RunFolder(folder)
    run.require_started()
    if method is not None and out is not None:
        reestimate(run, method, out, terminal, _penalty(penalty))
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


def _penalty(text: str | None) -> Fraction | None:
    from trellis.spec.sections.values import to_fraction

    try:
        return None if text is None else to_fraction(text)
    except ValueError as error:
        raise RunFolderError(f"--penalty: {error}.") from None
