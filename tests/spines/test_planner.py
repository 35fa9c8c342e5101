"""What the planner shows and suggests, without counts; and the commands that do it."""

import csv
from fractions import Fraction as F
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml
from typer.testing import CliRunner

import trellis
from spine_worlds import SPEC, blocks
from trellis.cli.app import app
from trellis.errors import SpecError
from trellis.planning.spine.search import in_yaml
from trellis.workflow.outlook.suggest import suggest

TABLE = blocks()


@pytest.fixture
def world(tmp_path) -> Path:
    """The spec on disk; weights spare the published block groups."""
    pq.write_table(TABLE.select(["geoid", "place", "zone"]), tmp_path / "blocks.parquet")
    content = {**SPEC, "hierarchy": {**SPEC["hierarchy"], "source": "blocks.parquet"}}
    content["areas"] = {
        name: {**area, "source": "blocks.parquet"} for name, area in SPEC["areas"].items()
    }
    (tmp_path / "spec.yaml").write_text(yaml.safe_dump(content, sort_keys=False))
    return tmp_path


def invoke(*arguments) -> str:
    result = CliRunner().invoke(app, list(map(str, arguments)))
    assert result.exit_code == 0, result.output
    return result.output


def test_plan_shows_before_and_after(world):
    text = invoke("plan", world / "spec.yaml")
    assert "Areas of interest and published levels" in text
    assert "place" in text
    assert "Worse than without the spine: " in text
    assert "block_group (" in text


def test_codes_of_areas_are_not_carried_out_by_a_spreadsheet(world):
    """As in the tables: text that begins like a formula has an apostrophe in front."""
    odd = ["=1+1", "+1", "-1", "@x", "\tx", "fine"]
    table = TABLE.select(["geoid"]).append_column(
        "zone", [[odd[i % len(odd)] for i in range(len(TABLE))]]
    )
    pq.write_table(table, world / "zones.parquet")
    content = yaml.safe_load((world / "spec.yaml").read_text())
    content["areas"]["zone"]["source"] = "zones.parquet"
    (world / "spec.yaml").write_text(yaml.safe_dump(content, sort_keys=False))
    invoke("plan", world / "spec.yaml", "--areas", world / "a.csv")
    with (world / "a.csv").open(newline="") as file:
        zones = {row["area"] for row in csv.DictReader(file) if row["category"] == "zone"}
    assert zones == {"'=1+1", "'+1", "'-1", "'@x", "'\tx", "fine"}


def test_plan_writes_areas_and_a_picture(world):
    invoke("plan", world / "spec.yaml", "--areas", world / "a.csv", "--picture", world / "p.svg")
    with (world / "a.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["category"] for row in rows} == {"place", "zone"}
    n_places = len({p for p in TABLE["place"].to_pylist() if p})
    places = [row for row in rows if row["category"] == "place"]
    assert len(places) == n_places
    plan = trellis.plan(trellis.Spec.load(world / "spec.yaml"))
    mean = np.mean([float(row["std_error_after"]) for row in places])
    effect = next(e for e in plan.forecast.effects if e.name == "place")
    assert mean == pytest.approx(effect.error_after)
    assert (world / "p.svg").read_text().startswith("<svg")


def test_suggestions_are_the_best_of_what_was_tried(world):
    spec = trellis.Spec.load(world / "spec.yaml")
    candidates = suggest(spec)
    scores = [float(f"{c.score:.4g}") for c in candidates]
    assert scores == sorted(scores)
    plain = next(c for c in candidates if not c.steps)
    assert candidates[0].score < plain.score
    # The score is what a plan with these settings expects.
    chosen = yaml.safe_load(in_yaml(candidates[0].steps))
    content = yaml.safe_load((world / "spec.yaml").read_text()) | chosen
    plan = trellis.plan(trellis.Spec.parse(content, world))
    errors = {e.name: e.error_after for e in plan.forecast.effects}
    assert np.mean([errors["place"], errors["zone"]]) == pytest.approx(candidates[0].score)


def test_weights_change_the_suggestion(world):
    content = yaml.safe_load((world / "spec.yaml").read_text())
    content["areas"]["block_group"] = {"weight": 1000}
    best = suggest(trellis.Spec.parse(content, world))[0]
    names = list(content["areas"])
    plain = next(c for c in suggest(trellis.Spec.parse(content, world)) if not c.steps)
    position = names.index("block_group")
    assert best.errors[position] <= plain.errors[position] * 1.1


def test_suggest_prints_settings_that_a_spec_accepts(world):
    text = invoke("plan", world / "spec.yaml", "--suggest")
    assert "without a spine" in text
    suggested = text.split("Suggested:\n")[1]
    content = yaml.safe_load((world / "spec.yaml").read_text()) | yaml.safe_load(suggested)
    assert trellis.Spec.parse(content, world).spine


def test_nothing_to_suggest(world):
    content = yaml.safe_load((world / "spec.yaml").read_text())
    content |= {"areas": {}, "spine": []}
    with pytest.raises(SpecError, match="no areas of interest"):
        suggest(trellis.Spec.parse(content, world))
    for area in SPEC["areas"]:
        content["areas"][area] = {**SPEC["areas"][area], "source": "blocks.parquet", "weight": 0}
    with pytest.raises(SpecError, match="weight above 0"):
        suggest(trellis.Spec.parse(content, world))
    for option in ("--areas", "--picture"):
        (world / "plain.yaml").write_text(yaml.safe_dump(content | {"areas": {}}, sort_keys=False))
        result = CliRunner().invoke(app, ["plan", str(world / "plain.yaml"), option, "x"])
        assert result.exit_code == 2


def test_plan_of_uniform_shares_gives_a_level_of_groups_its_own(world):
    content = yaml.safe_load((world / "spec.yaml").read_text())
    content["spine"] = [{"group_level": {"level": "tract", "areas": ["place"], "name": "parish"}}]
    plan = trellis.plan(trellis.Spec.parse(content, world))
    assert plan.spine.levels[2] == "parish"
    assert plan.spine.shares[2] == (F(1, 5),)
    assert plan.levels == ("state", "county", "tract", "block_group", "block")
