r"""A second, slow and obvious calculator of delta at epsilon, for small plans.

Let l(x) be the log of the ratio of the probabilities of x without and with the change. Over all
numbers that are measured, losses add up and probabilities multiply, so that

    delta(epsilon) = sum over all outcomes x of P(x) max(0, 1 - exp(epsilon - l(x))).

Losses are multiples of one fraction: an array with one entry for each multiple holds the
probability of each total loss, and every number that moves shifts and adds it. Far tails, of
probability below 1e-17, are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement
from math import ceil, exp, gcd, lcm, sqrt
from typing import Any

import numpy as np

from trellis.verify.files.run_files import RunFiles
from trellis.verify.plan.price import accountant, moves

MOST_LOSSES, MOST_WORK = 1 << 16, 1 << 27
"""Different losses in all, and additions; with more, there is no second opinion."""

MOST_MOVED, MOST_REACH = 200, 1000
"""Numbers that a change moves, and how far they and their noise may reach."""

_TAIL = 9
"""Standard deviations of Gaussian noise that are looked at; 40 scales of Laplace noise."""


MOST_CASES = 3
"""Pairs of paths that a record can move between."""

CLOSE = 1e-3
"""A stated epsilon less than this part smaller would already break its delta."""


def second_opinion(run: RunFiles) -> Iterator[str]:
    """A second, slow calculator finds the same epsilons, where the plan is small enough for it."""
    noisy = [q for q in run.plan["queries"] if q["noise"] is not None]
    paths = run.paths(noisy)
    if not accountant(run.plan, paths).certified:
        run.notes.append("epsilon is a safe bound here, and was computed in one way only")
        return
    found = [losses(case) for case in _cases(run, paths)] if len(paths) <= MOST_CASES else [None]
    if any(case is None for case in found):
        run.notes.append("epsilon was computed in one way only: the plan is too large for another")
        return
    for name, epsilon in run.privacy["epsilon_at_delta"].items():
        deltas = [max(delta(case, e) for case in found if case) for e in
                  (epsilon, epsilon * (1 - CLOSE))]  # fmt: skip
        stated = float(name)
        if deltas[0] > stated * (1 + 1e-6) or (epsilon and deltas[1] < stated * (1 - 1e-6)):
            yield f"another calculator finds another epsilon at delta {name}"


def _cases(run: RunFiles, paths: list[list[dict[str, Any]]]) -> list[list[Moved]]:
    """What a change moves; where paths differ, a replaced record leaves one and joins another."""
    if len(paths) == 1:
        return [[m for q in paths[0] for m in _moved(q, moves(run.plan, q))]]
    distance = run.plan["protection"]["max_contribution"]
    ends = [[m for q in path for m in _moved(q, {distance: 1})] for path in paths]
    if run.plan["protection"]["neighbours"] == "add_remove":
        return ends
    return [one + other for one, other in combinations_with_replacement(ends, 2)]


def _moved(query: dict[str, Any], how: dict[int, int]) -> list[Moved]:
    law, parameter = query["noise"]["law"], Fraction(query["noise"]["parameter"])
    return [Moved(law, parameter, d) for d, cells in how.items() for _ in range(min(cells, 1000))]


@dataclass(frozen=True, slots=True)
class Moved:
    """A number with noise that the change moves by `distance`."""

    law: str
    parameter: Fraction
    distance: int

    def outcomes(self) -> Iterator[tuple[float, Fraction]]:
        """Weights, not yet scaled to one, and losses, in the order of the outcomes."""
        reach = _reach(self.law, self.parameter) + self.distance
        for x in range(-reach, reach + 1):
            if self.law == "discrete_laplace":
                away, loss = abs(x), Fraction(abs(x - self.distance) - abs(x)) / self.parameter
                yield exp(-away / float(self.parameter)), loss
            else:
                loss = Fraction((x - self.distance) ** 2 - x**2) / (2 * self.parameter)
                yield exp(-(x**2) / (2 * float(self.parameter))), loss


def losses(moved: list[Moved]) -> tuple[np.ndarray, np.ndarray] | None:
    """All total losses with their probabilities; None if there are too many for this calculator."""
    too_far = any(m.distance > MOST_REACH or _reach(m.law, m.parameter) > MOST_REACH for m in moved)
    if len(moved) > MOST_MOVED or too_far:
        return None
    parts = [list(m.outcomes()) for m in moved]
    if (step := _step([loss for part in parts for _, loss in part])) is None:
        return None
    places = [np.array([int(loss / step) for _, loss in part]) for part in parts]
    length = 1 + sum(int(place.max() - place.min()) for place in places)
    if length > MOST_LOSSES or length * sum(map(len, places)) > MOST_WORK:
        return None
    found, first, used = np.ones(1), 0, 1
    for part, place in zip(parts, places, strict=True):
        weights = np.array([weight for weight, _ in part])
        wider = np.zeros(used + int(place.max() - place.min()))
        shares = (weights / weights.sum()).tolist()
        for share, shift in zip(shares, (place - place.min()).tolist(), strict=True):
            wider[shift : shift + used] += share * found
        found, first, used = wider, first + int(place.min()), wider.size
    return (first + np.arange(used)) * float(step), found


def delta(found: tuple[np.ndarray, np.ndarray], epsilon: float) -> float:
    loss, probability = found
    above = loss > epsilon
    return float((probability[above] * -np.expm1(epsilon - loss[above])).sum())


def _reach(law: str, parameter: Fraction) -> int:
    return ceil(40 * parameter) if law == "discrete_laplace" else ceil(_TAIL * sqrt(parameter))


def _step(values: list[Fraction]) -> Fraction | None:
    """The largest fraction that all are multiples of; None if it is too small for this."""
    bottom = lcm(*(value.denominator for value in set(values)))
    if bottom > 1 << 40:
        return None
    return Fraction(gcd(*(int(value * bottom) for value in values)) or 1, bottom)
