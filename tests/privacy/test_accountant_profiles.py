"""Neighbours, several records, paths with different noise, partial guarantees."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles import accounting as oracle
from trellis.errors import PrivacyError
from trellis.privacy.accounting import (
    Accountant,
    Composition,
    Coordinates,
    Tier,
    WorstCase,
    tight_zcdp_epsilons,
)
from trellis.privacy.accounting.contributions import one_cell_is_worst
from trellis.privacy.accounting.profiles import (
    Query,
    location_within,
    one_attribute,
    whole_record,
)
from trellis.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace


def partitions(total: int, largest: int | None = None) -> Iterator[tuple[int, ...]]:
    if total == 0:
        yield ()
    for part in range(min(total, largest or total), 0, -1):
        for rest in partitions(total - part, part):
            yield (part, *rest)


def change(*shifts_by_noise):
    """A composition from pairs of noise and the shifts of its cells."""
    return Composition.of(
        Coordinates(noise, 1, shift) for noise, shifts in shifts_by_noise for shift in shifts
    )


class TestContributions:
    @settings(max_examples=10, deadline=None)
    @given(
        noise=st.sampled_from(
            [
                DiscreteGaussian("0.4"),
                DiscreteGaussian(3),
                DiscreteLaplace(2),
                DiscreteLaplace("0.7"),
            ]
        ),
        other=st.sampled_from([DiscreteGaussian(1), DiscreteLaplace(4)]),
        records=st.integers(2, 3),
        epsilon=st.floats(0, 15),
    )
    def test_no_way_to_spread_the_records_is_worse(self, noise, other, records, epsilon):
        """Each table may see the records spread in its own way."""
        accountant = Accountant("add_remove", records).add(noise).add(other)
        upper = accountant.delta(epsilon)
        for spreads in product(partitions(records), repeat=2):
            law = oracle.loss_law(change(*zip((noise, other), spreads, strict=True)))
            assert oracle.delta(law, epsilon) <= upper

    def test_l2_norm_does_not_determine_delta(self):
        """Four cells by one against one cell by two: equal norm, and neither dominates."""
        noise = DiscreteGaussian(Fraction(1, 2))
        four = WorstCase((change((noise, (1, 1, 1, 1))),)).delta_curve(np.linspace(0, 12, 121))
        two = WorstCase((change((noise, (2,))),)).delta_curve(np.linspace(0, 12, 121))
        assert np.any(four[0] > 1.5 * two[1])
        assert np.any(two[0] > 1.4 * four[1])

    def test_shift_and_records_multiply(self):
        accountant = Accountant("replace", max_contribution=3).add(DiscreteGaussian(9), 2, shift=2)
        assert accountant.composition == Composition.of([Coordinates(DiscreteGaussian(9), 4, 6)])
        assert accountant.rho == Fraction(4 * 36, 18)

    @pytest.mark.parametrize("sigma_squared", ["0.3", "1", "17.3", "500"])
    def test_certified_for_gaussian(self, sigma_squared):
        assert one_cell_is_worst(DiscreteGaussian(sigma_squared), 1, 5)

    def test_certified_for_laplace(self):
        assert one_cell_is_worst(DiscreteLaplace("3/2"), 2, 4)

    def test_what_cannot_be_certified_is_said(self):
        """With hardly any noise both deltas are 1 to all digits, and no comparison is possible."""
        accountant = Accountant("add_remove", 5).add(DiscreteGaussian("0.01"))
        assert not accountant.certified
        assert accountant.tier is Tier.ZCDP
        assert "one cell" in accountant.notes[0]
        lower, upper = accountant.epsilon_bounds(1e-6)
        assert 0 < lower < upper <= accountant.epsilon_zcdp(1e-6)


def path(*sigma_squared):
    return tuple(Query(f"level {i}", DiscreteGaussian(s)) for i, s in enumerate(sigma_squared))


class TestPaths:
    def test_equal_paths_are_the_plain_accountant(self):
        paths = [path(5, 7), path(5, 7)]
        plain = Accountant("replace").add(DiscreteGaussian(5)).add(DiscreteGaussian(7))
        assert whole_record(paths, "replace").cases == plain.cases
        assert whole_record(paths[:1], "add_remove").epsilon(1e-6) == pytest.approx(
            Accountant("add_remove", 1, plain.charges).epsilon(1e-6)
        )

    def test_mixed_pair_can_exceed_both_pure_ones(self):
        one, split = path(Fraction(1, 2)), path(Fraction(3, 2), Fraction(3, 4))
        assert sum(1 / q.mechanism.sigma_squared for q in one) == sum(
            1 / q.mechanism.sigma_squared for q in split
        )
        together = whole_record([one, split], "replace")
        assert len(together.cases) == 3
        alone = [whole_record([profile], "replace") for profile in (one, split)]
        assert together.delta(8.95) > 1.008 * max(guarantee.delta(8.95) for guarantee in alone)
        # Equal path sums, yet one pure pair is ten times worse than the other somewhere.
        at = np.linspace(0, 12, 241)
        ratio = alone[0].delta_curve(at)[0] / alone[1].delta_curve(at)[1]
        assert max(ratio.max(), (1 / ratio).max()) > 10

    @settings(max_examples=10, deadline=None)
    @given(epsilon=st.floats(0, 8), delta=st.floats(1e-12, 0.3))
    def test_worst_case_is_the_pointwise_maximum(self, epsilon, delta):
        family = whole_record([path(1), path(2, 2), path("1.2", 6)], "replace")
        single = [WorstCase((case,)) for case in family.cases]
        assert len(single) == 6
        assert family.delta(epsilon) == max(one.delta(epsilon) for one in single)
        assert family.epsilon(delta) == max(one.epsilon(delta) for one in single)

    def test_nothing_changes(self):
        with pytest.raises(PrivacyError, match="costs nothing"):
            location_within([path(1, 2)], ["level 0", "level 1"], "level 1")
        with pytest.raises(PrivacyError, match="costs nothing"):
            one_attribute([path(1, 2)], "age")

    def test_unknown_level(self):
        with pytest.raises(PrivacyError, match="level 0, level 1"):
            location_within([path(1, 2)], ["level 0", "level 1"], "nation")


RHO = Fraction(293764, 114921)
LEVEL_SHARES = {  # of 4099
    "us": 104,
    "state": 1440,
    "county": 447,
    "tract": 687,
    "block group": 1256,
    "block": 165,
}
ONE_EACH = [{"hispanic"}, {"votingage"}, {"hhgq"}, {"hhgq"}, {"votingage", "hispanic"}]
QUERIES = [  # what each query separates; the third line stands for five queries
    [set()],
    [{"cenrace"}],
    ONE_EACH,
    [{"hispanic", "cenrace"}],
    [{"votingage", "cenrace"}],
    [{"votingage", "hispanic", "cenrace"}],
    [{"hhgq", "votingage", "hispanic", "cenrace"}],
]
QUERY_SHARES = {
    "us": (4097, 0, 52, 26, 130, 130, 442, 3213),
    "state": (4097, 3773, 6, 6, 12, 12, 34, 230),
    "county": (4097, 3126, 10, 10, 28, 28, 101, 754),
    "tract": (4102, 1567, 8, 5, 1933, 20, 67, 482),
    "block group": (4099, 1705, 3, 3, 1055, 9, 24, 1288),
    "block": (4097, 5, 9, 5, 21, 21, 71, 3945),
}


@pytest.fixture(scope="module")
def persons_file():
    """The redistricting persons file of the 2020 census, from its published budgets."""
    return tuple(
        Query(
            level,
            DiscreteGaussian(1 / (RHO * Fraction(LEVEL_SHARES[level], 4099) * Fraction(n, of))),
            separates=frozenset(attributes),
        )
        for level, (of, *shares) in QUERY_SHARES.items()
        for group, n in zip(QUERIES, shares, strict=True)
        for attributes in group
        if n
    )


class TestPersonsFile:
    """Its certificate uses the tighter zCDP conversion at delta = 1e-10."""

    @staticmethod
    def certificate(guarantee):
        return float(tight_zcdp_epsilons(guarantee.rho, np.array([1e-10]))[0])

    def test_all(self, persons_file):
        guarantee = whole_record([persons_file], "replace")
        assert guarantee.rho == RHO
        assert self.certificate(guarantee) == pytest.approx(17.14, abs=0.005)

    @pytest.mark.parametrize(
        ("area", "epsilon"),
        [
            ("block group", 2.93),
            ("tract", 9.38),
            ("county", 11.70),
            ("state", 13.05),
            ("us", 16.89),
        ],
    )
    def test_location_only(self, persons_file, area, epsilon):
        guarantee = location_within([persons_file], list(LEVEL_SHARES), area)
        assert self.certificate(guarantee) == pytest.approx(epsilon, abs=0.005)

    @pytest.mark.parametrize(
        ("attribute", "epsilon"),
        [("hhgq", 7.24), ("votingage", 7.57), ("hispanic", 10.04), ("cenrace", 10.08)],
    )
    def test_attribute_only(self, persons_file, attribute, epsilon):
        guarantee = one_attribute([persons_file], attribute)
        assert self.certificate(guarantee) == pytest.approx(epsilon, abs=0.005)

    def test_exact_values_are_smaller(self, persons_file):
        inside = location_within([persons_file], list(LEVEL_SHARES), "block group")
        assert inside.tier is Tier.LATTICE
        assert inside.epsilon(1e-10) == pytest.approx(2.7950002, abs=1e-7)
        everything = whole_record([persons_file], "replace")
        assert everything.tier is Tier.BRACKET
        lower, upper = everything.epsilon_bounds(1e-10)
        assert lower <= upper == pytest.approx(16.465155, abs=1e-6)
