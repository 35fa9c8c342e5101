"""What noise that depends on the path costs: worst pair of paths, ledger, smaller changes."""

from fractions import Fraction as F

import pytest

from kinds.counts import OnSpine
from trellis.errors import PrivacyError
from trellis.model.plans.smaller_changes import smaller_changes
from trellis.planning.budget.noise import noise_for_paths
from trellis.privacy.accounting.profiles import Query, whole_record
from trellis.privacy.accounting.zcdp import zcdp_epsilon
from trellis.privacy.budget import Budget
from trellis.privacy.group_size_changes import SizeQuery, SizeTable
from trellis.privacy.guarantee import Charge, Guarantee
from trellis.privacy.ledger import Account, Cost
from trellis.privacy.ledger.entries import guarantee_from_json, guarantee_to_json
from trellis.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace
from trellis.privacy.neighbours import Neighbours
from trellis.privacy.protection import Protection

REPLACE = Protection("person", Neighbours.REPLACE, 1)
GAUSS = (DiscreteGaussian(2), DiscreteGaussian(4), DiscreteGaussian(F(4, 3)))
TWO_PATHS = Guarantee(
    REPLACE, tuple(Charge(f"c{i}", noise) for i, noise in enumerate(GAUSS)), ((0, 1), (2,))
)


def test_a_record_pays_for_its_path_only():
    assert TWO_PATHS.rho == F(3, 4)  # 1/2 + 1/4 on one path, 3/4 on the other
    everything = Guarantee(REPLACE, TWO_PATHS.charges)
    assert everything.rho == F(3, 2)


def test_the_curve_is_that_of_the_worst_pair():
    profiles = [tuple(Query("l", GAUSS[i]) for i in path) for path in TWO_PATHS.paths]
    worst = whole_record(profiles, Neighbours.REPLACE)
    assert len(worst.cases) == 3  # both pure pairs and the mixed one
    assert TWO_PATHS.epsilon(1e-6) == worst.epsilon(1e-6)
    assert TWO_PATHS.epsilon(1e-6) < Guarantee(REPLACE, TWO_PATHS.charges).epsilon(1e-6)


def test_pure_epsilon_is_the_dearest_path():
    noise = (DiscreteLaplace(2), DiscreteLaplace(4), DiscreteLaplace(1))
    charges = tuple(Charge(f"c{i}", n) for i, n in enumerate(noise))
    assert Guarantee(REPLACE, charges, ((0, 1), (2,))).pure_epsilon == 2
    mixed = Guarantee(REPLACE, (*charges[:2], Charge("g", GAUSS[0])), ((0, 1), (2,)))
    assert mixed.pure_epsilon is None


@pytest.mark.parametrize("paths", [((0, 1),), ((0, 1), (2, 3))])
def test_charges_off_all_paths_are_refused(paths):
    with pytest.raises(PrivacyError, match="Every charge"):
        Guarantee(REPLACE, TWO_PATHS.charges, paths)


def test_paths_are_for_counts_of_records():
    size = Charge("s", GAUSS[0], SizeTable(SizeQuery.HISTOGRAM, 1))
    with pytest.raises(PrivacyError, match="Only counts"):
        Guarantee(REPLACE, (size, Charge("c", GAUSS[1])), ((0,), (1,)))


def test_the_ledger_keeps_paths():
    assert guarantee_from_json(guarantee_to_json(TWO_PATHS)) == TWO_PATHS
    plain = Guarantee(REPLACE, TWO_PATHS.charges)
    assert "paths" not in guarantee_to_json(plain)


def test_releases_together_consider_every_combination_of_paths():
    plain = Guarantee(REPLACE, (Charge("d", DiscreteGaussian(4)),))

    def together(*guarantees):
        return Account(tuple(Cost("r", guarantee) for guarantee in guarantees)).total("person")

    total = together(TWO_PATHS, plain, TWO_PATHS)
    assert total.rho == 2 * TWO_PATHS.rho + plain.rho
    assert len(total.curve.cases) == 5  # of four halves, none to four lie on the first path
    profiles = [
        (Query("l", DiscreteGaussian(4)), *(Query("l", GAUSS[i]) for i in (*one, *other)))
        for one in TWO_PATHS.paths
        for other in TWO_PATHS.paths
    ]
    assert total.epsilon("1e-6") == whole_record(profiles, Neighbours.REPLACE).epsilon(1e-6)
    assert len(together(plain, plain).curve.cases) == 1
    many = [
        Guarantee(REPLACE, tuple(Charge("c", DiscreteGaussian(7 * i + j)) for j in (1, 2)),
                  ((0,), (1,)))
        for i in range(6)
    ]  # fmt: skip
    assert together(*many).curve is None  # 729 combinations: the sum of rho decides
    sums = together(*many)
    assert sums.epsilon("1e-6") == pytest.approx(zcdp_epsilon(sums.rho, 1e-6))


def test_noise_for_paths_keeps_epsilon_and_delta_for_the_worst_pair():
    budget = Budget(epsilon=F(2), delta=F(1, 10**6))
    paths = [(F(1, 4), F(3, 4)), (F(0), F(1))]
    noise = noise_for_paths(budget, paths, REPLACE)
    assert set(noise) == {F(1, 4), F(3, 4), F(1)}
    profiles = [tuple(Query("l", noise[s]) for s in path if s) for path in paths]
    worst = whole_record(profiles, Neighbours.REPLACE)
    assert worst.delta(budget.epsilon) <= budget.delta
    # A thousandth less noise would not keep it.
    less = [
        tuple(Query("l", DiscreteGaussian(noise[s].parameter * F(999, 1000))) for s in path if s)
        for path in paths
    ]
    assert whole_record(less, Neighbours.REPLACE).delta(budget.epsilon) > budget.delta


def test_changes_of_location_cost_the_levels_that_divide_a_published_area():
    plan = OnSpine("regroup", Neighbours.REPLACE, 1, 1, Budget(rho=F(1))).plan()
    curves = {change.change: change for change in smaller_changes(plan)}
    whole = dict(zip(plan.levels, plan.spine.keeps_whole, strict=True))
    assert whole == {"nation": 1, "state": 2, "town": 2, "block": 4}
    town = curves["location only, within one area of level town"]
    state = curves["location only, within one area of level state"]
    # Towns were redrawn, so inside one a move can cross nodes of the level: it costs as inside a
    # state, and less than any change.
    assert town.epsilon(1e-6) == state.epsilon(1e-6) < plan.privacy.epsilon(1e-6)
