"""Charges for several units: converted with declared bounds, never too small, in any order."""

from __future__ import annotations

import itertools
from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trellis.errors import BudgetExceeded, LedgerError
from trellis.privacy.budget import Budget
from trellis.privacy.changes import PARTITION
from trellis.privacy.flow_changes import FlowQuery, FlowTable
from trellis.privacy.group_size_changes import SizeQuery, SizeTable
from trellis.privacy.guarantee import Charge, Guarantee
from trellis.privacy.ledger import Account, Cost, Ledger, Terms
from trellis.privacy.ledger.units import Tie, UnitBound
from trellis.privacy.mechanisms import DiscreteGaussian
from trellis.privacy.neighbours import Neighbours
from trellis.privacy.protection import Protection

REPLACE, ADD_REMOVE = Neighbours.REPLACE, Neighbours.ADD_REMOVE
BOTH = [("household", "person"), ("person", "household")]


def charging(rho, unit, neighbours=ADD_REMOVE, m=1, **protection) -> Guarantee:
    """A guarantee of exactly this rho."""
    protected = Protection(unit, neighbours, m, **protection)
    sigma_squared = Fraction(protected.l2_squared) / (2 * Fraction(rho))
    return Guarantee(protected, (Charge("town: total", DiscreteGaussian(sigma_squared)),))


def rho(value) -> Budget:
    return Budget(rho=Fraction(value))


@pytest.fixture
def ledger(tmp_path) -> Ledger:
    return Ledger(tmp_path / "ledger.sqlite")


def charge(ledger, run, guarantee, **terms) -> None:
    ledger.charge("data", run, run, guarantee, Terms(**terms), "print")


def total_rho(ledger, unit) -> Fraction:
    return ledger.account("data").total(unit).rho


# -- the findings: what was accepted, and cost more than was said ----------------------------------


@pytest.mark.parametrize("order", BOTH, ids=str)
@pytest.mark.parametrize(
    ("limit", "persons", "household", "person", "cost"),
    [(5, 3, 4, 1, 13), (1, 6, "9/10", "1/10", "9/2")],
    ids=["limit 5", "limit 1"],
)
def test_the_order_of_two_releases_decides_nothing(
    ledger, order, limit, persons, household, person, cost
):
    releases = {
        "household": (
            charging(household, "household", m=persons),
            {"unit_bounds": {"person": persons}},
        ),
        "person": (charging(person, "person"), {"unit_bounds": {"household": 1}}),
    }
    first, second = order
    guarantee, bounds = releases[first]
    charge(ledger, first, guarantee, limit=rho(limit), **bounds)
    guarantee, bounds = releases[second]
    with pytest.raises(BudgetExceeded, match=f"of its limit {limit} left"):
        charge(ledger, second, guarantee, limit=rho(limit), **bounds)
    assert [entry.release for entry in ledger.entries("data")] == [first]
    ledger.set_limit("data", "household", rho(cost), below_spent=True)
    ledger.set_limit("data", "person", rho(9), below_spent=True)
    charge(ledger, second, guarantee, **bounds)
    assert total_rho(ledger, "household") == Fraction(cost)
    assert total_rho(ledger, "person") == Fraction(person) + 2 * Fraction(household)


def test_a_limit_stated_by_each_release_is_for_its_own_unit(ledger):
    charge(ledger, "a", charging(4, "household", m=3), limit=rho(5), unit_bounds={"person": 3})
    with pytest.raises(BudgetExceeded, match=r"costs rho = 1, .* has only 0 .* for a person"):
        charge(ledger, "b", charging(1, "person"), limit=rho(5), part_of={"household": 1})
    with pytest.raises(BudgetExceeded, match=r"costs rho = 9, .* has only 1 .* for a household"):
        charge(ledger, "b", charging(1, "person"), limit=rho(9), part_of={"household": 1})
    assert ledger.account("data").limits == {"household": rho(5)}


