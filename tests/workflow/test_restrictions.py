"""What is required of the records stands in every statement of privacy (findings P2, P3, P5)."""

import json

import pytest
import yaml
from typer.testing import CliRunner

import flow_worlds
import size_worlds
import trellis
from histogram_release_worlds import PEOPLE, problems, write_histogram_world
from trellis.cli.app import app
from trellis.errors import InputError, SpecError
from trellis.privacy.neighbours import Neighbours
from trellis.privacy.protection import Protection
from worlds import write_world

HOMES = {
    "name": "homes",
    "source": "facilities.csv",
    "area": "town",
    "query": "age",
    "facilities": "homes",
    "open_to_all": ["0", "1", "2"],
}
ZEROS = ["age = 1 and sex = m"]
RULES = {"constraints": [HOMES], "structural_zeros": ZEROS}
BOUND = "the bounds of constraint 'homes'"
OUTPUT = {
    "constraints": [{**HOMES, "binds": "output"}],
    "structural_zeros": {"binds": "output", "rules": ZEROS},
}


def released(folder, people=PEOPLE, **changes):
    spec = write_histogram_world(folder, people, **changes)
    return trellis.run(trellis.Spec.load(spec)).path


def record_of(run):
    return json.loads((run / "privacy.json").read_text(encoding="utf-8"))


def test_every_document_states_every_restriction(tmp_path):
    run = released(tmp_path, **RULES)
    record = record_of(run)
    assert len(record["restrictions"]) == 2
    assert "structural zeros" in record["restrictions"][0]
    assert BOUND in record["restrictions"][1]
    documents = {
        "privacy.json": " ".join(record["guarantee"]),
        "report": (run / "report" / "index.html")
        .read_text(encoding="utf-8")
        .replace("&#x27;", "'"),
        "guide": (run / "release" / "README.md").read_text(encoding="utf-8"),
        "deployment": (run / "deployment.yaml").read_text(encoding="utf-8").replace("''", "'"),
    }
    texts = {name: " ".join(text.split()) for name, text in documents.items()}
    for name, text in texts.items():
        assert BOUND in text, name
        assert "the structural zeros" in text, name
        assert "only changes that keep it are protected" in text, name
    assert problems(run) == {}


def ledger_words(folder):
    return ["ledger", "towns", "--ledger", str(folder / "ledger.sqlite")]


def test_plan_account_and_ledger_state_them_too(tmp_path):
    run = released(tmp_path, **RULES)
    spec = str(tmp_path / "spec.yaml")
    commands = (["plan", spec], ["account", spec], ["account", str(run)], ledger_words(tmp_path))
    for words in commands:
        shown = CliRunner().invoke(app, words)
        assert shown.exit_code == 0, shown.output
        assert BOUND in " ".join(shown.output.split()), words
    stated = CliRunner().invoke(app, ["account", str(run), "--delta", "1e-10", "--json"])
    assert json.loads(stated.output)["restrictions"] == record_of(run)["restrictions"]
    added = json.loads(CliRunner().invoke(app, [*ledger_words(tmp_path), "--json"]).output)
    assert added["units"]["person"]["restrictions"] == record_of(run)["restrictions"]


def test_exact_totals_are_a_restriction_of_every_statement(tmp_path):
    run = released(tmp_path, unprotected={"totals": ["nation", "state"]})
    record = record_of(run)
    assert record["protected_within_level"] == "state"
    [sentence] = record["restrictions"]
    assert "'state'" in sentence
    for words in (["account", str(run)], ledger_words(tmp_path)):
        shown = CliRunner().invoke(app, words)
        assert "same area of that level" in " ".join(shown.output.split())


def test_smaller_changes_between_areas_with_exact_totals_are_not_listed(tmp_path):
    """Epsilon was stated for moves within a nation whose states' totals are exact."""
    changes = [
        change["change"]
        for change in record_of(released(tmp_path, unprotected={"totals": ["nation", "state"]}))[
            "smaller_changes"
        ]
    ]
    assert "location only, within one area of level state" in changes
    assert "location only, within one area of level nation" not in changes


def test_no_rule_no_restriction(tmp_path):
    assert record_of(released(tmp_path))["restrictions"] == []


def test_records_that_break_a_rule_are_refused_only_if_it_binds_them(tmp_path):
    """A man of age 1, and a person of age 3 in a town without a home for them."""
    people = PEOPLE + "a2,1,m,3\na2,3,f,1\n"
    for rules in ({"constraints": [HOMES]}, {"structural_zeros": ZEROS}):
        with pytest.raises(InputError):
            released(tmp_path / "refused", people, **rules)
    run = released(tmp_path / "output", people, **OUTPUT)
    assert record_of(run)["restrictions"] == []
    assert problems(run) == {}
    counts = trellis.Release(run).table("town", "adult * sex").to_pylist()
    assert sum(row["count"] for row in counts) > 0


