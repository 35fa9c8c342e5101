"""An estimator that the package does not have, added as CONTRIBUTING says: descriptor, name, code.

`floored` cuts the measurements of the smallest areas off at zero, and adds them up.
"""

from typing import Literal, get_args

import numpy as np
import pytest

import trellis as tr
from trellis.api import specs
from trellis.errors import SpecError
from trellis.estimate.methods import ESTIMATORS
from trellis.model.plans.designs import DESIGNS
from trellis.model.plans.kinds.counts import CountsDesign
from trellis.model.plans.methods import Method, by_name
from trellis.model.results.estimates import Estimates
from trellis.spec.counts import CountsEstimate, CountsSpec
from trellis.spec.kinds import SPECS
from trellis.verify import verify_run
from worlds import write_world

FLOORED = Method(
    "floored", "Measurements of the smallest areas, cut off at zero, added up.",
    has_variances=False, looks_below=False,
)  # fmt: skip


def estimate_floored(measurements, tie_seed):
    tree, plan = measurements.hierarchy, measurements.plan
    noisy, _ = measurements.answer(tree.level_names[-1], plan.cell_query)
    return Estimates(tree, plan.schema, tuple(tree.sum_up(np.maximum(noisy, 0))))


NO_EXACT_TOTAL = {"privacy__neighbours": "add_remove"}


class WithFloored(CountsEstimate):
    method: Literal["gls_topdown", "topdown", "gls", "bottomup", "floored"] = "gls_topdown"


class CountsWithFloored(CountsSpec):
    methods = by_name([*CountsDesign.methods.values(), FLOORED])
    estimate: WithFloored = WithFloored()


@pytest.fixture
def added(monkeypatch):
    monkeypatch.setattr(CountsDesign, "methods", CountsWithFloored.methods)
    monkeypatch.setitem(ESTIMATORS, FLOORED.name, estimate_floored)
    monkeypatch.setitem(SPECS, "counts", CountsWithFloored)
    others = {kind: made for kind, made in specs._CLASSES.items() if kind != "counts"}
    monkeypatch.setattr(
        specs, "_CLASSES", others
    )  # a class for counts is made when it is asked for


@pytest.mark.usefixtures("added")
def test_a_release_by_the_new_method(tmp_path):
    release = tr.run(tr.load(write_world(tmp_path, estimate__method="floored", **NO_EXACT_TOTAL)))
    assert (release.plan.method, release.plan.forecast.errors) == (FLOORED, None)
    assert release.table("town")["std_error"].null_count == 3
    # Verification shares no code: it takes a method that it does not know for one with margins.
    broken = {f.check: f.problems for f in verify_run(release.path) if f.problems}
    assert {"data_package", "intervals"} <= set(broken)


@pytest.mark.usefixtures("added")
def test_measurements_are_estimated_again_by_the_new_method(tmp_path):
    release = tr.run(tr.load(write_world(tmp_path)))
    other = release.estimate("floored", tmp_path / "other")
    assert other.plan.method == FLOORED
    nation, state = (other.table(level)["count"].to_numpy() for level in ("nation", "state"))
    assert nation.sum() == state.sum()


def test_without_it_the_spec_names_the_methods_there_are(tmp_path):
    with pytest.raises(SpecError, match="gls_topdown"):
        tr.load(write_world(tmp_path, estimate__method="floored"))


@pytest.mark.parametrize("kind", SPECS)
def test_spec_design_and_estimators_list_the_same_methods(kind):
    spec, design = SPECS[kind], DESIGNS[kind]
    written = get_args(spec.model_fields["estimate"].annotation.model_fields["method"].annotation)
    assert set(written) == set(spec.methods) == set(design.methods)


@pytest.mark.parametrize("kind", ["counts", "group_sizes"])
def test_every_method_of_tables_in_memory_has_an_estimator(kind):
    assert set(DESIGNS[kind].methods) <= set(ESTIMATORS)
