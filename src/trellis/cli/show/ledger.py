"""What a ledger says: a table of charges, and sums that tell what they add up."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from trellis.cli.terminal import Terminal
from trellis.model.plans.statement import USUAL_DELTA
from trellis.privacy.budget import Budget
from trellis.privacy.guarantee import Guarantee, round_up
from trellis.privacy.ledger import Account, Cost, Entry, Ledger, Total
from trellis.privacy.ledger.account import Counted
from trellis.privacy.ledger.limits import ANY_UNIT

_DELTAS = ("1e-6", USUAL_DELTA, "1e-12")
_ASSUMES = "if no noise was chosen after seeing an earlier release"


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
        terminal.result("Restricted: not every change is protected. trellis ledger DATASET says.")


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
    """A sum, its conditions, and what it adds up."""
    if not total.counted:
        return [f"For a {total.unit}: nothing can be counted.", *_left_out(total)]
    pure, relation = total.pure_epsilon, total.relation_in_words
    also = "" if pure is None else f", epsilon = {pure}"
    head = "In part" if total.left_out else "Together"
    epsilon = round_up(total.epsilon(USUAL_DELTA))
    return [
        f"{head}, for a {total.unit} and neighbours {relation}: rho = {total.rho}{also}",
        f"  delta = {USUAL_DELTA}: epsilon <= {epsilon} ({relation}), {_ASSUMES}",
        *(f"  {sentence}" for sentence in total.restrictions),
        *(f"  Adds up: {part.in_words}" for part in total.counted),
        *_left_out(total),
    ]


def _left_out(total: Total) -> list[str]:
    return [f"  {_why_left_out(cost, total.unit)}" for cost in total.left_out]


def _why_left_out(cost: Cost, unit: str) -> str:
    return (
        f"Left out: {cost.release} (for a {cost.unit}), since it is not declared how many of these "
        f"one {unit} is made up of or part of. What is spent for a {unit} is more."
    )


def dataset_to_json(ledger: Ledger, dataset: str) -> dict[str, Any]:
    account = ledger.account(dataset)
    entries = {entry.run_id: entry for entry in ledger.entries(dataset)}
    return {
        "dataset": dataset,
        "units": {
            unit: _unit_to_json(account.total(unit), account.limits.get(unit), entries)
            for unit in account.units
        },
        "bounds": [bound.in_words for bound in account.bounds],
    }


def _unit_to_json(total: Total, limit: Budget | None, entries: dict[str, Entry]) -> dict[str, Any]:
    within = total.within
    return {
        "neighbours": str(total.neighbours),
        "rho": str(total.rho),
        "epsilon": _text(total.pure_epsilon),
        "epsilon_at_delta": {delta: total.epsilon(delta) for delta in _DELTAS},
        "epsilon_at_delta_holds": _ASSUMES,
        "within": list(within) if len(within) > 1 else next(iter(within), None),
        "restrictions": list(total.restrictions),
        "limit": _limit_to_json(limit),
        "complete": not total.left_out,
        "charges": [_charge_to_json(part, entries[part.cost.run_id]) for part in total.counted],
        "not_counted": [
            {"run_id": c.run_id, "release": c.release, "unit": c.unit, "rho": str(c.guarantee.rho),
             "why": _why_left_out(c, total.unit)}
            for c in total.left_out
        ],
    }  # fmt: skip


def _charge_to_json(part: Counted, entry: Entry) -> dict[str, Any]:
    charged, priced = part.cost.guarantee, part.priced
    return {
        "run_id": entry.run_id,
        "release": entry.release,
        "made": entry.made,
        "edition": entry.edition or None,
        "unit": charged.protection.unit,
        "neighbours": str(charged.protection.neighbours),
        "within": charged.protection.within,
        "max_contribution": charged.protection.max_contribution,
        "caps_contributions": entry.caps,
        "rho": str(priced.rho),
        "epsilon": _text(priced.pure_epsilon),
        "rho_as_charged": str(charged.rho),
        "counted": part.in_words,
        "drawn": entry.is_settled,
        "withdrawn": None if entry.withdrawal is None else entry.withdrawal.made,
    }


def _limit_to_json(limit: Budget | None) -> dict[str, str | None] | None:
    return None if limit is None else {"rho": _text(limit.rho), "epsilon": _text(limit.epsilon)}


def _text(value: Fraction | None) -> str | None:
    return None if value is None else str(value)
