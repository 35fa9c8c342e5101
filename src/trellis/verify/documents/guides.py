"""`release/README.md`: the reading guide, made again. Yields what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import zip_longest
from math import prod

import numpy as np

from trellis.verify.documents import guide_parts as parts
from trellis.verify.documents.formats import has_todays_words, require_known_kind
from trellis.verify.documents.histogram_guide import histogram_guide
from trellis.verify.documents.markdown import code, plain
from trellis.verify.documents.methods import confidence
from trellis.verify.files.run_files import RunFiles
from trellis.verify.files.safe_files import MOST_YAML_BYTES, read_text
from trellis.wording import guides as words

NAME = "release/README.md"


def guide(run: RunFiles) -> Iterator[str]:
    """Every line of the reading guide follows from the plan and the tables."""
    require_known_kind(run)
    if not has_todays_words(run, NAME):
        return
    expected = GUIDES[run.plan["kind"]](run).split("\n")
    found = read_text(run.path, NAME, MOST_YAML_BYTES).split("\n")
    for number, (one, other) in enumerate(zip_longest(found, expected), start=1):
        if one != other:
            yield f"{NAME} does not say what follows from the plan and the tables in line {number}"
            return


def _counts(run: RunFiles) -> str:
    plan, attributes = run.plan, list(run.plan["schema"])
    return words.COUNTS.format(
        release=plain(plan["release"]),
        levels=parts.levels(plan),
        areas=parts.areas(plan),
        attributes=", ".join(map(code, attributes)),
        errors=parts.errors(run),
        codes=parts.codes(f"{plan['levels'][-1]['level']}.csv", ["geocode", *attributes]),
        protected=parts.protected(run),
    )


def _group_sizes(run: RunFiles) -> str:
    plan = run.plan
    return words.GROUP_SIZES.format(
        release=plain(plan["release"]),
        levels=parts.levels(plan),
        most=prod(len(categories) for categories in plan["schema"].values()) - 1,
        method=plan["method"],
        promise=_promise(run),
        confidence=parts.confidence(plan),
        sums_of_errors=words.SUMS_OF_ERRORS,
        codes=parts.codes(f"{plan['levels'][-1]['level']}.csv", ["geocode"]),
        protected=parts.protected(run),
    )


def _promise(run: RunFiles) -> str:
    if run.adds_up:
        joint = run.plan["method"] == "cumulative_joint"
        return words.KEEPS_GROUPS if joint else words.ADDS_UP
    broken = 0
    for above, below in zip(run.levels, run.levels[1:], strict=False):
        totals = np.zeros((len(above), run.n_cells), dtype=np.int64)
        np.add.at(totals, below.parent, _estimates(run, below.name))
        broken += int((totals != _estimates(run, above.name)).sum())
    return words.RELAXED.format(broken=broken)


def _estimates(run: RunFiles, level: str) -> np.ndarray:
    """Counts of all nodes x sizes, those that only pass through included."""
    counts = run.table(f"estimates/level={level}.parquet", ["count"])["count"].to_numpy()
    return counts.reshape(-1, run.n_cells)


def _flows(run: RunFiles) -> str:
    plan, attributes = run.plan, run.plan["flow"]["attributes"]
    rows = [
        words.FLOW_LEVEL.format(
            level=plain(level["level"]),
            pairs=level["areas"],
            published=_published(run, level["level"]),
        )
        for level in plan["levels"]
    ]
    return words.FLOWS.format(
        release=plain(plan["release"]),
        levels="\n".join([words.FLOW_LEVELS_HEAD, *rows]),
        attributes="".join(f", {code(name)}" for name in attributes),
        matrix="od_matrix",
        estimate=words.FLOW_ESTIMATE[plan["method"].startswith("gls_")],
        confidence=confidence(plan),
        method=plan["method"],
        codes=parts.codes(
            f"{plan['levels'][-1]['level']}.csv", ["origin", "destination", *attributes]
        ),
        protected=parts.protected(run),
    )


def _published(run: RunFiles, level: str) -> int:
    """How many pairs are listed."""
    return run.n_rows(f"release/{level}.parquet")


GUIDES: dict[str, Callable[[RunFiles], str]] = {
    "counts": _counts,
    "histograms": histogram_guide,
    "group_sizes": _group_sizes,
    "flows": _flows,
}
