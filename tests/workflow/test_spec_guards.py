"""No way of making a spec gets around a check: an instance is valid or does not exist."""

import copy
import json
import pickle
import sys

import pydantic
import pytest

import flow_worlds
import histogram_release_worlds
import size_worlds
import trellis
from trellis import Spec
from trellis.errors import SpecError
from trellis.model.plans.shares import Shares
from trellis.privacy.ledger import Ledger
from trellis.spec.reading.messages import _NEEDED
from trellis.spec.sections.attributes import Attribute
from trellis.spec.sections.privacy import PrivacySpec
from trellis.spec.sections.rules import Zeros
from worlds import REMOVE, SPEC, changed, write_world

OPTIMAL = {"optimal": {"prior": "people.csv"}}
BOUND = {"name": "x", "source": "people.csv", "area": "town", "at_most": "n"}
HISTOGRAM = histogram_release_worlds.SPEC
REFUSED = {
    # privacy
    "hierarchy is the records": (SPEC, {"hierarchy__source": "people.csv"}),
    "prior is the records": (SPEC, {"privacy__shares": OPTIMAL}),
    "bounds are the records": (
        HISTOGRAM,
        {"data__source": "people.csv", "constraints": [BOUND]},
    ),
    "areas of interest are the records": (
        SPEC,
        {"areas": {"school": {"source": "people.csv", "area": "town", "entity": "school"}}},
    ),
    "register is the records": (
        size_worlds.SPEC,
        {"data__source": "people.csv", "group_register__source": "people.csv"},
    ),
    "no budget": (SPEC, {"privacy__budget": REMOVE}),
    "only a delta": (SPEC, {"privacy__budget": {"delta": "1e-6"}}),
    "no contribution": (SPEC, {"privacy__max_contribution": 0}),
    "noise that does not fit": (SPEC, {"privacy__mechanism": "discrete_laplace"}),
    "a record that counts twice": (
        SPEC,
        {"data__count": REMOVE, "data__cells": {"x": "a", "y": "a"}},
    ),
    "groups that are not declared public": (size_worlds.SPEC, {"unprotected": REMOVE}),
    "no shares of group sizes": (size_worlds.SPEC, {"privacy__shares": REMOVE}),
    "trips that are capped and exact": (
        flow_worlds.SPEC,
        {"data__unit": "person", "trips": {"above": "cap"}},
    ),
    # keys
    "unknown key": (SPEC, {"relese": "x"}),
    "gap": (SPEC, {"privacy__unit": "FILL_IN"}),
    "no area": (SPEC, {"data__area": REMOVE}),
    "flows without data": (flow_worlds.SPEC, {"data": {}}),
    "key of another kind": (SPEC, {"sizes": {"cap": 3}}),
    "two keys of another kind": (SPEC, {"sizes": {"cap": 3}, "tree": "origin"}),
    "rules without attributes": (SPEC, {"edit_rules": ["a = 1 requires b = 2"]}),
    "a cell that is none": (
        HISTOGRAM,
        {"data__cells": {"f": "women"}, "data__count": REMOVE},
    ),
    "targets without errors": (
        SPEC,
        {"accuracy": [{"level": "state", "within": 3}], "estimate": {"method": "topdown"}},
    ),
}


def by_parsing(content):
    return Spec.parse(content)


WAYS = {
    "constructor": lambda content: Spec(**content),
    "model_construct": lambda content: Spec.model_construct(**content),
    "model_construct with its set": lambda content: Spec.model_construct({"release"}, **content),
    "model_validate": Spec.model_validate,
    "model_validate_json": lambda content: Spec.model_validate_json(json.dumps(content)),
    "a field of another model": lambda content: pydantic.TypeAdapter(Spec).validate_python(content),
}


def faults_of(make, content):
    with pytest.raises(SpecError) as refused:
        make(content)
    assert all("\n" not in fault for fault in refused.value.faults)
    return refused.value.faults


@pytest.fixture
def folder(tmp_path, monkeypatch):
    write_world(tmp_path)
    monkeypatch.chdir(tmp_path)  # the constructor takes paths from here
    return tmp_path


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("way", WAYS)
def test_every_way_refuses_what_parse_refuses_in_the_same_words(folder, case, way):
    base, changes = REFUSED[case]
    content = changed(base, **changes)
    assert faults_of(WAYS[way], content) == faults_of(by_parsing, content)


