"""`trellis account`: the privacy accountant on its own."""

from __future__ import annotations

import json
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import typer

from trellis.cli.terminal import Terminal
from trellis.errors import PrivacyError
from trellis.model.plans.plan import Plan
from trellis.model.plans.statement import protected_in_words
from trellis.privacy import Accountant
from trellis.privacy.accounting import PrivacyCurve
from trellis.privacy.accounting.accountant import relation
from trellis.privacy.attacker import PRIOR, strongest_attacks
from trellis.privacy.guarantee import GuaranteeCurve, round_up
from trellis.privacy.mechanisms import Mechanism, mechanism

NAME = "account"

DELTAS = ("1e-3", "1e-5", "1e-6", "1e-8", "1e-10", "1e-12")


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
    given = [*_parse("gaussian", "sigma2", gaussian), *_parse("laplace", "scale", laplace)]
    if target is not None and (given or neighbours is not None or max_contribution != 1):
        raise PrivacyError("Name a spec, plan or run folder, or give mechanisms; not both.")
    plan = None if target is None else _plan_of(target)
    if plan is not None:
        accountant = plan.privacy.accountant
    else:
        accountant = _accountant_from(given, neighbours, max_contribution)
    conditions = {} if plan is None else _conditions(plan)
    rows = [_row(accountant, _number("--delta", text)) | conditions for text in delta or DELTAS]
    if picture is not None:
        _draw(picture, accountant)
    if as_json:
        typer.echo(json.dumps(rows[0] if len(rows) == 1 else rows, indent=2))
    else:
        _show(ctx.obj, accountant, rows, [] if plan is None else [protected_in_words(plan)])


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
        raise PrivacyError("--neighbours is missing: add_remove or replace; it has no default.")
    accountant = Accountant(relation(neighbours), max_contribution)
    for law, count in given:
        accountant = accountant.add(law, count)
    return accountant


def _plan_of(target: Path) -> Plan:
    """From a run folder, a plan, or a spec (which is planned, without touching counts)."""
    from trellis.storage.plans import read_plan
    from trellis.verify.files.inventory import refuse_strange, refuse_strange_plan

    if target.is_dir():
        from trellis.workflow.public.run_folder import RunFolder

        refuse_strange(target)
        return RunFolder(target).plan()
    if target.suffix == ".json":
        refuse_strange_plan(target)
        return read_plan(target)
    from trellis.spec import Spec
    from trellis.workflow.preparing.prepare import prepare

    return prepare(Spec.load(target)).plan


def _conditions(plan: Plan) -> dict[str, Any]:
    """Who is protected, and what narrows it: no epsilon of a release is stated without."""
    protection = plan.protection
    return {
        "unit_of_protection": protection.unit,
        "neighbours": protection.neighbours,
        "protected_within_level": protection.within,
        "restrictions": list(protection.restrictions),
    }


def _number(option: str, text: str) -> Fraction:
    from trellis.spec.sections.values import to_fraction

    try:
        return to_fraction(text)
    except ValueError:
        raise PrivacyError(f"{option} {text!r} is not a number such as 1e-10.") from None


def _row(accountant: PrivacyCurve, delta: Fraction) -> dict[str, Any]:
    lower, upper = accountant.epsilon_bounds(delta)
    return {
        "delta": float(delta),
        "epsilon": upper,
        "epsilon_lower": lower,
        "epsilon_zcdp": accountant.epsilon_zcdp(delta),
    }


def _show(
    terminal: Terminal,
    accountant: Accountant | GuaranteeCurve,
    rows: Sequence[dict[str, Any]],
    protected: Sequence[str],
) -> None:
    columns = ["delta", "epsilon", "from zCDP", "saved"]
    table = [
        [
            f"{row['delta']:g}",
            round_up(row["epsilon"], 6),
            round_up(row["epsilon_zcdp"]),
            f"{100 * (1 - row['epsilon'] / row['epsilon_zcdp']):.1f} %",
        ]
        for row in rows
    ]
    terminal.table(f"Guarantee for neighbours {accountant.neighbours}", columns, table)
    terminal.result(f"rho = {accountant.rho}, certified by: {accountant.tier}")
    for note in (*protected, *accountant.notes):
        terminal.result(note)
    for attack in strongest_attacks(accountant):
        terminal.result(attack.in_words(PRIOR))


def _draw(path: Path, accountant: PrivacyCurve) -> None:
    from trellis.evaluate.privacy_pictures import privacy_curve
    from trellis.storage.atomic import write_text

    write_text(path, privacy_curve(accountant))
