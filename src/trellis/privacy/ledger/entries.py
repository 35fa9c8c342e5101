"""One charge, as it stands in the ledger."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from trellis.privacy.changes import PARTITION, Table
from trellis.privacy.guarantee import Charge, Guarantee
from trellis.privacy.ledger.account import Cost
from trellis.privacy.mechanisms import mechanism
from trellis.privacy.neighbours import Neighbours
from trellis.privacy.protection import Protection
from trellis.privacy.tables import read_table, written


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """That a release is withdrawn, since when and why. What it cost stays spent."""

    made: str
    reason: str | None
    superseded_by: str | None


@dataclass(frozen=True, slots=True)
class Entry:
    """One charge as it stands in the ledger."""

    run_id: str
    dataset: str
    release: str
    edition: int
    guarantee: Guarantee
    made: str
    token: str | None
    digest: str | None
    caps: bool = False
    withdrawal: Withdrawal | None = None

    @property
    def is_settled(self) -> bool:
        return self.digest is not None

    @property
    def cost(self) -> Cost:
        return Cost(self.release, self.guarantee, self.caps, self.run_id)


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to draw the noise of one charge, once. Only the ledger makes these."""

    run_id: str
    token: str
    guarantee: Guarantee


def guarantee_to_json(guarantee: Guarantee) -> str:
    protection = guarantee.protection
    return json.dumps(
        {
            "unit": protection.unit,
            "neighbours": protection.neighbours,
            "max_contribution": protection.max_contribution,
            "within": protection.within,
            **({"required": protection.required} if protection.required else {}),
            "charges": [
                [c.label, c.mechanism.name, str(c.mechanism.parameter), *_table_to_json(c.table)]
                for c in guarantee.charges
            ],
            **({"paths": guarantee.paths} if guarantee.paths else {}),
        }
    )


def guarantee_from_json(text: str) -> Guarantee:
    fields = json.loads(text)
    charges = tuple(
        Charge(label, mechanism(law, parameter), _table_from_json(table))
        for label, law, parameter, *table in fields.pop("charges")
    )
    paths = tuple(tuple(path) for path in fields.pop("paths", ()))
    neighbours = Neighbours(fields.pop("neighbours"))
    required = tuple(fields.pop("required", ()))
    protection = Protection(neighbours=neighbours, required=required, **fields)
    return Guarantee(protection, charges, paths)


def _table_to_json(table: Table) -> list[Any]:
    """Nothing for a partition, so that ledgers of counts alone look as they always did."""
    form = written(table)
    return [] if table == PARTITION else [form.name, form.bound]


def _table_from_json(fields: list[Any]) -> Table:
    return read_table(*fields) if fields else PARTITION
