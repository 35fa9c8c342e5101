"""Families whose rules need what is scarce, with counts up to the hundreds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from oracles.edit_rules import SlowFamily
from oracles.histogram_family import matrix
from oracles.least_change import least_change
from trellis.estimate import round_family
from trellis.model import Schema
from trellis.model.tables.rules import RuleSides, edit_rule_cells

PAIR = Schema({"kind": ["prison", "dorm"]})
THREE = Schema({"kind": ["home", "prison", "dorm"]})
SIX = Schema({"age": ["minor", "adult"], "home": ["x", "y", "z"]})

SCENES = (
    (PAIR, ("kind = prison requires kind = dorm",)),
    (PAIR, ("kind = prison requires kind = dorm", "kind = dorm requires kind = prison")),
    (THREE, ("kind = prison requires kind = dorm",)),
    (THREE, ("kind = prison requires kind = dorm", "kind = dorm requires kind = home")),
    (SIX, ("age = minor requires age = adult",)),
    (SIX, ("home = y requires home = z",)),
    (SIX, ("age = minor requires age = adult", "home = y requires home = z")),
    (SIX, ("home = y and age = minor requires home = z and age = adult",
           "home = z and age = minor requires home = y and age = adult",
           "home = x and age = minor requires home = y and age = adult")),
)  # fmt: skip


class RuleFamily(NamedTuple):
    schema: Schema
    rules: list[RuleSides]
    parent: NDArray[np.int64]
    x: NDArray[np.float64]
    """Children x cells."""

    @property
    def queries(self) -> list[str]:
        marginals = self.schema.names if len(self.schema.names) > 1 else ()
        return ["total", *marginals, "detailed"]

    def rounded(self, *, keep_rules: bool, **bounds) -> NDArray[np.int64]:
        rules = self.rules if keep_rules else ()
        return round_family(
            self.schema, self.parent, self.x, self.queries, edit_rules=rules, **bounds
        )

    def slow(self, y: NDArray[np.int64], bounded=()) -> SlowFamily:
        """All queries have few cells, so that all weigh the same."""
        names = [*self.queries, *bounded]
        matrices = [matrix(self.schema, name) for name in names]
        return SlowFamily(matrices, [2.0] * len(names), self.rules, lambda y: True, self.x, y)


def random_family(rng: np.random.Generator) -> RuleFamily:
    """A parent that could keep all rules; children are whole counts or real ones."""
    schema, texts = SCENES[rng.integers(len(SCENES))]
    rules = [edit_rule_cells(schema, (), text) for text in texts]
    shape = int(rng.integers(2, 7)), schema.n_cells
    x = rng.gamma(rng.choice([0.3, 1.0]), rng.choice([3, 20, 100]), shape)
    scarce = np.any([needed for _, needed in rules], axis=0)
    x[:, scarce] = rng.poisson(rng.choice([0.15, 0.4, 1.0]), (shape[0], scarce.sum()))
    x = np.floor(x * (rng.random(shape) < rng.choice([1.0, 0.7])))
    for given, needed in rules:
        if x[:, given].any() and not x[:, needed].any():
            x[rng.integers(shape[0]), rng.choice(np.flatnonzero(needed))] += 1
    parent = x.sum(axis=0).astype(np.int64)
    if rng.random() < 0.5:
        x = np.maximum(x + rng.normal(0, rng.choice([0.3, 1, 4]), shape), 0) + 1e-6
        x *= parent / x.sum(axis=0)
    return RuleFamily(schema, rules, parent, x)


def over_the_best(family: RuleFamily) -> float | None:
    """The cost of the repair by that of the best table; None where rounding broke no rule."""
    before = family.rounded(keep_rules=False)
    slow = family.slow(before)
    if not slow.broken(before):
        return None
    after = family.rounded(keep_rules=True)
    assert (after >= 0).all()
    assert (after.sum(axis=0) == family.parent).all()
    fewest, least, _ = least_change(slow, family.parent, after)
    if len(slow.broken(after)) > fewest:
        return np.inf
    return slow.objective(after) / least
