"""The parts of a reading guide that several kinds of release share."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from trellis.verify.documents.figures import Figures
from trellis.verify.documents.markdown import plain
from trellis.verify.documents.statement import attacks, guarantee
from trellis.verify.files.run_files import RunFiles
from trellis.wording import guides as words

Plan = dict[str, Any]


def lines(texts: Iterable[str]) -> str:
    """A list in Markdown."""
    return "\n".join(words.LINE.format(text=text) for text in texts)


def levels(plan: Plan) -> str:
    """Levels with their number of areas."""
    rows = [words.LEVEL.format(level=plain(x["level"]), areas=x["areas"]) for x in plan["levels"]]
    return "\n".join([words.LEVELS_HEAD, *rows])


def areas(plan: Plan) -> str:
    """Areas of interest, where there are some."""
    found = plan.get("areas", [])
    rows = [words.AREA.format(area=plain(x["name"]), number=x["entities"]) for x in found]
    return words.AREAS.format(rows="\n".join(rows)) if rows else ""


def errors(run: RunFiles) -> str:
    """The section on margins of error, of counts and histograms."""
    text = words.ABOUT_ERRORS[run.plan["method"]]
    if run.has_centres:
        text = words.ERRORS_WITH_SUMS.format(
            errors=text,
            confidence=confidence(run.plan),
            sums_of_errors=words.SUMS_OF_ERRORS,
            instead=words.USE_A_LEVEL
            if run.plan["kind"] == "histograms"
            else words.USE_A_LEVEL_OR_AREA,
        )
    return words.ERRORS.format(errors=text)


def confidence(plan: Plan) -> str:
    return words.CONFIDENCE.format(share=100 * float(Fraction(plan["confidence"])))


def codes(file: str, columns: list[str]) -> str:
    """How to read a CSV file; `columns` are those with text."""
    return words.CODES.format(
        file=file,
        pandas=", ".join(words.PANDAS.format(column=name) for name in columns),
        r=", ".join(words.R.format(column=name) for name in columns),
    )


def protected(run: RunFiles) -> str:
    """The section on privacy."""
    figures = Figures(run)
    sentences = guarantee(run.plan, figures) + attacks(run.plan, figures)
    return words.PROTECTED.format(protected=lines(map(plain, sentences)))
