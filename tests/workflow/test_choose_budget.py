"""Specs that leave shares or the budget to be computed."""

import shutil
from fractions import Fraction

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from trellis import plan, run
from trellis.cli.app import app
from trellis.errors import ConfidentialWarning, InputError, SpecError, TrellisError
from trellis.planning.budget import allocate
from trellis.spec import Spec
from trellis.verify.verify import verify_run
from trellis.workflow.confidential.check import check
from trellis.workflow.outlook.plan_report import plan_report, report_to_json
from worlds import REMOVE, SPEC, changed, write_world

AREAS = "nation,state,town\n" + "".join(f"r,s{i // 5},t{i:02d}\n" for i in range(30))
PEOPLE = "town,people\n" + "".join(f"t{i:02d},{i * i % 17}\n" for i in range(30))
OLD = "town,people\n" + "".join(f"t{i:02d},{i % 11}\n" for i in range(30))


@pytest.fixture
def world(tmp_path):
    """Makes a spec with these changes, beside records and an earlier release."""

    def make(**changes):
        path = write_world(tmp_path, AREAS, PEOPLE, **changes)
        (tmp_path / "old.csv").write_text(OLD, encoding="utf-8")
        return Spec.load(path)

    return make


def shares_of(planned):
    return {q.level: q.share for q in planned.queries if q.noise is not None}


def problems(release):
    return [problem for finding in verify_run(release.path) for problem in finding.problems]


OPTIMAL = {"optimal": {"prior": "old.csv"}}


def test_optimal_without_a_prior_favours_the_many(world):
    shares = shares_of(plan(world(privacy__shares="optimal")))
    assert sum(shares.values()) == 1
    assert shares["town"] > shares["state"]


def test_targets_on_what_exact_totals_tell_are_refused(world, tmp_path):
    """The only state holds everyone, and the number of all is exact."""
    spec = world(
        unprotected={"totals": ["nation"]}, privacy__neighbours="replace", privacy__budget=REMOVE,
        accuracy=[{"level": "town", "within": 25}, {"level": "state", "within": 20}],
    )  # fmt: skip
    rows = "".join(f"r,s,t{i:02d}\n" for i in range(30))
    (tmp_path / "areas.csv").write_text("nation,state,town\n" + rows, encoding="utf-8")
    with pytest.raises(SpecError, match="'total' of 'state' is known from totals"):
        plan(spec)


def test_weights_move_the_shares(world):
    towns = {"optimal": {"weights": {"state": 1, "town": 1}}}
    states = {"optimal": {"weights": [100, 1]}}
    assert (
        shares_of(plan(world(privacy__shares=states)))["state"]
        > shares_of(plan(world(privacy__shares=towns)))["state"]
    )


def test_a_prior_gives_the_shares_of_program_6(world):
    spec = world(
        privacy__shares=OPTIMAL, privacy__mechanism="discrete_laplace",
        privacy__budget={"epsilon": "1/10"},
    )  # fmt: skip
    shares = shares_of(plan(spec))
    towns = [int(line.split(",")[1]) for line in OLD.splitlines()[1:]]
    states = [sum(towns[i : i + 5]) for i in range(0, 30, 5)]
    # Small budgets make the noise wide, and discrete noise is then much like continuous noise.
    found = allocate([states, towns], 0.1 / 2)
    assert float(shares["town"]) == pytest.approx(found[1] / found.sum(), abs=2e-3)


def test_computed_shares_are_released_and_verified(world, tmp_path):
    release = run(world(privacy__shares=OPTIMAL))
    assert sum(shares_of(release.plan).values()) == 1
    assert not problems(release)
    spec = (release.path / "spec.yaml").read_text()
    assert "optimal" in spec
    assert "old.csv" not in spec
    assert run(world(privacy__shares=OPTIMAL)).path == release.path


