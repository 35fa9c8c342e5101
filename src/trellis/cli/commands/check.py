"""`trellis check`: everything that can be wrong, found before anything is spent."""

from __future__ import annotations

import typer

from trellis.cli.commands.run import NewEdition, SameRecords
from trellis.cli.confidential_log import ConfidentialLog, logging_confidentially
from trellis.cli.terminal import BAD_INPUT, Quiet, SpecPath
from trellis.errors import TrellisError

NAME = "check"


def command(
    ctx: typer.Context,
    spec: SpecPath,
    new_edition: NewEdition = False,
    same_records: SameRecords = False,
    confidential_log: ConfidentialLog = None,
    quiet: Quiet = False,
) -> None:
    """Find everything that is wrong with a release. Nothing is spent or written."""
    from trellis.spec import Spec
    from trellis.workflow.confidential.check import check
    from trellis.workflow.confidential.measuring import Confirmed

    terminal = ctx.obj.hushed(quiet)
    confirmed = Confirmed(new_edition, same_records)
    try:
        loaded = Spec.load(spec)
        terminal.say_notes(loaded)
        with logging_confidentially(confidential_log), terminal.stage("check", line=False):
            plan = check(loaded, confirmed=confirmed, progress=terminal).plan
    except TrellisError as error:
        terminal.faults(error)
        raise typer.Exit(BAD_INPUT) from None
    number = f"{plan.areas[-1]:,} {plan.design.counted_for}"
    terminal.say(
        f"{spec} is fine: {plan.release}, {len(plan.levels)} levels, {number} on the last. "
        "Nothing was spent."
    )
