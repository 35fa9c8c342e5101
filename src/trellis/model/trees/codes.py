"""Codes of areas, and the only ways to sort them.

NumPy's default sort of its variable-width strings ends the process with a segmentation fault on
some orders, such as an ascending run followed by a descending one (NumPy 2.4.6, `np.sort`,
`np.argsort`, and `np.unique`, which sorts). The stable sort does not. So codes are sorted
here alone, which `tests/contracts/test_interleaved_codes.py` watches over.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

CODE = np.dtypes.StringDType()
"""Codes are text in any alphabet; up to 15 bytes are stored without a pointer."""

Codes = NDArray[Any]
"""One `CODE` per node; the type checker does not know NumPy's string type."""


def code_order(codes: Codes) -> NDArray[np.intp]:
    """Positions that put codes in order; equal ones keep theirs."""
    return np.argsort(codes, kind="stable")


def first_repeated(codes: Codes) -> str | None:
    """The first code, in order, that occurs more than once."""
    if np.all(codes[1:] > codes[:-1]) or _are_distinct_numbers(codes):
        return None
    ordered = codes[code_order(codes)]
    repeated = np.flatnonzero(ordered[1:] == ordered[:-1])
    return str(ordered[repeated[0]]) if repeated.size else None


def _are_distinct_numbers(codes: Codes) -> bool:
    """Whether codes are whole numbers, all different: much faster to see than by sorting texts."""
    try:
        numbers = np.sort(codes.astype(np.int64))
    except (ValueError, OverflowError):
        return False
    return bool((numbers[1:] != numbers[:-1]).all())
