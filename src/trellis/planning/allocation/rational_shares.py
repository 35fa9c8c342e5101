"""From the floats of a solver to fractions that sum to exactly one."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from fractions import Fraction
from math import ceil, floor
from typing import TypeVar

DENOMINATOR = 10_000

_ASKED_FOR = 1e-6
"""A solver leaves less than this part to what is not asked for."""

Key = TypeVar("Key", bound=Hashable)


def rational_shares(
    weights: Mapping[Key, float], required: Collection[Key] = ()
) -> dict[Key, Fraction]:
    """Nearest shares in ten-thousandths that sum to one; what rounds to nothing is left out.

    A key in `required` keeps at least one ten-thousandth. Largest remainders are rounded up.
    """
    total = sum(weights.values())
    parts = {key: DENOMINATOR * weight / total for key, weight in weights.items()}
    whole = {key: max(floor(part), int(key in required)) for key, part in parts.items()}
    by_remainder = sorted(parts, key=lambda key: parts[key] - whole[key], reverse=True)
    missing = DENOMINATOR - sum(whole.values())
    for key in by_remainder[: max(missing, 0)]:
        whole[key] += 1
    if missing < 0:  # the required ones were rounded up from nothing
        whole[max(whole, key=lambda key: whole[key])] += missing
    return {key: Fraction(n, DENOMINATOR) for key, n in whole.items() if n}


def shares_rounded_up(
    weights: Mapping[Key, float], required: Collection[Key] = ()
) -> dict[Key, Fraction]:
    """Shares in ten-thousandths that sum to one, all rounded up at the expense of the largest.

    That costs the largest little. To round a small one down would cost its part of the whole.
    """
    total, largest = sum(weights.values()), max(weights, key=lambda key: weights[key])
    raised = {
        key: ceil(DENOMINATOR * weight / total)
        for key, weight in weights.items()
        if key != largest and (weight > _ASKED_FOR * total or key in required)
    }
    rest = DENOMINATOR - sum(raised.values())
    return rational_shares({**raised, largest: max(rest, 1)}, required)
