"""Specs with targets on areas of interest, on the published tree and on a spine."""

import json
import re
from fractions import Fraction

import pyarrow.csv as csv
import pytest
import yaml
from typer.testing import CliRunner

import spine_worlds
from trellis.cli.app import app
from trellis.errors import SpecError
from trellis.planning.spine.effects import entity_effects
from trellis.spec.sections.planning import PriorSpec
from trellis.verify.verify import verify_run
from trellis.workflow.frames import Frames
from trellis.workflow.outlook.plan_report import plan_report, report_to_json

TABLE = spine_worlds.blocks()
FRAMES = Frames(
    hierarchy=TABLE.select(["geoid"]),
    areas={name: TABLE.select(["geoid", name]) for name in ("place", "zone")},
)
TARGETS = [
    {"level": "county", "within": 30},
    {"level": "block", "within": 12, "confidence": "0.9"},
    {"area": "place", "within": 25},
    {"area": "zone", "within": 40, "confidence": "0.9"},
]
OPEN = {**spine_worlds.SPEC["privacy"], "budget": {"delta": "1e-10"}}
LAPLACE = {
    key: value
    for key, value in ({**OPEN, "mechanism": "discrete_laplace"}).items()
    if key != "budget"
}
SPINE = spine_worlds.SPEC["spine"]


def wish(folder, *, spine=SPINE, privacy=OPEN, **changes):
    content = {**spine_worlds.SPEC, "accuracy": TARGETS, **changes}
    content |= {"privacy": privacy, "spine": spine}
    return spine_worlds.trellis.Spec.parse(content, folder)


def std_errors(report):
    """The largest standard error of every level and category, computed as for a release."""
    interests = report.prepared.interests
    effects = entity_effects(
        report.plan, report.prepared.hierarchy, interests.spine, interests.categories,
        interests.conventional,
    )  # fmt: skip
    return {e.category.name: float(e.error_after.max()) for e in effects}


@pytest.mark.parametrize("privacy", [OPEN, LAPLACE], ids=["gaussian", "laplace"])
@pytest.mark.parametrize("spine", [SPINE, []], ids=["spine", "tree"])
def test_the_least_budget_meets_the_targets(tmp_path, spine, privacy):
    report = plan_report(wish(tmp_path, spine=spine, privacy=privacy), FRAMES)
    assert [line.is_met for line in report.targets] == [True] * 4
    follows_shares = bool(spine) and privacy is LAPLACE
    assert [line.budget_per_unit is None for line in report.targets] == [follows_shares] * 4
    assert any(line.binds for line in report.targets)
    worst = std_errors(report)
    for line in report.targets:
        half_width = worst[line.target.name] * line.target.factor(
            report.prepared.spec.privacy.mechanism
        )
        assert line.reached == pytest.approx(half_width, rel=1e-9)
    largest = max(line.reached / float(line.target.within) for line in report.targets)
    assert largest == pytest.approx(1, abs=1e-4)


def test_a_spine_for_places_needs_less(tmp_path):
    asked = [{"area": "place", "within": 20}]
    with_spine = plan_report(wish(tmp_path, accuracy=asked), FRAMES).plan
    without = plan_report(wish(tmp_path, accuracy=asked, spine=[]), FRAMES).plan
    assert with_spine.budget.rho < without.budget.rho


def test_stated_shares_and_budgets_are_kept_on_a_spine(tmp_path):
    shares = {"county": "1/4", "tract": "1/4", "block_group": "1/4", "block": "1/4"}
    report = plan_report(wish(tmp_path, privacy={**OPEN, "shares": shares}), FRAMES)
    assert set(report.prepared.interests.shares.values()) == {Fraction(1, 4)}
    assert sum(line.binds for line in report.targets) == 1
    small = {**OPEN, "budget": {"rho": "1/1000"}}
    report = plan_report(wish(tmp_path, privacy=small), FRAMES)
    assert report.plan.budget.rho == Fraction(1, 1000)
    assert not any(line.is_met for line in report.targets)
    stated = {**OPEN, "budget": {"epsilon": 1, "delta": "1e-9"}, "shares": shares}
    worst = plan_report(wish(tmp_path, privacy=stated), FRAMES)
    for line in worst.targets:
        half_width = std_errors(worst)[line.target.name] * line.target.factor("discrete_gaussian")
        assert line.reached == pytest.approx(half_width, rel=1e-9)


