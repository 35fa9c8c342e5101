"""Which feature works for which kind of release: every pair is tried on a tiny world.

    PYTHONPATH=src:tests .venv/bin/python tests/kinds/composition.py

writes `docs/composition.md`. A test makes the page again and compares.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow.csv as pa_csv

import trellis as tr
from flow_worlds import write_flow_world
from histogram_release_worlds import write_histogram_world
from size_worlds import write_size_world
from trellis.errors import TrellisError
from trellis.spec.kinds import SPECS
from worlds import REMOVE, write_world

PAGE = Path(__file__).parents[2] / "docs" / "composition.md"

WRITE: dict[str, Callable[..., Path]] = {
    "counts": write_world,
    "histograms": write_histogram_world,
    "group_sizes": write_size_world,
    "flows": write_flow_world,
}
USUAL: dict[str, Any] = {
    "privacy__neighbours": "replace",
    "privacy__mechanism": "discrete_gaussian",
    "privacy__budget": {"rho": 1},
}
"""Every feature is tried on this; a feature changes what it must."""

LAPLACE = {"privacy__mechanism": "discrete_laplace", "privacy__budget": {"epsilon": 1}}
PLACES = "town,place\na1,p\na2,p\nb1,q\n"
BEDS = "town,beds\na1,900\na2,900\nb1,900\nc,900\n"


class Refused(Exception):
    """What the program says."""


@dataclass(frozen=True)
class Trial:
    """A kind in a folder of its own."""

    kind: str
    folder: Path

    def spec(self, **changes: Any) -> tr.Spec:
        return tr.load(WRITE[self.kind](self.folder, kind=self.kind, **USUAL | changes))

    def plan(self, **changes: Any) -> Any:
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "places.csv").write_text(PLACES)
        (self.folder / "beds.csv").write_text(BEDS)
        return self.spec(**changes).plan()


Attempt = Callable[[Trial], str | None]
"""Words that qualify success, if any."""


def planned(**changes: Any) -> Attempt:
    def attempt(trial: Trial) -> str:
        return " ".join(trial.plan(**changes).spec.old_spellings)

    return attempt


@cache
def released(kind: str) -> tuple[Trial, Any]:
    """One release of each kind serves all features of finished releases."""
    trial = Trial(kind, Path(tempfile.mkdtemp(prefix="trellis-composition-")))
    return trial, trial.spec().run()


def reestimated(trial: Trial) -> str:
    """Every method of the kind, or of those that fit what was measured."""
    _, release = released(trial.kind)
    done, refused = [], None
    for method in SPECS[trial.kind].methods:
        try:
            release.estimate(method, trial.folder / method)
            done.append(method)
        except TrellisError as error:
            refused = refused or str(error)
    return ", ".join(done) + (f"; else: {refused}" if refused else "")


def evaluated(trial: Trial) -> None:
    made, release = released(trial.kind)
    tr.evaluate_run(release, made.folder / "spec.yaml", trial.folder / "CONFIDENTIAL-evaluation")


def verified(trial: Trial) -> None:
    if not (found := released(trial.kind)[1].verify()).holds:
        raise Refused("; ".join(found.problems))


def area_tree(trial: Trial) -> None:
    page = (released(trial.kind)[1].path / "report" / "index.html").read_text()
    if 'id="tree"' not in page:
        raise Refused("The report of this kind has no such section.")


FRAMES = {
    "data": "records", "hierarchy": "hierarchy", "group_register": "register"
}  # fmt: skip


def from_frames(trial: Trial) -> None:
    """Tables in memory in the place of all files."""
    spec = trial.spec()
    given = spec.to_dict()
    frames = {
        FRAMES[key]: pa_csv.read_csv(trial.folder / given[key].pop("source"))
        for key in FRAMES
        if key in given
    }
    tr.Spec.parse(given, trial.folder).with_frames(**frames).check()


def from_sql(trial: Trial) -> None:
    """The records are in a database."""
    table = pa_csv.read_csv(trial.folder / trial.spec().data.source)
    path = trial.folder / "people.db"
    with sqlite3.connect(path) as connection:
        names = ", ".join(f'"{name}"' for name in table.column_names)
        connection.execute(f"CREATE TABLE people ({names})")
        marks = ", ".join("?" * table.num_columns)
        connection.executemany(
            f"INSERT INTO people VALUES ({marks})",
            list(zip(*table.to_pydict().values(), strict=True)),
        )
    trial.spec(data__source={"sql": f"sqlite:{path}", "query": "SELECT * FROM people"}).check()


def compared(trial: Trial) -> None:
    trial.plan().compare("uniform", "optimal")


def simulated(trial: Trial) -> None:
    plan, prior = trial.plan(), trial.folder / "earlier.csv"
    shutil.copy(trial.folder / plan.spec.data.source, prior)  # as public counts would look
    plan.simulate(3, prior=prior)


def suggested(trial: Trial) -> None:
    trial.plan(**AREAS).suggest()


def used_rows(trial: Trial) -> None:
    """The method that needs no others, where the kind has it."""
    method = {"estimate__method": "topdown"} if "topdown" in SPECS[trial.kind].methods else {}
    trial.plan(output__measurements="used", **method)


AREAS = {"areas__place": {"source": "places.csv", "area": "town", "entity": "place"}}
FEATURES: dict[str, Attempt] = {
    "areas of interest (`areas`)": planned(**AREAS),
    "a spine (`spine`)": planned(spine=["bypass"]),
    "exact totals (`unprotected.totals`)": planned(unprotected__totals=["state"]),
    "computed shares (`privacy.shares: optimal`)": planned(privacy__shares="optimal"),
    "targets (`accuracy`)": planned(
        accuracy=[{"level": "state", "within": 20}], privacy__budget=REMOVE
    ),
    "comparing strategies (`plan --compare`)": compared,
    "simulation on public counts (`plan --simulate`)": simulated,
    "suggested spines (`plan --suggest`)": suggested,
    "attributes (`schema`)": planned(schema={"age": ["0", "1", "2", "3"], "sex": ["f", "m"]}),
    "public bounds (`constraints`)": planned(
        constraints=[{"name": "beds", "source": "beds.csv", "area": "town", "query": "total",
                      "at_most": "beds", "binds": "output"}]),
    "structural zeros (`structural_zeros`)": planned(structural_zeros=["age = 0 and sex = f"]),
    "edit rules (`edit_rules`)": planned(edit_rules=["age = 0 requires age > 1"]),
    "microdata (`output.microdata`)": planned(output__microdata=True),
    "only used rows (`output.measurements: used`)": used_rows,
    "discrete Gaussian noise": planned(),
    "discrete Laplace noise": planned(**LAPLACE),
    "neighbours `replace`": planned(),
    "neighbours `add_remove`": planned(privacy__neighbours="add_remove"),
    "several records of a unit (`max_contribution`)": planned(
        privacy__max_contribution=3),
    "other methods afterwards (`estimate --method`)": reestimated,
    "comparison with the truth (`evaluate`)": evaluated,
    "verification (`verify`)": verified,
    "tree of areas in the report": area_tree,
    "frames in place of files (Python)": from_frames,
    "records in a database (`sql`)": from_sql,
}  # fmt: skip


def outcome(kind: str, feature: str) -> tuple[bool, str]:
    """Whether it works; how far, or what the program says."""
    with tempfile.TemporaryDirectory(prefix="trellis-composition-") as place:
        folder = Path(place) / "world"
        try:
            return True, FEATURES[feature](Trial(kind, folder)) or ""
        except (TrellisError, Refused) as error:
            return False, str(error).replace(f"{folder}/spec.yaml: ", "")


def outcomes() -> Iterator[tuple[str, str, bool, str]]:
    for feature in FEATURES:
        for kind in SPECS:
            yield (feature, kind, *outcome(kind, feature))


HEAD = """# What goes with what

Every feature was tried on every kind of release, on a tiny world. This page is generated
(`tests/kinds/composition.py`), and a test makes it again: it says what the program does. Where
something is refused, the number leads to what the program says.

"""


def page() -> str:
    """The matrix, then what the program says where it refuses."""
    found = {(feature, kind): (works, words) for feature, kind, works, words in outcomes()}
    said: dict[str, int] = {}
    lines = [f"| | {' | '.join(SPECS)} |", f"|---|{'---|' * len(SPECS)}"]
    for feature in FEATURES:
        row = [_cell(*found[feature, kind], said) for kind in SPECS]
        lines.append(f"| {feature} | {' | '.join(row)} |")
    notes = [f"{number}. {_markdown(words)}" for words, number in said.items()]
    return HEAD + "\n".join(lines) + "\n\n## What is said\n\n" + "\n".join(notes) + "\n"


def _cell(works: bool, words: str, said: dict[str, int]) -> str:
    if words:
        said.setdefault(words, len(said) + 1)
    note = f" ({said[words]})" if words else ""
    return f"{'works' if works else 'refused'}{note}"


def _markdown(words: str) -> str:
    return words.replace("<", "&lt;").replace("*", "\\*")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
