"""Every block of shell and Python in the README, the tutorial and the other pages runs as printed.

Blocks of one page run in order, in one folder: shell blocks by bash, Python blocks in one session.
A block `text exact` is the output of the block before it; on the census data it must occur in what
that block prints. A plain `text` block shows one run, whose noise no other run repeats.
"""

import os
import re
import shutil
import subprocess
import sys
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import pytest

import trellis

REPOSITORY = Path(__file__).parents[2]
CENSUS = REPOSITORY.parent / "shared" / "data" / "census_blocks_2010_de.parquet"
PAGES = ["README.md", *sorted(f"docs/{p.name}" for p in (REPOSITORY / "docs").glob("*.md"))]

_BLOCK = re.compile(r"^```(?P<kind>[^\n]+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    kind: str
    text: str
    place: str


def blocks_of(page: str) -> list[Block]:
    source = (REPOSITORY / page).read_text(encoding="utf-8")
    return [
        Block(m["kind"].strip(), m["text"], f"{page}:{source.count(chr(10), 0, m.start()) + 1}")
        for m in _BLOCK.finditer(source)
    ]


class Session:
    """Runs blocks one after the other, as a reader would type them."""

    def __init__(self, folder: Path, *, is_exact: bool = True) -> None:
        self.folder = folder
        self.is_exact = is_exact
        self.names: dict[str, object] = {"__name__": "__main__"}
        self.printed = ""

    def run(self, block: Block) -> None:
        if block.kind == "text exact" and self.is_exact:
            assert block.text in self.printed, block.place
        elif block.kind == "sh":
            self.printed = self._shell(block)
        elif block.kind == "python":
            with redirect_stdout(StringIO()) as out:
                exec(compile(block.text, block.place, "exec"), self.names)
            self.printed = out.getvalue()

    def _shell(self, block: Block) -> str:
        bin_folder = str(Path(sys.executable).parent)
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", block.text],
            cwd=self.folder,
            env={**os.environ, "PATH": f"{bin_folder}:{os.environ['PATH']}", "COLUMNS": "100"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, f"{block.place}\n{block.text}\n{done.stdout}"
        return done.stdout


@pytest.fixture(params=["generated", "census"])
def delaware(request, tmp_path):
    """The example in a copy of the repository, with or without the folder of data beside it."""
    if request.param == "census":
        if not CENSUS.is_file():
            pytest.skip("no ../shared/data/census_blocks_2010_de.parquet beside the repository")
        shared = tmp_path / "shared" / "data"
        shared.mkdir(parents=True)
        shutil.copy(CENSUS, shared)
    example = tmp_path / "trellis" / "examples" / "delaware"
    made_by_use = shutil.ignore_patterns("data", "runs", "*.sqlite")
    shutil.copytree(REPOSITORY / "examples" / "delaware", example, ignore=made_by_use)
    return request.param, example


def test_tutorial(delaware, monkeypatch):
    data, folder = delaware
    monkeypatch.chdir(folder)
    session = Session(folder, is_exact=data == "census")
    for block in blocks_of("docs/tutorial.md"):
        session.run(block)
    # Nine in ten intervals hold at least; that fewer than eight in ten do is beyond five sigma.
    assert session.names["inside"] > 0.8 * len(session.names["tracts"])


@pytest.mark.parametrize("delaware", ["generated"], indirect=True)
def test_example_readme(delaware):
    session = Session(delaware[1].parents[1])
    for block in blocks_of("examples/delaware/README.md"):
        session.run(block)


def test_households_readme(tmp_path):
    """On made-up tracts: the folder of data is not beside the copy."""
    folder = tmp_path / "trellis" / "examples" / "households"
    made_by_use = shutil.ignore_patterns("data", "runs", "*.sqlite")
    shutil.copytree(REPOSITORY / "examples" / "households", folder, ignore=made_by_use)
    session = Session(folder.parents[1])
    for block in blocks_of("examples/households/README.md"):
        session.run(block)
    assert "All promises hold." in session.printed


def test_commuting_readme(tmp_path, monkeypatch):
    """On made-up flows: the folder of data is not beside the copy."""
    folder = tmp_path / "trellis" / "examples" / "commuting"
    made_by_use = shutil.ignore_patterns("data", "runs", "*.sqlite")
    shutil.copytree(REPOSITORY / "examples" / "commuting", folder, ignore=made_by_use)
    monkeypatch.chdir(folder.parents[1])
    session = Session(folder.parents[1])
    for block in blocks_of("examples/commuting/README.md"):
        session.run(block)
    assert "All promises hold." in session.printed


def test_spines_readme(tmp_path):
    """On made-up blocks: the folder of data is not beside the copy."""
    folder = tmp_path / "trellis" / "examples" / "spines"
    made_by_use = shutil.ignore_patterns("data", "runs", "*.sqlite")
    shutil.copytree(REPOSITORY / "examples" / "spines", folder, ignore=made_by_use)
    session = Session(folder.parents[1])
    for block in blocks_of("examples/spines/README.md"):
        session.run(block)
    assert "All promises hold." in session.printed
    trellis.plan(trellis.Spec.load(folder / "new-mexico.yaml"))


@pytest.fixture
def own_data(tmp_path, monkeypatch):
    """What the README and the reference pages assume: records, a list of areas, a spec, a run."""
    towns = [("north", "ash"), ("north", "elm"), ("south", "oak"), ("south", "yew")]
    (tmp_path / "towns.csv").write_text("region,town\n" + "".join(f"{r},{t}\n" for r, t in towns))
    people = "".join(f"{town}\n" * (40 + 70 * i) for i, (_, town) in enumerate(towns))
    (tmp_path / "people.csv").write_text("town\n" + people)
    spec = next(b.text for b in blocks_of("README.md") if b.kind == "yaml")
    (tmp_path / "spec.yaml").write_text(spec)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def is_for_a_checkout(block: Block) -> bool:
    return block.text.startswith("make ")


def test_readme(own_data):
    session = Session(own_data)
    for block in blocks_of("README.md"):
        if not is_for_a_checkout(block):
            session.run(block)


def has_code(page: str) -> bool:
    return any(block.kind in ("sh", "python") for block in blocks_of(page))


@pytest.mark.parametrize(
    "page",
    [
        p
        for p in PAGES
        if p not in ("README.md", "docs/tutorial.md", "docs/histograms.md") and has_code(p)
    ],
)
def test_page(page, own_data):
    trellis.run(trellis.Spec.load("spec.yaml"), out="runs/towns")
    session = Session(own_data)
    for block in blocks_of(page):
        session.run(block)


KINDS = {"sh", "python", "yaml", "yaml refused", "json", "text", "text exact"}


EXAMPLES = [
    f"examples/{folder.name}/README.md"
    for folder in sorted((REPOSITORY / "examples").iterdir())
    if (folder / "README.md").is_file()
]


@pytest.mark.parametrize("page", [*PAGES, "CONTRIBUTING.md", *EXAMPLES])
def test_every_block_says_what_it_is(page):
    """A block of another kind, or of none, would silently not be run."""
    source = (REPOSITORY / page).read_text(encoding="utf-8")
    assert source.count("\n```") == 2 * len(blocks_of(page))
    assert {b.kind for b in blocks_of(page)} <= KINDS


REFERENCE = sorted(f"docs/api/{p.name}" for p in (REPOSITORY / "docs" / "api").glob("*.md"))
LINKING = [*PAGES, "CONTRIBUTING.md", "CHANGELOG.md", *EXAMPLES, *REFERENCE]


@pytest.mark.parametrize("page", LINKING)
def test_links_lead_somewhere(page):
    source = (REPOSITORY / page).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", source):
        if "://" not in target:
            assert ((REPOSITORY / page).parent / target).exists(), f"{page}: {target}"


def anchors_of(page: Path) -> set[str]:
    """What a heading is called in a link, as GitHub and others do it."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    words = [re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings]
    return {text.replace(" ", "-") for text in words}


@pytest.mark.parametrize("page", LINKING)
def test_links_lead_to_a_heading(page):
    source = (REPOSITORY / page).read_text(encoding="utf-8")
    for target, anchor in re.findall(r"\]\(([^)#\s]*)#([^)]+)\)", source):
        if "://" not in target:
            place = REPOSITORY / page
            place = (place.parent / target) if target else place
            assert anchor in anchors_of(place), f"{page}: {target}#{anchor}"
