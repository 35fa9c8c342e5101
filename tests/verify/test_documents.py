"""Every word and number that a release says about itself is derived again, and compared."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
import yaml

import flow_worlds
import spine_worlds
import trellis
from forgeries.worlds import RULES
from forging import write_json
from histogram_release_worlds import PEOPLE, write_histogram_world
from kinds import WORLDS
from kinds.world import RHO
from trellis.errors import TrellisError
from trellis.verify import verify_run
from trellis.verify.documents.data_package import data_package
from trellis.verify.documents.deployment import deployment
from trellis.verify.documents.guides import guide
from trellis.verify.documents.privacy_record import privacy
from trellis.verify.documents.stamps import stamps
from trellis.verify.documents.withdrawn import withdrawn
from trellis.verify.files.run_files import RunFiles
from trellis.verify.files.safe_files import Unreadable
from trellis.verify.report.page import report
from worlds import REMOVE

CHECKS = (stamps, privacy, deployment, guide, data_package, report)
LAPLACE = {"privacy__mechanism": "discrete_laplace", "privacy__budget": {"epsilon": 1}}
TIGHT = {"privacy__budget": {"epsilon": 2, "delta": "1e-7"}}
HONEST: dict[str, tuple[str, dict[str, Any]]] = {
    "counts, replace": ("counts", RHO),
    "counts, Laplace, several records": ("counts", {**LAPLACE, "privacy__max_contribution": 3}),
    "counts, exact totals": ("counts", {**RHO, "unprotected__totals": ["nation", "state"]}),
    "counts, epsilon and delta": ("counts", {**TIGHT, "privacy__max_contribution": 2}),
    "counts, add_remove, topdown": (
        "counts", {"privacy__neighbours": "add_remove", "estimate__method": "topdown"}),
    "counts, gls": ("counts", {"estimate__method": "gls", "output__confidence": "0.995"}),
    "histograms, several records": ("histograms", {**RHO, "privacy__max_contribution": 2}),
    "histograms, rules": ("histograms", RULES),
    "histograms, audit, exact totals": (
        "histograms",
        {**RULES, "estimate__edit_rules": "audit", "unprotected__totals": ["state"]}),
    "histograms, used rows": (
        "histograms", {"estimate__method": "topdown", "output__measurements": "used"}),
    "histograms, gls": ("histograms", {"estimate__method": "gls", "output__microdata": REMOVE}),
    "histograms, Laplace": ("histograms", {**LAPLACE, "unprotected__totals": ["nation"]}),
    "sizes": ("group_sizes", RHO),
    "sizes, relaxed": ("group_sizes", {"estimate__method": "cumulative_relaxed"}),
    "sizes, histogram, several records": (
        "group_sizes", {"estimate__method": "histogram_exact", "privacy__max_contribution": 2}),
    "flows": ("flows", RHO),
    "flows, add_remove": (
        "flows",
        {"privacy__neighbours": "add_remove", "privacy__max_contribution": 2,
         "estimate__method": "chebyshev"}),
    "flows, Laplace": ("flows", {**LAPLACE, "estimate__method": "gls_sparse"}),
}  # fmt: skip
SPINES: dict[str, dict[str, Any]] = {
    "spine": {},
    "spine, add_remove": {"privacy": {"neighbours": "add_remove"}},
    "spine, Laplace": {"privacy": {"mechanism": "discrete_laplace", "budget": {"epsilon": 1}},
                       "spine": ["bypass"]},
    "spine, several records": {"privacy": {"max_contribution": 3}},
    "areas": {"spine": None},
}  # fmt: skip


def broken(run: Path) -> list[str]:
    return [problem for check in CHECKS for problem in check(RunFiles(run))]


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_release_holds(tmp_path, name):
    kind, changes = HONEST[name]
    spec = trellis.Spec.load(WORLDS[kind].write(tmp_path, **changes))
    assert broken(trellis.run(spec, tmp_path / "run").path) == []


@pytest.mark.parametrize("name", SPINES)
def test_an_honest_release_on_a_spine_holds(tmp_path, name):
    assert broken(spine_worlds.release(tmp_path, **SPINES[name]).path) == []


def test_an_honest_release_of_flows_by_mode_holds(tmp_path):
    release = flow_worlds.release_into(
        tmp_path, flow_worlds.TRIPS, data={"origin": "home", "destination": "work"},
        schema={"mode": ["car", "bus"]}, privacy__max_contribution=2,
    )  # fmt: skip
    assert broken(release.path) == []


def test_an_honest_release_with_odd_names_holds(tmp_path):
    """Signs that mean something in Markdown and HTML are escaped, the same way twice."""
    woman, man = "<b>f & `*`", "m|[x](y)"
    people = PEOPLE.replace(",f,", f",{woman},").replace(",m,", f",{man},")
    odd = {"kind": "histograms", "schema": {"age": {"range": [0, 3]}, "sex": [woman, man]}}
    spec = trellis.Spec.load(write_histogram_world(tmp_path, people, **odd))
    assert broken(trellis.run(spec, tmp_path / "run").path) == []


# -- one change at a time -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> dict[str, Path]:
    """A release of each kind, and one on a spine."""
    found = {}
    for kind, world in WORLDS.items():
        folder = tmp_path_factory.mktemp(kind)
        rules = RULES if kind == "histograms" else {}
        spec = trellis.Spec.load(world.write(folder, **RHO, **rules))
        found[kind] = trellis.run(spec, folder / "run").path
    found["spine"] = spine_worlds.release(tmp_path_factory.mktemp("spine")).path
    return found


@pytest.fixture(params=[*WORLDS, "spine"])
def run(request, finished, tmp_path) -> Path:
    return Path(shutil.copytree(finished[request.param], tmp_path / "run"))


@lru_cache(maxsize=1)
def unchanged(run: Path) -> RunFiles:
    """Tables and plan, which no test here changes, are read once."""
    return RunFiles(run)


def noticed(check: Callable[[RunFiles], Iterator[str]], run: Path) -> bool:
    """As verification does: whatever cannot be read is noticed."""
    files = unchanged(run)
    for name in ("privacy", "identity", "manifest"):
        files.__dict__.pop(name, None)
    try:
        return any(check(files))
    except (Unreadable, TrellisError, ArithmeticError, LookupError, TypeError, ValueError,
            AttributeError):  # fmt: skip
        return True


def leaves(content: Any, place: tuple = ()) -> Iterator[tuple]:
    """The places of all values that are no mappings or lists with content."""
    inside = (
        content.items() if isinstance(content, dict)
        else enumerate(content) if isinstance(content, list) else ()
    )  # fmt: skip
    if not inside:
        yield place
    for key, value in inside:
        yield from leaves(value, (*place, key))


def changed(value: Any) -> Any:
    match value:
        case bool() | None:
            return "x" if value is None else not value
        case int():
            return value + 1
        case float():
            return value * (1 + 1e-6) + 1e-6
        case str():
            return f"{value} x"
    return ["x"]


def with_leaf(content: Any, place: tuple, change: Callable[[Any], Any] = changed) -> Any:
    """A copy with one leaf changed."""
    if not place:
        return change(content)
    copy = content.copy()
    copy[place[0]] = with_leaf(content[place[0]], place[1:], change)
    return copy


def unnoticed(run: Path, name: str, check: Callable[[RunFiles], Iterator[str]]) -> list[tuple]:
    """The leaves of a document that can be changed, dropped or joined without a word."""
    text = (run / name).read_text(encoding="utf-8")
    is_yaml = name.endswith(".yaml")
    content = yaml.safe_load(text) if is_yaml else json.loads(text)
    head = "".join(line for line in text.splitlines(True) if line.startswith("#") and is_yaml)

    def passes(forged: Any) -> bool:
        said = yaml.safe_dump(forged, sort_keys=False) if is_yaml else json.dumps(forged)
        (run / name).write_text(head + said, encoding="utf-8")
        return not noticed(check, run)

    places = list(leaves(content))
    assert len(places) > 5
    found = [place for place in places if passes(with_leaf(content, place))]
    for key in content:
        rest = {k: v for k, v in content.items() if k != key}
        found += [("without", key)] * passes(rest)
    found += [("and more",)] * passes({**content, "note": "true: 17"})
    (run / name).write_text(text, encoding="utf-8")
    assert not noticed(check, run)
    return found


@pytest.mark.parametrize(
    ("name", "check"),
    [("privacy.json", privacy), ("deployment.yaml", deployment),
     ("release/datapackage.json", data_package)],
)  # fmt: skip
def test_every_value_of_a_document_is_guarded(run, name, check):
    assert unnoticed(run, name, check) == []


def test_every_stamp_has_its_form(run):
    """Times, versions and seeds can be others; they cannot be anything else."""
    free = {
        ("tie_seed",),
        *((key, stage) for key in ("seconds",) for stage in ("estimate", "release")),
    }
    assert set(unnoticed(run, "run.json", stamps)) <= free
    listed = unnoticed(run, "manifest.json", stamps)
    assert set(listed) <= free


def test_every_line_of_the_guide_is_guarded(run):
    path = run / "release" / "README.md"
    lines = path.read_text(encoding="utf-8").split("\n")
    for number, line in enumerate(lines):
        for forged in (f"{line} x", line[1:], None):
            if forged == line:
                continue
            kept = lines[:number] + ([] if forged is None else [forged]) + lines[number + 1 :]
            path.write_text("\n".join(kept), encoding="utf-8")
            assert noticed(guide, run), line
    path.write_text("\n".join(lines), encoding="utf-8")
    assert not noticed(guide, run)


def test_comments_of_the_record_are_guarded(run):
    path = run / "deployment.yaml"
    text = path.read_text(encoding="utf-8")
    for forged in (f"{text}# true: 17\n", text.replace("# Privacy", "# No privacy")):
        path.write_text(forged, encoding="utf-8")
        assert noticed(deployment, run)


SHELL = ("<style>", "<title>", "Content-Security-Policy", "</body>")


def test_every_number_and_word_of_the_report_is_guarded(run):
    """One number or word of each element, drawn pictures and data included; and the shell."""
    path = run / "report" / "index.html"
    text = path.read_text(encoding="utf-8")
    parts = re.split(r"(?<=>)", text)
    spots = [i for i, part in enumerate(parts) if re.search(r"\d", part)]
    spots = spots[:: max(1, len(spots) // 40)]
    for i in spots:
        forged = re.sub(r"\d", lambda digit: str((int(digit[0]) + 1) % 10), parts[i], count=1)
        path.write_text("".join([*parts[:i], forged, *parts[i + 1 :]]), encoding="utf-8")
        assert noticed(report, run), parts[i][:200]
    for old in SHELL:
        path.write_text(text.replace(old, f"{old}<p>true: 17</p>", 1), encoding="utf-8")
        assert noticed(report, run), old
    path.write_text(text, encoding="utf-8")
    assert not noticed(report, run)


def test_a_report_of_another_version_is_not_compared_except_for_its_data(run):
    manifest = json.loads((run / "manifest.json").read_text())
    write_json(run / "manifest.json", {**manifest, "trellis": "0.0.1"})
    path = run / "report" / "index.html"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("<h2>", "<h2>Once more: "), encoding="utf-8")
    files = RunFiles(run)
    assert list(report(files)) == []
    assert files.notes == [
        "the text of report/index.html was not compared: another version made it"
    ]
    if '"value":[' in text:
        path.write_text(text.replace('"value":[', '"value":[1'), encoding="utf-8")
        assert noticed(report, run)


def test_a_notice_of_withdrawal_says_what_it_must(tmp_path):
    spec = trellis.Spec.load(WORLDS["counts"].write(tmp_path))
    first = trellis.run(spec, tmp_path / "run")
    again = trellis.run(spec, tmp_path / "again", new_edition=True)
    ledger = trellis.Ledger(next(tmp_path.rglob("*.sqlite")))
    ledger.withdraw_run(first, reason="A mistake (of ours).", superseded_by=again)
    assert [f.problems for f in verify_run(first.path) if f.problems] == []
    notice = json.loads((first.path / "withdrawn.json").read_text())
    for key in notice:
        forged = json.dumps(notice | {key: f"{notice[key]} x"})
        (first.path / "withdrawn.json").write_text(forged)
        assert noticed(withdrawn, first.path), key
