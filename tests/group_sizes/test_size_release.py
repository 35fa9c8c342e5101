"""A release of group sizes from records to tables, and what its tables promise."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow.parquet as pq
import pytest

import trellis
from group_size_metrics import violations
from measuring import measure, reestimate
from seeded_bits import SeededBits
from size_worlds import (
    AREAS,
    NUMBERS,
    RECORDS,
    REGISTER,
    TABLE,
    TABLE_FORM,
    TREE,
    TRUE_LEAVES,
    release_into,
    sizes_plan,
    spec_in,
)
from trellis.confidential.counts import TrueCounts
from trellis.errors import RunFolderError, SpecError, StructureError
from trellis.estimate.methods import estimate
from trellis.measure.charged_noise import ChargedNoise
from trellis.measure.counts import measure_counts
from trellis.model import Measurements
from trellis.model.plans.answers import answers
from trellis.model.plans.kinds.group_sizes import SIZE_METHODS, GroupSizesDesign
from trellis.model.plans.methods import GLS
from trellis.model.plans.shares import Shares
from trellis.model.tables.queries import TOTAL
from trellis.planning.forecast.expected_error import with_expected_errors
from trellis.privacy.budget import Budget
from trellis.privacy.ledger import Claim
from trellis.privacy.neighbours import Neighbours
from trellis.storage.estimates import read_estimates
from trellis.storage.plans import plan_from_json, plan_to_json
from trellis.verify import verify_run
from trellis.workflow.progress import Silent
from trellis.workflow.public.finishing import finish
from trellis.workflow.public.run_folder import RunFolder

LEAVES = np.array(TRUE_LEAVES)
GROUPS = LEAVES.sum(axis=1)
HALF = Fraction(1, 2)


def problems(path) -> list[str]:
    return [problem for finding in verify_run(path) for problem in finding.problems]


def measured(plan, leaves=LEAVES, seed=0) -> Measurements:
    claim = Claim("run", "token", plan.privacy)
    return measure_counts(
        plan, TREE, TrueCounts(leaves), ChargedNoise(plan, claim, SeededBits(seed))
    )


# -- the whole way --------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", SIZE_METHODS)
def test_every_mechanism_releases_what_it_promises(tmp_path, mechanism):
    release = release_into(tmp_path, estimate__method=mechanism)
    assert problems(release.path) == []
    folder, plan = RunFolder(release.path), release.plan
    made = read_estimates(folder.estimates, TREE, plan.schema, adds_up=plan.method.adds_up)
    broken = violations(TREE, made.counts, GROUPS)
    promise = SIZE_METHODS[mechanism]
    assert broken.count == 0 or not promise.adds_up
    assert broken.areas == 0 or not promise.keeps_groups
    table = release.table("state")
    assert table.column_names == [
        "geocode", "level", "size", "count", "std_error", "lower", "upper",
    ]  # fmt: skip
    assert table["geocode"].to_pylist() == [c for c in "abc" for _ in range(5)]
    assert table["size"].to_pylist() == [str(s) for s in range(5)] * 3
    assert table["count"].null_count == 0


def test_the_default_is_the_joint_fit(tmp_path):
    assert release_into(tmp_path).plan.method.name == "cumulative_joint"


def test_a_table_with_declared_numbers_does_as_well(tmp_path):
    spec = spec_in(tmp_path, **TABLE_FORM)
    release = trellis.run(spec, tmp_path / "run", data=TABLE, hierarchy=AREAS, register=NUMBERS)
    assert problems(release.path) == []
    assert sum(release.table("nation")["count"].to_pylist()) == 7


@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize("mechanism", ["histogram_exact", "cumulative_joint"])
def test_a_budget_of_epsilon_and_delta_is_kept(tmp_path, neighbours, mechanism):
    privacy = {"unit": "person", "neighbours": str(neighbours), "max_contribution": 1,
               "mechanism": "discrete_gaussian", "budget": {"epsilon": 1, "delta": "1e-6"},
               "shares": {"state": "1/3", "town": "2/3"}}  # fmt: skip
    release = release_into(tmp_path, estimate__method=mechanism, privacy=privacy)
    assert problems(release.path) == []
    guarantee = release.plan.privacy
    assert guarantee.accountant.delta(1.0) <= 1e-6
    assert guarantee.accountant.delta(0.999) > 1e-6  # not much is left over


def test_numbers_of_groups_are_public_and_exact_everywhere(tmp_path):
    release = release_into(tmp_path)
    totals = {
        level: pq.read_table(release.path / f"measurements/level={level}/query=total.parquet")
        for level in ("nation", "state", "town")
    }
    assert totals["nation"]["value"].to_pylist() == [7]
    assert totals["town"]["value"].to_pylist() == GROUPS.tolist()
    assert set(totals["town"]["variance"].to_pylist()) == {0.0}
    said = " ".join(json.loads((release.path / "privacy.json").read_text())["unprotected"])
    assert "register of groups is public" in said
    assert all(level in said for level in totals)


def test_what_must_hold_for_the_guarantee_is_said(tmp_path):
    record = json.loads((release_into(tmp_path).path / "privacy.json").read_text())
    said = " ".join(record["guarantee"])
    assert "adds at most 1 to the size of one group" in said
    assert "were not made from the records" in said


def test_another_mechanism_on_the_same_measurements(tmp_path):
    release = release_into(tmp_path)
    folder = RunFolder(release.path)
    again = reestimate(folder, "cumulative_exact", tmp_path / "again", Silent())
    assert problems(again.path) == []
    assert again.plan.method.name == "cumulative_exact"
    for other in ("histogram_exact", "gls"):
        with pytest.raises(RunFolderError, match="cumulative_relaxed, cumulative_exact, cumul"):
            reestimate(folder, other, tmp_path / "no", Silent())


def test_a_finished_run_is_read_back_and_not_spent_again(tmp_path):
    before = release_into(tmp_path)
    table = before.table("town")
    after = release_into(tmp_path)
    assert after.table("town").equals(table)


def test_estimation_needs_the_run_folder_alone(tmp_path):
    spec = spec_in(tmp_path)
    folder = measure(spec, tmp_path / "run", data=RECORDS, hierarchy=AREAS, register=REGISTER)
    finish(folder, Silent())
    assert problems(folder.path) == []


# -- estimates ------------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", SIZE_METHODS)
def test_without_noise_the_truth_comes_back(mechanism):
    plan = sizes_plan(method=mechanism)
    exact = answers(plan, TREE, LEAVES)
    made = estimate(Measurements(plan, TREE, tuple(exact)), tie_seed=1)
    assert made.counts[-1].tolist() == TRUE_LEAVES
    for centre, counts in zip(made.centre, made.counts, strict=True):
        np.testing.assert_allclose(centre, counts, atol=1e-9)


@pytest.mark.parametrize("mechanism", ["histogram_exact", "cumulative_joint"])
@pytest.mark.parametrize("shares", [Shares(), Shares(dict.fromkeys(["nation", "town"], HALF))])
def test_standard_errors_are_those_of_the_centres(mechanism, shares):
    """600 draws: a standard deviation is within 15 % of its value, beyond five sigma."""
    budget = Budget(rho=Fraction(1, 10))
    plan = sizes_plan(method=mechanism, shares=shares, budget=budget)
    runs = [estimate(measured(plan, seed=seed), 0) for seed in range(600)]
    for level in range(3):
        errors = np.array([made.centre[level] for made in runs]) - TREE.sum_up(LEAVES)[level]
        stated = runs[0].std_error[level]
        np.testing.assert_allclose(errors.std(axis=0), stated, rtol=0.15)
        assert (np.abs(errors.mean(axis=0)) < 5 * stated / np.sqrt(600)).all()


def test_expected_errors_are_foreseen():
    for mechanism in ("histogram_exact", "cumulative_joint"):
        plan = with_expected_errors(sizes_plan(method=mechanism), TREE)
        made = estimate(measured(plan), 0)
        for line, std_error in zip(plan.forecast.errors, made.std_error, strict=True):
            assert line.most == pytest.approx(std_error[:, 2].max())


# -- plans ----------------------------------------------------------------------------------------


def test_a_plan_survives_being_written():
    for changes in ({}, {"method": "histogram_exact", "max_quantity": 3}):
        plan = sizes_plan(**changes)
        assert plan_from_json(json.loads(json.dumps(plan_to_json(plan)))) == plan


def test_a_plan_knows_the_width_of_its_queries():
    plan = sizes_plan()
    assert [plan.width(q) for q in ("histogram", "cumulative", TOTAL)] == [5, 4, 1]


def test_quantities_past_the_cap_cost_nothing_more():
    assert sizes_plan(max_quantity=4).queries == sizes_plan(max_quantity=1000).queries
    assert sizes_plan(max_quantity=3).queries != sizes_plan(max_quantity=4).queries


def test_levels_weigh_as_much_as_their_noise_is_precise():
    shares = Shares({"state": Fraction(1, 4), "town": Fraction(3, 4)})
    laplace = sizes_plan(shares=shares)
    gaussian = sizes_plan(shares=shares, budget=Budget(rho=Fraction(1)))
    assert laplace.design.weights == (0, Fraction(1, 9), 1)
    assert gaussian.design.weights == (0, Fraction(1, 3), 1)
    variance = [laplace.query(level, "cumulative").variance for level in ("state", "town")]
    assert variance[0] / variance[1] == pytest.approx(9, rel=0.05)


def test_declared_weights_are_used():
    weights = {"nation": Fraction(1), "state": Fraction(2), "town": Fraction(3)}
    assert sizes_plan(weights=weights).design.weights == (1, 2, 3)
    heavy = {**weights, "nation": Fraction(10**9)}
    plan = sizes_plan(method="histogram_exact", weights=heavy)
    made, noisy = estimate(measured(plan), 0), measured(plan).answer("nation", "histogram")[0]
    even = estimate(measured(sizes_plan(method="histogram_exact", weights=weights)), 0)

    def gap(estimates):
        return np.abs(estimates.counts[0] - np.maximum(noisy, 0)).sum()

    assert gap(made) <= gap(even)


BAD_WEIGHTS = {
    "missing": ({"nation": 1, "town": 1}, "level 'state' is measured but has no weight"),
    "unknown": ({"nation": 1, "state": 1, "town": 1, "x": 1}, "'x' is not measured"),
    "zero": ({"nation": 0, "state": 1, "town": 1}, "'nation' must be positive"),
}


@pytest.mark.parametrize("case", BAD_WEIGHTS)
def test_bad_weights_are_refused(case):
    weights, message = BAD_WEIGHTS[case]
    with pytest.raises(SpecError, match=message):
        sizes_plan(weights={level: Fraction(w) for level, w in weights.items()})


def test_the_last_level_must_be_measured():
    with pytest.raises(SpecError, match="must be measured"):
        sizes_plan(shares=Shares({"state": Fraction(1)}))


def test_plans_that_make_no_sense_are_refused():
    for change, message in (
        ({"method": GLS}, "no method 'gls' for group_sizes"),
        ({"design": GroupSizesDesign((Fraction(1),))}, "one weight for each level"),
    ):
        with pytest.raises(StructureError, match=message):
            replace(sizes_plan(), **change)


def test_estimates_that_do_not_add_up_must_say_so():
    made = estimate(measured(sizes_plan()), 0)
    counts = (made.counts[0] + 1, *made.counts[1:])
    with pytest.raises(StructureError, match="do not add up"):
        replace(made, counts=counts)
    assert not replace(made, counts=counts, adds_up=False).adds_up
