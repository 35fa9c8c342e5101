"""What tables of group sizes cost: changes, guarantees, the ledger, and the noise for a budget."""

from __future__ import annotations

from fractions import Fraction

import pytest

from trellis.errors import PrivacyError
from trellis.planning.budget import noise_for_shares
from trellis.privacy.accounting import Accountant, Tier
from trellis.privacy.budget import Budget
from trellis.privacy.changes import PARTITION
from trellis.privacy.group_size_changes import SizeQuery, SizeTable, worst_change, worst_vectors
from trellis.privacy.guarantee import Charge, Guarantee
from trellis.privacy.ledger import Account, Cost, Ledger, Terms
from trellis.privacy.ledger.entries import guarantee_from_json, guarantee_to_json
from trellis.privacy.ledger.units import Tie, UnitBound
from trellis.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace
from trellis.privacy.neighbours import Neighbours
from trellis.privacy.protection import Protection

HISTOGRAM, CUMULATIVE = SizeTable(SizeQuery.HISTOGRAM), SizeTable(SizeQuery.CUMULATIVE)
REPLACE, ADD_REMOVE = Neighbours.REPLACE, Neighbours.ADD_REMOVE


def guarantee(table, noise, neighbours=REPLACE, m=1, levels=2) -> Guarantee:
    charges = tuple(Charge(f"level {i}", noise, table) for i in range(levels))
    return Guarantee(Protection("person", neighbours, m), charges)


# -- changes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("query", SizeQuery)
@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize("m", [1, 2, 5])
@pytest.mark.parametrize("z", [1, 2, 7])
def test_changes_have_the_norms_that_brute_force_confirms(query, neighbours, m, z):
    change, norms = SizeTable(query, z).change(neighbours, m), worst_change(query, neighbours, m, z)
    assert (change.l1, change.l2_squared) == (norms.l1, norms.l2_squared)


@pytest.mark.parametrize("query", SizeQuery)
@pytest.mark.parametrize("neighbours", Neighbours)
def test_the_change_of_one_record_is_the_longest_of_the_worst_vectors(query, neighbours):
    change = SizeTable(query).change(neighbours, 1)
    moves = sorted(distance for distance, cells in change.moves for _ in range(cells))
    longest = max(worst_vectors(query, neighbours), key=lambda v: sum(x * x for x in v))
    assert moves == sorted(map(abs, longest))


def test_bad_bounds_are_refused():
    with pytest.raises(PrivacyError, match="at least 1"):
        SizeTable(SizeQuery.HISTOGRAM, 0)
    with pytest.raises(PrivacyError, match="at least 1"):
        HISTOGRAM.change(REPLACE, 0)


# -- guarantees -----------------------------------------------------------------------------------


def test_replacing_in_the_histogram_costs_six_and_not_four():
    noise = DiscreteGaussian(3)
    assert guarantee(HISTOGRAM, noise, levels=1).rho == 1
    assert guarantee(HISTOGRAM, noise, ADD_REMOVE, levels=1).rho == Fraction(1, 3)
    assert guarantee(CUMULATIVE, noise, levels=1).rho == Fraction(1, 3)
    assert guarantee(HISTOGRAM, DiscreteLaplace(4), levels=1).pure_epsilon == 1


def test_cumulative_counts_of_single_members_cost_what_a_table_of_counts_does():
    for noise in (DiscreteGaussian(9), DiscreteLaplace(3)):
        sizes, counts = guarantee(CUMULATIVE, noise, m=3), guarantee(PARTITION, noise, m=3)
        assert sizes.accountant.epsilon(1e-6) == counts.accountant.epsilon(1e-6)
        accountant = Accountant(REPLACE, 3).add(noise, count=2)
        assert sizes.accountant.epsilon(1e-6) == accountant.epsilon(1e-6)


def test_the_histogram_is_accounted_by_its_change_vector():
    noise = DiscreteGaussian(50)
    exact = guarantee(HISTOGRAM, noise).accountant
    assert exact.tier is Tier.LATTICE
    ((coordinates),) = exact.cases
    assert sorted((c.shift, c.count) for c in coordinates.parts) == [(1, 4), (2, 2)]
    # More than four moves of one, less than six.
    four = Accountant(ADD_REMOVE).add(noise, count=8).delta(1.0)
    six = Accountant(ADD_REMOVE).add(noise, count=12).delta(1.0)
    assert four < exact.delta(1.0)
    assert exact.delta(1.0) == pytest.approx(six, rel=0.05)