@pytest.mark.parametrize("spine", [SPINE, []], ids=["spine", "tree"])
def test_weights_may_name_areas(tmp_path, spine):
    def with_weight(place):
        weights = {"county": 1, "tract": 1, "block_group": 1, "block": 1, "place": place}
        privacy = {**OPEN, "budget": {"rho": 1}, "shares": {"optimal": {"weights": weights}}}
        content = {**spine_worlds.SPEC, "privacy": privacy, "spine": spine}
        made = plan_report(spine_worlds.trellis.Spec.parse(content, tmp_path), FRAMES).plan
        return next(e.error_after for e in made.forecast.effects if e.name == "place")

    assert with_weight(500) < with_weight(0)


def test_a_prior_gives_shares_on_a_spine(tmp_path):
    csv.write_csv(TABLE.select(["geoid", "pop"]), tmp_path / "old.csv")
    optimal = {"optimal": {"prior": {"source": "old.csv", "count": "pop"}}}
    group = {"group_level": {"level": "tract", "areas": ["place"], "fanout_cutoff": 2}}
    spec = wish(tmp_path, privacy={**OPEN, "shares": optimal}, spine=[group, "bypass"])
    report = plan_report(spec, FRAMES)
    shares = report.prepared.interests.shares
    assert sum(shares.values()) == 1
    assert "tract_group" not in shares  # it is not published, so nobody reads it
    assert all(line.is_met for line in report.targets)


def test_a_prior_with_weights_on_areas_is_refused(tmp_path):
    csv.write_csv(TABLE.select(["geoid", "pop"]), tmp_path / "old.csv")
    weights = {"county": 1, "tract": 1, "block_group": 1, "block": 1, "place": 2}
    optimal = {"prior": {"source": "old.csv", "count": "pop"}, "weights": weights}
    spec = wish(tmp_path, privacy={**OPEN, "shares": {"optimal": optimal}})
    with pytest.raises(SpecError, match="Leave out the prior, or the weight of 'place'"):
        plan_report(spec, FRAMES)


@pytest.mark.usefixtures("same_simulation")
@pytest.mark.parametrize("spine", [SPINE, []], ids=["spine", "tree"])
def test_simulation_counts_the_areas_that_came_out_within(tmp_path, spine):
    csv.write_csv(TABLE.select(["geoid", "pop"]), tmp_path / "old.csv")
    prior = PriorSpec(source="old.csv", area="geoid", count="pop")
    report = plan_report(wish(tmp_path, spine=spine), FRAMES, releases=10, prior=prior)
    seen = report_to_json(report)["simulation"]
    assert [line["area"] for line in seen["areas"]] == ["place", "zone"]
    assert [line["level"] for line in seen["levels"]] == list(report.plan.levels)
    for line, share in zip(report.targets, seen["within_target"], strict=True):
        assert share >= float(line.target.confidence) - 0.06
    for line in seen["areas"]:
        expected = report.root_mean_squares[line["area"]]
        assert line["linear_root_mean_square_error"] == pytest.approx(expected, rel=0.3)
        assert 0.8 < line["coverage"] <= 1


def test_a_release_with_the_least_budget_on_a_spine_is_made_and_verified(tmp_path):
    release = spine_worlds.release(
        tmp_path, TABLE, accuracy=TARGETS, privacy={"budget": {"delta": "1e-10"}}
    )
    assert not [p for finding in verify_run(release.path) for p in finding.problems]


