"""`trellis plan`: shares, noise, expected errors and the guarantee, without touching counts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from trellis.cli.terminal import SpecPath

NAME = "plan"


def command(
    ctx: typer.Context,
    spec: SpecPath,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead.")] = False,
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
    """Show shares, noise, expected errors and the guarantee; no counts are touched."""
    from trellis.cli.show_plan import show_plan
    from trellis.storage.plans import plan_to_json
    from trellis.workflow.config import Spec
    from trellis.workflow.prepare import foreseen, prepare

    prepared = prepare(Spec.load(spec))
    planned = foreseen(prepared)
    if as_json:
        typer.echo(json.dumps(plan_to_json(planned), indent=2, ensure_ascii=False))
    else:
        show_plan(ctx.obj, planned)
    if suggest or areas is not None or picture is not None:
        from trellis.cli.plan_spine import draw, suggest_settings, write_areas

        if areas is not None:
            write_areas(ctx.obj, prepared, areas)
        if picture is not None:
            draw(ctx.obj, planned, picture)
        if suggest:
            suggest_settings(ctx.obj, prepared)
