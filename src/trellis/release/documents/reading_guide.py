"""The page beside the tables that says how to read them."""

from __future__ import annotations

from collections.abc import Sequence

from trellis.model.plans.methods import GLS, GLS_TOPDOWN, TOPDOWN, Method
from trellis.model.plans.percent import in_percent
from trellis.model.plans.plan import Plan
from trellis.model.plans.statement import attacks_in_words, guarantee_in_words
from trellis.release.documents.markdown import code, plain

_ABOUT_ERRORS = {
    "gls_topdown": (
        "`std_error` is the standard error of the best linear unbiased estimate of the count, made "
        "from all measurements. The published `count` is the nearest set of whole, non-negative "
        "numbers that add up. `lower` and `upper` enclose the true count with the stated "
        "confidence: an interval around the unbiased estimate, rounded to whole numbers, kept to "
        "what can be true, and widened where needed to contain the published count. No count is "
        "negative; exact totals, and zeros and bounds that bind the records, may say more. Where "
        "they leave one number, `std_error` is 0."
    ),
    "gls": (
        "`count` is the best linear unbiased estimate: a real number that may be negative, "
        "consistent over all levels. `std_error` is its standard error; `lower` and `upper` "
        "enclose the true count with the stated confidence. They are kept to what exact totals "
        "allow, except to contain the count itself; where these leave one number, `std_error` is 0."
    ),
    "topdown": (
        "The method of this release has no variances: `std_error`, `lower` and `upper` are empty."
    ),
    "bottomup": (
        "Counts were made for the smallest areas and added up; the method has no variances: "
        "`std_error`, `lower` and `upper` are empty."
    ),
}


SUMS_OF_ERRORS = """Do not add standard errors in quadrature (the root of the sum of their squares),
as one does for independent surveys: these estimates share measurements, and their errors are
correlated. For a sum the root is too large: in the demo of Trellis, 1.9 times for a county from its
tracts, and 14 times from its blocks. For a difference between neighbours it is too small."""
"""The factors are medians over the counties; a test measures them."""


def errors_in_markdown(plan: Plan) -> str:
    """The section on margins of error."""
    errors = _about_errors(plan.method)
    if plan.method.has_variances:
        instead = "Use the published level that is the sum" + (
            "." if plan.design.by_query else ", or have it released under `areas` in the spec."
        )
        errors += f" {confidence_in_words(plan)}\n\n{SUMS_OF_ERRORS} {instead}"
    return f"""## Margins of error

{errors}

Noise was added once, to protect people. It is independent of errors that the data had before."""


def _about_errors(method: Method) -> str:
    """What is said of a method, or else of all that promise the same."""
    alike = (GLS_TOPDOWN if method.whole else GLS) if method.has_variances else TOPDOWN
    return _ABOUT_ERRORS.get(method.name, _ABOUT_ERRORS[alike.name])


def confidence_in_words(plan: Plan) -> str:
    """How often intervals contain the truth."""
    share = in_percent(plan.confidence)
    return f"The confidence is {share}: of 100 such intervals about {share[:-2]} contain the truth."


def codes_in_markdown(file: str, columns: Sequence[str]) -> str:
    """How to read a CSV file without losing the zeros of its codes, with an example."""
    pandas = ", ".join(f'"{name}": str' for name in columns)
    r = ", ".join(f'"{name}" = "character"' for name in columns)
    return f"""## Codes are text

Codes and categories are text: `01` is not 1. Parquet files say so; CSV files cannot, and many
programs drop the zeros, or take the code `NA` for a missing one. Tell them, or follow the types in
`datapackage.json`:

```text
pandas  pd.read_csv("{file}", dtype={{{pandas}}}, keep_default_na=False, na_values=[""])
R       read.csv("{file}", colClasses = c({r}), na.strings = "")
```

In CSV files `std_error` has four significant digits, and text that a spreadsheet would take for a
formula has an apostrophe in front; Parquet files have all digits, and the text itself."""


def levels_in_markdown(plan: Plan) -> str:
    rows = [f"| {plain(name)} | {n} |" for name, n in zip(plan.levels, plan.areas, strict=True)]
    return "\n".join(["| level | areas |", "|---|---|", *rows])


def _areas_in_markdown(plan: Plan) -> str:
    """Areas of interest, where there are some."""
    if not plan.interests:
        return ""
    rows = [f"| {plain(area.name)} | {area.entities} |" for area in plan.interests]
    head = [
        "",
        "In `areas/`, with the name of the category as `level`; sums of the last level:",
        "",
    ]
    return "\n".join([*head, "| areas | number |", "|---|---|", *rows, ""])


def protected_in_markdown(plan: Plan) -> str:
    """The section on privacy, the same for every kind of release."""
    sentences = guarantee_in_words(plan) + attacks_in_words(plan)
    protected = "\n".join(f"- {plain(sentence)}" for sentence in sentences)
    return f"""## What is protected

{protected}

The exact noise of every level is in `../privacy.json`. `trellis verify` checks files, sums,
intervals and costs; see `docs/trust.md` of Trellis for what it cannot find."""


def reading_guide(plan: Plan) -> str:
    """Markdown for users of counts."""
    attributes = ", ".join(map(code, plan.schema.names))
    return f"""# {plain(plan.release)}

One table per level, as Parquet; some also as CSV.

{levels_in_markdown(plan)}
{_areas_in_markdown(plan)}
Columns: `geocode` (the area), `level`, {attributes} (the cell), `count` (the published count),
`std_error`, `lower`, `upper`. Counts of areas add up to the count of the area above them,
in every cell.

{errors_in_markdown(plan)}

{codes_in_markdown(f"{plan.levels[-1]}.csv", ["geocode", *plan.schema.names])}

{protected_in_markdown(plan)}
"""