# -- on the command line ---------------------------------------------------------------------------


def on_disk(folder, **changes):
    content = {**spine_worlds.SPEC, "accuracy": TARGETS, "privacy": OPEN, **changes}
    csv.write_csv(TABLE, folder / "areas.csv")
    csv.write_csv(TABLE.select(["geoid", "pop"]), folder / "people.csv")
    csv.write_csv(TABLE.select(["geoid", "some"]), folder / "old.csv")
    content["data"] = {**content["data"], "source": "people.csv"}
    content["hierarchy"] = {**content["hierarchy"], "source": "areas.csv"}
    content["areas"] = {k: {**v, "source": "areas.csv"} for k, v in content["areas"].items()}
    (folder / "spec.yaml").write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
    return folder / "spec.yaml"


def invoke(*arguments):
    done = CliRunner().invoke(app, [str(a) for a in arguments], env={"COLUMNS": "200"})
    return done


@pytest.mark.parametrize("spine", [SPINE, []], ids=["spine", "tree"])
def test_the_plan_shows_it_all(tmp_path, spine):
    spec = on_disk(tmp_path, spine=spine)
    options = (
        "--pictures",
        tmp_path / "pictures",
        "--simulate",
        2,
        "--prior",
        tmp_path / "old.csv",
    )
    shown = invoke("plan", spec, *options, "--prior-count", "some")
    assert shown.exit_code == 0, shown.output
    for words in ("place (areas)", "zone (areas)", "place total within 25 (95 %)", "What decides",
                  "place total within 25 (95 %): reached in", "Bias of clipping"):  # fmt: skip
        assert words in shown.output
    picture = (tmp_path / "pictures" / "error-by-budget.svg").read_text()
    for name in ("place", "zone", "county", "block"):
        assert name in picture
    assert "%" in (tmp_path / "pictures" / "shares.svg").read_text()
    content = json.loads(invoke("plan", spec, "--json").stdout)
    assert [line.get("area") for line in content["accuracy"]] == [None, None, "place", "zone"]
    assert {line.get("area") for line in content["expected_errors"]} == {None, "place", "zone"}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"accuracy": [{"area": "school", "within": 1}]}, "names areas 'school'; there are place"),
        ({"accuracy": [{"area": "tract", "within": 1}]}, "'tract' is a level"),
        ({"accuracy": [{"area": "place", "within": 1, "query": "sex"}]}, "neither an attribute"),
        ({"accuracy": [{"level": "state", "within": 1}]}, "published exactly"),
        ({"estimate": {"method": "topdown"}, "spine": []}, "needs standard errors"),
        ({"ledger": {"limit": {"rho": "1/1000"}}}, "cannot be reached.*1/1000, reaches"),
        ({"spine": [{"regroup_leaves": {"areas": ["lake"]}}]}, "spine names areas 'lake'"),
        ({"areas": {}, "spine": []}, "names areas 'place'; none is declared"),
    ],
)  # fmt: skip
def test_bad_targets_are_refused_in_one_line(tmp_path, changes, words):
    done = invoke("plan", on_disk(tmp_path, **changes))
    assert done.exit_code == 2
    assert done.stderr.count("\n") == 1
    assert re.search(words, done.stderr), done.stderr


def test_a_category_without_any_leaf_is_refused(tmp_path):
    spec = on_disk(tmp_path)
    table = TABLE.drop_columns(["place"]).append_column("place", [[""] * TABLE.num_rows])
    csv.write_csv(table, tmp_path / "areas.csv")
    done = invoke("plan", spec)
    assert done.exit_code == 2
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1


def test_strategies_are_not_compared_on_a_spine(tmp_path):
    done = invoke("plan", on_disk(tmp_path), "--compare", "uniform")
    assert done.exit_code == 2
    assert "without a spine" in done.stderr
