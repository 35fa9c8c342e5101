"""`trellis account`: the privacy accountant on its own."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trellis.cli.terminal import Terminal
from trellis.errors import PrivacyError
from trellis.privacy import Accountant
from trellis.privacy.accounting.accountant import relation
from trellis.privacy.guarantee import round_up
from trellis.privacy.mechanisms import Mechanism, mechanism

if TYPE_CHECKING:  # reading specs takes half a second
    from trellis.workflow.outlook.privacy_statement import PrivacyStatement

NAME = "account"


def command(
    ctx: typer.Context,
    target: Annotated[
        Path | None, typer.Argument(metavar="[SPEC|PLAN|DIR]", help="A spec, plan.json or run.")
    ] = None,
    gaussian: Annotated[
        list[str] | None, typer.Option("--gaussian", help="Such as sigma2=5,count=10; repeatable.")
    ] = None,
    laplace: Annotated[
        list[str] | None, typer.Option("--laplace", help="Such as scale=2,count=3; repeatable.")
    ] = None,
    neighbours: Annotated[
        str | None, typer.Option("--neighbours", help="add_remove or replace.")
    ] = None,
    max_contribution: Annotated[
        int, typer.Option("--max-contribution", help="Records of one unit.")
    ] = 1,
    delta: Annotated[
        list[str] | None, typer.Option("--delta", help="Where to state epsilon; repeatable.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead.")] = False,
    picture: Annotated[
        Path | None, typer.Option("--svg", help="Draw the curve with the zCDP bound.")
    ] = None,
) -> None:
    """State the exact guarantee of a release, or of mechanisms."""
    from trellis.storage.atomic import write_text
    from trellis.workflow.outlook.privacy_statement import PrivacyStatement

    given = [*_parse("gaussian", "sigma2", gaussian), *_parse("laplace", "scale", laplace)]
    if target is not None and (given or neighbours is not None or max_contribution != 1):
        raise PrivacyError("Name a spec, plan or run folder, or give mechanisms, but not both.")
    if target is None:
        stated = _accountant_from(given, neighbours, max_contribution)
    else:
        from trellis.workflow.outlook.plan_at import plan_at

        stated = plan_at(target)
    statement = PrivacyStatement.of(stated, delta or ())
    found = statement.to_json()
    if picture is not None:
        write_text(picture, statement.svg)
    if as_json:
        typer.echo(json.dumps(found, indent=2))
    else:
        _show(ctx.obj, statement)


def _parse(option: str, parameter: str, texts: Sequence[str] | None) -> list[tuple[Mechanism, int]]:
    """Mechanisms and counts from `sigma2=5,count=10`."""
    found = []
    for text in texts or ():
        parts = [part.partition("=") for part in text.split(",")]
        fields = {name: value for name, _, value in parts}
        n_fields, count = len(fields), fields.pop("count", "1")
        if set(fields) != {parameter} or len(parts) != n_fields or not count.isdecimal():
            raise PrivacyError(f"--{option} {text!r} is not of the form {parameter}=5,count=10.")
        found.append((mechanism(f"discrete_{option}", fields[parameter]), int(count)))
    return found


def _accountant_from(
    given: Sequence[tuple[Mechanism, int]], neighbours: str | None, max_contribution: int
) -> Accountant:
    if not given:
        raise PrivacyError("Name a spec, plan.json or run folder, or give --gaussian or --laplace.")
    if neighbours is None:
        raise PrivacyError("--neighbours is missing: use add_remove or replace. It has no default.")
    accountant = Accountant(relation(neighbours), max_contribution)
    for law, count in given:
        accountant = accountant.add(law, count)
    return accountant


def _show(terminal: Terminal, statement: PrivacyStatement) -> None:
    columns = ["delta", "epsilon", "from zCDP", "saved"]
    table = [
        [
            f"{row['delta']:g}",
            round_up(row["epsilon"], 6),
            round_up(row["epsilon_zcdp"]),
            f"{100 * (1 - row['epsilon'] / row['epsilon_zcdp']):.1f} %",
        ]
        for row in statement.rows
    ]
    terminal.table(f"Guarantee for neighbours {statement.accountant.neighbours}", columns, table)
    for sentence in statement.sentences:
        terminal.result(sentence)
