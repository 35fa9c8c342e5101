"""Specs of histograms that leave shares of queries, or the budget, to be computed."""

import json
from fractions import Fraction

import numpy as np
import pytest
from typer.testing import CliRunner

from histogram_release_worlds import PEOPLE, STRATEGY, TREE, write_histogram_world
from trellis import plan, run
from trellis.cli.app import app
from trellis.errors import ConfidentialWarning, SpecError
from trellis.planning.budget.allocation import split_budget
from trellis.spec import Spec
from trellis.verify.verify import verify_run
from trellis.workflow.confidential.check import check
from trellis.workflow.outlook.plan_report import plan_report, report_to_json
from worlds import REMOVE

LEVELS = {"nation": "1/10", "state": "3/10", "town": "6/10"}
ACCURACY = [
    {"level": "state", "query": "adult * sex", "within": 20},
    {"level": "town", "query": "total", "within": 30, "confidence": 0.9},
]
PRIOR = PEOPLE.replace("a2,2,f,0", "a2,2,f,7").replace("b1,3,m,25", "b1,3,m,12")


@pytest.fixture
def world(tmp_path):
    """Makes a spec with these changes, beside records and an earlier release."""

    def make(**changes):
        path = write_histogram_world(tmp_path, **changes)
        (tmp_path / "old.csv").write_text(PRIOR, encoding="utf-8")
        return Spec.load(path)

    return make


def shares_of(planned):
    return {(q.level, q.query): q.share for q in planned.queries if q.noise is not None}


def by_level(shares):
    return {
        level: sum(s for (at, _), s in shares.items() if at == level)
        for level in dict.fromkeys(at for at, _ in shares)
    }


def test_levels_and_queries_are_chosen_together(world):
    shares = shares_of(plan(world(strategy="optimal")))
    assert sum(shares.values()) == 1
    assert ("town", "detailed") in shares
    assert {query for _, query in shares} <= {"total", "adult * sex", "detailed"}


def test_a_prior_with_the_histograms_of_the_records_is_asked_about(world, tmp_path):
    world()
    (tmp_path / "copy.csv").write_bytes((tmp_path / "people.csv").read_bytes())
    spec = world(strategy="optimal", privacy__shares={"optimal": {"prior": "copy.csv"}})
    with pytest.warns(ConfidentialWarning, match="The prior has the counts of the records"):
        check(spec)
    check(world(strategy="optimal", privacy__shares={"optimal": {"prior": "old.csv"}}))


def test_stated_levels_are_kept(world):
    shares = shares_of(plan(world(strategy="optimal", privacy__shares=LEVELS)))
    assert by_level(shares) == {name: Fraction(share) for name, share in LEVELS.items()}


def test_stated_queries_are_kept(world):
    shares = shares_of(plan(world(privacy__shares="optimal")))
    levels = by_level(shares)
    assert sum(levels.values()) == 1
    for (level, query), share in shares.items():
        stated = STRATEGY.get(level, STRATEGY["default"])
        assert share == levels[level] * Fraction(stated[query])


@pytest.mark.parametrize(
    "changes",
    [
        {"strategy": "optimal"},
        {"strategy": "optimal", "privacy__shares": "uniform"},
        {"privacy__shares": "optimal"},
    ],
)
def test_no_worse_than_what_is_stated_for_the_same_weights(world, changes):
    errors = []
    for wish in ({}, changes):
        outlook = plan_report(world(**wish)).outlook
        assert outlook is not None
        errors.append(outlook.squared_error())
    assert errors[1] <= errors[0] * (1 + 1e-6)


def test_queries_and_weights_can_be_named(world):
    queries = {"default": ["sex", "detailed"], "town": ["total", "detailed"]}
    heavy = {"optimal": {"queries": queries, "weights": {"nation": 10_000}}}
    light = {"optimal": {"queries": queries, "weights": {"nation": {"total": 0, "adult * sex": 0}}}}
    shares = shares_of(plan(world(strategy=heavy)))
    allowed = {("town", "total"), ("town", "detailed")}
    allowed |= {(level, query) for level in ("nation", "state") for query in queries["default"]}
    assert set(shares) <= allowed
    assert by_level(shares)["nation"] > by_level(shares_of(plan(world(strategy=light)))).get(
        "nation", 0
    )


def test_targets_give_the_budget_and_both_shares(world):
    spec = world(strategy=REMOVE, privacy__budget=REMOVE, accuracy=ACCURACY)
    report = plan_report(spec)
    assert all(line.is_met for line in report.targets)
    assert any(line.binds for line in report.targets)
    shares = shares_of(report.plan)
    assert sum(shares.values()) == 1
    assert ("state", "adult * sex") in shares
    content = report_to_json(report)
    assert [line["query"] for line in content["accuracy"]] == ["adult * sex", "total"]


