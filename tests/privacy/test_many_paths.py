"""Guarantees of many kinds of path: their work, counted in curves, and their answers."""

from fractions import Fraction as F
from itertools import product

import numpy as np
import pytest

from trellis.privacy.accounting import Composition, WorstCase, privacy_curve
from trellis.privacy.accounting.accountant import Accountant
from trellis.privacy.attacker import strongest_attacks
from trellis.privacy.guarantee import Charge, Guarantee
from trellis.privacy.mechanisms import DiscreteGaussian
from trellis.privacy.neighbours import Neighbours
from trellis.privacy.protection import Protection


def spine(rho: F, *shares: F) -> Guarantee:
    """All ways of passing the share of a level down to the next."""
    paths = []
    for passed in product([False, True], repeat=len(shares) - 1):
        path = [shares[0]]
        for share, is_passed in zip(shares[1:], passed, strict=True):
            path[-1:] = [path[-1] + share] if is_passed else [path[-1], share]
        paths.append(path)
    different = sorted({share for path in paths for share in path})
    noise = [Charge(str(share), DiscreteGaussian(1 / (rho * share))) for share in different]
    kinds = tuple(tuple(different.index(share) for share in path) for path in paths)
    return Guarantee(Protection("person", Neighbours.REPLACE, 1), tuple(noise), kinds)


ODD = (F(137, 1000), F(211, 1000), F(270, 1000), F(382, 1000))
FINE = (F(38197, 100000), F(61803, 100000))


@pytest.fixture
def made(monkeypatch):
    """Compositions of which a full curve is made, where the cache holds less than one round."""
    found = []

    def counted(composition):
        found.append(composition)
        return exact(composition)

    exact = privacy_curve.exact_curve
    privacy_curve.forget()
    monkeypatch.setattr(privacy_curve, "exact_curve", counted)
    monkeypatch.setattr(privacy_curve, "curve_of", privacy_curve._CurveCache(2**18))
    return found


def test_no_curve_is_made_twice_for_a_question(made):
    accountant = spine(F(1, 10), *ODD).accountant
    cases = len(accountant.cases)
    assert cases == 35
    accountant.epsilon_curve([1e-12, 1e-10, 1e-6])
    assert len(made) <= cases
    accountant.tradeoff_curve([0.001, 0.01, 0.05])
    assert len(made) <= 2 * cases
    assert sum(privacy_curve.curve_of(case).size for case in accountant.cases) > 2**20


def test_a_question_is_answered_once(made):
    guarantee = spine(F(1, 10), *ODD)
    first = guarantee.epsilon(1e-10), strongest_attacks(guarantee.accountant)
    asked = len(made)
    assert (guarantee.epsilon(1e-10), strongest_attacks(guarantee.accountant)) == first
    assert len(made) == asked


def test_where_lattices_are_fine_most_cases_are_settled_by_a_coarse_curve(made):
    accountant = spine(F(1), *FINE).accountant
    assert len(accountant.cases) == 3
    lower, upper = accountant.epsilon_curve([1e-10])
    assert len(made) == 1
    each = [WorstCase((case,)).epsilon_bounds(1e-10) for case in accountant.cases]
    assert lower[0] <= max(high for _, high in each)
    assert upper[0] >= max(low for low, _ in each)
    assert upper[0] == pytest.approx(max(high for _, high in each), rel=1e-9)


def test_the_trade_off_is_that_of_the_worst_case_at_each_alpha():
    accountant = spine(F(1), *ODD[:3]).accountant
    alphas = np.array([0.0, 1e-6, 0.01, 0.5, 1.0])
    lower, upper = accountant.tradeoff_curve(alphas)
    each = [WorstCase((case,)).tradeoff_curve(alphas) for case in accountant.cases]
    np.testing.assert_array_equal(lower, np.min([low for low, _ in each], axis=0))
    np.testing.assert_array_equal(upper, np.min([high for _, high in each], axis=0))


def test_answers_are_kept_apart():
    """By accountant, question and argument."""
    one, other = (Accountant("replace").add(DiscreteGaussian(s)) for s in (5, 6))
    assert one.epsilon(1e-6) > other.epsilon(1e-6)
    assert one.epsilon(1e-7) > one.epsilon(1e-6)
    assert one.tradeoff(1e-6) != one.epsilon(1e-6)
    repeated = one.epsilon_curve([1e-6, 1e-7, 1e-6])[1]
    assert repeated.tolist() == [one.epsilon(1e-6), one.epsilon(1e-7), one.epsilon(1e-6)]
    assert one.epsilon_curve([])[0].shape == (0,)
    assert Composition.of(one.charges).n_coordinates == 1
