"""Statistics of group sizes: values by the textbook, intervals by their coverage."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seeded_bits import SeededBits
from size_worlds import sizes_plan
from trellis.confidential.counts import TrueCounts
from trellis.estimate.group_sizes.estimator import group_numbers
from trellis.estimate.methods import estimate
from trellis.measure.charged_noise import ChargedNoise
from trellis.measure.counts import measure_counts
from trellis.model import Hierarchy
from trellis.privacy.budget import Budget
from trellis.privacy.ledger import Claim
from trellis.release.tables.size_statistics import (
    NAMES,
    AreaSizes,
    level_statistics,
    statistics_table,
)
from trellis.verify.group_sizes.tables import _statistics

rows = st.lists(st.integers(0, 9), min_size=2, max_size=6)


def areas(counts, std_error=0.0) -> AreaSizes:
    counts = np.array(counts)
    spread = np.full(counts.shape, std_error)
    return AreaSizes(counts, counts.astype(float), spread, counts.sum(axis=1), 1.645, True)


@given(rows)
def test_values_are_those_of_the_sorted_list(row):
    found = level_statistics(areas([row]))
    sizes = np.repeat(np.arange(len(row)), row)
    if not sizes.size:
        assert all(np.isnan(found[name][0][0]) for name in NAMES if name != "groups")
        return
    expected = _statistics(np.array(row), sizes.size)
    np.testing.assert_allclose([found[name][0][0] for name in NAMES], expected, atol=1e-12)
    for name, q in (("quantile_10", 0.1), ("median", 0.5), ("quantile_75", 0.75)):
        inverse = np.quantile(sizes, q, method="inverted_cdf")
        assert found[name][0][0] == inverse
    if sizes.any():
        gini = np.abs(sizes[:, None] - sizes).mean() / (2 * sizes.mean())
        assert found["gini"][0][0] == pytest.approx(gini)
    else:
        assert np.isnan(found["gini"][0][0])


def test_without_noise_intervals_are_points():
    found = level_statistics(areas([[3, 4, 2, 1], [0, 0, 5, 5]]))
    for name in set(NAMES) - {"gini"}:
        value, lower, upper = found[name]
        np.testing.assert_allclose(lower, value, atol=1e-9)
        np.testing.assert_allclose(upper, value, atol=1e-9)
    assert np.isnan(found["gini"][1]).all()


TREE = Hierarchy.from_paths([("r", f"{i:02d}") for i in range(40)], ["nation", "town"])


@pytest.mark.parametrize("mechanism", ["histogram_exact", "cumulative_exact", "cumulative_joint"])
@pytest.mark.parametrize("budget", [Budget(rho=Fraction(1, 50)), Budget(epsilon=Fraction(1, 2))],
                         ids=Budget.in_words)  # fmt: skip
def test_intervals_contain_the_truth_as_often_as_they_say(mechanism, budget):
    """Nine in ten at least; 600 draws of one area: fewer than 86 % are beyond three sigma."""
    rng = np.random.default_rng(7)
    leaves = rng.multinomial(300, [0.05, 0.3, 0.3, 0.2, 0.1, 0.05], 40)
    truth = level_statistics(areas(leaves))
    plan = sizes_plan(TREE, cap=5, method=mechanism, budget=budget)
    inside = {name: [] for name in set(NAMES) - {"gini", "groups"}}
    for seed in range(15):
        claim = Claim("run", "token", plan.privacy)
        measured = measure_counts(
            plan, TREE, TrueCounts(leaves), ChargedNoise(plan, claim, SeededBits(seed))
        )
        made = estimate(measured, 0)
        table = statistics_table(plan, made, group_numbers(measured), 1)
        for name in inside:
            mine = table.filter([s == name for s in table["statistic"].to_pylist()])
            lower, upper = mine["lower"].to_numpy(), mine["upper"].to_numpy()
            true = truth[name][0]
            inside[name] += ((lower <= true + 1e-9) & (true - 1e-9 <= upper)).tolist()
    assert {name: np.mean(held) for name, held in inside.items() if np.mean(held) < 0.86} == {}


def test_areas_without_groups_have_no_statistics_but_their_number():
    found = level_statistics(areas([[0, 0, 0], [1, 1, 0]]))
    assert found["groups"][0].tolist() == [0, 2]
    assert np.isnan(found["mean_size"][0]).tolist() == [True, False]


def test_counts_in_an_area_without_groups_have_no_interval_per_group():
    """Some methods publish counts where the register has no group; nothing is divided by it."""
    areas = AreaSizes(
        counts=np.array([[0, 2, 1]]), centre=np.array([[0.1, 1.9, 1.0]]),
        std_error=np.full((1, 3), 2.0), groups=np.array([0]), factor=1.6, is_cumulative=False,
    )  # fmt: skip
    found = level_statistics(areas)
    for name in ("share_of_size_1", "mean_size"):
        value, lower, upper = found[name]
        assert np.isfinite(value).all()
        assert np.isnan([lower, upper]).all()