@pytest.mark.parametrize("strategy", [REMOVE, "optimal"])
def test_targets_beside_a_budget_move_nothing(world, strategy):
    without, beside = world(strategy=strategy), world(strategy=strategy, accuracy=ACCURACY)
    report = plan_report(beside)
    assert report.plan.queries == plan_report(without).plan.queries
    assert len(report.targets) == len(ACCURACY)


def test_targets_keep_what_is_stated(world):
    spec = world(privacy__budget=REMOVE, privacy__shares=LEVELS, accuracy=ACCURACY)
    report = plan_report(spec)
    assert by_level(shares_of(report.plan)) == {k: Fraction(v) for k, v in LEVELS.items()}
    assert all(line.is_met for line in report.targets)
    levels_open = plan_report(world(privacy__budget=REMOVE, accuracy=ACCURACY))
    assert all(line.is_met for line in levels_open.targets)
    assert levels_open.plan.budget.rho <= report.plan.budget.rho
    both_open = plan_report(world(strategy="optimal", privacy__budget=REMOVE, accuracy=ACCURACY))
    assert both_open.plan.budget.rho <= levels_open.plan.budget.rho


def test_targets_may_ask_for_sums_of_what_is_published(world):
    below = {"default": ["total"], "town": ["adult * sex"]}
    asked = [{"level": "state", "query": "sex", "within": 20}]
    spec = world(output__tables=below, output__microdata=False, accuracy=asked)
    assert len(plan_report(spec).targets) == 1
    above = {"default": ["total"], "nation": ["adult * sex"]}
    with pytest.raises(SpecError, match="'sex' is not published on level 'state'"):
        plan(world(output__tables=above, output__microdata=False, accuracy=asked))


def test_with_a_budget_targets_are_told_how_far_they_are_met(world):
    report = plan_report(world(privacy__budget={"rho": "1/1000"}, accuracy=ACCURACY))
    assert not all(line.is_met for line in report.targets)


def test_targets_out_of_reach_name_the_best(world):
    spec = world(privacy__budget=REMOVE, accuracy=ACCURACY, ledger={"limit": {"rho": "1/1000"}})
    with pytest.raises(SpecError, match=r"cannot be reached.*rho = 1/1000, reaches"):
        plan(spec)


def test_a_prior_gives_every_query_its_share(world):
    wish = {"optimal": {"prior": "old.csv"}}
    queries = {"optimal": {"queries": {"default": ["total", "detailed"]}}}
    spec = world(strategy=queries, privacy__shares=wish, privacy__budget={"rho": "1/20"})
    shares = shares_of(plan(spec))
    assert sum(shares.values()) == 1
    totals = [[52], [35, 12, 5], [28, 7, 12, 5]]
    rows = [line.split(",") for line in PRIOR.splitlines()[1:]]
    answers = []
    for level, areas in enumerate(totals):
        shown = ~TREE.passes_through[level]
        if level:  # the total of the nation is exact
            answers.append(np.array(areas)[shown])
        cells = np.zeros((len(areas), 8), dtype=np.int64)
        towns = {"a1": (0, 0, 0), "a2": (0, 0, 1), "b1": (0, 1, 2), "c": (0, 2, 3)}
        for town, age, sex, people in rows:
            cells[towns[town][level], 2 * int(age) + (sex == "m")] += int(people)
        answers.append(cells[shown])
        np.testing.assert_array_equal(cells.sum(axis=1), areas)
    found = split_budget("discrete_gaussian", 1.0, answers, 1 / 20)
    both = [(level, query) for level in ("state", "town") for query in ("total", "detailed")]
    for slot, budget in zip(
        [("nation", "detailed"), *both],
        found,
        strict=True,
    ):
        assert float(shares[slot]) == pytest.approx(budget * 20, abs=2e-4)


@pytest.mark.usefixtures("same_simulation")
def test_simulated_releases_agree_with_what_is_expected(world):
    spec = world(strategy="optimal", output__tables={"default": ["total", "adult * sex"]})
    from trellis.spec.sections.planning import PriorSpec

    report = plan_report(spec, releases=60, prior=PriorSpec(source="old.csv"))
    assert report.simulation is not None
    assert [line.name for line in report.simulation.levels][:2] == [
        "nation: total", "nation: adult * sex",
    ]  # fmt: skip
    for line in report.simulation.levels:
        expected = report.root_mean_squares[line.name]
        # At least 60 squares, dependent in a family: four deviations of their mean.
        assert line.linear_root_mean_square == pytest.approx(expected, rel=0.4, abs=1e-6)
        assert line.coverage > 0.8
    content = report_to_json(report)["simulation"]["levels"]
    assert (content[1]["level"], content[1]["query"]) == ("nation", "adult * sex")


