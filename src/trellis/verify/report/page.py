"""`report/index.html`: the page made again. Yields what is wrong."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Iterator
from datetime import date
from hashlib import sha256
from html import escape
from importlib.metadata import version
from importlib.resources import files

from trellis.verify.documents import withdrawn
from trellis.verify.documents.formats import has_todays_words, require_known_kind
from trellis.verify.files.run_files import RunFiles
from trellis.verify.files.safe_files import load_json, read_text
from trellis.verify.report import accuracy, areas, flows, histograms, privacy
from trellis.wording import html as shell

NAME = "report/index.html"
MOST_BYTES = 64_000_000

Section = Callable[[RunFiles], str]

_COUNTS: tuple[Section, ...] = (
    privacy.released, privacy.protected, privacy.not_protected, privacy.attacker,
    privacy.how_private, privacy.budget, accuracy.accuracy, accuracy.interests, accuracy.margin,
    areas.areas,
)  # fmt: skip
SECTIONS: dict[str, tuple[Section, ...]] = {
    "counts": _COUNTS,
    "group_sizes": _COUNTS,
    "histograms": (
        privacy.released, histograms.counted, privacy.protected, privacy.not_protected,
        privacy.attacker, privacy.how_private, privacy.budget, histograms.published,
        histograms.margin, areas.areas, histograms.rules,
    ),
    "flows": (
        privacy.released, flows.flows, privacy.protected, privacy.not_protected, privacy.attacker,
        privacy.how_private, privacy.budget, flows.accuracy,
    ),
}  # fmt: skip
"""From the head of a page down; the last one says how to cite."""

_CITED = re.compile(r'<p class="cite">[^<>]*? \((\d{4}-\d\d-\d\d)\)\. ')
_DATA = re.compile(r'<script type="application/json" id="[^"]*">[^<]*</script>')


def report(run: RunFiles) -> Iterator[str]:
    """The report shows the tables and statements of the release, in a page of this version."""
    require_known_kind(run)
    if not has_todays_words(run, NAME):
        return
    found, installed = read_text(run.path, NAME, MOST_BYTES), version("trellis-dp")
    if run.manifest["trellis"] != installed:
        run.leave_out(f"the text of {NAME} was not compared: another version made it")
        yield from _other_data(run, found)
        return
    cited = _CITED.search(found)
    if cited is None or not _is_day(run, cited[1]):
        yield f"{NAME} does not say how to cite the release, or on a day that cannot be"
        return
    made = [make(run) for make in SECTIONS[run.plan["kind"]]]
    made.append(privacy.cite(run, cited[1], installed))
    wrong = [part for part in made if part and part not in found]
    for part in wrong:
        yield f"{NAME} does not show what follows from plan and tables in {_heading(part)!r}"
    if not wrong and found != _page(run, made):
        yield f"{NAME} has more, or another shell, than the installed version writes"


def _is_day(run: RunFiles, day: str) -> bool:
    """A run may be finished some days after its report was made, never before."""
    try:
        return date.fromisoformat(day) <= date.fromisoformat(run.manifest["created"][:10])
    except ValueError:
        return False


def _heading(part: str) -> str:
    return part.partition("<h2>")[2].partition("</h2>")[0]


def _page(run: RunFiles, made: list[str]) -> str:
    shown = [part for part in made if part]
    has_tree = run.plan["kind"] != "flows" and any('<table id="tree">' in part for part in shown)
    script = _resource(shell.SCRIPT_FILE) if has_tree else ""
    content = "\n".join([shell.TITLE.format(title=escape(run.plan["release"])), *shown])
    if withdrawn.FILE in run.sizes:
        notice = str(load_json(run.path, withdrawn.FILE)["notice"])
        content = shell.BANNER.format(banner=escape(notice), content=content)
    digest = b64encode(sha256(script.encode()).digest()).decode()
    return shell.PAGE.format(
        policy=shell.POLICY.format(digest=digest),
        title=escape(run.plan["release"]),
        style=_resource(shell.STYLE_FILE),
        content=content,
        script=shell.SCRIPT.format(script=script) if script else "",
    )


def _resource(name: str) -> str:
    """A file of the installed version; the code beside it is not used."""
    return files("trellis").joinpath("evaluate", name).read_text(encoding="utf-8")


def _other_data(run: RunFiles, found: str) -> Iterator[str]:
    """In a page of another version, the numbers of the tree of areas are those of the tables."""
    if run.plan["kind"] != "flows":
        expected = _DATA.findall(areas.areas(run))
        if _DATA.findall(found) != expected:
            yield f"{NAME} has other numbers in its tree of areas than the tables"
