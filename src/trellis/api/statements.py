"""The exact guarantee as a user holds it."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from trellis.api.inputs import Number
from trellis.api.pages import list_block
from trellis.api.pictures import Picture
from trellis.api.tables import Table
from trellis.model.plans.plan import Plan as ModelPlan
from trellis.privacy import Accountant
from trellis.privacy.guarantee import GuaranteeCurve
from trellis.workflow.outlook.privacy_statement import PrivacyStatement as StatementOfAnyone


class PrivacyStatement(StatementOfAnyone):
    """Epsilon at some deltas, with whom it protects and what narrows it.

    `tr.account` and the method `account` of plans, runs and releases make one.

    >>> stated = spec.plan().account(delta="1e-10")
    >>> stated.table.columns[:4]
    ['delta', 'epsilon', 'epsilon_lower', 'epsilon_zcdp']
    >>> stated.to_json()["epsilon"] == stated.accountant.epsilon(1e-10)
    True
    >>> stated.sentences[0]
    'rho = 1/2, certified by: lattice'
    """

    __slots__ = ()

    @classmethod
    def at(
        cls,
        stated: ModelPlan | Accountant | GuaranteeCurve,
        delta: Number | Sequence[Number] | None = None,
    ) -> PrivacyStatement:
        """Of a plan or of mechanisms, at one delta, several, or the usual ones."""
        if delta is None or isinstance(delta, Number):
            return cls.of(stated, () if delta is None else (delta,))
        return cls.of(stated, delta)

    @property
    def table(self) -> Table:
        """A row for each delta: an upper and a lower bound of epsilon, and that of zCDP."""
        return Table(pa.Table.from_pylist(self.rows))

    def picture(self) -> Picture:
        """Epsilon at every delta, next to the bound from zCDP."""
        return Picture(self.svg)

    def __repr__(self) -> str:
        of = "mechanisms" if self.plan is None else repr(self.plan.release)
        return f"PrivacyStatement({of}, rho = {self.accountant.rho})"

    def _repr_html_(self) -> str:
        return self.table._repr_html_() + list_block(repr(self), self.sentences)
