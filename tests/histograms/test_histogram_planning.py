"""Plans of histograms: exact shares, the strategy of 2020, and what is refused."""

from fractions import Fraction

import pytest

from histogram_release_worlds import SCHEMA, STRATEGY, TREE, histogram_plan, shares
from trellis.errors import SpecError, StructureError
from trellis.model import Schema
from trellis.model.plans.shares import Shares
from trellis.privacy.budget import Budget
from trellis.privacy.neighbours import Neighbours
from trellis.samples.redistricting import LEVELS, RHO, strategy
from trellis.storage.plans import plan_from_json, plan_to_json


def test_level_share_times_query_share():
    plan = histogram_plan()
    found = {(q.level, q.query): q.share for q in plan.queries if q.noise is not None}
    assert found["nation", "adult * sex"] == Fraction(1, 12)
    assert found["town", "detailed"] == Fraction(2, 9)
    assert ("town", "total") not in found
    assert sum(found.values()) == 1
    assert plan.privacy.rho == 1


def test_plan_survives_json():
    plan = histogram_plan(
        structural_zeros=("age = 0 and sex = f",), edit_rules=("age < 1 requires age > 0",),
        tables={"town": ["adult*sex"]}, microdata=True, passes=("sex", "adult*sex"),
    )  # fmt: skip
    assert plan_from_json(plan_to_json(plan)) == plan
    assert plan.design.passes == ("sex", "adult * sex")
    assert plan.design.tables == (("town", "adult * sex"),)


def test_exact_totals_below_the_root_are_allowed():
    plan = histogram_plan(unprotected_totals=("state",))
    assert plan.unprotected_totals == ("nation", "state")
    assert plan.protection.within == "state"
    exact = [q.level for q in plan.queries if q.noise is None]
    assert exact == ["nation", "state"]
    # The strategy measures these totals too; both are in the plan.
    assert [q.label for q in plan.queries if q.level == "state"][:2] == [
        "state: total, exact",
        "state: total",
    ]


# -- the strategy of the redistricting persons file ------------------------------------------------

PRODUCTION = {
    "us": (4097, {"total": 0, "cenrace": 52, "small": 26, "hispanic * cenrace": 130,
                  "votingage * cenrace": 130, "votingage * hispanic * cenrace": 442,
                  "detailed": 3213}),
    "state": (4097, {"total": 3773, "cenrace": 6, "small": 6, "hispanic * cenrace": 12,
                     "votingage * cenrace": 12, "votingage * hispanic * cenrace": 34,
                     "detailed": 230}),
    "county": (4097, {"total": 3126, "cenrace": 10, "small": 10, "hispanic * cenrace": 28,
                      "votingage * cenrace": 28, "votingage * hispanic * cenrace": 101,
                      "detailed": 754}),
    "tract": (4102, {"total": 1567, "cenrace": 8, "small": 5, "hispanic * cenrace": 1933,
                     "votingage * cenrace": 20, "votingage * hispanic * cenrace": 67,
                     "detailed": 482}),
    "block_group": (4099, {"total": 1705, "cenrace": 3, "small": 3, "hispanic * cenrace": 1055,
                           "votingage * cenrace": 9, "votingage * hispanic * cenrace": 24,
                           "detailed": 1288}),
    "block": (4097, {"total": 5, "cenrace": 9, "small": 5, "hispanic * cenrace": 21,
                     "votingage * cenrace": 21, "votingage * hispanic * cenrace": 71,
                     "detailed": 3945}),
}  # fmt: skip
SMALL = ("hispanic", "votingage", "hhinstlevels", "hhgq", "votingage * hispanic")


@pytest.mark.parametrize("level", PRODUCTION)
def test_production_strategy_is_exact(level):
    denominator, numerators = PRODUCTION[level]
    expected = {q: Fraction(n, denominator) for q, n in numerators.items() if n and q != "small"}
    expected |= {q: Fraction(numerators["small"], denominator) for q in SMALL}
    assert strategy()[level] == expected
    assert sum(expected.values()) == 1


def test_production_noise_is_one_over_rho_times_both_shares(tmp_path):
    from trellis.samples.redistricting import write_histogram_demo
    from trellis.spec import Spec
    from trellis.workflow.preparing.prepare import prepare

    write_histogram_demo(tmp_path, n_blocks=50)
    plan = prepare(Spec.load(tmp_path / "spec.yaml")).plan
    assert plan.privacy.rho == RHO == Fraction(293764, 114921)
    assert plan.schema.n_cells == 2016
    assert sum(LEVELS.values()) == 4099
    for query in plan.queries:
        if query.noise is not None:
            share = Fraction(LEVELS[query.level], 4099) * strategy()[query.level][query.query]
            assert query.noise.sigma_squared == 1 / (RHO * share)


