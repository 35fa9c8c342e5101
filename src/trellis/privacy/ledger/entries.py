"""One charge, as it stands in the ledger."""

from __future__ import annotations

import json
from dataclasses import dataclass

from trellis.privacy.guarantee import Charge, Guarantee
from trellis.privacy.mechanisms import mechanism
from trellis.privacy.neighbours import Neighbours
from trellis.privacy.protection import Protection


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

    @property
    def is_settled(self) -> bool:
        return self.digest is not None


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
            "charges": [
                [c.label, c.mechanism.name, str(c.mechanism.parameter)] for c in guarantee.charges
            ],
        }
    )


def guarantee_from_json(text: str) -> Guarantee:
    fields = json.loads(text)
    charges = tuple(Charge(label, mechanism(*law)) for label, *law in fields.pop("charges"))
    neighbours = Neighbours(fields.pop("neighbours"))
    return Guarantee(Protection(neighbours=neighbours, **fields), charges)
