"""What a ledger says, as plain data: charges, sums for each unit, and limits."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from trellis.errors import LedgerError
from trellis.privacy.budget import Budget
from trellis.privacy.ledger import Cost, Entry, Ledger, Total
from trellis.privacy.ledger.account import Counted
from trellis.wording.privacy import DELTAS

ASSUMES = "if no noise was chosen after seeing an earlier release"
"""What sums of epsilon rest on."""


def ledger_record(ledger: Ledger) -> dict[str, Any]:
    """All data sets of a ledger."""
    return {"datasets": [dataset_record(ledger, name) for name in ledger.datasets()]}


def dataset_record(ledger: Ledger, dataset: str) -> dict[str, Any]:
    """One data set: for each unit what is spent on it, by which charges, and what may be."""
    account = ledger.account(dataset)
    entries = {entry.run_id: entry for entry in ledger.entries(dataset)}
    return {
        "dataset": dataset,
        "units": {
            unit: _unit(account.total(unit), account.limits.get(unit), entries)
            for unit in account.units
        },
        "bounds": [bound.in_words for bound in account.bounds],
    }


def require_dataset(ledger: Ledger, dataset: str) -> None:
    """Refuse a data set that a ledger does not have."""
    if dataset not in (known := ledger.datasets()):
        there = ", ".join(known) or "none"
        raise LedgerError(f"{ledger.path} has no data set {dataset!r}; it has {there}.")


def why_left_out(cost: Cost, unit: str) -> str:
    """Why a charge for another unit is no part of a sum."""
    return (
        f"Left out: {cost.release} (for a {cost.unit}), because no bound says how many of these "
        f"one {unit} is made up of or part of. The true cost for a {unit} is higher."
    )


def _unit(total: Total, limit: Budget | None, entries: dict[str, Entry]) -> dict[str, Any]:
    within = total.within
    return {
        "neighbours": str(total.neighbours),
        "rho": str(total.rho),
        "epsilon": _text(total.pure_epsilon),
        "epsilon_at_delta": {delta: total.epsilon(delta) for delta in DELTAS},
        "epsilon_at_delta_holds": ASSUMES,
        "within": list(within) if len(within) > 1 else next(iter(within), None),
        "restrictions": list(total.restrictions),
        "limit": _limit(limit),
        "complete": not total.left_out,
        "charges": [_charge(part, entries[part.cost.run_id]) for part in total.counted],
        "not_counted": [
            {"run_id": c.run_id, "release": c.release, "unit": c.unit, "rho": str(c.guarantee.rho),
             "why": why_left_out(c, total.unit)}
            for c in total.left_out
        ],
    }  # fmt: skip


def _charge(part: Counted, entry: Entry) -> dict[str, Any]:
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


def _limit(limit: Budget | None) -> dict[str, str | None] | None:
    return None if limit is None else {"rho": _text(limit.rho), "epsilon": _text(limit.epsilon)}


def _text(value: Fraction | None) -> str | None:
    return None if value is None else str(value)
