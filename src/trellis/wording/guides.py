"""The reading guide of a release, `release/README.md`: Markdown for users of its tables."""

from __future__ import annotations

# -- levels and areas -----------------------------------------------------------------------------

LEVELS_HEAD = "| level | areas |\n|---|---|"
LEVEL = "| {level} | {areas} |"
AREAS = """
In `areas/`, with the name of the category as `level`; sums of the last level:

| areas | number |
|---|---|
{rows}
"""
AREA = "| {area} | {number} |"
FLOW_LEVELS_HEAD = "| level | possible pairs | published |\n|---|---|---|"
FLOW_LEVEL = "| {level} | {pairs:,} | {published:,} |"
TABLES_HEAD = "| level | areas | table | cells of each area |\n|---|---|---|---|"
TABLE = "| {level} | {areas:,} | {file} | {cells:,} |"
NO_TABLE = "| {level} | {areas:,} | none | |"

# -- whole pages ----------------------------------------------------------------------------------

COUNTS = """# {release}

One table per level, as Parquet; some also as CSV.

{levels}
{areas}
Columns: `geocode` (the area), `level`, {attributes} (the cell), `count` (the published count),
`std_error`, `lower`, `upper`. Counts of areas add up to the count of the area above them,
in every cell.

{errors}

{codes}

{protected}
"""

HISTOGRAMS = """# {release}

One table for each level and query, as Parquet; some also as CSV.

{files}

Columns: `geocode` (the area), `level`, the attributes that the query keeps (the cell), `count`
(the published count), `std_error`, `lower`, `upper`. Counts of areas add up to the count of the
area above them, in every cell, and cells add up to the cells of coarser tables.
{microdata}
## Attributes

{factors}

{errors}
{fit}{rules}{bounds}{audit}{codes}
{protected}
"""

GROUP_SIZES = """# {release}

One table per level, as Parquet; some also as CSV.

{levels}

Columns: `geocode` (the area), `level`, `size`, `count` (how many groups of the area have that
size), `std_error`, `lower`, `upper`. Sizes run from 0 to {most}; where larger groups exist, they
count as {most}. Mechanism: `{method}`. {promise}

`statistics/` has per area: `groups` (public, exact), `share_of_size_1` (of all groups, those of
size 0 included), `mean_size`, quantiles, and the Gini coefficient of sizes (`gini`). Values are
those of the published table, so sizes beyond {most} enter as {most}. `lower` and `upper` enclose
the true value with the stated confidence; `gini` has no interval.

## Margins of error

`std_error` belongs to the best linear unbiased estimate of the count, made from all measurements.
The published `count` uses more: no count is negative, and sizes have an order. `lower` and `upper`
enclose the true count with the stated confidence: an interval around the unbiased estimate, rounded
to whole numbers, kept between zero and the number of groups of the area, and widened where needed
to contain the published count. {confidence}

{sums_of_errors} Use the published level that is the sum.

Noise was added once, to protect people. It is independent of errors that the data had before.

{codes}

{protected}
"""

FLOWS = """# {release}

One table of flows per level of the tree, origin level first in its name, as Parquet; some also as
CSV. Pairs that are not listed have a count of zero.

{levels}

Columns: `origin` and `destination` (the areas){attributes}, `count` (the published number of
trips), `std_error`, `lower`, `upper`. Counts add up exactly from level to level. `{matrix}.parquet`
holds all pairs of the finest areas as `origin`, `dest` and `count`.

## Margins of error

`std_error` is that of {estimate}. `lower` and
`upper` enclose the true number with {confidence} confidence, for a flow that was
named before the table was seen: an interval around that number, rounded, kept between zero and the
total where that is exact, and widened where needed to contain the published count. Among flows that
were picked because they are listed, or because they are large, more are too high than too low.

The published count is whole and was fitted to the counts of the levels above (estimator
`{method}`). A pair without any trip can be listed, one with a few can be missing.

{codes}

{protected}
"""

# -- margins of error -----------------------------------------------------------------------------