def test_two_releases_one_per_unit_are_both_in_the_sum_or_named(ledger):
    charge(ledger, "homes", charging(1, "household"), unit_bounds={"person": 2})
    charge(ledger, "people", charging(1, "person"))
    account = ledger.account("data")
    assert account.total("household").rho == 1 + 4
    assert not account.total("household").left_out
    person = account.total("person")
    assert person.rho == 1
    assert [cost.release for cost in person.left_out] == ["homes"]


# -- which change vector ---------------------------------------------------------------------------


def account(*costs: Guarantee, bounds=()) -> Account:
    named = tuple(Cost(f"release {i}", cost) for i, cost in enumerate(costs))
    return Account(named, tuple(UnitBound(*bound) for bound in bounds))


MADE = ("household", "person", Tie.MADE_OF, 4)
PART = ("person", "household", Tie.PART_OF, 1)


@pytest.mark.parametrize(("charged", "unit", "bounds", "relation", "times"), [
    # A household of four: four records come or go, or four go and four come.
    (charging(1, "person"), "household", [MADE], ADD_REMOVE, 16),
    (charging(1, "person", REPLACE), "household", [MADE], REPLACE, 16),
    # A person changes what its household is; one who moves, what two households are.
    (charging(1, "household"), "person", [PART], ADD_REMOVE, 2),
    (charging(1, "household", m=3), "person", [PART], ADD_REMOVE, 2),
    (charging(1, "household", REPLACE), "person", [PART], REPLACE, 4),
    (charging(1, "household"), "person", [(*PART[:3], 2)], ADD_REMOVE, 8),
    # One of one may be meant either way.
    (charging(1, "household"), "person", [("person", "household", Tie.MADE_OF, 1)], ADD_REMOVE, 2),
    # Persons who are in two households do not go with one of them.
    (charging(1, "person"), "household", [MADE, (*PART[:3], 2)], ADD_REMOVE, 32),
])  # fmt: skip
def test_prices_for_another_unit(charged, unit, bounds, relation, times):
    total = account(charged, bounds=bounds).total(unit)
    assert (total.neighbours, total.rho) == (relation, times)


def test_a_person_who_is_replaced_beside_charges_for_added_ones():
    """Both households of a move change: two records leave two cells and enter two others."""
    total = account(charging(1, "household"), charging(1, "person", REPLACE), bounds=[PART]).total(
        "person"
    )
    assert (total.neighbours, total.rho) == (REPLACE, 8 + 1)


def test_the_largest_bound_counts_and_is_stored(ledger):
    charge(ledger, "a", charging(1, "person"))
    charge(ledger, "b", charging(1, "household"), unit_bounds={"person": 3})
    charge(ledger, "c", charging(1, "household"), unit_bounds={"person": 2})
    assert total_rho(ledger, "household") == 9 + 1 + 1
    ledger.declare("data", UnitBound("household", "person", Tie.MADE_OF, 5))
    ledger.declare("data", UnitBound("household", "person", Tie.MADE_OF, 4))
    assert total_rho(ledger, "household") == 25 + 1 + 1


def test_what_no_unit_can_count_is_refused(ledger):
    charge(ledger, "a", charging(1, "person"))
    with pytest.raises(LedgerError, match=r"unit 'person', which cannot be counted for 'household"):
        charge(ledger, "b", charging(1, "household"))
    charge(ledger, "b", charging(1, "household"), part_of={"person": 1})
    with pytest.raises(LedgerError, match="cannot be counted for 'firm'"):
        charge(ledger, "c", charging(1, "firm"), unit_bounds={"person": 9})
    charge(ledger, "c", charging(1, "firm"), unit_bounds={"person": 9, "household": 9})


