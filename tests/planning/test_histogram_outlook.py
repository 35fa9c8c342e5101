"""Expected errors of histograms: those of the estimator, and of one large matrix."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from histogram_release_worlds import SCHEMA, TREE, histogram_plan, shares
from strategies import hierarchies
from trellis.estimate.histograms.estimators import marginal_errors
from trellis.model.plans.plan import Plan
from trellis.planning.forecast.outlook import Outlook

TABLES = {"default": ["total", "adult * sex", "age"], "town": ["total", "detailed"]}


def measured_by_level(plan: Plan) -> list[dict[str, float]]:
    found: list[dict[str, float]] = [{} for _ in plan.levels]
    for query in plan.queries:
        found[plan.levels.index(query.level)][query.query] = query.variance
    return found


@settings(max_examples=25, deadline=None)
@given(tree=hierarchies(max_levels=3), part=st.fractions("1/20", "19/20"))
def test_every_line_agrees_with_the_errors_of_the_estimator(tree, part):
    strategy = {"default": {"adult": str(part), "detailed": str(1 - part)}}
    wish = {"default": ["total", "adult * sex", "age"]}
    plan = histogram_plan(tree, strategy=shares(strategy), tables=wish)
    outlook = Outlook.of(plan, tree)
    assert outlook is not None
    lines = outlook.errors()
    requests = [(line.level, line.query) for line in lines]
    slow = marginal_errors(tree, SCHEMA, measured_by_level(plan), requests)
    for line in lines:
        shown = ~tree.passes_through[tree.index(line.level)]
        errors = slow[line.level, line.query].rows(0, shown.size)[shown]
        assert line.areas == shown.sum()
        for found, expected in (
            (line.least, errors.min()),
            (line.median, np.median(errors)),
            (line.most, errors.max()),
        ):
            assert found == pytest.approx(expected, rel=1e-8, abs=1e-7)


def test_lines_are_of_what_is_published_and_what_is_measured():
    outlook = Outlook.of(histogram_plan(tables=TABLES), TREE)
    assert outlook is not None
    asked = [(line.level, line.query) for line in outlook.errors()]
    assert asked[:4] == [
        ("nation", "total"), ("nation", "adult * sex"), ("nation", "age"), ("nation", "detailed"),
    ]  # fmt: skip
    assert asked[-3:] == [("town", "total"), ("town", "detailed"), ("town", "sex")]
    assert list(outlook.std_errors())[:2] == ["nation: total", "nation: adult * sex"]


def test_cells_of_unequal_groups_err_differently():
    outlook = Outlook.of(histogram_plan(tables=TABLES), TREE)
    assert outlook is not None
    line = next(li for li in outlook.errors() if (li.level, li.query) == ("state", "adult * sex"))
    assert line.least < line.median < line.most  # groups of one and of three ages


def test_methods_without_variances_have_no_outlook():
    assert Outlook.of(histogram_plan(method="topdown"), TREE) is None