COPIES = {
    "model_copy": lambda spec, update: spec.model_copy(update=update),
    "copy": lambda spec, update: spec.copy(update=update),
}
if sys.version_info >= (3, 13):
    COPIES["copy.replace"] = lambda spec, update: copy.replace(spec, **update)


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("way", COPIES)
def test_every_copy_is_validated(folder, case, way):
    base, changes = REFUSED[case]
    content = changed(base, **changes)
    update = {key: value for key, value in content.items() if base.get(key) != value}
    if base.keys() <= content.keys():  # a copy cannot leave a key out
        assert faults_of(lambda c: COPIES[way](Spec.parse(base), c), update)


@pytest.mark.parametrize("base", [SPEC, HISTOGRAM, size_worlds.SPEC, flow_worlds.SPEC])
def test_copies_and_pickles_are_the_same_spec(folder, base):
    spec = Spec.parse(base, folder)
    copies = [spec.model_copy(), copy.copy(spec), copy.deepcopy(spec), Spec(**base)]
    for other in (*copies, pickle.loads(pickle.dumps(spec))):
        assert other.public() == spec.public()
        assert other.resolve("x").resolve() == spec.resolve("x").resolve()
    assert spec.model_copy(update={"release": "other"}).release == "other"


def test_relative_paths_of_the_constructor_are_taken_from_the_current_folder(folder):
    assert Spec(**SPEC).resolve("x").absolute() == folder / "x"


def test_an_unpickled_spec_is_validated(folder):
    written = pickle.dumps(Spec.parse(SPEC, folder)).replace(b"areas.csv", b"hello.csv")
    (folder / "hello.csv").hardlink_to(folder / "people.csv")
    with pytest.raises(SpecError, match="comes from the confidential file"):
        pickle.loads(written)


# -- sections that were made without validation ----------------------------------------------------

VALID = Spec.parse(SPEC)
FORGED = {
    "copied": {"privacy": VALID.privacy.model_copy(update={"max_contribution": 0})},
    "constructed": {"privacy": PrivacySpec.model_construct(**{**dict(VALID.privacy), "unit": ""})},
    "deep": {"hierarchy": VALID.hierarchy.model_copy(update={"columns": ("a", "a")})},
    "shares": {"privacy": {**SPEC["privacy"], "shares": Shares({"town": "much"})}},
    "hidden": {
        "data": type(VALID.data).model_construct(set(), area="town", cells={"a": "n"}, count="n")
    },
    "gap": {"privacy": VALID.privacy.model_copy(update={"unit": "FILL_IN"})},
}


@pytest.mark.parametrize("case", FORGED)
def test_sections_are_validated_again(case):
    for make in (lambda c: Spec(**SPEC | c), lambda c: VALID.model_copy(update=c)):
        faults_of(make, FORGED[case])


def test_values_that_stand_for_several_keys_guard_themselves():
    forged = object.__new__(Attribute)
    object.__setattr__(forged, "categories", ("a", "a"))
    object.__setattr__(forged, "ordered", False)
    assert (
        "listed twice" in faults_of(lambda c: Spec(**c), {**HISTOGRAM, "schema": {"x": forged}})[0]
    )
    zeros = Zeros(("age < 1",), "nobody")
    content = {**HISTOGRAM, "structural_zeros": zeros}
    assert "binds" in faults_of(lambda c: Spec(**c), content)[0]


def test_a_spec_that_was_changed_by_force_is_refused_before_anything_is_spent(folder):
    spec = Spec.parse(SPEC, folder)
    trellis.check(spec)
    spec.__dict__["privacy"] = FORGED["copied"]["privacy"]
    for use in (trellis.plan, trellis.check, trellis.run):
        with pytest.raises(SpecError, match="max_contribution"):
            use(spec)
    assert not (folder / "runs").exists()
    assert not (folder / "ledger.sqlite").exists() or not Ledger(folder / "ledger.sqlite").entries(
        "towns"
    )


