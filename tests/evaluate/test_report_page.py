"""Pictures and the report page: well formed, complete, free of anything from outside."""

import json
import re
import shutil
from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import trellis
from flow_worlds import release_into as flow_release_into
from histogram_release_worlds import write_histogram_world
from size_worlds import release_into as size_release_into
from spine_worlds import release as spine_release
from trellis.evaluate.accuracy import typical_margins
from trellis.evaluate.area_tree import SCRIPT, _values, area_tree
from trellis.evaluate.charts import HEIGHT, WIDTH, Axis, Series, bar_chart, line_chart
from trellis.evaluate.html import data_block, number
from trellis.evaluate.measures import Measure
from trellis.evaluate.privacy_pictures import privacy_curve, tradeoff_curve
from trellis.evaluate.public_run import PublicRun
from trellis.evaluate.report import report_page
from trellis.model import Schema
from trellis.model.plans.statement import attacks_in_words, guarantee_in_words
from trellis.privacy import Accountant, DiscreteGaussian
from trellis.samples.demo import write_demo
from trellis.workflow.kinds import public_kind
from trellis.workflow.public.run_folder import RunFolder
from worlds import REMOVE, SPEC, changed, write_world

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = [
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(1)>",
    "\"quoted\" 'codes' & more",
    "back\\slash\u2028line",
    "=cmd|' /C calc'!A0",
    "Ünïcødé 東京 عمان",
]
BUDGETS = {
    "rho": {"mechanism": "discrete_gaussian", "budget": {"rho": 1}},
    "epsilon": {"mechanism": "discrete_laplace", "budget": {"epsilon": 1}},
    "epsilon and delta": {
        "mechanism": "discrete_gaussian", "budget": {"epsilon": 1, "delta": "1e-6"}},
}  # fmt: skip


def page_of(run):
    """The report with the sections of its kind."""
    return report_page(run, public_kind(run.plan.kind).sections)


def run_of(folder: Path, codes=("a1", "a2", "b1"), cells=None, **changes) -> PublicRun:
    """A finished release of areas with these codes, two of them in <a>."""
    people = {"town": list(codes), "people": [50 + 10 * i for i in range(len(codes))]}
    if cells:
        changes |= {"data__count": REMOVE, "data__cells": {name: name for name in cells}}
        people |= dict.fromkeys(cells, people["people"])
    areas = {"nation": ["r"] * len(codes), "state": ["<a>", "<a>", *["b"] * (len(codes) - 2)]}
    spec = trellis.Spec.parse(changed(SPEC, **changes), folder)
    areas_table = pa.table(areas | {"town": list(codes)})
    trellis.run(spec, folder / "run", data=pa.table(people), hierarchy=areas_table)
    return public_run(folder / "run")


def public_run(path: Path) -> PublicRun:
    folder = RunFolder(path)
    return PublicRun(
        path, folder.plan(), folder.hierarchy(), folder.identity().run_id, "2026-01-31"
    )


def rows_of(page: str) -> list[list[str]]:
    """The cells of all rows of all tables."""
    rows = re.findall(r"<tr>(.*?)</tr>", page)
    return [[unescape(cell) for cell in re.findall(r"<td>(.*?)</td>", row)] for row in rows]


class Checker(HTMLParser):
    """Counts tags that open and close, and collects links and the blocks of data."""

    VOID = frozenset({"meta", "rect", "line", "polyline", "input"})

    def __init__(self, text):
        super().__init__()
        self.open, self.links, self.data, self.scripts = [], [], {}, []
        self._name = ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        if tag not in self.VOID:
            self.open.append(tag)
        if tag == "script":
            self._name = attributes.get("id", "")
        self.links += [value for name, value in attrs if name in ("src", "href")]
        assert not any(name.startswith("on") for name in attributes)

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            if self._name:
                self.data[self._name] = json.loads(data)
            else:
                self.scripts.append(data)

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag


@pytest.mark.parametrize(
    ("method", "neighbours", "budget"),
    [
        ("gls_topdown", "replace", "rho"),
        ("gls", "add_remove", "epsilon and delta"),
        ("topdown", "replace", "epsilon"),
    ],
)
def test_page_is_well_formed_and_self_contained(tmp_path, budget, neighbours, method):
    run = run_of(
        tmp_path,
        privacy__neighbours=neighbours,
        privacy__mechanism=BUDGETS[budget]["mechanism"],
        privacy__budget=BUDGETS[budget]["budget"],
        estimate__method=method,
    )
    page = page_of(run)
    checked = Checker(page)
    assert not checked.open
    assert checked.scripts == [SCRIPT]
    assert checked.links
    for place in checked.links:
        assert (run.path / "report" / place).resolve().is_file(), place
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org/2000/svg", "")
    assert ("How to read a margin" in page) == (method != "topdown")


@pytest.fixture(scope="module")
def plain(tmp_path_factory) -> PublicRun:
    return run_of(tmp_path_factory.mktemp("plain"))


def test_the_page_is_made_from_the_files_alone(plain):
    assert page_of(plain) == page_of(plain)


def test_page_states_the_whole_guarantee(plain):
    run = plain
    text = unescape(page_of(run))
    for sentence in [*guarantee_in_words(run.plan), *attacks_in_words(run.plan)]:
        assert sentence in text


def test_the_names_of_releases_and_cells_are_inert(plain):
    plan = replace(plain.plan, release="<b>x</b>", schema=Schema({"cell": ["<i>"]}))
    page = page_of(replace(plain, plan=plan))
    assert "<b>x" not in page
    assert "<i>" not in page


def test_hostile_codes_are_inert_and_kept(tmp_path):
    data = Checker(area_tree(run_of(tmp_path, HOSTILE))).data
    shape = data["level-2"]
    assert sorted(shape["codes"]) == sorted(HOSTILE)
    assert data["level-1"]["codes"] == ["<a>", "b"]


def test_a_block_of_data_cannot_be_ended_from_inside():
    block = data_block("x", ["</script>", "<!--", "]]>", "\u2028"])
    assert block.count("<") == 2
    assert "\u2028" not in block
    assert Checker(block).data["x"] == ["</script>", "<!--", "]]>", "\u2028"]


def test_the_script_is_the_only_one_that_the_page_allows(plain):
    page = page_of(plain)
    (allowed,) = re.findall(r"'sha256-([^']+)'", page)
    assert allowed == b64encode(sha256(SCRIPT.encode()).digest()).decode()
    assert "default-src 'none'" in page


# -- the tree of areas ----------------------------------------------------------------------------


def test_the_tree_holds_the_released_tables(tmp_path):
    run = run_of(tmp_path, ["a1", "a2", "b1", "b2", "b3"])
    data = Checker(area_tree(run)).data
    assert data["tree-data"] == {"levels": ["nation", "state", "town"], "measures": ["count"]}
    assert data["level-1"]["children"] == [2]
    assert data["level-2"]["children"] == [2, 3]
    for level, name in enumerate(run.plan.levels):
        table, kept = run.table(name), data[f"values-{level}-0"]
        assert kept["value"] == table["count"].to_pylist()
        lower = [v - b for v, b in zip(kept["value"], kept["below"], strict=True)]
        upper = [v + a for v, a in zip(kept["value"], kept["above"], strict=True)]
        assert lower == table["lower"].to_pylist()
        assert upper == table["upper"].to_pylist()


def test_noisy_zeros_are_not_called_exact(tmp_path):
    """A noisy zero often has the interval 0 to 0; exact is what has no noise at all."""
    towns = [f"t{i:03}" for i in range(200)]
    areas = pa.table({"nation": ["n"] * 200, "state": ["s"] * 200, "town": towns})
    people = pa.table({"town": towns, "people": [1000] + [0] * 199})
    spec = trellis.Spec.parse(changed(SPEC, unprotected__totals=["nation"],
                                      privacy__budget={"rho": 100}), tmp_path)  # fmt: skip
    run = public_run(trellis.run(spec, tmp_path / "run", data=people, hierarchy=areas).path)
    data, n_single = Checker(area_tree(run)).data, 0
    for level, name in enumerate(run.plan.levels):
        table = run.table(name)
        exact = [i for i, error in enumerate(table["std_error"].to_pylist()) if error == 0]
        assert data[f"values-{level}-0"].get("exact", []) == exact
        single = np.asarray(table["lower"]) == np.asarray(table["upper"])
        n_single += single.sum() - len(exact)
    assert data["values-0-0"]["exact"] == [0]
    assert n_single > 0
    assert "lower === upper" not in SCRIPT
    assert 'exact ? "exact"' in SCRIPT
    assert "The numbers of this release are exact" not in page_of(run)