def test_check_finds_what_is_wrong_with_a_prior(world, tmp_path):
    spec = world(privacy__shares=OPTIMAL)
    (tmp_path / "old.csv").write_text("town,people\nt00,1\nx9,5\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"1 areas \('x9'\) of old\.csv"):
        check(spec)


# -- never from the confidential counts -----------------------------------------------------------


def refused(spec_or_call):
    with pytest.raises(SpecError, match=r"confidential file.*earlier release"):
        spec_or_call()


def test_the_confidential_file_is_refused_as_prior(world):
    refused(lambda: world(privacy__shares={"optimal": {"prior": "people.csv"}}))
    refused(lambda: world(privacy__shares={"optimal": {"prior": "./sub/../people.csv"}}))


@pytest.mark.parametrize("disguise", ["hardlink", "symlink"])
def test_the_confidential_file_is_refused_under_another_name(world, tmp_path, disguise):
    world()
    other, people = tmp_path / "public.csv", tmp_path / "people.csv"
    if disguise == "hardlink":
        other.hardlink_to(people)
    else:
        other.symlink_to(people)
    refused(lambda: world(privacy__shares={"optimal": {"prior": "public.csv"}}))


def same_counts(folder):
    """The counts of the records in other files: copied, shuffled, fewer columns, as Parquet."""
    people = pa_csv.read_csv(folder / "people.csv")
    backwards = people.take(list(range(people.num_rows))[::-1])
    shutil.copy(folder / "people.csv", folder / "copy.csv")
    pa_csv.write_csv(backwards, folder / "shuffled.csv")
    pa_csv.write_csv(people.select(["town", "people"]), folder / "fewer.csv")
    pq.write_table(people, folder / "other.parquet")
    return ["copy.csv", "shuffled.csv", "fewer.csv", "other.parquet"]


def test_a_prior_with_the_counts_of_the_records_is_asked_about_and_not_refused(world, tmp_path):
    world()
    for name in same_counts(tmp_path):
        spec = world(release=name, privacy__shares={"optimal": {"prior": name}})
        with pytest.warns(ConfidentialWarning, match="The prior has the counts of the records"):
            check(spec)
        with pytest.warns(
            ConfidentialWarning, match="reveal something about them, outside any budget"
        ):
            run(spec)


@pytest.mark.filterwarnings("error")
def test_a_prior_with_one_other_count_is_not_asked_about(world, tmp_path):
    world()
    people = pa_csv.read_csv(tmp_path / "people.csv").to_pydict()
    people["people"][0] += 1
    pa_csv.write_csv(pa.table(people), tmp_path / "nearly.csv")
    check(world(privacy__shares={"optimal": {"prior": "nearly.csv"}}))


def test_the_command_warns_and_asks_on_a_terminal_alone(world, tmp_path, monkeypatch):
    world(privacy__shares={"optimal": {"prior": "copy.csv"}})
    same_counts(tmp_path)
    spec = str(tmp_path / "spec.yaml")
    warned = CliRunner().invoke(app, ["--quiet", "check", spec])
    assert (warned.exit_code, warned.stdout) == (0, "")
    assert warned.stderr.startswith("warning: The prior has the counts of the records")
    asked = []

    def answer(text, **_):
        asked.append(text)
        return False

    monkeypatch.setattr("trellis.cli.terminal.typer.confirm", answer)
    monkeypatch.setattr("trellis.cli.terminal.is_attended", lambda: True)
    stopped = CliRunner().invoke(app, ["run", spec])
    assert (stopped.exit_code, asked) == (2, ["Go on?"])
    assert "Stopped. Nothing was spent." in stopped.stderr
    assert not (tmp_path / "runs").exists()
    monkeypatch.setattr("trellis.cli.terminal.is_attended", lambda: False)
    assert CliRunner().invoke(app, ["run", spec]).exit_code == 0
    assert len(asked) == 1


def test_the_confidential_file_is_refused_as_crosswalk(world):
    crosswalk = {"source": "people.csv", "old": "town", "new": "people"}
    refused(
        lambda: world(
            privacy__shares={"optimal": {"prior": {"source": "old.csv", "crosswalk": crosswalk}}}
        )
    )


def test_the_confidential_file_is_refused_for_simulations(world, tmp_path):
    from trellis.spec.sections.planning import PriorSpec

    prior = PriorSpec(source=str(tmp_path / "people.csv"))
    refused(lambda: plan_report(world(), releases=1, prior=prior))


# -- targets ---------------------------------------------------------------------------------------

TARGETS = [
    {"level": "state", "within": 20, "confidence": "0.95"},
    {"level": "town", "query": "total", "within": 8, "confidence": "0.9"},
]
LEAST = {"privacy__budget": {"delta": "1e-10"}, "accuracy": TARGETS}


def test_the_least_budget_meets_the_targets(world):
    report = plan_report(world(**LEAST))
    assert report.plan.budget.rho is not None
    assert all(line.is_met for line in report.targets)
    assert report.epsilon == report.plan.privacy.epsilon(Fraction(1, 10**10))
    content = report_to_json(report)
    assert [line["met"] for line in content["accuracy"]] == [True, True]
    assert content["epsilon_at_delta"]["delta"] == "1/10000000000"


def test_the_budget_may_be_left_out_altogether(world):
    changes = {"privacy__budget": REMOVE, "accuracy": TARGETS}
    assert plan(world(**changes)).budget == plan(world(**LEAST)).budget
    laplace = plan(world(privacy__mechanism="discrete_laplace", **changes))
    assert laplace.budget.is_pure


def test_stated_shares_and_budgets_are_kept(world):
    shares = {"state": "1/2", "town": "1/2"}
    report = plan_report(world(privacy__shares=shares, **LEAST))
    assert shares_of(report.plan) == {"state": Fraction(1, 2), "town": Fraction(1, 2)}
    assert all(line.is_met for line in report.targets)
    small = plan_report(world(accuracy=TARGETS, privacy__budget={"rho": "1/1000"}))
    assert small.plan.budget.rho == Fraction(1, 1000)
    assert not any(line.is_met for line in small.targets)
    for shares in ({}, {"privacy__shares": "optimal"}):
        # With a budget, targets are reported on and move nothing.
        changes = {"privacy__budget": {"rho": 1}, **shares}
        with_targets = plan_report(world(accuracy=TARGETS, **changes))
        assert with_targets.plan.queries == plan_report(world(**changes)).plan.queries
        assert with_targets.targets


def test_strategies_are_compared_on_all_levels(world):
    changes = {"privacy__mechanism": "discrete_laplace", "privacy__budget": {"epsilon": 1}}
    only = world(privacy__shares={"town": 1}, **changes)
    spec, uniform = plan_report(only, compare=["uniform"]).comparison
    assert spec.shares == pytest.approx({"state": 0, "town": 1})
    assert uniform.shares == {"state": 0.5, "town": 0.5}
    both = world(privacy__shares={"state": "1/2", "town": "1/2"}, **changes)
    same = plan_report(both, compare=["uniform"]).comparison
    assert uniform.std_errors == pytest.approx(same[0].std_errors)
    assert uniform.squared_error == pytest.approx(same[1].squared_error)
    weighed = world(privacy__shares={"optimal": {"weights": [1, 1]}}, **changes)
    assert len(plan_report(weighed, compare=["uniform"]).comparison) == 2


def test_weights_and_priors_go_with_targets(world):
    for optimal in ({"weights": [1, 1]}, {"prior": "old.csv"}):
        report = plan_report(world(privacy__shares={"optimal": optimal}, **LEAST))
        assert all(line.is_met for line in report.targets)


def test_epsilon_with_delta_is_kept_and_reported(world):
    report = plan_report(world(accuracy=TARGETS, privacy__budget={"epsilon": 1, "delta": "1e-9"}))
    assert report.plan.budget.epsilon == 1
    assert report.epsilon is not None
    assert report.epsilon <= 1


def test_a_release_with_the_least_budget_is_made_and_verified(world):
    assert not problems(run(world(**LEAST)))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"privacy__budget": REMOVE}, "Missing key 'privacy.budget'.*accuracy"),
        ({"privacy__budget": {"delta": "1e-9"}}, "states a delta and nothing else"),
        ({"privacy__budget": {"delta": "1/2"}, "accuracy": TARGETS}, "delta must be"),
        (
            {"accuracy": TARGETS, "privacy__budget": {"delta": "1e-9"},
             "privacy__mechanism": "discrete_laplace"},
            "Laplace noise needs none",
        ),
        ({"accuracy": [{"level": "state"}]}, "accuracy.0.within"),
        ({"accuracy": [{"within": 3}]}, "give either a level or an area"),
        ({"accuracy": [{"level": "state", "within": 0}]}, "must be positive"),
        ({"accuracy": [{"level": "state", "within": 1, "confidence": 1}]}, "confidence must lie"),
        ({"accuracy": TARGETS, "estimate__method": "topdown"}, "needs standard errors"),
        ({"privacy__shares": {"optimal": {"weight": {}}}}, "did you mean 'weights'"),
        ({"privacy__shares": {"optimal": {"prior": {"file": "x"}}}}, "optimal.prior"),
    ],
)  # fmt: skip
def test_specs_that_cannot_be_planned_are_refused(changes, words):
    with pytest.raises(SpecError, match=words):
        Spec.parse(changed(SPEC, **changes))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"accuracy": TARGETS[0]}, "accuracy: a list is needed, each of its parts with the keys"),
        ({"accuracy": ["town"]}, "accuracy.0: keys with values are needed: level, area, query, w"),
        ({"accuracy": [{"level": 5, "within": 1}]}, "accuracy.0.level: text is needed, in quotes"),
        ({"privacy__shares": {"town": "half"}}, "privacy.shares: town: 'half' is not a number"),
        ({"privacy__shares": {"optimal": 5}}, "optimal: keys with values are needed: prior, weig"),
        ({"privacy__shares": {"optimal": {"weights": 5}}}, "weights: write {level: number, ..}"),
        ({"privacy__shares": {"optimal": {"weights": [1, "x"]}}}, "weights.1: 'x' is not a number"),
        ({"privacy__shares": {"optimal": {"weights": {"town": []}}}}, "weights.town: a number"),
        ({"privacy__shares": {"optimal": {"weights": {"a/b": 1}}}}, "weights.a/b: use letters"),
        ({"privacy__shares": {"optimal": {"prior": 5}}}, "prior: keys with values are needed: sou"),
        (
            {"privacy__shares": {"optimal": {"prior": {"source": "x", "missing": 0}}}},
            "missing: use 'refuse' or 'zero'.",
        ),
        ({"privacy__budget": 1}, "privacy.budget: keys with values are needed: rho, epsilon, del"),
        ({"privacy__max_contribution": "x"}, "max_contribution: a whole number is needed."),
        ({"output__csv": "maybe"}, "output.csv: write true or false."),
        ({"unprotected__totals": "state"}, "unprotected.totals: a list is needed, such as [a, b]."),
        (
            {"schema": {"sex": ["f", "m"]}, "strategy": 5},
            "strategy: names with values are needed, such as {name: value}.",
        ),
        (
            {
                "schema": {"sex": ["f", "m"]},
                "strategy": {"optimal": {"weights": {"town": {"total": "x"}}}},
            },
            "strategy.optimal.weights.town.total: 'x' is not a number",
        ),
    ],
)  # fmt: skip
def test_malformed_values_are_told_in_words_of_the_spec(changes, words):
    with pytest.raises(SpecError) as refused:
        Spec.parse(changed(SPEC, **changes))
    assert words in str(refused.value)
    assert "more to put right" not in str(refused.value)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"accuracy": [{"level": "county", "within": 1}]}, "accuracy names level 'county'"),
        ({"accuracy": [{"level": "nation", "within": 1}]}, "published exactly"),
        ({"accuracy": [{"area": "place", "within": 1}]}, "names areas 'place'; none is declared"),
        ({"accuracy": [{"level": "town", "within": 1, "query": "sex"}]}, "neither an attribute"),
        ({"privacy__shares": {"optimal": {"weights": [1, 1, 1]}}}, "3 weights for 2 measured"),
        (
            {"accuracy": [{"level": "town", "within": 1}], "privacy__budget": REMOVE,
             "ledger__limit": {"rho": "1/100"}},
            "cannot be reached.*rho = 1/100, reaches",
        ),
        ({"accuracy": [{"level": "town", "within": "2.9"}]}, "within 2.9 means within 2"),
        (
            {"privacy__shares": "optimal", "privacy__mechanism": "discrete_laplace",
             "privacy__budget": {"epsilon": 1}, "estimate": {"method": "topdown"}},
            "predicts the errors of gls_topdown",
        ),
    ],
)  # fmt: skip
def test_wishes_that_do_not_fit_the_areas_are_refused(world, changes, words):
    with pytest.raises(TrellisError, match=words):
        plan(world(**changes))