WIDE = Schema({"age": [str(year) for year in range(65)]})


# -- refused --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"strategy": shares({"default": {"total": "1/2", "detailed": "1/3"}})}, "sum to 5/6"),
        ({"strategy": shares({"default": {"total": "2/3", "detailed": "2/3"}})}, "sum to 4/3"),
        ({"strategy": shares({"default": {"total": "0", "detailed": "1"}})}, "must be positive"),
        ({"strategy": shares({"town": {"detailed": "1"}})}, "no queries"),
        ({"strategy": shares({"village": {"detailed": "1"}})}, "names level 'village'"),
        ({"strategy": shares({"default": {"sex": "1"}})}, "nothing tells all cells apart"),
        ({"strategy": {"default": Shares()}}, "name queries"),
        ({"strategy": shares({"default": {"age * sex": "1/2", "detailed": "1/2"}})}, "same cells"),
        ({"strategy": shares({"default": {"sex * adult": "1/2", "adult*sex": "1/2"}})},
         "same cells"),
        ({"tables": {"village": ["total"]}}, "names level 'village'"),
        ({"tables": {"town": ["sex", "sex"]}}, "twice"),
        ({"method": "bottomup"}, "bottomup does not work"),
        ({"passes": ("sex", "sex")}, "fixes the cells of 'sex' again"),
        ({"passes": ("adult*sex", "sex * adult")}, "fixes the cells of 'adult [*] sex' again"),
        ({"passes": ("age",), "schema": WIDE, "strategy": None}, "has 65 cells"),
        ({"shares": Shares({"nation": Fraction(1)}), "strategy": None}, "last level"),
        ({"method": "topdown", "shares": Shares({"town": Fraction(1)}),
          "strategy": shares({"town": {"detailed": "1"}})}, "measured levels only"),
        ({"method": "topdown", "strategy": shares({**STRATEGY, "nation": {"adult * sex": "1"}})},
         "first level, 'nation'"),
        ({"shares": Shares({"town": Fraction(1)}),
          "strategy": shares({"state": {"total": "1"}, "town": {"detailed": "1"}})},
         "no share in privacy.shares"),
        ({"structural_zeros": ("age >= 0",)}, "every cell"),
        ({"structural_zeros": ("age > 0",), "edit_rules": ("age < 1 requires age > 0",)},
         "requires what structural_zeros rule out"),
        ({"neighbours": Neighbours.ADD_REMOVE, "unprotected_totals": ("state",)}, "added"),
        ({"memory": 100}, "Take out or coarsen"),
    ],
)  # fmt: skip
def test_bad_wish_is_refused(changes, message):
    with pytest.raises(SpecError, match=message):
        histogram_plan(**changes)


@pytest.mark.parametrize("query", ["height", "age * height", "age * adult", "age * age", "*"])
def test_unknown_or_overlapping_query_is_refused(query):
    with pytest.raises(StructureError):
        histogram_plan(strategy=shares({"default": {query: "1/2", "detailed": "1/2"}}))
    with pytest.raises(StructureError):
        histogram_plan(passes=(query,))


def test_a_pass_of_the_most_cells_is_planned():
    schema = Schema({"age": [str(year) for year in range(64)]})
    plan = histogram_plan(passes=("age",), schema=schema, strategy=None)
    assert plan.design.passes == ("age",)


def test_weights_are_scaled_and_a_missing_strategy_measures_all_cells():
    wish = {"default": Shares({"total": Fraction(1), "detailed": Fraction(3)}, are_weights=True)}
    found = {(q.level, q.query): q.share for q in histogram_plan(strategy=wish).queries if q.share}
    assert found["town", "detailed"] == Fraction(1, 4)
    queries = {q.query for q in histogram_plan(strategy=None).queries if q.noise is not None}
    assert queries == {"detailed"}


def test_a_single_cell_and_laplace_noise_can_be_planned():
    plan = histogram_plan(schema=Schema({"cell": ["only"]}), strategy=None)
    assert [q.query for q in plan.queries if q.noise is not None] == ["detailed", "detailed"]
    pure = histogram_plan(budget=Budget(epsilon=Fraction(1)))
    assert pure.privacy.pure_epsilon == 1
    assert TREE.n_levels == 3
    assert SCHEMA.n_cells == 8
