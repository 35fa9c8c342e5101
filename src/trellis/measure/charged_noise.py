"""The only way to draw noise for a release: for the plan that a claim of the ledger paid for."""

from __future__ import annotations

from collections import Counter
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from trellis.errors import LedgerError, PrivacyError
from trellis.model.plans.plan import Plan
from trellis.model.plans.query import PlannedQuery
from trellis.privacy.bits import OsRandom, RandomBits
from trellis.privacy.ledger import Claim

Ints = NDArray[np.int64]


class ChargedNoise:
    """Noise of a plan's queries, which the ledger was charged for.

    A claim of another plan is refused. So is a query that is not planned, and more numbers than a
    query has: a second draw on the same answers would halve their noise without being paid for.
    The bits are the operating system's; tests pass others. Threads may share an instance.
    """

    def __init__(self, plan: Plan, claim: Claim, bits: RandomBits | None = None) -> None:
        if claim.guarantee != plan.privacy:
            raise LedgerError("The ledger was charged for another plan. Start in a new run folder.")
        self._left = Counter({q.label: plan.n_nodes(q) * plan.width(q.query) for q in plan.queries})
        self._planned = {query.label: query for query in plan.queries}
        self._bits = OsRandom() if bits is None else bits
        self._lock = Lock()

    def added_to(self, query: PlannedQuery, answer: Ints) -> Ints:
        """The answer with noise; an exact query is answered as it is."""
        if query.noise is None and self._planned.get(query.label) == query:
            return answer
        return answer + self.sample(query, answer.size).reshape(answer.shape)

    def sample(self, query: PlannedQuery, size: int) -> Ints:
        """Noise for `size` numbers of a planned query."""
        if query.noise is None or self._planned.get(query.label) != query:
            raise PrivacyError(f"No noise was charged for the query {query.label!r}.")
        with self._lock:
            left = self._left[query.label]
            allowed = 0 <= size <= left
            self._left[query.label] = left - size if allowed else 0
        if not allowed:  # and after such a fault there is no more
            raise PrivacyError(
                f"All noise that was charged for the query {query.label!r} has been drawn."
            )
        return query.noise.sample(size, self._bits)