def test_other_kinds_are_refused(tmp_path):
    spec = changed(SPEC, kind="group_sizes", accuracy=TARGETS)
    with pytest.raises(SpecError):
        Spec.parse(spec)


# -- simulation ------------------------------------------------------------------------------------


@pytest.mark.usefixtures("same_simulation")
def test_simulation_reports_error_bias_and_coverage(world, tmp_path):
    from trellis.spec.sections.planning import PriorSpec

    prior = PriorSpec(source=str(tmp_path / "old.csv"))
    report = plan_report(world(accuracy=TARGETS), releases=40, prior=prior)
    assert report.simulation is not None
    nation, _, town = report.simulation.levels
    assert nation.root_mean_square == 0
    assert town.coverage is not None
    assert town.coverage > 0.85
    assert 0 < town.false_positive_rate < 1
    assert town.bias[0] > 0
    assert town.bias[1_000] is None
    assert report.outlook is not None
    expected = report.outlook.root_mean_squares()["town"]
    assert town.linear_root_mean_square == pytest.approx(expected, rel=0.15)  # 1,200 draws
    content = report_to_json(report)["simulation"]
    assert content["releases"] == 40
    assert len(content["within_target"]) == 2


def test_methods_without_variances_are_simulated_too(world, tmp_path):
    spec = world(estimate__method="bottomup", privacy__shares=OPTIMAL)
    report = plan_report(spec, releases=2)
    assert report.outlook is None
    assert report.simulation.levels[-1].coverage is None


def test_simulation_needs_public_counts(world):
    with pytest.raises(SpecError, match="with prior"):
        plan_report(world(), releases=3)
    with pytest.raises(SpecError, match="1 or more"):
        plan_report(world(privacy__shares=OPTIMAL), releases=0)


def test_comparing_needs_standard_errors(world):
    with pytest.raises(SpecError, match="compare needs"):
        plan_report(world(estimate__method="topdown"), compare=["uniform"])