def test_a_limit_that_cannot_count_a_release_refuses_it(ledger):
    charge(ledger, "a", charging(1, "household"), limit=rho(100))
    with pytest.raises(LedgerError, match=r"'person', which cannot be counted for 'household'"):
        charge(ledger, "b", charging("1/1000", "person"), part_of={"household": 1})
    with pytest.raises(LedgerError, match=r"'household', which cannot be counted for 'person'"):
        ledger.set_limit("data", "person", rho(3))
    ledger.declare("data", UnitBound("household", "person", Tie.MADE_OF, 2))
    charge(ledger, "b", charging("1/1000", "person"), part_of={"household": 1})


@pytest.mark.parametrize("relation", Neighbours)
def test_restrictions_of_a_sum_are_those_of_all_its_charges(relation):
    two = account(
        charging(1, "person", REPLACE, within="region", required=("bounds of the shelters",)),
        charging(1, "person", REPLACE, within="town"),
        charging(1, "household", relation),
        bounds=[PART],
    ).total("person")
    assert two.within == ("region", "town")
    said = " ".join(two.restrictions)
    assert "'region'" in said
    assert "'town'" in said
    assert "bounds of the shelters" in said
    # Exact numbers of households are not kept by a person who dissolves one.
    assert ("number of records are not covered" in said) is (relation is REPLACE)


# -- the largest contribution that anybody declared ------------------------------------------------


def test_every_charge_is_priced_for_the_most_records_declared(ledger):
    """Found with m = 1, 3, 1, 3 in turn: the charges for one record count nine-fold."""
    for i, m in enumerate((1, 3, 1, 3)):
        charge(ledger, f"run {i}", charging("1/100", "person", m=m))
    assert total_rho(ledger, "person") == Fraction(9 + 1 + 9 + 1, 100)


def test_a_larger_contribution_counts_against_the_limit_for_what_was_charged_before(ledger):
    charge(ledger, "a", charging("1/2", "person"), limit=rho(4))
    with pytest.raises(BudgetExceeded, match="has only 0 of its limit 4 left"):
        charge(ledger, "b", charging("1/100", "person", m=3))
    ledger.set_limit("data", "person", rho(5))
    charge(ledger, "b", charging("1/100", "person", m=3))
    assert total_rho(ledger, "person") == Fraction(9, 2) + Fraction(1, 100)


def test_a_release_that_caps_contributions_keeps_its_price(ledger):
    charge(ledger, "capped", charging(1, "person", m=2), caps=True)
    charge(ledger, "plain", charging(1, "person", m=4))
    assert ledger.entry("capped").caps
    assert not ledger.entry("plain").caps
    assert total_rho(ledger, "person") == 2


def test_contributions_of_a_unit_are_raised_before_they_are_converted(ledger):
    charge(ledger, "a", charging(1, "person"))
    charge(ledger, "b", charging(1, "household"), unit_bounds={"person": 2})
    charge(ledger, "c", charging(1, "person", m=3))
    assert total_rho(ledger, "household") == (3 * 2) ** 2 + 1 + 2**2


# -- any order -------------------------------------------------------------------------------------

TABLES = st.sampled_from([
    PARTITION, FlowTable(FlowQuery.PAIRS, 2), FlowTable(FlowQuery.DISTINCT_PAIRS, 2),
    FlowTable(FlowQuery.GRAND_TOTAL, 2), SizeTable(SizeQuery.HISTOGRAM),
    SizeTable(SizeQuery.CUMULATIVE, 3),
])  # fmt: skip


@st.composite
def releases(draw):
    unit = draw(st.sampled_from(["person", "household"]))
    other = "household" if unit == "person" else "person"
    m, relation = draw(st.integers(1, 3)), draw(st.sampled_from(Neighbours))
    noise = DiscreteGaussian(draw(st.integers(1, 9)))
    guarantee = Guarantee(Protection(unit, relation, m), (Charge("level", noise, draw(TABLES)),))
    bounds = {draw(st.sampled_from(["unit_bounds", "part_of"])): {other: draw(st.integers(1, 3))}}
    terms = Terms(caps=draw(st.booleans()), **(bounds if draw(st.booleans()) else {}))
    return Cost("release", guarantee, terms.caps), terms.bounds(unit)


