"""The reading guide of a release of counts, and the parts that all guides share."""

from __future__ import annotations

from collections.abc import Sequence

from trellis.model.plans.methods import GLS, GLS_TOPDOWN, TOPDOWN, Method
from trellis.model.plans.plan import Plan
from trellis.model.plans.statement import attacks_in_words, guarantee_in_words
from trellis.release.documents.markdown import code, plain
from trellis.wording import guides as words


def errors_in_markdown(plan: Plan) -> str:
    """The section on margins of error."""
    errors = _about_errors(plan.method)
    if plan.method.has_variances:
        by_query = plan.design.by_query
        errors = words.ERRORS_WITH_SUMS.format(
            errors=errors,
            confidence=confidence_in_words(plan),
            sums_of_errors=words.SUMS_OF_ERRORS,
            instead=words.USE_A_LEVEL if by_query else words.USE_A_LEVEL_OR_AREA,
        )
    return words.ERRORS.format(errors=errors)


def _about_errors(method: Method) -> str:
    """What is said of a method, or else of all that promise the same."""
    alike = (GLS_TOPDOWN if method.whole else GLS) if method.has_variances else TOPDOWN
    return words.ABOUT_ERRORS.get(method.name, words.ABOUT_ERRORS[alike.name])


def confidence_in_words(plan: Plan) -> str:
    """How often intervals contain the truth."""
    return words.CONFIDENCE.format(share=100 * float(plan.confidence))


def codes_in_markdown(file: str, columns: Sequence[str]) -> str:
    """How to read a CSV file without losing the zeros of its codes, with an example."""
    pandas, r = (
        ", ".join(form.format(column=name) for name in columns) for form in (words.PANDAS, words.R)
    )
    return words.CODES.format(file=file, pandas=pandas, r=r)


def levels_in_markdown(plan: Plan) -> str:
    pairs = zip(plan.levels, plan.areas, strict=True)
    rows = [words.LEVEL.format(level=plain(name), areas=n) for name, n in pairs]
    return "\n".join([words.LEVELS_HEAD, *rows])


def _areas_in_markdown(plan: Plan) -> str:
    """Areas of interest, where there are some."""
    if not plan.interests:
        return ""
    rows = [words.AREA.format(area=plain(a.name), number=a.entities) for a in plan.interests]
    return words.AREAS.format(rows="\n".join(rows))


def protected_in_markdown(plan: Plan) -> str:
    """The section on privacy, the same for every kind of release."""
    sentences = guarantee_in_words(plan) + attacks_in_words(plan)
    return words.PROTECTED.format(
        protected="\n".join(words.LINE.format(text=plain(sentence)) for sentence in sentences)
    )


def reading_guide(plan: Plan) -> str:
    """Markdown for users of counts."""
    return words.COUNTS.format(
        release=plain(plan.release),
        levels=levels_in_markdown(plan),
        areas=_areas_in_markdown(plan),
        attributes=", ".join(map(code, plan.schema.names)),
        errors=errors_in_markdown(plan),
        codes=codes_in_markdown(f"{plan.levels[-1]}.csv", ["geocode", *plan.schema.names]),
        protected=protected_in_markdown(plan),
    )