def test_what_binds_the_output_alone_is_kept_by_it(tmp_path):
    people = PEOPLE + "a2,1,m,3\na2,3,f,1\n"
    changes = {**OUTPUT, "output": {"tables": {"default": ["detailed"]}}}
    rows = trellis.Release(released(tmp_path, people, **changes)).table("town").to_pylist()
    assert not any(row["count"] for row in rows if (row["age"], row["sex"]) == ("1", "m"))
    assert not any(row["count"] for row in rows if (row["geocode"], row["age"]) == ("a2", "3"))


def test_rules_of_the_output_that_exact_totals_rule_out_are_refused_before_the_charge(tmp_path):
    (tmp_path / "few.csv").write_text("town,most\na1,2\n", encoding="utf-8")
    few = {
        "name": "few", "source": "few.csv", "area": "town", "query": "total", "at_most": "most",
        "binds": "output",
    }  # fmt: skip
    exact = {"unprotected": {"totals": ["nation", "state", "town"]}}
    spec = trellis.Spec.load(write_histogram_world(tmp_path, constraints=[few], **exact))
    with pytest.raises(InputError, match="exact totals"):
        trellis.run(spec)
    assert not (tmp_path / "runs").exists()


def test_a_rule_that_does_not_say_what_it_binds_is_told_in_one_line(tmp_path):
    spec = write_histogram_world(tmp_path, **RULES)
    for command in ("check", "plan"):
        shown = CliRunner().invoke(app, [command, str(spec)])
        lines = [line for line in shown.output.splitlines() if "because it does not say" in line]
        assert len(lines) == 2, shown.output
    said = write_histogram_world(tmp_path, **OUTPUT)
    assert "because it does not say" not in CliRunner().invoke(app, ["check", str(said)]).output


@pytest.mark.parametrize(
    ("zeros", "word"),
    [
        ({"binds": "nothing", "rules": ZEROS}, "records or output"),
        ({"bind": "output", "rules": ZEROS}, "bind"),
        ({"binds": "output"}, "rule"),
    ],
)
def test_odd_forms_of_structural_zeros_are_refused(tmp_path, zeros, word):
    spec = yaml.safe_load(write_histogram_world(tmp_path).read_text(encoding="utf-8"))
    with pytest.raises(SpecError, match=word):
        trellis.Spec.parse({**spec, "structural_zeros": zeros})


def test_a_release_of_counts_has_none(tmp_path):
    run = trellis.run(trellis.Spec.load(write_world(tmp_path))).path
    assert record_of(run)["restrictions"] == []


def test_no_sentence_on_protection_leaves_a_restriction_out():
    protection = Protection("person", Neighbours.REPLACE, 2, "state", ("the bounds",))
    assert len(protection.restrictions) == 2
    assert all(sentence in protection.in_words() for sentence in protection.restrictions)


UNIT = {"data": {"origin": "home", "destination": "work", "unit": "person"}}


@pytest.mark.parametrize(
    ("changes", "required"),
    [
        ({}, []),
        ({**UNIT}, ["exactly 1 trip(s) of each worker"]),
        ({**UNIT, "privacy__max_contribution": 2, "trips": {"number": "at_most"}},
         ["at most 2 trip(s) of each worker"]),
        ({**UNIT, "privacy__max_contribution": 2, "trips": {"number": "at_most", "distinct": True}},
         ["at most 2 trip(s) of each worker",
          "different pairs of areas for all trips of a worker"]),
        ({**UNIT, "trips": {"number": "at_most", "above": "cap"}}, []),
    ],
)  # fmt: skip
def test_trips_that_are_checked_restrict_and_trips_that_are_capped_do_not(
    tmp_path, changes, required
):
    spec = flow_worlds.spec_in(tmp_path, **changes)
    assert list(spec.required_of_records) == required
    plan = trellis.plan(spec, hierarchy=flow_worlds.AREAS)
    assert list(plan.protection.required) == required


@pytest.mark.parametrize(
    ("changes", "n_required"),
    [({}, 0), ({"sizes": {"cap": 8}}, 1), ({"data__quantity": "q", "data__max_quantity": 3}, 1)],
)
def test_sizes_that_are_refused_restrict_and_sizes_that_are_cut_do_not(
    tmp_path, changes, n_required
):
    spec = size_worlds.spec_in(tmp_path, **changes)
    plan = trellis.plan(spec, hierarchy=size_worlds.AREAS)
    assert len(plan.protection.restrictions) == n_required
