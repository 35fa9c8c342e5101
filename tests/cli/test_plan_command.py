"""`trellis plan`: tables, JSON, pictures, comparisons and simulations."""

import json

import pytest
from typer.testing import CliRunner

from trellis.cli.app import app
from worlds import REMOVE, write_world

OLD = "town,people\na1,4\na2,0\nb1,30\n"
TARGETS = [{"level": "town", "within": 12, "confidence": "0.9"}]


@pytest.fixture
def world(tmp_path):
    def make(**changes):
        path = write_world(tmp_path, **changes)
        (tmp_path / "old.csv").write_text(OLD, encoding="utf-8")
        return path

    return make


def invoke(*arguments, columns=200):
    return CliRunner().invoke(app, [str(a) for a in arguments], env={"COLUMNS": str(columns)})


def refusal(*arguments):
    done = invoke("plan", *arguments)
    assert done.exit_code == 2
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    return done.stderr


def test_errors_relative_errors_and_biases_are_shown(world):
    shown = invoke("plan", world())
    assert shown.exit_code == 0
    for words in ("at 100", "at 1,000", "at 10,000", "Bias of clipping", "town", "total"):
        assert words in shown.output


def test_tables_fit_a_narrow_terminal(world, tmp_path):
    options = ("--simulate", 2, "--prior", tmp_path / "old.csv")
    shown, wide = (invoke("plan", world(), *options, columns=n).output for n in (80, 200))
    assert shown.count("\n") == wide.count("\n")


def test_large_and_odd_numbers_are_not_broken_on_a_narrow_terminal(world):
    spec = world(accuracy=[{"level": "state", "within": 300_007}], privacy__budget=REMOVE,
                 privacy__shares={"state": "9999/10001", "town": "2/10001"})  # fmt: skip
    narrow, wide = (invoke("plan", spec, columns=n).output for n in (80, 200))
    assert max(len(line) for line in narrow.splitlines() if "│" in line) <= 80
    numbers = [word for word in wide.split() if word[0] in "(0123456789" and "/" not in word]
    assert any(word.count(",") > 1 for word in numbers)
    assert set(numbers) <= set(narrow.split())


def test_tables_say_what_their_numbers_are_in(world, tmp_path):
    options = ("--compare", "uniform", "--simulate", 2, "--prior", tmp_path / "old.csv")
    shown = invoke("plan", world(accuracy=TARGETS), *options).output
    titles = [line for line in shown.splitlines() if "┏" not in line]
    for words in ("gls_topdown; errors in records", "count; std error in records",
                  "Bias of clipping by true count, in records", "Accuracy, in records",
                  "strategies, in records", "root mean square errors in records",
                  "Bias of published counts by true count, in records"):  # fmt: skip
        assert any(words in line for line in titles)
    assert "90 % coverage" in shown


def test_json_has_the_same_numbers(world):
    content = json.loads(invoke("plan", world(accuracy=TARGETS), "--json").stdout)
    town = content["expected_errors"][-1]
    assert town["level"] == "town"
    error = town["standard_error"]["median"]
    assert town["relative_error_by_size"]["100"] == pytest.approx(error / 100)
    assert town["clipping_bias_by_size"]["0"] == pytest.approx(0.398942 * error, rel=1e-5)
    assert content["accuracy"][0]["level"] == "town"
    assert content["queries"]


def test_a_target_without_a_budget(world):
    shown = invoke("plan", world(accuracy=TARGETS, privacy__budget={"delta": "1e-9"}))
    assert shown.exit_code == 0
    assert "What decides: town total within 12 (90 %)." in shown.output
    assert "At delta = 1/1000000000: epsilon <=" in shown.output


def decided_by(spec):
    return json.loads(invoke("plan", spec, "--json").stdout)["budget_decided_by"]


def test_equal_targets_are_said_to_bind_together(world):
    spec = world(accuracy=[TARGETS[0], dict(TARGETS[0])], privacy__budget=REMOVE)
    shown = invoke("plan", spec).output
    label = "town total within 12 (90 %)"
    assert f"These bind together, so relaxing one saves nothing: {label}; {label}." in shown
    assert shown.count("0 alone") == 2
    lines = json.loads(invoke("plan", spec, "--json").stdout)["accuracy"]
    assert [(line["binding"], line["budget_per_unit"]) for line in lines] == [(True, 0)] * 2


