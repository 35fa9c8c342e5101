"""`trellis ledger`: what has been spent on a data set."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from trellis.cli.terminal import Terminal
from trellis.errors import LedgerError, PrivacyError
from trellis.model.statement import USUAL_DELTA
from trellis.privacy.budget import Budget
from trellis.privacy.guarantee import Guarantee, round_up
from trellis.privacy.ledger import Ledger
from trellis.privacy.ledger.rules import (
    counted_together,
    joint_guarantee,
    total_pure_epsilon,
    total_rho,
)

NAME = "ledger"


def command(
    ctx: typer.Context,
    dataset: Annotated[
        str | None, typer.Argument(metavar="DATASET", help="The spec's dataset id.")
    ] = None,
    path: Annotated[Path, typer.Option("--ledger", help="The ledger file.")] = Path(
        "ledger.sqlite"
    ),
    set_limit: Annotated[
        str | None, typer.Option("--set-limit", help="Such as rho=4 or epsilon=2.")
    ] = None,
) -> None:
    """Show what has been spent on a data set so far, and what may be."""
    terminal, ledger = ctx.obj, Ledger(path)
    if not path.is_file():
        raise LedgerError(f"There is no ledger at {path}. Name it with --ledger.")
    if dataset is None:
        for name in ledger.datasets():
            terminal.result(name)
        return
    if dataset not in ledger.datasets():
        known = ", ".join(ledger.datasets()) or "none"
        raise LedgerError(f"{path} has no data set {dataset!r}; it has {known}.")
    if set_limit is not None:
        ledger.set_limit(dataset, _limit(set_limit))
    _show(terminal, ledger, dataset)


def _limit(text: str) -> Budget:
    from trellis.workflow.config.values import to_fraction

    kind, _, value = text.partition("=")
    if kind not in ("rho", "epsilon"):
        raise PrivacyError(f"--set-limit {text!r} is not of the form rho=4 or epsilon=2.")
    try:
        return Budget(**{kind: to_fraction(value)})
    except ValueError:
        raise PrivacyError(f"--set-limit {text!r} is not of the form rho=4 or epsilon=2.") from None


def _show(terminal: Terminal, ledger: Ledger, dataset: str) -> None:
    entries = ledger.entries(dataset)
    rows = [
        [
            entry.release,
            entry.made,
            str(entry.edition),
            entry.guarantee.protection.neighbours,
            str(entry.guarantee.rho),
            str(entry.guarantee.pure_epsilon or "-"),
            "drawn" if entry.is_settled else "charged",
        ]
        for entry in entries
    ]
    columns = ["release", "time", "edition", "neighbours", "rho", "epsilon", "noise"]
    terminal.table(f"Spent on {dataset}", columns, rows)
    for unit in sorted({entry.guarantee.protection.unit for entry in entries}):
        charged = [e.guarantee for e in entries if e.guarantee.protection.unit == unit]
        _show_total(terminal, unit, counted_together(charged, unit, {}))
    limit = ledger.limit(dataset)
    terminal.result(f"Limit: {limit.in_words() if limit else 'none'}")


def _show_total(terminal: Terminal, unit: str, guarantees: list[Guarantee]) -> None:
    pure = total_pure_epsilon(guarantees)
    also = "" if pure is None else f", epsilon = {pure}"
    neighbours = guarantees[0].protection.neighbours
    rho = total_rho(guarantees)
    terminal.result(f"Together, for a {unit} and neighbours {neighbours}: rho = {rho}{also}")
    if (joint := joint_guarantee(guarantees)) is not None:
        epsilon = round_up(joint.epsilon(float(USUAL_DELTA)))
        terminal.result(
            f"  delta = {USUAL_DELTA}: epsilon <= {epsilon}, if no noise was chosen after seeing "
            "an earlier release"
        )
