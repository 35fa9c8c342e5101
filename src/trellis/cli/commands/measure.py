"""`trellis measure`: the confidential half."""

from __future__ import annotations

import typer

from trellis.cli.commands.run import NewEdition, Out, SameRecords, say_if_compiling
from trellis.cli.confidential_log import ConfidentialLog, logging_confidentially
from trellis.cli.terminal import Quiet, SpecPath

NAME = "measure"


def command(
    ctx: typer.Context,
    spec: SpecPath,
    out: Out = None,
    new_edition: NewEdition = False,
    same_records: SameRecords = False,
    confidential_log: ConfidentialLog = None,
    quiet: Quiet = False,
) -> None:
    """Charge the ledger and write noisy measurements. Estimation can follow elsewhere."""
    from trellis.spec import Spec
    from trellis.workflow.api import measure

    terminal = ctx.obj.hushed(quiet)
    loaded = Spec.load(spec)
    terminal.say_bindings(loaded)
    say_if_compiling(terminal)
    with logging_confidentially(confidential_log):
        confirmed = {"new_edition": new_edition, "same_records": same_records}
        folder = measure(loaded, out, **confirmed, progress=terminal)
    terminal.say(
        f"Measured into {folder.path}. Next, on any machine: trellis estimate {folder.path}"
    )
