"""Forecasts in a plan are computed again: errors of levels, effects of areas and spines."""

from __future__ import annotations

import json
from copy import deepcopy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spine_worlds
from oracles.spines import slow_distances
from trellis.model import Hierarchy
from trellis.verify.counts.distances import distances
from trellis.verify.counts.families import Families
from trellis.verify.counts.forecast import forecast
from trellis.verify.files.run_files import RunFiles

PATHS = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 3)), min_size=1, max_size=14
)


@settings(max_examples=60)
@given(PATHS, st.data())
def test_distances_are_those_of_the_paper(paths, data):
    named = sorted({("r", f"{a}", f"{a}{b}", f"{a}{b}{c}") for a, b, c in paths})
    tree = Hierarchy.from_paths(named, ["nation", "state", "county", "town"])
    labels = [data.draw(st.sampled_from(["x", "y", None])) for _ in named]
    codes = sorted({label for label in labels if label is not None})
    member = np.array([codes.index(label) if label else -1 for label in labels])
    families = [Families(tree.parents(level), "") for level in range(1, tree.n_levels)]
    found = distances(families, member)
    assert dict(zip(codes, found.tolist(), strict=True)) == slow_distances(tree, labels)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return spine_worlds.release(tmp_path_factory.mktemp("spine"), spine_worlds.blocks()).path


def problems(run, plan):
    files = RunFiles(run)
    files.__dict__["plan"] = plan
    return list(forecast(files))


@pytest.mark.parametrize("key", ["expected_standard_errors", "effects"])
def test_no_number_of_a_forecast_can_be_forged(run, key):
    plan = json.loads((run / "plan.json").read_text())
    assert not problems(run, plan)
    for index, line in enumerate(plan[key]):
        for name, value in line.items():
            forged = deepcopy(plan)
            forged[key][index][name] = value + "x" if isinstance(value, str) else value + 0.1
            assert problems(run, forged), (index, name)
    assert problems(run, {**plan, key: plan[key][:-1]})
    assert problems(run, {**plan, key: None})