def test_the_records_as_their_own_register_are_never_read(tmp_path, monkeypatch):
    """As an audit did it: exact numbers of groups, read off the records."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_text("home,town\nh1,a1\nh2,a1\n")
    (tmp_path / "areas.csv").write_text("nation,town\nr,a1\n")
    content = changed(
        size_worlds.SPEC,
        data__source="people.csv",
        group_register__source="people.csv",
        hierarchy={"source": "areas.csv", "columns": ["nation", "town"]},
    )
    with pytest.raises(SpecError, match="would vanish"):
        trellis.run(Spec(**content))


# -- words -----------------------------------------------------------------------------------------

ODD = [
    None, True, 0, -1, 1.5, float("inf"), 10**30, "", "x", "\ud800", "a\nb", [], [1], {}, {"a": 1},
    {1: 2}, object(), b"x", (), "9" * 5000, {"sql": 1}, {"sql": "x", "tabel": "y"}, {"path": "x"},
    {"optimal": 3}, [{"within": 1}], ["x" * 2000], {"x": []}, [{}], "x" * 5000,
]  # fmt: skip
"""Values that hardly any key accepts."""

PYDANTIC = (
    "Input should be",
    "Value error",
    "pydantic",
    "Field required",
    "unable to",
    "should have",
)


def places(model, prefix=()):
    """Every key of the spec, also in lists and mappings of sections."""
    for key, field in model.model_fields.items():
        yield (*prefix, key)
        for inner in sections(field.annotation):
            yield from places(inner, (*prefix, key))


def sections(annotation):
    if isinstance(annotation, type) and issubclass(annotation, pydantic.BaseModel):
        return [annotation]
    return [found for part in getattr(annotation, "__args__", ()) for found in sections(part)]


def put(content, place, value):
    """`value` at a place; on the way, what is not there becomes a mapping."""
    *sections_, key = place
    for section in sections_:
        inner = content.get(section)
        if isinstance(inner, list):
            inner = inner[0]
        if not isinstance(inner, dict):
            content[section] = inner = {}
        content = inner
    content[key] = value
    return content


def test_no_message_is_pydantic_s_own(monkeypatch):
    """All types of errors that the models can raise have words of ours, and there are no others."""
    seen = set()

    def watched(error, model, original=trellis.spec.release.sentences):
        seen.update(problem["type"] for problem in error.errors())
        return original(error, model)

    monkeypatch.setattr(trellis.spec.release, "sentences", watched)
    said = set()
    contents = [changed(SPEC, spine=[{"branch": {"level": "state", "inside": []}}])]
    for base in (SPEC, HISTOGRAM, size_worlds.SPEC, flow_worlds.SPEC):
        for place in places(type(Spec.parse(base))):
            for value in ODD:
                contents.append(copy.deepcopy(base))
                put(contents[-1], place, value)
    for content in contents:
        try:
            Spec(**content)
        except SpecError as error:
            said.update(error.faults)
    assert not [line for line in said if any(words in line for words in PYDANTIC)]
    assert not [line for line in said if "this value cannot be used here" in line]
    with_words_of_their_own = {
        "extra_forbidden", "missing", "string_pattern_mismatch", "model_type", "tuple_type",
        "value_error",
    }  # fmt: skip
    assert seen == _NEEDED.keys() | with_words_of_their_own


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"data__source": {"sql": "sqlite:x.db", "tabel": "t"}},
         "Unknown key 'data.source.tabel'; did you mean 'table'?"),
        ({"data__source": {"path": "x.csv"}},
         "Unknown key 'data.source.path'; allowed here: sql, table, query."),
        ({"data__source": 5}, "data.source: a path is needed, or {sql: address, table: name}."),
        ({"data__source": {"sql": "sqlite:x.db"}},
         "data.source: give either table or query."),
        ({"privacy__max_contribution": 0}, "privacy.max_contribution: 1 is the least."),
        ({"privacy__max_contribution": 10**7},
         "privacy.max_contribution: 1,000,000 is the most."),
    ],
)  # fmt: skip
def test_messages_of_keys_that_people_get_wrong(changes, words):
    assert faults_of(by_parsing, changed(SPEC, **changes))[0] == words


def test_all_faults_of_a_spec_are_told():
    content = changed(SPEC, data__arae="x", privacy__unit=REMOVE, output={"confidence": 5})
    assert len(faults_of(by_parsing, content)) == 3
    together = changed(SPEC, sizes={"cap": 3}, tree="origin", privacy__budget=REMOVE)
    assert len(faults_of(by_parsing, together)) == 3


def test_content_that_is_no_mapping_is_refused():
    for content in (5, "x", [1], {1: 2}, None):
        with pytest.raises(SpecError, match="holds keys and values"):
            Spec.parse(content)
