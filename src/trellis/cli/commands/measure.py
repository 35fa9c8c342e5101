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
    from trellis.workflow.confidential.measuring import Confirmed
    from trellis.workflow.public.run_folder import RunFolder
    from trellis.workflow.running import measure_run

    terminal = ctx.obj.hushed(quiet)
    loaded = Spec.load(spec)
    terminal.say_notes(loaded)
    say_if_compiling(terminal)
    with logging_confidentially(confidential_log):
        folder = RunFolder(out or loaded.default_run_folder)
        measure_run(folder, loaded, terminal, confirmed=Confirmed(new_edition, same_records))
    terminal.say(
        f"Measured into {folder.path}. Next, on any machine: trellis estimate {folder.path}"
    )
