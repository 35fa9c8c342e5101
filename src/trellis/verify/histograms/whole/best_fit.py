"""The best fit of one family under bounds, found by guessing what binds, and then proved.

Minimises, over x >= 0 of children x cells, the sum of 1/2 x' J x - b' x over children, where cells
add up to their parent and answers lie within bounds. If one knows which counts are 0 and which
bounds are reached, the rest are linear equations; their solution tells what to guess next. Where
the guesses go round in circles, steps that always come nearer make a new one. No guess is trusted.
The proof is a bound of what any other such x could gain: with multipliers of sums and bounds,
r = J x - b - multipliers must be at least 0, and 0 where x is not.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

_GUESSES = 40
_STEPS = (150, 1000)
"""Between two rounds of guesses."""
_ROUNDS = 10
"""Of fits with a little more curvature, where J has none in some direction."""
_FLAT = 1e-9
_CURVATURE = 1e-3
_REACHED = 1e-9


def _nothing() -> np.ndarray:
    return np.zeros(0)


@dataclass(frozen=True, slots=True)
class Bounded:
    """Sums over (children, cells) that lie between two numbers: sums x children x cells."""

    sums: np.ndarray
    least: np.ndarray = field(default_factory=_nothing)
    most: np.ndarray = field(default_factory=_nothing)

    @classmethod
    def none(cls, shape: tuple[int, ...]) -> Bounded:
        return cls(np.zeros((0, *shape)))

    def of(self, counts: np.ndarray) -> np.ndarray:
        return np.einsum("rcj,cj->r", self.sums, counts, optimize=True)

    def are_totals(self) -> bool:
        """Whether each is the sum over all cells of a child."""
        return bool((self.sums.all(axis=2).sum(axis=1) == 1).all())

    def joined(self, other: Bounded) -> Bounded:
        return Bounded(
            np.concatenate([self.sums, other.sums]),
            np.concatenate([self.least, other.least]),
            np.concatenate([self.most, other.most]),
        )


@dataclass(frozen=True, slots=True)
class Family:
    """J by child, cells x cells; b by child; the parent's counts, if any; bounds.

    `blocked` are children x cells that must be 0.
    """

    precision: np.ndarray
    linear: np.ndarray
    parent: np.ndarray | None
    bounds: Bounded
    blocked: np.ndarray

    @property
    def scale(self) -> float:
        return float(np.abs(self.precision).max())


@dataclass(frozen=True, slots=True)
class Fit:
    """Children x cells, and by how much the objective may be above the least at most."""

    counts: np.ndarray
    gap: float


@dataclass(frozen=True, slots=True)
class _Guess:
    """Which counts are 0, and which bounds are reached: -1 the least, 1 the most, 0 none."""

    empty: np.ndarray
    reached: np.ndarray

    @property
    def key(self) -> bytes:
        return self.empty.tobytes() + self.reached.tobytes()


@dataclass(frozen=True, slots=True)
class _Solved:
    """Counts, and multipliers of sums and of bounds."""

    x: np.ndarray
    of_cells: np.ndarray
    of_bounds: np.ndarray


def best_fit(family: Family, near: np.ndarray) -> Fit | None:
    """The search begins `near` some counts. None if it fails."""
    scale = family.scale
    if not scale > 0:
        return None
    precision, linear = family.precision / scale, family.linear / scale
    flattest = float(np.linalg.eigvalsh(precision)[:, 0].min())
    more = _CURVATURE if flattest < _FLAT else 0.0
    search = _Search(family, precision + more * np.eye(precision.shape[1]))
    found: _Solved | None = None
    for _ in range(_ROUNDS if more else 1):
        found = search.found(linear if found is None else linear + more * found.x, near)
        if found is None:
            return None
        if np.abs(found.x - near).max() < _REACHED:
            break
        near = found.x
    assert found is not None
    return _proved(family, precision, linear, found, scale)


class _Search:
    """The guesses, for objectives with the same J."""

    def __init__(self, family: Family, precision: np.ndarray) -> None:
        self._family, self._precision = family, precision
        self._has_sums = family.parent is not None

    def found(self, linear: np.ndarray, near: np.ndarray) -> _Solved | None:
        guess = self._first(near)
        steps = None
        for number in (0, *_STEPS):
            if number:
                steps = steps or _Steps(self._family, self._precision, linear, near)
                guess = steps.guess(number)
            if (solved := self._settled(guess, linear)) is not None:
                return solved
        return None

    def _first(self, near: np.ndarray) -> _Guess:
        bounds = self._family.bounds
        answers = bounds.of(near)
        reached = (answers >= bounds.most).astype(int) - (answers <= bounds.least)
        return _Guess((near <= 0) | self._family.blocked, reached)

    def _settled(self, guess: _Guess, linear: np.ndarray) -> _Solved | None:
        """The solution that confirms its own guess."""
        seen: set[bytes] = set()
        for _ in range(_GUESSES):
            if guess.key in seen:
                return None
            seen.add(guess.key)
            solved = self._solve(guess, linear)
            if solved is None:
                return None
            following = self._next(guess, linear, solved)
            if following.key == guess.key:
                return solved
            guess = following
        return None

    def _solve(self, guess: _Guess, linear: np.ndarray) -> _Solved | None:
        family, free = self._family, ~guess.empty
        inverse = self._inverse(free)
        bounds = family.bounds
        active = np.flatnonzero((guess.reached != 0) | (bounds.least == bounds.most))
        right = np.where(guess.reached > 0, bounds.most, bounds.least)[active]
        rows = bounds.sums[active].transpose(1, 2, 0)
        start = _times(inverse, linear)
        spread = inverse @ rows
        system = np.einsum("cjr,cjs->rs", rows, spread, optimize=True)
        short = right - np.einsum("cjr,cj->r", rows, start, optimize=True)
        if self._has_sums:
            assert family.parent is not None
            mixed = spread.sum(axis=0)
            system = np.block([[inverse.sum(axis=0), mixed], [mixed.T, system]])
            short = np.concatenate([family.parent - start.sum(axis=0), short])
        try:
            multipliers = np.linalg.lstsq(system, short, rcond=1e-11)[0]
        except np.linalg.LinAlgError:
            return None
        n_sums = family.linear.shape[1] if self._has_sums else 0
        of_cells, of_active = multipliers[:n_sums], multipliers[n_sums:]
        x = start + spread @ of_active
        if self._has_sums:
            x = x + inverse @ of_cells
        else:
            of_cells = np.zeros(family.linear.shape[1])
        of_bounds = np.zeros(bounds.least.size)
        of_bounds[active] = of_active
        return _Solved(x, of_cells, of_bounds)

    def _inverse(self, free: np.ndarray) -> np.ndarray:
        """Of J where counts are free; 0 elsewhere."""
        both = free[:, :, np.newaxis] & free[:, np.newaxis, :]
        eye = np.eye(free.shape[1])
        return np.where(both, np.linalg.inv(np.where(both, self._precision, eye)), 0.0)

    def _next(self, guess: _Guess, linear: np.ndarray, solved: _Solved) -> _Guess:
        left = _left(self._family, self._precision, linear, solved)
        below = solved.x < -_REACHED
        empty = np.where(guess.empty, left > -_REACHED, below) | self._family.blocked
        bounds = self._family.bounds
        answers = bounds.of(solved.x)
        margin = _REACHED * (1 + np.abs(answers))
        over = (answers > bounds.most + margin).astype(int) - (answers < bounds.least - margin)
        kept = np.where(-guess.reached * solved.of_bounds >= 0, guess.reached, 0)
        return _Guess(empty, np.where(guess.reached != 0, kept, over))


def _times(matrices: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    return np.einsum("cjk,ck->cj", matrices, vectors, optimize=True)


def _left(family: Family, precision: np.ndarray, linear: np.ndarray, solved: _Solved) -> np.ndarray:
    """The gradient less what the multipliers explain."""
    pushed = np.einsum("r,rcj->cj", solved.of_bounds, family.bounds.sums, optimize=True)
    return _times(precision, solved.x) - linear - solved.of_cells - pushed


class _Steps:
    """Alternating directions: fits without signs and bounds, then signs and bounds without fit."""

    def __init__(
        self, family: Family, precision: np.ndarray, linear: np.ndarray, near: np.ndarray
    ) -> None:
        self._family, self._linear = family, linear
        values = np.linalg.eigvalsh(precision)
        self._rho = float(np.sqrt(values.max() * max(values.min(), 1e-6 * values.max())))
        n_cells = linear.shape[1]
        self._inverse = np.linalg.inv(precision + self._rho * np.eye(n_cells))
        bounds = family.bounds
        rows = bounds.sums.transpose(1, 2, 0)
        self._spread = self._inverse @ rows
        system = np.einsum("cjr,cjs->rs", rows, self._spread, optimize=True)
        system = system + np.eye(len(system)) / self._rho
        if family.parent is not None:
            mixed = self._spread.sum(axis=0)
            system = np.block([[self._inverse.sum(axis=0), mixed], [mixed.T, system]])
        self._system = np.linalg.pinv(system, rcond=1e-12)
        self._z, self._u = near.astype(np.float64), np.zeros(linear.shape)
        self._w, self._t = bounds.of(near), np.zeros(bounds.least.size)

    def guess(self, number: int) -> _Guess:
        bounds = self._family.bounds
        for _ in range(number):
            x, answers = self._fitted()
            over = 1.6 * x - 0.6 * self._z + self._u
            self._z = np.where(self._family.blocked, 0.0, np.maximum(over, 0.0))
            self._u = over - self._z
            above = 1.6 * answers - 0.6 * self._w + self._t
            self._w = np.clip(above, bounds.least, bounds.most)
            self._t = above - self._w
        pushed = np.sign(np.where(np.abs(self._t) > _REACHED, self._t, 0.0)).astype(int)
        return _Guess(self._z <= 0, pushed)

    def _fitted(self) -> tuple[np.ndarray, np.ndarray]:
        family, rho = self._family, self._rho
        start = _times(self._inverse, self._linear + rho * (self._z - self._u))
        wanted = self._w - self._t
        short = wanted - family.bounds.of(start)
        if family.parent is not None:
            short = np.concatenate([family.parent - start.sum(axis=0), short])
        multipliers = self._system @ short
        n_sums = 0 if family.parent is None else family.parent.size
        x = start + self._spread @ multipliers[n_sums:]
        if n_sums:
            x = x + self._inverse @ multipliers[:n_sums]
        return x, wanted - multipliers[n_sums:] / rho


def _proved(
    family: Family, precision: np.ndarray, linear: np.ndarray, solved: _Solved, scale: float
) -> Fit | None:
    """What the multipliers prove of a fit; None if it does not keep what it must."""
    x, bounds = np.maximum(solved.x, 0.0), family.bounds
    answers = bounds.of(x)
    most = np.full(x.shape, 2 * x.sum() + 1)
    if family.parent is not None:
        most = np.broadcast_to(family.parent, x.shape)
        if np.abs(x.sum(axis=0) - family.parent).max() > 1e-6 * (1 + family.parent.max()):
            return None
    slack = 1e-6 * (1 + np.abs(answers))
    if ((answers < bounds.least - slack) | (answers > bounds.most + slack)).any():
        return None
    left = _left(family, precision, linear, _Solved(x, solved.of_cells, solved.of_bounds))
    gap = (left * x).sum() + (np.maximum(-left, 0.0) * np.where(family.blocked, 0, most)).sum()
    up, down = solved.of_bounds > 0, solved.of_bounds < 0
    gap += (solved.of_bounds[up] * (answers - bounds.least)[up]).sum()
    gap += (solved.of_bounds[down] * (answers - bounds.most)[down]).sum()
    return Fit(x, scale * max(0.0, float(gap)))