def test_a_budget_that_no_target_decides_says_so(world):
    loose = [{"level": "town", "within": 10**8}]
    spec = world(accuracy=loose, privacy__budget=REMOVE)
    shown = invoke("plan", spec).output
    assert "What decides: no target, rho = 1/1000000 is the least possible budget." in shown
    assert "0, does not bind" in shown
    assert decided_by(spec) == ["no target, rho = 1/1000000 is the least possible budget"]
    stated = world(accuracy=TARGETS)
    assert "What decides: the stated budget." in invoke("plan", stated).output
    assert decided_by(stated) == ["the stated budget"]
    tight = world(accuracy=TARGETS, privacy__budget=REMOVE)
    assert decided_by(tight) == ["town total within 12 (90 %)"]


def test_shares_that_foresee_another_method_say_so(world):
    spec = world(privacy__shares="optimal", estimate={"method": "topdown"})
    words = "privacy.shares.optimal predicts the errors of gls_topdown, not those of topdown"
    assert words in invoke("plan", spec).output
    (note,) = json.loads(invoke("plan", spec, "--json").stdout)["notes"]
    assert note.startswith(words)
    for other in (
        {"privacy__shares": "optimal"},
        {"privacy__shares": {"optimal": {"prior": "old.csv"}}, "estimate": {"method": "topdown"}},
        {"estimate": {"method": "topdown"}},
    ):
        assert "notes" not in json.loads(invoke("plan", world(**other), "--json").stdout)


def test_strategies_are_compared(world):
    shown = invoke("plan", world(), "--compare", "uniform", "optimal", "bottom-heavy,census")
    assert shown.exit_code == 0
    for name in ("spec", "uniform", "optimal", "bottom-heavy", "census"):
        assert name in shown.output
    content = json.loads(invoke("plan", world(), "--json", "--compare", "fan-out").stdout)
    assert [line["strategy"] for line in content["comparison"]] == ["spec", "fan-out"]


def test_releases_are_simulated(world, tmp_path):
    prior = tmp_path / "old.csv"
    shown = invoke("plan", world(accuracy=TARGETS), "--simulate", 3, "--prior", prior)
    assert shown.exit_code == 0
    assert "3 simulated releases" in shown.output
    assert "simulate 3 ..." in shown.stderr
    assert "town total within 12 (90 %): reached in" in shown.output
    columns = tmp_path / "columns.csv"
    columns.write_text(OLD.replace("town,people", "place,n"), encoding="utf-8")
    options = ("--prior", columns, "--prior-area", "place", "--prior-count", "n")
    again = invoke("plan", world(), "--json", "--simulate", 2, *options)
    assert json.loads(again.stdout)["simulation"]["releases"] == 2


def test_the_prior_of_the_spec_is_simulated_by_default(world):
    spec = world(privacy__shares={"optimal": {"prior": "old.csv"}})
    assert "2 simulated releases" in invoke("plan", spec, "--simulate", 2).output


def test_pictures_are_drawn(world, tmp_path):
    folder = tmp_path / "pictures"
    done = invoke("plan", world(), "--pictures", folder, "--compare", "uniform")
    assert done.exit_code == 0
    drawn = {path.name: path.read_text() for path in folder.iterdir()}
    assert set(drawn) == {"shares.svg", "shares-uniform.svg", "error-by-budget.svg"}
    assert all(text.startswith("<svg") for text in drawn.values())
    assert "polyline" in drawn["error-by-budget.svg"]


def test_nothing_is_written_and_nothing_spent(world, tmp_path):
    spec = world()
    before = sorted(path.name for path in tmp_path.iterdir())
    invoke("plan", spec, "--simulate", 1, "--prior", tmp_path / "old.csv")
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_records_are_never_read(world, tmp_path):
    spec = world(accuracy=TARGETS, privacy__budget=REMOVE)
    (tmp_path / "people.csv").unlink()
    assert invoke("plan", spec, "--compare", "optimal").exit_code == 0


def test_bad_options_are_refused(world, tmp_path):
    spec = world()
    assert "--compare needs strategies" in refusal(spec, "--compare")
    assert "--compare needs strategies" in refusal(spec, "uniform")
    assert "no strategy 'magic'" in refusal(spec, "--compare", "magic")
    assert "--prior goes with --simulate" in refusal(spec, "--prior", tmp_path / "old.csv")
    assert "--prior-area and" in refusal(spec, "--simulate", 1, "--prior-area", "x")
    assert "public counts" in refusal(spec, "--simulate", 1)
    assert "1 or more" in refusal(spec, "--simulate", 0, "--prior", tmp_path / "old.csv")
    assert "no file" in refusal(spec, "--simulate", 1, "--prior", tmp_path / "none.csv")
    people = tmp_path / "people.csv"
    assert "confidential file" in refusal(spec, "--simulate", 1, "--prior", people)
    (tmp_path / "taken").write_text("")
    assert "could not be written" in refusal(spec, "--pictures", tmp_path / "taken")