def test_releases_without_whole_counts_are_simulated_too(world):
    from trellis.spec.sections.planning import PriorSpec

    changes = {"estimate__method": "gls", "output__microdata": REMOVE, "accuracy": ACCURACY}
    prior = PriorSpec(source="old.csv")
    report = plan_report(world(**changes), releases=3, prior=prior)
    assert report.simulation is not None
    for line in report.simulation.levels:
        assert line.root_mean_square == pytest.approx(line.linear_root_mean_square)
    assert len(report.simulation.within) == len(ACCURACY)
    other = {**changes, "accuracy": [{"level": "town", "query": "sex", "within": 9}]}
    with pytest.raises(SpecError, match="not a published table"):
        plan_report(world(**other), releases=1, prior=prior)


def test_a_computed_strategy_is_released_and_verified(world, tmp_path):
    release = run(world(strategy="optimal", privacy__shares={"optimal": {"prior": "old.csv"}}))
    found = verify_run(release.path)
    assert not [problem for finding in found for problem in finding.problems]
    written = (release.path / "spec.yaml").read_text()
    assert "optimal" in written
    assert "old.csv" not in written


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"privacy__shares": {"optimal": {"prior": "old.csv"}}}, "Write strategy: optimal"),
        ({"privacy__shares": {"optimal": {"prior": "people.csv"}}}, "confidential file"),
        ({"strategy": {"optimal": {"queries": {"town": ["total"]}}}}, "nothing tells all cells"),
        ({"strategy": {"optimal": {"queries": {"default": ["height"]}}}}, "'height'"),
        ({"strategy": {"optimal": {"wieghts": {}}}}, "Unknown key 'strategy.optimal.wieghts'"),
        ({"strategy": {"optimal": {"weights": {"town": "much"}}}}, "strategy.optimal.weights"),
        ({"accuracy": [{"level": "town", "query": "height", "within": 1}]}, "'height'"),
        (
            {"accuracy": [{"level": "state", "query": "age", "within": 9}],
             "output__microdata": False},
            "'age' is not published on level 'state', and nothing",
        ),
        (
            {"strategy": "optimal", "privacy__mechanism": "discrete_laplace",
             "privacy__budget": {"epsilon": 1}, "estimate__method": "topdown"},
            "strategy.optimal predicts the errors of gls_topdown",
        ),
        (
            {"privacy__shares": "optimal", "privacy__mechanism": "discrete_laplace",
             "privacy__budget": {"epsilon": 1}, "estimate__method": "topdown"},
            "privacy.shares.optimal predicts the errors of gls_topdown",
        ),
        ({"accuracy": [{"area": "place", "within": 1}]}, "declared under areas"),
        ({"accuracy": [{"level": "nation", "within": 1}]}, "published exactly"),
        (
            {"privacy__shares": {"optimal": {"weights": [1, 2]}}},
            "2 weights for 3 measured levels",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_planned_is_refused(world, changes, words):
    with pytest.raises(SpecError, match=words):
        plan(world(**changes))


def test_a_strategy_that_foresees_another_method_says_so(world):
    (note,) = plan_report(world(strategy="optimal", estimate__method="topdown")).notes
    assert note.startswith("strategy.optimal predicts the errors of gls_topdown, not those of top")


def test_a_crosswalk_is_for_tables_of_cells(world):
    walk = {"source": "old.csv", "old": "town", "new": "town"}
    prior = {"source": "old.csv", "crosswalk": walk}
    with pytest.raises(SpecError, match="crosswalk goes with a table of cells"):
        plan(world(strategy="optimal", privacy__shares={"optimal": {"prior": prior}}))


def test_simulations_that_do_not_fit_are_refused(world, monkeypatch):
    from trellis.spec.sections.planning import PriorSpec
    from trellis.workflow.outlook import simulate_histograms

    monkeypatch.setattr(simulate_histograms, "machine_memory", lambda: 100)
    with pytest.raises(SpecError, match=r"answers in memory.*fewer areas or cells"):
        plan_report(world(), releases=1, prior=PriorSpec(source="old.csv"))


def test_the_command_compares_draws_and_prints(world, tmp_path):
    world(strategy="optimal")
    spec = str(tmp_path / "spec.yaml")
    shown = CliRunner().invoke(
        app, ["plan", spec, "--compare", "uniform", "optimal", "--pictures", str(tmp_path / "p")]
    )
    assert shown.exit_code == 0, shown.output
    for words in ("Median standard errors", "Shares of the budget", "squared error", "adult * sex"):
        assert words in shown.output
    assert (tmp_path / "p" / "error-by-budget.svg").is_file()
    content = json.loads(CliRunner().invoke(app, ["plan", spec, "--json"]).stdout)
    line = next(li for li in content["expected_errors"] if li["query"] == "adult * sex")
    assert set(line["standard_error"]) == {"least", "median", "most"}
    assert set(line["relative_error_by_size"]) == {"100", "1000", "10000"}
