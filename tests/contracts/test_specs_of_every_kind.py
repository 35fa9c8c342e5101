"""Contract: a spec is valid or does not exist, however it is made.

What `parse` refuses, the constructor, a copy, `model_construct` and a pickle refuse too, for every
kind of release.
"""

from __future__ import annotations

import pickle

import pytest
import yaml

from kinds import WITH_TOYS
from trellis.errors import SpecError
from trellis.spec import SPECS, Spec
from trellis.workflow.preparing.prepare import prepare
from worlds import REMOVE, changed

COMMON = {
    "an unknown key": {"nonsense": 1},
    "no release": {"release": REMOVE},
    "no budget": {"privacy__budget": REMOVE},
    "a budget of nothing": {"privacy__budget": {"rho": 0}},
    "a budget that is not exact": {"privacy__budget": {"rho": float("nan")}},
    "no contribution": {"privacy__max_contribution": 0},
    "half a contribution": {"privacy__max_contribution": 1.5},
    "unknown neighbours": {"privacy__neighbours": "friends"},
    "noise of another law": {"privacy__mechanism": "uniform"},
    "Gaussian noise of a pure budget": {
        "privacy__mechanism": "discrete_gaussian", "privacy__budget": {"epsilon": 1}
    },
    "Laplace noise with a delta": {
        "privacy__mechanism": "discrete_laplace",
        "privacy__budget": {"epsilon": 1, "delta": "1e-6"},
    },
    "an unknown method": {"estimate": {"method": "guess"}},
    "a hierarchy from the records": {"hierarchy__source": "people.csv"},
    "no hierarchy": {"hierarchy": REMOVE},
}  # fmt: skip
UNFIT = [
    (kind, name, changes)
    for kind, world in WITH_TOYS.items()
    for name, changes in {**COMMON, **world.unfit}.items()
]


@pytest.fixture
def world(request, monkeypatch):
    WITH_TOYS[request.param].register(monkeypatch)
    return WITH_TOYS[request.param]


def parts(world, folder, changes):
    """A valid spec, and the content of one that is not."""
    path = world.write(folder)
    content = yaml.safe_load(path.read_text())
    if changes.get("hierarchy__source"):
        changes = {"hierarchy__source": content["data"]["source"]}
    return Spec.load(path), changed(content, **changes)


@pytest.mark.parametrize(("world", "name", "changes"), UNFIT, indirect=["world"], ids=str)
def test_every_way_refuses_what_parse_refuses(tmp_path, monkeypatch, world, name, changes):
    monkeypatch.chdir(tmp_path)
    spec, content = parts(world, tmp_path, changes)
    with pytest.raises(SpecError) as refused:
        Spec.parse(content, tmp_path)
    gone = spec.to_dict().keys() - content.keys()
    ways = {
        "constructor": lambda: Spec(**content),
        "class of the kind": lambda: SPECS[world.kind](**content),
        "model_construct": lambda: Spec.model_construct(**content),
        "model_validate": lambda: Spec.model_validate(content),
        "copy": lambda: spec.copy(update={**content, **dict.fromkeys(gone)}),
        "model_copy": lambda: spec.model_copy(update={**content, **dict.fromkeys(gone)}),
    }
    for way, make in ways.items():
        with pytest.raises(SpecError) as again:
            make()
        assert gone or again.value.faults == refused.value.faults, way


@pytest.mark.parametrize("world", WITH_TOYS, indirect=True)
def test_a_spec_that_was_changed_by_force_is_refused_by_pickle_and_plan(tmp_path, world):
    spec = Spec.load(world.write(tmp_path))
    spec.__dict__["privacy"] = spec.privacy.model_copy(update={"max_contribution": 0})
    spec.__pydantic_fields_set__.add("privacy")
    with pytest.raises(SpecError):
        pickle.loads(pickle.dumps(spec))
    with pytest.raises(SpecError):
        prepare(spec)


@pytest.mark.parametrize("world", WITH_TOYS, indirect=True)
def test_a_valid_spec_survives_every_way(tmp_path, monkeypatch, world):
    monkeypatch.chdir(tmp_path)
    spec = Spec.load(world.write(tmp_path))
    same = [
        spec.copy(),
        spec.model_copy(),
        pickle.loads(pickle.dumps(spec)),
        Spec(**spec.to_dict()),
    ]
    assert all(other == spec for other in same)
    assert {type(other) for other in same} == {type(spec)}
