"""Pictures and the report page: well formed, complete, free of anything from outside."""

import re
from fractions import Fraction
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest

from trellis.evaluate.charts import HEIGHT, WIDTH, Axis, Series, bar_chart, line_chart
from trellis.evaluate.privacy_pictures import privacy_curve, tradeoff_curve
from trellis.evaluate.report import report_page
from trellis.model import Hierarchy, Schema
from trellis.model.statement import guarantee_in_words
from trellis.planning.budget import Shares
from trellis.planning.counts import CountsRequest, plan_counts
from trellis.planning.expected_error import with_expected_errors
from trellis.privacy import Accountant, DiscreteGaussian, Neighbours
from trellis.privacy.budget import Budget

TREE = Hierarchy.from_paths([("r", "<a>", "a1"), ("r", "<a>", "a2"), ("r", "b", "b1")])
SVG = "{http://www.w3.org/2000/svg}"


ONE = Budget(rho=Fraction(1))


def plan_for(budget=ONE, method="gls_topdown", neighbours=Neighbours.REPLACE):
    request = CountsRequest(
        "a <b> release", "data", "person", neighbours, 1, budget, Shares(), (), method,
        Fraction(9, 10),
    )  # fmt: skip
    plan = plan_counts(request, TREE, Schema({"cell": ["total"]}), "digest")
    return with_expected_errors(plan, TREE)


class Checker(HTMLParser):
    """Counts tags that open and close, and collects what points elsewhere."""

    VOID = frozenset({"meta", "rect", "line", "polyline"})

    def __init__(self, text):
        super().__init__()
        self.open, self.links = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        if tag not in self.VOID:
            self.open.append(tag)
        self.links += [value for name, value in attrs if name in ("src", "href")]

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag


@pytest.mark.parametrize("method", ["gls_topdown", "gls", "topdown"])
@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize("budget", [
    Budget(rho=Fraction(1)), Budget(epsilon=Fraction(1)),
    Budget(epsilon=Fraction(1), delta=Fraction(1, 10**6)),
], ids=str)  # fmt: skip
def test_page_is_well_formed_and_self_contained(budget, neighbours, method):
    page = report_page(plan_for(budget, method, neighbours))
    checked = Checker(page)
    assert not checked.open
    assert not checked.links
    assert "<script" not in page
    assert "a &lt;b&gt; release" in page
    assert "<b> release" not in page
    assert ("How accurate it is" in page) == (method != "topdown")


def test_page_states_the_whole_guarantee():
    plan = plan_for()
    text = re.sub("&#x27;", "'", report_page(plan))
    for sentence in guarantee_in_words(plan):
        assert sentence in text


def points(svg: str, line: int) -> np.ndarray:
    found = ElementTree.fromstring(svg).findall(f"{SVG}polyline")[line].get("points", "")
    return np.array([list(map(float, pair.split(","))) for pair in found.split()])


def test_lines_are_drawn_to_scale():
    svg = line_chart("t", Axis("x"), Axis("y"), [Series("s", [0, 1, 2], [0, 5, 10])])
    drawn = points(svg, 0)
    assert np.allclose(np.diff(drawn, axis=0)[0], np.diff(drawn, axis=0)[1])
    assert (drawn >= 0).all()
    assert (drawn[:, 0] <= WIDTH).all()
    assert (drawn[:, 1] <= HEIGHT).all()
    assert drawn[0, 1] > drawn[-1, 1]  # larger values lie higher, and SVG counts downwards


def test_a_logarithmic_axis_spaces_powers_evenly():
    series = [Series("s", [1e-6, 1e-4, 1e-2], [1, 2, 3])]
    drawn = points(line_chart("t", Axis("x", log=True), Axis("y"), series), 0)
    assert np.allclose(np.diff(drawn[:, 0]), np.diff(drawn[:, 0])[0])


def test_constant_lines_and_zero_bars_can_be_drawn():
    ElementTree.fromstring(line_chart("t", Axis("x"), Axis("y"), [Series("s", [1, 1], [2, 2])]))
    ElementTree.fromstring(bar_chart("t", "", [("a", 0.0)]))


def test_bars_are_as_long_as_their_values():
    svg = ElementTree.fromstring(bar_chart("t", " %", [("<a>", 1.0), ("b", 4.0)]))
    _, short, long = (float(r.get("width", "0").rstrip("%")) for r in svg.findall(f"{SVG}rect"))
    assert long == pytest.approx(4 * short, rel=1e-2)


def test_the_exact_curve_lies_below_the_bound():
    accountant = Accountant("replace").add(DiscreteGaussian(5), count=3)
    svg = privacy_curve(accountant)
    exact, bound = points(svg, 0), points(svg, 1)
    assert (exact[:, 1] > bound[:, 1]).all()  # SVG counts downwards


def test_the_best_attack_beats_guessing():
    drawn = points(tradeoff_curve(Accountant("replace").add(DiscreteGaussian(5))), 0)
    left, right = drawn[0], drawn[-1]
    guess = left[1] + (drawn[:, 0] - left[0]) / (right[0] - left[0]) * (right[1] - left[1])
    assert (drawn[1:-1, 1] > guess[1:-1]).all()
