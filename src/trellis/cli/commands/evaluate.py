"""`trellis evaluate`: a release against the truth; the result is confidential."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from trellis.cli.terminal import Quiet, RunPath

NAME = "evaluate"

_N_ERRORS = 6
"""The columns up to those about zeros and intervals: all in one table are too wide to read."""


def command(
    ctx: typer.Context,
    folder: RunPath,
    truth: Annotated[
        Path,
        typer.Option("--truth", metavar="SOURCE", help="The records, or the spec that names them."),
    ],
    confidential_out: Annotated[
        Path,
        typer.Option("--confidential-out", metavar="DIR2", help="A confidential place."),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else.")] = False,
    quiet: Quiet = False,
) -> None:
    """Compare a finished run with the records. The result is confidential."""
    from trellis.workflow.evaluation.evaluate import evaluate_run
    from trellis.workflow.evaluation.files import level_row

    terminal = ctx.obj.hushed(quiet or as_json)
    found = evaluate_run(folder, truth, confidential_out, progress=terminal)
    if as_json:
        typer.echo(json.dumps(found.as_json(), indent=2))
        return
    if not terminal.quiet:
        errors, zeros = slice(1, _N_ERRORS), slice(_N_ERRORS, None)
        said = f"errors in {found.units.counts}"
        for what, part in ((said, errors), ("zeros, and intervals", zeros)):
            rows = [[row[0], *row[part]] for row in map(level_row, found.levels)]
            title = f"CONFIDENTIAL: {found.release} against the truth, {what}"
            terminal.table(title, [found.units.columns[0], *found.units.columns[part]], rows)
    terminal.say(
        f"Wrote {confidential_out}. It reveals facts about the records: do not publish it."
    )
