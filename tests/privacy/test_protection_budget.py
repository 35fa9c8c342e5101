from fractions import Fraction

import pytest

from trellis.errors import PrivacyError
from trellis.privacy.budget import LEAST, MOST, Budget
from trellis.privacy.neighbours import Neighbours
from trellis.privacy.protection import Protection

REPLACE, ADD_REMOVE = Neighbours.REPLACE, Neighbours.ADD_REMOVE


# -- protection -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("neighbours", "m", "l1", "l2_squared"),
    [(ADD_REMOVE, 1, 1, 1), (REPLACE, 1, 2, 2), (ADD_REMOVE, 3, 3, 9), (REPLACE, 3, 6, 18)],
)
def test_sensitivities(neighbours, m, l1, l2_squared):
    protection = Protection("person", neighbours, m)
    assert (protection.l1, protection.l2_squared) == (l1, l2_squared)


@pytest.mark.parametrize("m", [0, -1])
def test_a_unit_has_at_least_one_record(m):
    with pytest.raises(PrivacyError, match="max_contribution must be a whole number of at least 1"):
        Protection("person", REPLACE, m)


def test_exact_totals_and_add_remove_exclude_each_other():
    with pytest.raises(PrivacyError, match="reveal whether a record was added or removed"):
        Protection("person", ADD_REMOVE, 1, within="state")
    Protection("person", REPLACE, 1, within="state")


def test_words_say_who_is_protected_against_what_and_where():
    present = Protection("tourist", ADD_REMOVE, 1).in_words()
    assert "presence" in present
    assert "tourist" in present
    content = Protection("firm", REPLACE, 12, within="canton").in_words()
    assert "content" in content
    assert "12" in content
    assert "'canton'" in content
    assert "inside" not in Protection("firm", REPLACE, 12).in_words()


# -- budget ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("amounts", "is_pure", "words"),
    [
        ({"rho": Fraction(1, 3)}, False, "rho = 1/3"),
        ({"epsilon": Fraction(2)}, True, "epsilon = 2"),
        (
            {"epsilon": Fraction(2), "delta": Fraction(1, 1000)}, False,
            "epsilon = 2, delta = 1/1000",
        ),
    ],
)  # fmt: skip
def test_the_three_kinds_of_budget(amounts, is_pure, words):
    budget = Budget(**amounts)
    assert budget.is_pure is is_pure
    assert budget.in_words() == words


@pytest.mark.parametrize(
    "amounts",
    [
        {},
        {"rho": Fraction(1), "epsilon": Fraction(1)},
        {"delta": Fraction(1, 1000)},
        {"rho": Fraction(1), "delta": Fraction(1, 1000)},
        {"rho": Fraction(1), "epsilon": Fraction(1), "delta": Fraction(1, 1000)},
    ],
)
def test_budgets_of_mixed_or_no_kind_are_refused(amounts):
    with pytest.raises(PrivacyError, match=r"A budget is either|A delta needs"):
        Budget(**amounts)


@pytest.mark.parametrize("kind", ["rho", "epsilon"])
@pytest.mark.parametrize("value", [0, -1, LEAST - Fraction(1, 10**30), MOST + 1, 10**30])
def test_budgets_that_are_a_slip_of_the_pen_are_refused(kind, value):
    with pytest.raises(PrivacyError, match="makes no sense"):
        Budget(**{kind: Fraction(value)})
    Budget(**{kind: LEAST})
    Budget(**{kind: MOST})


@pytest.mark.parametrize("delta", [0, -1, Fraction(1, 99), 1])
def test_deltas_that_are_no_protection_are_refused(delta):
    with pytest.raises(PrivacyError, match="delta must be above 0 and at most 1/100"):
        Budget(epsilon=Fraction(1), delta=Fraction(delta))
    Budget(epsilon=Fraction(1), delta=Fraction(1, 100))