def test_an_interval_narrower_than_a_thousandth_shows_its_two_ends():
    share = Measure("share", np.array([0.5]), np.array([0.49998]), np.array([0.50002]),
                    np.array([False]))  # fmt: skip
    assert number(0.49998, share.decimals) == "0.49998"
    assert number(0.50002, share.decimals) == "0.50002"
    count = Measure("count", np.array([1_234_567.8]), np.array([1_234_560.2]),
                    np.array([1_234_571.4]), np.array([False]))  # fmt: skip
    assert _values(count)["value"] == [1_234_567.8]  # not rounded to six digits


def test_codes_that_begin_with_the_code_above_are_kept_short(tmp_path):
    write_demo(tmp_path, n_blocks=60)
    trellis.run(trellis.Spec.load(tmp_path / "spec.yaml"), tmp_path / "run")
    run = public_run(tmp_path / "run")
    data = Checker(area_tree(run)).data
    codes = data["level-0"]["codes"]
    for level in range(1, 5):
        shape = data[f"level-{level}"]
        above = [code for code, n in zip(codes, shape["children"], strict=True) for _ in range(n)]
        codes = [a + code for a, code in zip(above, shape["codes"], strict=True)]
        assert shape["shortened"]
        assert codes == run.table(run.plan.levels[level])["geocode"].to_pylist()


def test_cells_can_be_chosen(tmp_path):
    run = run_of(tmp_path, cells=["men", "women"])
    data = Checker(area_tree(run)).data
    assert data["tree-data"]["measures"] == ["all cells together", "men", "women"]
    together, men, women = (np.array(data[f"values-2-{i}"]["value"]) for i in range(3))
    assert (together == men + women).all()
    assert "below" not in data["values-2-0"]


def test_a_level_may_have_several_tables_in_a_folder(plain, tmp_path):
    """As releases of many attributes have them: one table for each query."""
    run = replace(plain, path=Path(shutil.copytree(plain.path, tmp_path / "run")))
    towns, folder = run.table("town"), run.path / "release" / "town"
    folder.mkdir()
    for ending in (".parquet", ".csv"):
        (folder.parent / f"town{ending}").rename(folder / f"total{ending}")
    both = towns.take([i for i in range(len(towns)) for _ in range(2)]).drop_columns("cell")
    both = both.append_column("sex", pa.array(["f", "m"] * len(towns)))
    both = both.append_column("age", pa.array(["0-17"] * 2 * len(towns)))
    pq.write_table(both, folder / "x.parquet")
    data = Checker(area_tree(run)).data
    assert data["tree-data"]["measures"] == ["count", "sex f, age 0-17", "sex m, age 0-17"]
    assert data["values-2-0"]["value"] == data["values-2-2"]["value"]
    assert "values-1-1" not in data  # the level above has the total alone
    page = page_of(run)
    assert "../release/town/x.parquet" in page
    assert "../release/town/total.csv" in page


def test_statistics_of_group_sizes_come_first(tmp_path):
    release = size_release_into(tmp_path)
    run = public_run(release.path)
    data = Checker(area_tree(run)).data
    assert data["tree-data"]["measures"][0] == "mean size"
    kept = data["values-0-0"]["value"][0]
    rows = run.table(f"statistics/{run.plan.levels[0]}").to_pylist()
    (mean,) = [row["value"] for row in rows if row["statistic"] == "mean_size"]
    assert kept == pytest.approx(mean, abs=1e-3)


def test_every_published_table_is_in_the_accuracy_section(tmp_path):
    run = public_run(spine_release(tmp_path).path)
    tables = {name: name for name in run.plan.levels} | {
        "place (areas)": "areas/place", "zone (areas)": "areas/zone"}  # fmt: skip
    text = rows_of(page_of(run))
    for shown, file in tables.items():
        errors = np.asarray(run.table(file)["std_error"])
        spread = (errors.min(), np.median(errors), errors.max())
        assert [shown, f"{errors.size:,}", *(f"{x:.3g}" for x in spread)] in text


