"""`trellis demo`: a complete release of a generated state, in seconds."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from trellis.cli.commands.run import release_into
from trellis.cli.terminal import Quiet, Terminal

NAME, PROGRAM = "demo", "trellis"


def command(
    ctx: typer.Context,
    out: Annotated[Path, typer.Option("--out", help="Where to put it.")] = Path("trellis-demo"),
    histogram: Annotated[
        bool,
        typer.Option(
            "--histogram", help="6,000 blocks, by household type x age x ethnicity x race."
        ),
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Make up a state of 50,000 blocks and release it. You can edit its spec and data."""
    from trellis.samples.demo import write_demo
    from trellis.samples.redistricting import write_histogram_demo

    terminal = ctx.obj.hushed(quiet)
    spec = out / "spec.yaml"
    if spec.exists():
        terminal.say(f"{spec} exists already and is used as it is.")
    else:
        with terminal.stage("make up people and areas"):
            (write_histogram_demo if histogram else write_demo)(out)
    _tell(terminal, spec, release_into(terminal, spec, None, new_edition=False))


def _tell(terminal: Terminal, spec: Path, folder: Path) -> None:
    from trellis.api.releases import Release
    from trellis.cli.show.plan import show_plan
    from trellis.model.plans.percent import in_percent

    if terminal.quiet:
        return
    release = Release(folder)
    show_plan(terminal, release.plan)
    named = ("county", "total") if release.plan.design.by_query else ("county",)
    counties = release.table(*named).slice(0, 5).to_pylist()
    columns = ["county", "published", "std error", "lower", "upper"]
    keys = ["geocode", "count", "std_error", "lower", "upper"]
    rows = [[_number(county[key]) for key in keys] for county in counties]
    confidence = in_percent(release.plan.confidence)
    terminal.table(f"The first counties: records, with {confidence} intervals", columns, rows)
    terminal.say("\nOpen next:")
    terminal.say(f"  {folder / 'report' / 'index.html'}   pictures of guarantee and accuracy")
    terminal.say(f"  {folder / 'release' / 'README.md'}   how to read the tables next to it")
    terminal.say(f"  {folder / 'privacy.json'}   what is protected, and how well")
    terminal.say(f"  {spec}   the spec: edit it, for example the shares")
    trellis, where, run = _own_name(), shlex.quote(str(spec)), shlex.quote(str(folder))
    ledger = shlex.quote(str(spec.parent / "ledger.sqlite"))
    terminal.say("Try next:")
    for comment, command in (
        ("checks every promise independently", f"verify {run}"),
        ("shows shares, noise and errors before spending", f"plan {where}"),
        ("makes a second release, charged again", f"run {where} --out second"),
        ("shows what has been spent", f"ledger {release.plan.dataset} --ledger {ledger}"),
    ):
        terminal.say(f"  # {comment}:\n  {trellis} {command}")


def _own_name() -> str:
    """What to type to run this program from here: its path, unless the shell finds it by name."""
    here, found = Path(sys.argv[0]), shutil.which(PROGRAM)
    if here.stem != PROGRAM or not here.is_file() or (found and here.samefile(found)):
        return PROGRAM
    return shlex.quote(str(here))


def _number(value: object) -> str:
    return f"{value:.2f}" if isinstance(value, float) else str(value)
