"""Plans, measurements and estimates refuse to exist unless they are what they claim."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from trellis.errors import StructureError
from trellis.model import Estimates, Hierarchy, Measurements, PlannedQuery
from trellis.model.tables.queries import DETAILED, TOTAL
from trellis.privacy.mechanisms import DiscreteGaussian
from worlds import TREE, cells, noiseless, plan_for

LEAVES = np.arange(1, 6)[:, np.newaxis]
NOISE = DiscreteGaussian(4)
HALF = Fraction(1, 2)


# -- plan -----------------------------------------------------------------------------------------


def exact(level: str, share: Fraction = Fraction(0)) -> PlannedQuery:
    return PlannedQuery(level, TOTAL, share, None)


def measured(level: str, share: Fraction, query: str = TOTAL) -> PlannedQuery:
    return PlannedQuery(level, query, share, NOISE)


BAD_QUERIES = {
    "shares below one": ([measured("state", HALF), measured("town", HALF / 2)], "sum to exactly"),
    "shares above one": ([measured("state", HALF), measured("town", Fraction(1))], "sum to exac"),
    "a share of zero": ([measured("state", Fraction(0)), measured("town", Fraction(1))], "positiv"),
    "a negative share": ([measured("state", -HALF), measured("town", 3 * HALF)], "positive share"),
    "a share without noise": ([exact("nation", HALF), measured("town", Fraction(1))], "only if"),
    "an unknown level": ([measured("county", Fraction(1))], r"unknown levels \['county'\]"),
    "a query twice": ([measured("town", HALF), measured("town", HALF)], "twice"),
    "an unknown query": ([measured("town", Fraction(1), "mean")], "names 'mean'"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_QUERIES)
def test_plans_that_make_no_sense_are_refused(case):
    queries, message = BAD_QUERIES[case]
    with pytest.raises(StructureError, match=message):
        replace(plan_for(), queries=tuple(queries))


def test_a_plan_finds_its_queries_and_knows_their_width():
    plan = plan_for(n_cells=3)
    assert plan.query("nation", TOTAL).noise is None
    assert plan.query("nation", TOTAL).variance == 0
    assert plan.query("town", DETAILED).noise is not None
    assert plan.query("town", TOTAL) is None
    assert (plan.width(TOTAL), plan.width(DETAILED)) == (1, 3)
    assert plan.cell_query == DETAILED
    assert plan_for(n_cells=1).cell_query == TOTAL


def test_the_cost_of_a_plan_counts_each_noisy_query_once_and_no_exact_one():
    plan = plan_for(n_cells=2)
    assert [charge.label for charge in plan.privacy.charges] == [
        "nation: detailed", "state: detailed", "town: detailed",
    ]  # fmt: skip
    assert plan.privacy.rho == plan.budget.rho == 1


# -- measurements ---------------------------------------------------------------------------------


def test_measurements_answer_what_was_asked():
    plan = plan_for()
    measurements = noiseless(plan, TREE, LEAVES)
    values, variance = measurements.answer("state", TOTAL)
    assert values.ravel().tolist() == [6, 4, 5]
    assert variance == plan.query("state", TOTAL).noise.variance
    assert measurements.answer("nation", TOTAL)[1] == 0
    assert measurements.answer("state", DETAILED) is None


def test_measurements_of_another_hierarchy_are_refused():
    measurements = noiseless(plan_for(), TREE, LEAVES)
    renamed = replace(TREE, level_names=("n", "s", "t"))
    smaller = Hierarchy.from_paths([("r", "a", "a1")], TREE.level_names)
    for other in (renamed, smaller):
        with pytest.raises(StructureError, match="another hierarchy"):
            replace(measurements, hierarchy=other)


def test_measurements_must_be_one_array_of_whole_numbers_for_each_query():
    measurements = noiseless(plan_for(), TREE, LEAVES)
    nation, state, town = measurements.values
    with pytest.raises(StructureError, match="one array for each"):
        replace(measurements, values=(nation, state))
    for town_values in (town[:-1], town.ravel(), town.astype(float), town.astype(np.int32)):
        with pytest.raises(StructureError, match=r"'town: total' needs whole numbers of shape"):
            replace(measurements, values=(nation, state, town_values))


def test_with_several_cells_detailed_answers_need_every_cell():
    plan = plan_for(n_cells=2)
    leaves = np.arange(10).reshape(5, 2)
    values = noiseless(plan, TREE, leaves).values
    narrow = [v[:, :1] for v in values]
    with pytest.raises(StructureError, match="detailed"):
        Measurements(plan, TREE, tuple(narrow))


# -- estimates ------------------------------------------------------------------------------------


def whole() -> Estimates:
    return Estimates(TREE, cells(1), tuple(TREE.sum_up(LEAVES)))


def real() -> Estimates:
    counts = tuple(TREE.sum_up(LEAVES - 2.25))
    return Estimates(TREE, cells(1), counts, counts, tuple(np.ones_like(c) for c in counts))


def test_whole_and_real_estimates_are_told_apart():
    assert whole().is_whole
    assert not real().is_whole
    assert min(level.min() for level in real().counts) < 0  # allowed where numbers are real


def put(arrays, level: int, value) -> tuple:
    """Copies with another first entry on one level."""
    copies = [a.copy() for a in arrays]
    copies[level][0, 0] = value
    return tuple(copies)


def test_whole_estimates_must_add_up_exactly_and_not_be_negative():
    good = whole()
    for level in range(3):
        with pytest.raises(StructureError, match="do not add up"):
            replace(good, counts=put(good.counts, level, 999))
    leaves = LEAVES.copy()
    leaves[0] = -1  # the family still has a positive total
    with pytest.raises(StructureError, match="must not be negative"):
        replace(good, counts=tuple(TREE.sum_up(leaves)))


def test_real_estimates_must_add_up_to_rounding_error():
    good = real()
    replace(good, counts=put(good.counts, 2, good.counts[2][0, 0] + 1e-10))
    with pytest.raises(StructureError, match="'town' do not add up"):
        replace(good, counts=put(good.counts, 2, good.counts[2][0, 0] + 1e-3))


@pytest.mark.parametrize("field", ["counts", "centre", "std_error"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_estimates_must_be_finite(field, value):
    good = real()
    with pytest.raises(StructureError, match="finite"):
        replace(good, **{field: put(getattr(good, field), 1, value)})


@pytest.mark.parametrize("field", ["counts", "centre", "std_error"])
def test_estimates_need_a_number_for_every_area_and_cell(field):
    good = real()
    arrays = getattr(good, field)
    for bad in (arrays[:2], (*arrays[:2], arrays[2][:-1]), tuple(a.ravel() for a in arrays)):
        with pytest.raises(StructureError, match="one row per area and one column per cell"):
            replace(good, **{field: bad})


def test_centre_and_standard_error_come_together():
    with pytest.raises(StructureError, match="come together"):
        replace(real(), std_error=None)
    with pytest.raises(StructureError, match="come together"):
        replace(real(), centre=None)


def test_counts_are_of_one_known_kind_on_all_levels():
    counts = whole().counts
    for bad in (
        (counts[0], counts[1], counts[2].astype(float)),  # would pass for whole
        tuple(c.astype(np.int32) for c in counts),  # would pass for real, signs unchecked
    ):
        with pytest.raises(StructureError, match="int64 on all levels, or float64 on all"):
            replace(whole(), counts=bad)
