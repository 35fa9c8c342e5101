"""The report and the evaluation, looked at in a real browser; pictures are kept to be looked at."""

import re
import struct

import pyarrow as pa
import pytest

import trellis
from browser import Page, find_browser
from trellis.samples.demo import write_demo
from trellis.workflow.evaluation.evaluate import evaluate_run
from worlds import SPEC, changed

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

HOSTILE = [
    "<script>document.title='owned'</script>",
    "<img src=x onerror=\"document.title='owned'\">",
    "'); document.title='owned'; ('",
    "东京",
    "عمان",
]


@pytest.fixture(scope="module")
def program():
    found = find_browser()
    if found is None:
        pytest.skip("NOT TESTED: pages in a browser; there is no Chromium (package chromium) here")
    return found


@pytest.fixture(scope="module")
def state(tmp_path_factory):
    folder = tmp_path_factory.mktemp("state")
    write_demo(folder, n_blocks=5000)
    return trellis.run(trellis.Spec.load(folder / "spec.yaml")).path


def size_of(png: bytes) -> tuple[int, int]:
    return struct.unpack(">II", png[16:24])


def type_in(page: Page, text: str) -> list[str]:
    """Search for an area; the buttons that appear."""
    return page.run(
        f"(() => {{ const f = document.getElementById('find'); f.value = {text!r};"
        " f.dispatchEvent(new Event('input'));"
        " return [...document.querySelectorAll('#found button')].map(b => b.textContent); })()"
    )


@pytest.mark.parametrize(("width", "phone"), [(1280, False), (390, True)], ids=["desk", "phone"])
def test_the_report_fits_the_screen(program, state, tmp_path, width, phone):
    with Page(program) as page:
        page.resize(width, 844, phone)
        page.open(state / "report/index.html")
        across = page.run("document.documentElement.scrollWidth")
        picture = page.screenshot(tmp_path / "report.png")
        smallest = page.run(
            "Math.min(...[...document.querySelectorAll('svg.chart text')].map("
            "t => t.getBoundingClientRect().height))"
        )
        assert page.complaints == []
    assert across <= width
    assert smallest >= 9  # pixels: text in pictures stays readable
    assert size_of(picture)[0] >= width * 0.9
    assert len(picture) > 50_000


def test_areas_open_and_can_be_found(program, state, tmp_path):
    with Page(program) as page:
        page.resize(1000, 800)
        page.open(state / "report/index.html")
        rows = "document.querySelectorAll('#tree tbody tr').length"
        before = page.run(rows)
        page.run("document.querySelectorAll('#tree tbody tr')[1].querySelector('button').click()")
        assert page.run(rows) > before
        page.run("document.querySelectorAll('#tree tbody tr')[1].querySelector('button').click()")
        assert page.run(rows) == before
        block = trellis.Release(state).table("block")["geocode"].to_pylist()[-1]
        assert type_in(page, block) == [f"{block} (block)"]
        page.run("document.querySelector('#found button').click()")
        assert block in page.run("document.querySelector('#tree tr.here').textContent")
        assert type_in(page, "no such place") == []
        page.screenshot(tmp_path / "areas.png", "#tree")
        assert page.complaints == []


def test_only_numbers_without_noise_are_called_exact(program, state):
    blocks = trellis.Release(state).table("block")
    single = [
        row["geocode"]
        for row in blocks.to_pylist()
        if row["lower"] == row["upper"] and row["std_error"] > 0
    ]
    assert single
    shown = "document.querySelector('#tree tr.here').cells[2].textContent"
    with Page(program) as page:
        page.open(state / "report/index.html")
        assert page.run("document.querySelector('#tree tbody tr').cells[2].textContent") == "exact"
        type_in(page, single[0])
        page.run("document.querySelector('#found button').click()")
        assert page.run(shown) == "0 to 0"
        assert page.complaints == []


def test_the_report_prints(program, state, tmp_path):
    with Page(program) as page:
        page.open(state / "report/index.html")
        printed = page.pdf(tmp_path / "report.pdf")
    assert printed.startswith(b"%PDF")
    assert len(re.findall(rb"/Type /Page\b", printed)) >= 3


def test_hostile_codes_do_nothing(program, tmp_path):
    areas = pa.table({"nation": ["n"] * 5, "state": ["s"] * 5, "town": HOSTILE})
    people = pa.table({"town": HOSTILE, "people": [50] * 5})
    spec = trellis.Spec.parse(changed(SPEC), tmp_path)
    run = trellis.run(spec, tmp_path / "run", data=people, hierarchy=areas).path
    with Page(program) as page:
        page.open(run / "report/index.html")
        for code in HOSTILE:
            assert type_in(page, code) == [f"{code} (town)"]
            page.run("document.querySelector('#found button').click()")
            assert code in page.run("document.querySelector('#tree tr.here').textContent")
        assert page.run("document.title") == "towns"
        assert page.run("document.querySelectorAll('#tree img, #tree script').length") == 0
        assert page.complaints == []


def test_a_script_that_slipped_in_would_not_run(program, state, tmp_path):
    text = (state / "report/index.html").read_text(encoding="utf-8")
    planted = tmp_path / "planted.html"
    planted.write_text(text.replace("<h1>", "<script>document.title = 'owned'</script><h1>"))
    with Page(program) as page:
        page.open(planted)
        assert page.run("document.title") == "demo"
        assert any("Content Security Policy" in said for said in page.complaints)


def test_the_evaluation_is_marked_on_every_printed_page(program, state, tmp_path):
    evaluate_run(state, state.parents[1] / "spec.yaml", tmp_path / "out")
    with Page(program) as page:
        page.resize(390, 844, True)
        page.open(tmp_path / "out" / "CONFIDENTIAL-evaluation.html")
        assert page.run("document.documentElement.scrollWidth") <= 390
        assert page.run("getComputedStyle(document.querySelector('.banner')).display") == "block"
        page.call("Emulation.setEmulatedMedia", media="print")
        repeated = page.run("getComputedStyle(document.querySelector('.mark')).display")
        assert repeated == "table-header-group"  # browsers print it on every page
        page.screenshot(tmp_path / "evaluation.png")
        page.pdf(tmp_path / "evaluation.pdf")
        assert page.complaints == []