ERRORS = """## Margins of error

{errors}

Noise was added once, to protect people. It is independent of errors that the data had before."""
ABOUT_ERRORS = {
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
CONFIDENCE = (
    "The confidence is {share:g} %: of 100 such intervals about {share:g} contain the truth."
)
SUMS_OF_ERRORS = """Do not add standard errors in quadrature (the root of the sum of their squares),
as one does for independent surveys: these estimates share measurements, and their errors are
correlated. For a sum the root is too large: in the demo of Trellis, 1.9 times for a county from its
tracts, and 14 times from its blocks. For a difference between neighbours it is too small."""
"""The factors are medians over the counties; a test measures them."""
ERRORS_WITH_SUMS = "{errors} {confidence}\n\n{sums_of_errors} {instead}"
USE_A_LEVEL = "Use the published level that is the sum."
USE_A_LEVEL_OR_AREA = (
    "Use the published level that is the sum, or have it released under `areas` in the spec."
)
FLOW_ESTIMATE = {
    False: "the noisy measurement of the flow itself",
    True: "the best linear unbiased estimate from all measurements above and below",
}
"""By whether the method looks at the levels below."""

# -- group sizes ----------------------------------------------------------------------------------

RELAXED = (
    "It is relaxed, for comparison with others: counts of areas need not add up to the area above "
    "them, and in {broken:,} places (an area and a size) they do not."
)
KEEPS_GROUPS = (
    "Counts of areas add up to the count of the area above them, for every size, and all sizes of "
    "an area to its number of groups."
)
ADDS_UP = (
    "Counts of areas add up to the count of the area above them, for every size, and all sizes of "
    "the first area to the number of groups; other areas may differ."
)

# -- histograms -----------------------------------------------------------------------------------

MICRODATA = (
    "\n`microdata.parquet` has one row per record: the codes of its areas, and its attributes. "
    "Counting its rows gives every table here. The rows are made from noisy counts; no "
    "row is the record of a real person.\n"
)
LINE = "- {text}"
FACTOR = "- {name}: {text}"
RECODE = "a coarser {attribute}: {groups}"
GROUP = "{group} ({members})"
RANGE = "{number:,} categories from {first} to {last}"
MOST_NAMED = 100
"""Categories that are listed one by one; a range of ages is told by its ends."""
FIT = """
## How well the counts fit

The counts of areas below one area are those that fit the noisy measurements best, rounded. In at
least one such family the solver stopped early: before rounding, its counts may be up to \
{distance:.2g} (root
mean square) away from the best fit, where {usual:g} is usual.{errors}
"""
FIT_ERRORS = """ Standard errors
and intervals do not depend on it: they are those of the linear estimates."""
USUAL_FIT = 0.03
"""What families are solved to; a fit that is no worse is not mentioned."""
NO_RULES = """
No rule or bound is imposed on the estimates: that is what keeps them unbiased. A cell that
must be empty may have a small count of either sign. Sums and averages of many counts are
unbiased too; do not clip counts at zero before adding them up.
"""
ZEROS = """
## What cannot be

These cells are empty everywhere:

{rules}
"""
BOUNDS = """
## Bounds

The counts keep these; the bounds are in `../constraints.parquet`.

{bounds}
"""
BOUND = "{query} on level {level}{grouped}: {sense} what a public table states ({label})."
GROUPED = ", summed over groups of areas"
SENSES = {"=": "equal to", "<=": "at most", ">=": "at least"}
AUDIT = """
## Edit rules

{about}

| rule | level | areas it applies to | areas that break it |
|---|---|---|---|
{rows}
"""
AUDITED = "| {rule} | {level} | {applies_to:,} | {broken_in:,} |"
ENFORCED = (
    "People were exchanged between areas with the same area above them, so that these rules hold "
    "where sums and stated bounds allow. Areas that still break one are counted here."
)
NOT_ENFORCED = (
    "These rules are checked and not enforced; areas that break one do so because of the noise, or "
    "did so in the records."
)

# -- codes, privacy -------------------------------------------------------------------------------

CODES = """## Codes are text

Codes and categories are text: `01` is not 1. Parquet files say so; CSV files cannot, and many
programs drop the zeros, or take the code `NA` for a missing one. Tell them, or follow the types in
`datapackage.json`:

```text
pandas  pd.read_csv("{file}", dtype={{{pandas}}}, keep_default_na=False, na_values=[""])
R       read.csv("{file}", colClasses = c({r}), na.strings = "")
```

In CSV files `std_error` has four significant digits, and text that a spreadsheet would take for a
formula has an apostrophe in front; Parquet files have all digits, and the text itself."""
PANDAS = '"{column}": str'
R = '"{column}" = "character"'
HISTOGRAM_CODES = "\n{codes}\n"

PROTECTED = """## What is protected

{protected}

The exact noise of every level is in `../privacy.json`. `trellis verify` checks files, sums,
intervals and costs; see `docs/trust.md` of Trellis for what it cannot find."""