@settings(max_examples=150)
@given(made=st.lists(releases(), min_size=1, max_size=4), data=st.data())
def test_the_same_releases_cost_the_same_in_any_order_and_no_less_with_more_declared(made, data):
    def spent(order):
        account = Account()
        for cost, bounds in order:
            account = account.with_release(cost, bounds, {})
        return {unit: account.total(unit) for unit in account.units}

    totals, again = spent(made), spent(data.draw(st.permutations(made)))
    assert {u: (t.rho, t.neighbours) for u, t in totals.items()} == {
        u: (t.rho, t.neighbours) for u, t in again.items()
    }
    for unit, total in totals.items():
        assert len(total.counted) + len(total.left_out) == len(made)
        for part in total.counted:
            assert part.priced.rho >= part.cost.guarantee.rho
        if not total.left_out:
            continue
        other = "household" if unit == "person" else "person"
        more = [(cost, (*bounds, UnitBound(unit, other, Tie.PART_OF, 1))) for cost, bounds in made]
        assert spent(more)[unit].rho >= total.rho


# -- against all small worlds ----------------------------------------------------------------------


def households(world: tuple[tuple[int, int], ...]) -> dict[int, tuple[int, ...]]:
    """What each household is: the kinds of its persons. A person is (household, kind)."""
    homes: dict[int, list[int]] = {}
    for home, kind in world:
        homes.setdefault(home, []).append(kind)
    return {home: tuple(sorted(kinds)) for home, kinds in homes.items()}


def farthest(one, other) -> int:
    """The largest squared L2 distance of any table of two cells in which households are counted.

    Households that did not change cancel; each of the others may be in any cell before and after,
    as long as equal households are in the same cell.
    """
    before, after = households(one), households(other)
    moved = Counter()
    for home in before.keys() | after.keys():
        if before.get(home) != after.get(home):
            moved[before.get(home)] -= 1
            moved[after.get(home)] += 1
    moved.pop(None, None)  # a household that is not there is counted nowhere
    kinds = list(moved)
    return max(
        sum(sum(moved[k] for k, c in zip(kinds, cells, strict=True) if c == cell) ** 2
            for cell in (0, 1))
        for cells in itertools.product((0, 1), repeat=len(kinds))
    )  # fmt: skip


PERSONS = list(itertools.product(range(3), range(2)))
WORLDS = [world for n in range(4) for world in itertools.combinations_with_replacement(PERSONS, n)]


def test_no_person_moves_a_table_of_households_further_than_charged_and_some_move_it_so_far():
    for relation, most in ((ADD_REMOVE, 2), (REPLACE, 8)):
        reached = 0
        for world in WORLDS:
            for person in PERSONS:
                more = (*world, person)
                if relation is ADD_REMOVE:
                    reached = max(reached, farthest(world, more))
                else:
                    others = ((*world, other) for other in PERSONS)
                    reached = max(reached, *(farthest(more, other) for other in others))
        charged = charging(1, "household"), charging("1/1000", "person", relation)
        total = account(*charged, bounds=[PART]).total("person")
        assert reached == most == total.counted[0].priced.rho


def test_no_household_moves_a_table_of_persons_further_than_charged():
    """A household of at most three comes, goes, or is replaced by another."""
    homes = [h for n in range(4) for h in itertools.product(range(2), repeat=n)]
    added = max(sum(n**2 for n in Counter(home).values()) for home in homes)
    assert added == account(charging(1, "person"), bounds=[(*MADE[:3], 3)]).total("household").rho
    replaced = 0
    for one, other in itertools.product(homes, repeat=2):
        change = Counter(one)
        change.subtract(Counter(other))
        replaced = max(replaced, sum(n**2 for n in change.values()))
    both = charging(1, "person"), charging("1/1000", "household", REPLACE)
    total = account(*both, bounds=[(*MADE[:3], 3)]).total("household")
    assert replaced == total.counted[0].priced.rho == 18