def test_histograms_have_a_tree_of_areas(tmp_path):
    """The smallest table of each level; a level without a table still holds those below it."""
    spec = write_histogram_world(
        tmp_path, output__tables={"nation": ["total"], "town": ["adult * sex", "total"]}
    )
    run = public_run(trellis.run(trellis.Spec.load(spec), tmp_path / "run").path)
    page = page_of(run)
    data = Checker(page).data
    assert data["tree-data"] == {"levels": ["nation", "state", "town"], "measures": ["count"]}
    assert data["level-1"]["codes"] == ["a", "b", "c"]
    assert "values-1-0" not in data
    towns = run.table("town/total")
    assert data["values-2-0"]["value"] == towns["count"].to_pylist()
    assert SCRIPT in page
    listed = rows_of(page)
    for level, query, cells in (("nation", "total", "1"), ("town", "adult * sex", "4")):
        assert any(row[:2] == [level, query] and row[3] == cells for row in listed)


def test_a_histogram_may_have_a_tree_without_totals(tmp_path):
    spec = write_histogram_world(tmp_path, output__tables={"state": ["sex"]},
                                 output__microdata=False)  # fmt: skip
    run = public_run(trellis.run(trellis.Spec.load(spec), tmp_path / "run").path)
    data = Checker(page_of(run)).data
    assert data["tree-data"] == {
        "levels": ["nation", "state"], "measures": ["all cells together", "sex f", "sex m"],
    }  # fmt: skip


def test_a_page_without_a_tree_has_no_script(tmp_path):
    spec = write_histogram_world(tmp_path, output__tables={"town": []}, output__microdata=True)
    run = public_run(trellis.run(trellis.Spec.load(spec), tmp_path / "run").path)
    assert area_tree(run) == ""
    assert SCRIPT not in page_of(run)


@pytest.mark.parametrize("kind", ["counts", "group_sizes", "flows"])
def test_every_table_says_what_its_numbers_are_in(tmp_path, kind):
    make = {"counts": lambda: run_of(tmp_path),
            "group_sizes": lambda: public_run(size_release_into(tmp_path).path),
            "flows": lambda: public_run(flow_release_into(tmp_path).path)}  # fmt: skip
    run = make[kind]()
    unit = {"counts": "records", "group_sizes": "groups", "flows": "trips"}[kind]
    text = unescape(page_of(run))
    assert f"sd of the noise ({unit})" in text
    assert f"in {unit}; 0 is exact:" in text
    assert "90 %" in text
    if kind != "flows":
        assert '<th scope="col">90 % interval</th>' in text
    if kind == "group_sizes":
        assert "median over areas, with 90 % confidence:" in text


def test_areas_of_a_ragged_tree_that_only_pass_through_are_left_out(tmp_path):
    spec = write_world(tmp_path, areas="nation,state,town\nn,a,a1\nn,a,a2\nn,b,\n",
                       people="town,people\na1,5\na2,6\nb,7\n")  # fmt: skip
    run = public_run(trellis.run(trellis.Spec.load(spec)).path)
    data = Checker(area_tree(run)).data
    assert data["level-2"]["codes"] == ["1", "2"] or data["level-2"]["codes"] == ["a1", "a2"]
    assert data["level-2"]["children"] == [2, 0]


def test_levels_that_do_not_fit_are_linked(plain):
    run = plain
    whole = area_tree(run)
    part = area_tree(run, most_bytes=400)
    assert "Too large for this page" not in whole
    assert "Too large for this page" in part
    assert "../release/town.csv" in part
    assert Checker(part).data["tree-data"]["levels"] == ["nation", "state"]
    assert area_tree(run, most_bytes=10) == ""


def test_margins_shrink_with_the_count():
    rng = np.random.default_rng(1)
    count = rng.integers(0, 5000, 3000)
    sizes, margins = typical_margins(count, np.full(count.size, 5.0))
    assert sizes == sorted(sizes)
    assert margins == sorted(margins, reverse=True)
    assert margins[-1] == pytest.approx(500 / sizes[-1], rel=0.2)
    assert typical_margins(count, np.zeros(count.size)) == ([], [])


# -- charts ---------------------------------------------------------------------------------------


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
