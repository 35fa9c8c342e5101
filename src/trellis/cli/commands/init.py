"""`trellis init`: a commented starter spec from the columns of a file."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from trellis.cli.terminal import Quiet

NAME = "init"


class Kind(StrEnum):
    """Kinds of releases; histograms are counts by several attributes."""

    COUNTS = "counts"
    HISTOGRAMS = "histograms"
    GROUP_SIZES = "group_sizes"
    FLOWS = "flows"


def command(
    ctx: typer.Context,
    source: Annotated[Path, typer.Argument(metavar="FILE", help="The records.")],
    out: Annotated[Path, typer.Option("--out", help="The spec to write.")] = Path("spec.yaml"),
    kind: Annotated[Kind, typer.Option("--kind", help="What to publish.")] = Kind.COUNTS,
    header: Annotated[
        bool, typer.Option("--header", help="The first line of the file names its columns.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Write a starter spec of any kind from the columns of a file."""
    from trellis.samples.starter import write_starter
    from trellis.spec.reading.gaps import GAP

    gaps = write_starter(source, out, kind, has_header=header)
    ctx.obj.hushed(quiet).say(
        f"Wrote {out}. Decide on the {gaps} keys that say {GAP}, then run trellis check {out}."
    )
