"""`trellis init`: a commented starter spec from the columns of a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from trellis.cli.terminal import Quiet

NAME = "init"


def command(
    ctx: typer.Context,
    source: Annotated[Path, typer.Argument(metavar="FILE", help="The records.")],
    out: Annotated[Path, typer.Option("--out", help="The spec to write.")] = Path("spec.yaml"),
    quiet: Quiet = False,
) -> None:
    """Write a starter spec from names and types of columns. No value is looked at."""
    from trellis.workflow.config.gaps import GAP
    from trellis.workflow.starter import write_starter

    gaps = write_starter(source, out)
    ctx.obj.hushed(quiet).say(
        f"Wrote {out}. Decide on the {gaps} keys that say {GAP}, then run trellis check {out}."
    )
