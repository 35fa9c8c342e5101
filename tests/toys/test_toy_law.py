"""A law of noise that the package does not have.

Accountants price two laws and refuse others, on purpose: no law is added without a proof of its
price. What can be added by name alone is a law whose price is known because it is a known law with
more on top: `Dithered` is a discrete Gaussian plus a fair coin of its own.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pytest

from seeded_bits import SeededBits
from trellis.errors import PrivacyError, RunFolderError
from trellis.measure.charged_noise import ChargedNoise
from trellis.model.plans.agreement import agreed_cost
from trellis.privacy import mechanisms
from trellis.privacy.accounting.accountant import Accountant
from trellis.privacy.ledger import Claim, Ledger, Terms
from trellis.privacy.mechanisms import DiscreteGaussian
from trellis.storage.plans import plan_from_json, plan_to_json, read_plan
from worlds import plan_for


@dataclass(frozen=True, slots=True, init=False)
class Dithered(DiscreteGaussian):
    """What is added to a private answer without looking at it costs nothing more."""

    name: ClassVar[str] = "dithered"

    @property
    def variance(self) -> float:
        return DiscreteGaussian.variance.fget(self) + 1

    def sample(self, n, bits=None):
        coins = np.where(bits.words(n) >> np.uint64(63), 1, -1)
        return DiscreteGaussian.sample(self, n, bits) + coins


@pytest.fixture
def added(monkeypatch):
    monkeypatch.setitem(mechanisms._BY_NAME, Dithered.name, Dithered)


def dithered_plan():
    plan = plan_for()
    noisy = [
        q if q.noise is None else replace(q, noise=Dithered(q.noise.sigma_squared))
        for q in plan.queries
    ]
    return replace(plan, queries=tuple(noisy))


@pytest.mark.usefixtures("added")
def test_it_is_planned_charged_and_drawn(tmp_path):
    plan = dithered_plan()
    cost = agreed_cost(plan)
    assert cost.rho == 1
    assert plan_from_json(plan_to_json(plan)) == plan
    ledger = Ledger(tmp_path / "ledger.sqlite")
    ledger.charge("tiny", "run", "tiny", cost, Terms(), "print", "records")
    claim = ledger.claim("run")
    assert claim.guarantee == cost
    query = plan.queries[-1]
    noise = ChargedNoise(plan, claim, SeededBits(1)).sample(query, plan.n_nodes(query))
    assert noise.size == plan.n_nodes(query)


def test_its_variance_is_that_of_its_draws():
    noise = Dithered(9)
    drawn = noise.sample(200_000, SeededBits(3))
    assert drawn.var() == pytest.approx(noise.variance, rel=0.03)  # 10 standard errors


def test_a_plan_with_a_law_that_is_not_known_is_not_read(tmp_path):
    import json

    path = tmp_path / "plan.json"
    path.write_text(json.dumps(plan_to_json(dithered_plan())))
    with pytest.raises(RunFolderError, match="no complete plan"):
        read_plan(path)


@dataclass(frozen=True)
class Uniform:
    """Noise without any guarantee."""

    name: ClassVar[str] = "uniform"
    parameter: Fraction = Fraction(3)
    variance: float = 1.0

    def rho(self, l2_squared):
        return Fraction(0)

    def sample(self, n, bits=None):
        return np.zeros(n, np.int64)


def test_a_law_without_a_price_is_refused_whatever_it_says_of_itself():
    with pytest.raises(PrivacyError, match="Use a DiscreteGaussian or a DiscreteLaplace"):
        Accountant("replace").add(Uniform()).epsilon(1e-10)
    plan = plan_for()
    free = tuple(replace(q, noise=Uniform()) if q.noise else q for q in plan.queries)
    with pytest.raises(PrivacyError, match="does not cost what the budget says"):
        agreed_cost(replace(plan, queries=free))


def test_claims_of_the_known_law_do_not_pay_for_another():
    plan = plan_for()
    from trellis.errors import LedgerError

    with pytest.raises(LedgerError, match="another plan"):
        ChargedNoise(dithered_plan(), Claim("run", "token", plan.privacy), SeededBits(1))
