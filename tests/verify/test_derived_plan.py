"""Verification derives plan.json from spec.yaml: no value of either can be forged alone."""

from __future__ import annotations

import json
import shutil
from copy import deepcopy
from fractions import Fraction

import pytest
import yaml

import trellis
from kinds import WORLDS
from kinds.world import RHO
from trellis.verify.files.run_files import RunFiles
from trellis.verify.plan.compare import planned

NOT_IN_A_PLAN = {
    "counts": {"data.area", "data.count", "hierarchy.public", "output.csv"},
    "histograms": {
        "data.area", "data.count", "hierarchy.public", "output.csv",
    },
    "group_sizes": {
        "data.group", "group_register.area", "group_register.group", "hierarchy.public",
        "output.csv", "unprotected.groups",
    },
    "flows": {
        "data.origin", "data.destination", "data.count", "hierarchy.public", "output.csv",
        "trips.above",
    },
}  # fmt: skip
"""Names of columns, which files are written, and what other keys decide."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    found = {}
    for kind, world in WORLDS.items():
        folder = tmp_path_factory.mktemp(kind)
        spec = trellis.Spec.load(world.write(folder, **RHO))
        found[kind] = trellis.run(spec, folder / "run").path
    return found


def leaves(content, place=()):
    """The places of all values that are not collections."""
    if isinstance(content, dict | list) and content:
        items = content.items() if isinstance(content, dict) else enumerate(content)
        for key, value in items:
            yield from leaves(value, (*place, key))
    else:
        yield place


def at(content, place):
    for key in place:
        content = content[key]
    return content


def other(value):
    """Another value of the same form."""
    if isinstance(value, bool) or value is None:
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, list | dict):
        return ["x"]
    try:
        return str(Fraction(value) + Fraction(1, 3))
    except (ValueError, ZeroDivisionError):
        return {"replace": "add_remove", "gls_topdown": "gls"}.get(value, value + "x")


def with_value(content, place, value):
    forged = deepcopy(content)
    at(forged, place[:-1])[place[-1]] = value
    return forged


class Forged(RunFiles):
    """A run whose spec or plan is another."""

    def __init__(self, path, **files):
        super().__init__(path)
        for name, content in files.items():
            setattr(self, name, content)


def problems(path, **files):
    """An error of any kind is a finding in `verify_run`."""
    try:
        return list(planned(Forged(path, **files)))
    except Exception as error:
        return [type(error).__name__]


@pytest.mark.parametrize("kind", WORLDS)
def test_every_value_of_a_plan_is_derived(runs, kind):
    plan = json.loads((runs[kind] / "plan.json").read_text())
    assert not problems(runs[kind])
    forecast = {"expected_standard_errors", "effects", "format"}
    for place in leaves(plan):
        if place[0] not in forecast:
            forged = with_value(plan, place, other(at(plan, place)))
            assert problems(runs[kind], plan=forged), place
    assert problems(runs[kind], plan={**plan, "true_counts": [1, 2]})


@pytest.mark.parametrize("kind", WORLDS)
def test_every_value_of_a_spec_is_in_the_plan_or_listed(runs, kind):
    spec = yaml.safe_load((runs[kind] / "spec.yaml").read_text())
    missed = set()
    for place in leaves(spec):
        if not problems(runs[kind], spec=with_value(spec, place, other(at(spec, place)))):
            missed.add(".".join(map(str, place)))
    assert missed <= NOT_IN_A_PLAN[kind]


@pytest.mark.parametrize("kind", WORLDS)
def test_unknown_keys_of_a_spec_are_named(runs, kind):
    spec = yaml.safe_load((runs[kind] / "spec.yaml").read_text())
    spec["privacy"]["surprise"] = 1
    assert "spec.yaml has the unknown key privacy.surprise" in problems(runs[kind], spec=spec)


def test_spec_and_plan_that_lie_together_meet_the_tree(runs, tmp_path):
    """A level less in both: the file of the tree still has it."""
    run = shutil.copytree(runs["counts"], tmp_path / "run")
    spec = yaml.safe_load((run / "spec.yaml").read_text())
    (keys,) = [key for key in ("columns", "prefixes") if key in spec["hierarchy"]]
    named = list(spec["hierarchy"][keys])
    spec["hierarchy"] = {"columns": named[:-1]}
    plan = json.loads((run / "plan.json").read_text())
    plan["levels"] = plan["levels"][:-1]
    assert problems(run, spec=spec, plan=plan)
