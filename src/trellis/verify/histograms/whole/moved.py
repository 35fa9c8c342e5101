"""How far units may have moved after rounding: to mend bounds, and to keep edit rules."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trellis.verify.histograms.whole.best_fit import Family, Fit

MOST_MENDED = 2.0
"""Units that a count is moved at most to mend bounds.

A child that holds a unit too many has one more cell that was rounded up than it should, and each of
these gives one; so counts hardly ever move by two.
"""
PLENTY = 4
"""Times as many counts that could spare a unit as children that may need one."""

EditRule = tuple[np.ndarray, np.ndarray]
"""The cells on both sides of `a requires b`."""


def mended(family: Family, fit: Fit) -> float:
    """By how much mending of bounds may have moved a count: as rounding may have broken them."""
    bounds = family.bounds
    answers = bounds.of(fit.counts)
    cells = bounds.of((~family.blocked).astype(np.float64))
    broken = np.maximum(bounds.least - (answers - cells), answers + cells - bounds.most)
    return min(MOST_MENDED, float(np.maximum(broken, 0.0).sum()))


@dataclass(frozen=True, slots=True)
class Moved:
    """What edit rules may have moved, where `rules` mark cells of the family.

    A child that may have broken a rule gets one unit of what it requires from a sibling, for one of
    another cell or for nothing, or gives all that requires it to siblings if that moves less. The
    more counts can spare a unit, the fewer does each give. Where they are scarce, or where bounds
    or empty cells may keep a child from getting one, all that such children hold may have moved.
    """

    family: Family
    rules: list[EditRule]

    def explains(self, fit: Fit, counts: np.ndarray, reach: float) -> bool | None:
        """Whether counts beyond the reach of rounding are; None if it cannot be told."""
        beyond, moved, is_open = _beyond(self.family, fit, counts), 0.0, False
        for given, needed in self.rules:
            if not given.any():
                continue
            # Rounding made all of them 0: they were below 1, within reach.
            far = np.linalg.norm(np.maximum(fit.counts[:, needed] - 1, 0.0), axis=1)
            suspects = far <= reach
            if not suspects.any():
                continue
            share = self._share(fit, given, needed, suspects, reach)
            if share is None:
                is_open = True
                share = float(suspects.sum() + fit.counts[suspects].sum())
            emptied = suspects & ~counts[:, given].any(axis=1)
            left = fit.counts[emptied][:, given].sum(axis=1)
            moved += share + float(left[left > 1].sum())
            beyond[np.ix_(emptied, given)] = 0.0
        if np.linalg.norm(np.maximum(beyond - moved, 0.0)) > reach:
            return False
        return None if is_open else True

    def _share(
        self, fit: Fit, given: np.ndarray, needed: np.ndarray, suspects: np.ndarray, reach: float
    ) -> float | None:
        """Units that one count gives at most; None if they are scarce, or may not get there."""
        probable = suspects & (fit.counts[:, given] > 1e-6).any(axis=1)
        number = int(probable.sum())
        if not number:
            return 1.0
        spare = int((fit.counts[:, needed] >= 2 + reach).sum())
        able = (~self.family.blocked[probable][:, needed]).any(axis=1)
        if spare < number or not able.all() or not self.family.bounds.are_totals():
            return None
        return max(1.0, PLENTY * number / spare)


def is_rounded(family: Family, fit: Fit, counts: np.ndarray, reach: float) -> bool:
    """Whether rounding and mending explain what counts differ from the fit by."""
    return bool(np.linalg.norm(_beyond(family, fit, counts)) <= reach)


def _beyond(family: Family, fit: Fit, counts: np.ndarray) -> np.ndarray:
    return np.maximum(np.abs(counts - fit.counts) - 1 - mended(family, fit), 0.0)