def test_laplace_noise_needs_a_certificate_that_two_moves_of_one_are_no_worse():
    certified = guarantee(HISTOGRAM, DiscreteLaplace(8)).accountant
    split = Accountant(ADD_REMOVE).add(DiscreteLaplace(8), count=8)
    assert certified.certified
    for epsilon in (0.1, 0.3, 0.6, 0.9):
        assert certified.delta(epsilon) >= split.delta(epsilon)


UNCERTAIN = [
    (HISTOGRAM, REPLACE, 2),
    (SizeTable(SizeQuery.CUMULATIVE, 2), REPLACE, 2),
    (SizeTable(SizeQuery.CUMULATIVE, 2), ADD_REMOVE, 2),
]


@pytest.mark.parametrize(("table", "neighbours", "m"), UNCERTAIN)
def test_where_the_worst_change_is_not_certain_the_norms_decide_and_it_is_said(
    table, neighbours, m
):
    curve = guarantee(table, DiscreteGaussian(400), neighbours, m).accountant
    assert not curve.certified
    assert curve.tier is Tier.ZCDP
    assert curve.notes
    assert curve.epsilon(1e-6) <= curve.epsilon_zcdp(1e-6)
    pure = guarantee(table, DiscreteLaplace(50), neighbours, m)
    assert pure.epsilon(1e-12) <= float(pure.pure_epsilon) * (1 + 1e-12)


# -- ledger ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("table", [PARTITION, HISTOGRAM, SizeTable(SizeQuery.CUMULATIVE, 5)])
def test_the_ledger_remembers_what_a_charge_was_for(table):
    given = guarantee(table, DiscreteGaussian("7/3"), m=2)
    assert guarantee_from_json(guarantee_to_json(given)) == given


def test_charges_for_added_records_count_for_replaced_ones_with_their_own_vector():
    added = guarantee(HISTOGRAM, DiscreteGaussian(3), ADD_REMOVE)
    assert added.rho == Fraction(2, 3)
    assert added.under(REPLACE).rho == 2  # six to two, not four to two


def test_counts_and_sizes_add_up_in_one_ledger(tmp_path):
    ledger, terms = Ledger(tmp_path / "ledger.sqlite"), Terms(limit=Budget(rho=Fraction(2)))
    sizes = guarantee(HISTOGRAM, DiscreteGaussian(6))
    counts = guarantee(PARTITION, DiscreteGaussian(2))
    assert (sizes.rho, counts.rho) == (1, 1)
    for run, each in (("a", sizes), ("b", counts)):
        ledger.charge("homes", run, run, each, terms, "fingerprint")
    assert [entry.guarantee for entry in ledger.entries("homes")] == [sizes, counts]
    total = ledger.account("homes").total("person")
    assert total.rho == 2
    assert total.epsilon("1e-6") > max(sizes.epsilon(1e-6), counts.epsilon(1e-6))


def test_a_larger_unit_moves_the_histogram_as_many_times_further():
    person = guarantee(HISTOGRAM, DiscreteGaussian(6), ADD_REMOVE)
    three = UnitBound("family", "person", Tie.MADE_OF, 3)
    family = Account((Cost("sizes", person),), (three,)).total("family")
    assert family.rho == 9 * person.rho


# -- noise ----------------------------------------------------------------------------------------

SHARES = {"state": Fraction(1, 3), "town": Fraction(2, 3)}


@pytest.mark.parametrize("table", [HISTOGRAM, CUMULATIVE, SizeTable(SizeQuery.CUMULATIVE, 4)])
@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize("m", [1, 2])
@pytest.mark.parametrize(
    "budget",
    [
        Budget(rho=Fraction(1, 3)),
        Budget(epsilon=Fraction(1, 2)),
        Budget(epsilon=Fraction(1), delta=Fraction(1, 10**8)),
    ],
    ids=Budget.in_words,
)
def test_the_noise_costs_what_the_budget_allows(table, neighbours, m, budget):
    protection = Protection("person", neighbours, m)
    noise = noise_for_shares(budget, SHARES, protection, table)
    cost = Guarantee(protection, tuple(Charge(n, law, table) for n, law in noise.items()))
    if budget.delta is not None:
        assert cost.accountant.delta(budget.epsilon) <= budget.delta
        less = {name: DiscreteGaussian(law.sigma_squared * Fraction(99, 100))
                for name, law in noise.items()}  # fmt: skip
        cheaper = Guarantee(protection, tuple(Charge(n, law, table) for n, law in less.items()))
        assert cheaper.accountant.delta(budget.epsilon) > budget.delta
    elif budget.rho is not None:
        assert cost.rho == budget.rho
    else:
        assert cost.pure_epsilon == budget.epsilon
