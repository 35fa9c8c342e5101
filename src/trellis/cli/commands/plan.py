"""`trellis plan`: shares, noise, expected errors and the guarantee, without touching counts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trellis.cli.terminal import SpecPath, Terminal
from trellis.errors import SpecError

if TYPE_CHECKING:  # reading specs takes half a second
    from trellis.spec.sections.planning import PriorSpec

NAME = "plan"

Strategies = Annotated[
    list[str] | None,
    typer.Argument(metavar="[STRATEGY]...", help="With --compare: strategies to compare with."),
]
Compare = Annotated[
    bool, typer.Option("--compare", help="Compare with the strategies that follow.")
]
Simulate = Annotated[
    int | None,
    typer.Option("--simulate", metavar="N", help="Simulate N releases of public counts."),
]
PriorFile = Annotated[
    Path | None, typer.Option("--prior", help="Public counts to simulate on; a file.")
]
PriorArea = Annotated[
    str | None, typer.Option("--prior-area", metavar="COLUMN", help="Its column of areas.")
]
PriorCount = Annotated[
    str | None, typer.Option("--prior-count", metavar="COLUMN", help="Its column of counts.")
]
Pictures = Annotated[
    Path | None, typer.Option("--pictures", metavar="DIR", help="Draw pictures into this folder.")
]


def command(
    ctx: typer.Context,
    spec: SpecPath,
    strategies: Strategies = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead.")] = False,
    compare: Compare = False,
    simulate: Simulate = None,
    prior: PriorFile = None,
    prior_area: PriorArea = None,
    prior_count: PriorCount = None,
    pictures: Pictures = None,
    suggest: Annotated[
        bool, typer.Option("--suggest", help="Search settings of the spine for the areas.")
    ] = False,
    areas: Annotated[
        Path | None, typer.Option("--areas", help="Write every area's errors as CSV.")
    ] = None,
    picture: Annotated[
        Path | None, typer.Option("--picture", help="Draw what the spine does, as SVG.")
    ] = None,
) -> None:
    """Show shares, noise, expected errors and the guarantee. No counts are touched."""
    from trellis.spec import Spec
    from trellis.workflow.outlook.plan_report import plan_report

    terminal: Terminal = ctx.obj
    names = [name for text in strategies or [] for name in text.split(",") if name]
    if bool(names) != compare:
        raise SpecError("--compare needs strategies: --compare uniform optimal bottom-heavy.")
    if simulate is None and (prior or prior_area or prior_count):
        raise SpecError("--prior goes with --simulate N.")
    loaded = Spec.load(spec)
    report = plan_report(
        loaded,
        compare=names,
        releases=simulate,
        prior=_prior(prior, prior_area, prior_count),
        progress=terminal,
    )
    if as_json:
        typer.echo(json.dumps(report.to_json(), indent=2, ensure_ascii=False))
    else:
        from trellis.cli.show.outlook import show_outlook
        from trellis.cli.show.plan import show_plan

        terminal.say_notes(loaded)
        show_plan(terminal, report.plan)
        show_outlook(terminal, report)
    if pictures is not None:
        from trellis.workflow.outlook.pictures import plan_pictures, write_pictures

        for path in write_pictures(pictures, plan_pictures(report)):
            if not as_json:
                terminal.say(f"Drew {path}.")
    if suggest or areas is not None or picture is not None:
        from trellis.cli.show.spine_effects import draw, suggest_settings, write_areas

        if areas is not None:
            write_areas(terminal, report.prepared, areas)
        if picture is not None:
            draw(terminal, report.plan, picture)
        if suggest:
            suggest_settings(terminal, report.prepared)


def _prior(file: Path | None, area: str | None, count: str | None) -> PriorSpec | None:
    """The file of the command line, with its columns; without one, the spec may name another."""
    from trellis.spec.sections.planning import PriorSpec

    if file is None:
        if area or count:
            raise SpecError("--prior-area and --prior-count go with --prior.")
        return None
    return PriorSpec(source=str(file.absolute()), area=area, count=count)
