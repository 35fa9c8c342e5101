"""All attacks, by name."""

from __future__ import annotations

from redteam.attack import Attack
from redteam.attacks import (
    forgeries,
    hostile,
    kills,
    ledgers,
    noise,
    price,
    sensitivity,
    statement,
)

ATTACKS: dict[str, Attack] = {
    module.ATTACK.name: module.ATTACK
    for module in (sensitivity, price, statement, ledgers, noise, forgeries, hostile, kills)
}
