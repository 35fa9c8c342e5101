"""What stands beside the tables: true for the method, and with figures that were measured."""

import re

import numpy as np
import pytest

import size_worlds
import trellis
from histogram_release_worlds import histogram_plan
from trellis.planning.forecast.level_variances import level_variances
from trellis.release.documents.reading_guide import errors_in_markdown, reading_guide
from trellis.samples.demo import write_demo
from trellis.workflow.preparing.prepare import prepare
from worlds import plan_for, write_world


@pytest.mark.parametrize("method", ["topdown", "bottomup"])
def test_methods_without_intervals_state_no_confidence(tmp_path, method):
    shares = {"town": 1} if method == "bottomup" else "uniform"
    spec = write_world(tmp_path, estimate__method=method, privacy__shares=shares)
    run = trellis.run(trellis.Spec.load(spec)).path
    for file in ("release/README.md", "report/index.html"):
        text = (run / file).read_text(encoding="utf-8")
        assert "onfidence" not in text
        assert "90 %" not in text
        assert "quadrature" not in text
        assert "State the interval" not in text


def test_guides_say_how_not_to_add_up_errors(tmp_path):
    assert "or have it released under `areas`" in reading_guide(plan_for())
    assert "`areas`" not in errors_in_markdown(histogram_plan())  # refused with a schema
    size_worlds.release_into(tmp_path)
    sizes = (tmp_path / "run/release/README.md").read_text(encoding="utf-8")
    for guide in (reading_guide(plan_for()), errors_in_markdown(histogram_plan()), sizes):
        assert "Do not add standard errors in quadrature" in guide


def test_the_factors_of_the_guide_are_those_of_the_demo(tmp_path):
    """Known from the noise and the tree: median over the counties."""
    write_demo(tmp_path)
    prepared = prepare(trellis.Spec.load(tmp_path / "spec.yaml"))
    plan, tree = prepared.plan, prepared.hierarchy
    noise = [query.variance for query in (plan.query(level, "total") for level in plan.levels)]
    variances = level_variances(tree, noise)
    county = tree.index("county")
    factors = []
    for name in ("tract", "block"):
        sums = variances[tree.index(name)]
        for level in reversed(range(county, tree.index(name))):
            sums = tree.sum_children(level, sums)
        factors.append(float(np.median(np.sqrt(sums / variances[county]))))
    said = re.findall(r"([\d.]+) times", errors_in_markdown(plan))
    assert said == [f"{factors[0]:.1f}", f"{factors[1]:.0f}"]
    assert tree.size(county) == 33
