"""`trellis ledger`: what has been spent on a data set, and what may still be."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Annotated

import typer

from trellis.cli.show.ledger import show_dataset, show_datasets
from trellis.cli.terminal import Terminal
from trellis.errors import LedgerError, PrivacyError
from trellis.privacy.budget import Budget
from trellis.privacy.ledger import Ledger
from trellis.privacy.ledger.units import Tie, UnitBound
from trellis.workflow.ledger_record import dataset_record, ledger_record, require_dataset

NAME = "ledger"


def command(
    ctx: typer.Context,
    dataset: Annotated[
        str | None, typer.Argument(metavar="DATASET", help="The spec's dataset id.")
    ] = None,
    path: Annotated[Path, typer.Option("--ledger", help="The ledger file.")] = Path(
        "ledger.sqlite"
    ),
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    set_limit: Annotated[
        str | None, typer.Option("--set-limit", help="Such as rho=4 or epsilon=2.")
    ] = None,
    unit: Annotated[
        str | None, typer.Option("--unit", help="With --set-limit: the unit it is for.")
    ] = None,
    below_spent: Annotated[
        bool,
        typer.Option("--below-spent", help="With --set-limit: allow less than is spent."),
    ] = False,
    units: Annotated[
        list[str] | None,
        typer.Option("--units", help="household:person=6: one is made up of at most 6."),
    ] = None,
    part_of: Annotated[
        list[str] | None,
        typer.Option("--part-of", help="person:household=1: one is part of at most 1."),
    ] = None,
    withdraw: Annotated[
        Path | None, typer.Option("--withdraw", help="The run folder to withdraw.")
    ] = None,
    reason: Annotated[str | None, typer.Option("--reason", help="With --withdraw: why.")] = None,
    superseded_by: Annotated[
        Path | None,
        typer.Option("--superseded-by", help="With --withdraw: the run folder to use instead."),
    ] = None,
    backup: Annotated[
        Path | None, typer.Option("--backup", help="Copy the ledger into this new file.")
    ] = None,
    restore: Annotated[
        Path | None, typer.Option("--restore", help="Add what this copy has and the ledger lacks.")
    ] = None,
    enter: Annotated[
        Path | None, typer.Option("--enter", help="Add the charge of this run folder.")
    ] = None,
) -> None:
    """Show what has been spent on a data set, and what may still be."""
    terminal, ledger = ctx.obj, Ledger(path)
    if (reason or superseded_by) and withdraw is None:
        raise LedgerError("--reason and --superseded-by go with --withdraw.")
    if (unit or below_spent) and set_limit is None:
        raise LedgerError("--unit and --below-spent go with --set-limit.")
    if restore is not None:
        return _restore(terminal, ledger, restore)
    if enter is not None:
        return _enter(terminal, ledger, enter)
    opens = dataset is not None and bool(units or part_of or (set_limit and unit))
    if not path.is_file() and not opens:
        raise LedgerError(f"There is no ledger at {path}. Name it with --ledger.")
    if backup is not None:
        ledger.backup(backup)
        terminal.say(f"Copied into {backup}. Keep it as confidential as the ledger.")
        return None
    if dataset is None:
        if any((set_limit, units, part_of, withdraw)):
            raise LedgerError("Name the data set: trellis ledger DATASET ..")
        return _show_all(terminal, ledger, as_json=as_json)
    if not opens:
        require_dataset(ledger, dataset)
    for tie, declared in ((Tie.MADE_OF, units), (Tie.PART_OF, part_of)):
        for text in declared or ():
            ledger.declare(dataset, _bound(text, tie))
    if set_limit is not None:
        whose = unit or _only_unit(ledger, dataset)
        ledger.set_limit(dataset, whose, _limit(set_limit), below_spent=below_spent)
    if withdraw is not None:
        return _withdraw(terminal, ledger, dataset, withdraw, reason, superseded_by)
    if as_json:
        return terminal.result(json.dumps(dataset_record(ledger, dataset), indent=2))
    return show_dataset(terminal, ledger, dataset)


def _show_all(terminal: Terminal, ledger: Ledger, *, as_json: bool) -> None:
    if as_json:
        return terminal.result(json.dumps(ledger_record(ledger), indent=2))
    return show_datasets(terminal, ledger)


def _limit(text: str) -> Budget:
    kind, _, value = text.partition("=")
    wrong = PrivacyError(f"--set-limit {text!r} is not of the form rho=4 or epsilon=2.")
    if kind not in ("rho", "epsilon"):
        raise wrong
    return Budget(**{kind: _number(value, wrong)})


def _number(text: str, wrong: PrivacyError) -> Fraction:
    from trellis.spec.sections.values import to_fraction

    try:
        return to_fraction(text)
    except ValueError:
        raise wrong from None


def _bound(text: str, tie: Tie) -> UnitBound:
    """From text such as household:person=6."""
    names, _, most = text.rpartition("=")
    unit, _, other = names.partition(":")
    option, example = (
        ("--units", "household:person=6")
        if tie is Tie.MADE_OF
        else ("--part-of", "person:household=1")
    )
    if not (unit and other and unit != other and most.isdecimal() and int(most) >= 1):
        raise PrivacyError(f"{option} {text!r} is not of the form {example}.")
    return UnitBound(unit, other, tie, int(most))


def _only_unit(ledger: Ledger, dataset: str) -> str:
    known = ledger.account(dataset).units
    if len(known) != 1:
        listed = ", ".join(known)
        raise LedgerError(f"Name the unit that the limit is for, with --unit: one of {listed}.")
    return known[0]


def _restore(terminal: Terminal, ledger: Ledger, copy: Path) -> None:
    was_there = ledger.path.is_file()
    added = ledger.restore(copy)
    terminal.say(
        f"{added} charge(s) of {copy} were missing in {ledger.path} and have been added. Nothing "
        "was removed."
    )
    if not was_there:
        terminal.say(
            "Charges made after the copy are not in it: enter each such run with --enter. Runs "
            "that began with the lost ledger and are not measured yet cannot continue."
        )


def _enter(terminal: Terminal, ledger: Ledger, folder: Path) -> None:
    from trellis.workflow.ledger_runs import enter_run
    from trellis.workflow.public.run_folder import RunFolder

    new = enter_run(ledger, RunFolder(folder))
    terminal.say(
        f"The charge of {folder} has been entered."
        if new
        else f"The charge of {folder} is in the ledger already."
    )


def _withdraw(
    terminal: Terminal,
    ledger: Ledger,
    dataset: str,
    folder: Path,
    reason: str | None,
    by: Path | None,
) -> None:
    from trellis.workflow.ledger_runs import withdraw_run
    from trellis.workflow.public.run_folder import RunFolder

    newer = None if by is None else RunFolder(by)
    terminal.result(withdraw_run(ledger, dataset, RunFolder(folder), reason, newer))
