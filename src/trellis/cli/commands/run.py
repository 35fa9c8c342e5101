"""`trellis run`: a complete release, resumable."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from trellis.cli.confidential_log import ConfidentialLog, logging_confidentially
from trellis.cli.terminal import Quiet, SpecPath, Terminal

NAME = "run"

COMPILING = "First run: compiling kernels, once for each kind of release. This can take a minute."

Out = Annotated[
    Path | None, typer.Option("--out", help="The run folder; by default runs/ next to the spec.")
]
NewEdition = Annotated[
    bool, typer.Option("--new-edition", help="The input has changed, and that is intended.")
]
SameRecords = Annotated[
    bool,
    typer.Option(
        "--same-records",
        help="These records are in the ledger under another data set name, and that is intended.",
    ),
]


def command(
    ctx: typer.Context,
    spec: SpecPath,
    out: Out = None,
    new_edition: NewEdition = False,
    same_records: SameRecords = False,
    confidential_log: ConfidentialLog = None,
    quiet: Quiet = False,
) -> None:
    """Measure, estimate and release. Run it again to continue where it stopped."""
    with logging_confidentially(confidential_log):
        release_into(ctx.obj.hushed(quiet), spec, out, new_edition, same_records)


def release_into(
    terminal: Terminal,
    spec: Path,
    out: Path | None = None,
    new_edition: bool = False,
    same_records: bool = False,
) -> Path:
    """Run a spec and say where the result is."""
    from trellis.api.releases import Release
    from trellis.spec import Spec
    from trellis.workflow.confidential.measuring import Confirmed
    from trellis.workflow.public.run_folder import RunFolder
    from trellis.workflow.running import complete_run

    loaded = Spec.load(spec)
    folder = RunFolder(out or loaded.default_run_folder)
    was_finished = folder.is_finished
    terminal.say_notes(loaded)
    say_if_compiling(terminal)
    complete_run(folder, loaded, terminal, confirmed=Confirmed(new_edition, same_records))
    release = Release(folder.path)
    if was_finished:
        terminal.say(f"{release.path} is finished already; nothing was done or spent.")
    else:
        terminal.say(f"Released {release.plan.release} into {release.path}.")
        terminal.say_fit(release.loose_fit)
    return release.path


def say_if_compiling(terminal: Terminal) -> None:
    """Say so when kernels are compiled, which happens once for each kind of release."""
    from trellis.numerics.compiled import tell_when_compiling

    tell_when_compiling(lambda: terminal.say(COMPILING))
