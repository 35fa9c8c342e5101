"""`trellis plan`: shares, noise, expected errors and the guarantee, without touching counts."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from trellis.cli.terminal import SpecPath

NAME = "plan"


def command(
    ctx: typer.Context,
    spec: SpecPath,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead.")] = False,
) -> None:
    """Show shares, noise, expected errors and the guarantee; no counts are touched."""
    from trellis.cli.show_plan import show_plan
    from trellis.storage.plans import plan_to_json
    from trellis.workflow.api import plan
    from trellis.workflow.config import Spec

    planned = plan(Spec.load(spec))
    if as_json:
        typer.echo(json.dumps(plan_to_json(planned), indent=2, ensure_ascii=False))
    else:
        show_plan(ctx.obj, planned)
