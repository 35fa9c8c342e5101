"""What a ledger says: a table of charges, and sums that name their parts."""

from __future__ import annotations

from trellis.cli.terminal import Terminal
from trellis.privacy.guarantee import Guarantee, round_up
from trellis.privacy.ledger import Account, Entry, Ledger, Total
from trellis.privacy.ledger.limits import ANY_UNIT
from trellis.wording.privacy import USUAL_DELTA
from trellis.workflow.ledger_record import ASSUMES, why_left_out


def show_datasets(terminal: Terminal, ledger: Ledger) -> None:
    """One row for each data set and unit."""
    rows, is_restricted = [], False
    for name in ledger.datasets():
        account = ledger.account(name)
        for unit in account.units:
            total, limit = account.total(unit), account.limits.get(unit)
            spent = f"{total.rho}{' and more' if total.left_out else ''}"
            said = limit.in_words() if limit else "none"
            relation = total.relation_in_words
            rows.append([name, unit, relation, str(len(total.counted)), spent, said])
            is_restricted = is_restricted or bool(total.restrictions)
    columns = ["data set", "unit", "neighbours", "charges", "rho", "limit"]
    terminal.table("Spent", columns, rows)
    if is_restricted:
        terminal.result(
            "Restricted: not every change is protected. trellis ledger DATASET says which."
        )


def show_dataset(terminal: Terminal, ledger: Ledger, dataset: str) -> None:
    account = ledger.account(dataset)
    columns = ["release", "time (UTC)", "edition", "unit", "neighbours", "rho", "epsilon", "noise"]
    rows = [_row(entry) for entry in ledger.entries(dataset)]
    terminal.table(f"Spent on {dataset}", columns, rows)
    for unit in filter(None, account.units):
        _show_total(terminal, account, account.total(unit))
    if (limit := account.limits.get(ANY_UNIT)) is not None:
        terminal.result(f"Limit: {limit.in_words()} for the unit that is charged first")
    if not account.limits:
        terminal.result("Limit: none")


def _row(entry: Entry) -> list[str]:
    guarantee = entry.guarantee
    drawn = "drawn" if entry.is_settled else "charged"
    return [
        entry.release,
        entry.made[: len("2026-11-18T05:12")],
        str(entry.edition or "not known"),
        guarantee.protection.unit,
        _relation(guarantee),
        str(guarantee.rho),
        str(guarantee.pure_epsilon or "-"),
        drawn if entry.withdrawal is None else f"{drawn}, withdrawn",
    ]


def _relation(guarantee: Guarantee) -> str:
    protection = guarantee.protection
    where = "" if protection.within is None else f", within {protection.within}"
    return f"{protection.neighbours}{where}"


def _show_total(terminal: Terminal, account: Account, total: Total) -> None:
    for line in total_in_words(total):
        terminal.result(line)
    if (limit := account.limits.get(total.unit)) is not None:
        terminal.result(f"Limit: {limit.in_words()} for a {total.unit}")


def total_in_words(total: Total) -> list[str]:
    """A sum, its conditions, and its parts."""
    if not total.counted:
        return [f"For a {total.unit}: nothing can be counted.", *_left_out(total)]
    pure, relation = total.pure_epsilon, total.relation_in_words
    also = "" if pure is None else f", epsilon = {pure}"
    head = "In part" if total.left_out else "Together"
    epsilon = round_up(total.epsilon(USUAL_DELTA))
    return [
        f"{head}, for a {total.unit} and neighbours {relation}: rho = {total.rho}{also}",
        f"  delta = {USUAL_DELTA}: epsilon <= {epsilon} ({relation}), {ASSUMES}",
        *(f"  {sentence}" for sentence in total.restrictions),
        *(f"  Adds up: {part.in_words}" for part in total.counted),
        *_left_out(total),
    ]


def _left_out(total: Total) -> list[str]:
    return [f"  {why_left_out(cost, total.unit)}" for cost in total.left_out]
