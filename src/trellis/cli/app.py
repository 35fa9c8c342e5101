"""The `trellis` command."""

from __future__ import annotations

from typing import Annotated

import typer

from trellis import __version__
from trellis.cli.commands import (
    account,
    check,
    demo,
    estimate,
    evaluate,
    init,
    ledger,
    measure,
    plan,
    report,
    run,
    verify,
)
from trellis.cli.interrupts import end_in_time
from trellis.cli.terminal import Terminal, reports_errors

app = typer.Typer(
    name="trellis",
    help="Differentially private release of hierarchical data.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,  # their tracebacks print local variables: confidential values
    rich_markup_mode=None,
)

for _module in (
    demo,
    init,
    check,
    plan,
    run,
    measure,
    estimate,
    verify,
    report,
    evaluate,
    account,
    ledger,
):
    app.command(_module.NAME)(reports_errors(_module.command))


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"trellis {__version__}")
        raise typer.Exit


@app.callback()
def options(
    ctx: typer.Context,
    version: Annotated[  # noqa: ARG001
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print only what you asked for.")
    ] = False,
) -> None:
    """Differentially private release of hierarchical data."""
    ctx.obj = Terminal(quiet=quiet)


def main() -> None:
    """Entry point of the console script."""
    end_in_time()
    app()
