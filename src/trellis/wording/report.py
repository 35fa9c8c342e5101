"""What the report of a release says, section by section, as plain text."""

from __future__ import annotations

# -- what was released ----------------------------------------------------------------------------

RELEASED = "What was released"
RELEASED_TEXT = (
    "{what} for {levels} levels{cells}, made private with noise{together}. Noise was added once. "
    "It is independent of errors that the data had before."
)
CELLS = ", {cells:,} cells for each area"
TOGETHER = " and put together so that they add up"
LEVEL, TABLE = "level", "table"
HOW_TO_READ = "How to read the tables"

# -- privacy --------------------------------------------------------------------------------------

PROTECTED = "What is protected"
IN_PLAIN_WORDS = (
    "In plain words: with {otherwise}, this release would have looked much the same. What can be "
    "learned from it about any single {unit} is limited, whoever looks, whatever else they know, "
    "now and later.{restricted}"
)
OTHERWISE = {
    "add_remove": "one {unit} more or less in the data",
    "replace": "another record of any one {unit}",
}
RESTRICTED = " This has restrictions, stated below."
NOT_PROTECTED = "What is not protected"
ATTACKER = "What an attacker can learn"
ATTACKER_TEXT = "Someone who knows every record but one looks for evidence about that one."
TRADE_OFF = "Trade-off of any attack"
FALSE_ALARMS, MISSED = "false alarms", "missed detections"
BEST_ATTACK, GUESSING = "best attack", "guessing"
TRADE_OFF_CAPTION = "The closer the line lies to guessing, the less any attack can achieve."
HOW_PRIVATE = "How private it is"
PRIVACY_CURVE = "Privacy curve"
DELTA, EPSILON = "delta", "epsilon"
EXACT_CURVE, ZCDP_CURVE = "exact", "zCDP bound"
PRIVACY_CURVE_CAPTION = (
    "The release keeps every pair of epsilon and delta on the line; smaller is better."
)
BUDGET = "Where the budget went"
SHARES = "Share of the budget"
SHARE_CLASS = "{level} ({nodes:,})"
NO_NOISE = "none: exact"
BUDGET_COLUMNS = ("level", "query", "share", "sd of the noise ({unit})")

# -- accuracy -------------------------------------------------------------------------------------

ACCURACY = "How accurate it is"
NO_MARGINS = "The method of this release has no margins of error."
ABOUT_ERRORS = (
    "A standard error belongs to the best linear unbiased estimate of a count, made from all "
    "measurements. It follows from the noise and the exact numbers alone."
)
MEDIAN_ERROR = "Median standard error of a count ({unit})"
ERRORS_ARE_IN = "Standard errors of all counts that are not exact, in {unit}; 0 is exact:"
ERROR_COLUMNS = ("table", "counts", "least", "median", "largest")
OF_AREAS = "{area} (areas)"
BY_SIZE = "Margin of error by size of the count"
BY_SIZE_X = "published count ({unit})"
BY_SIZE_Y = "half the {confidence} interval, % of the count"
BY_SIZE_CAPTION = "Compared with a small count, the margin is large."
STATISTICS = "Half of an interval of a statistic, median over areas, with {confidence} confidence:"
STATISTIC_COLUMNS = ("level", "statistic", "half interval")
STATISTIC_NAMES = {
    "mean_size": "mean size",
    "median": "median size",
    "share_of_size_1": "share of groups of size 1",
    "gini": "Gini coefficient of sizes",
    "groups": "number of groups",
}

MARGIN = "How to read a margin of error"
MARGIN_EXAMPLE = (
    "For example, {level} {area} ({cell}): published {value}, interval {lower} to {upper}. With "
    "{confidence} confidence the true number lies in it."
)
ALL_EXACT = "The numbers of this release are exact."
MARGIN_RULES = (
    "Of 100 such intervals about {share:g} contain the true count. Some miss it.",
    "The published count need not lie in the middle: it is made to add up.",
    "Two areas whose intervals overlap may be equally large.",
    "Do not add up ends of intervals; take the interval of the area that holds them.",
    "The margin covers the noise that protects people, and no other error.",
)

# -- areas ----------------------------------------------------------------------------------------

INTERESTS = "Areas of interest"
INTEREST = "{number:,} areas."
SPINE = (
    "Noise was spent on an internal tree, the spine, and estimates were carried back to the "
    "published levels and areas as sums of their leaves. Before: without the spine. {steps}."
)
EFFECTS = "Mean expected standard error of a count, in records"
EFFECT_OF_LEVEL = "{level} (level)"
AREAS = "Areas"
OPEN_AN_AREA = (
    "Open an area to see the areas in it. Counts are in {unit}. The black mark is the published "
    "number{interval}"
)
WITH_INTERVAL = (
    ", the blue band its interval of {confidence} confidence. A number without noise is exact."
)
WITHOUT_INTERVAL = ". The method of this release has no intervals."
SMALLEST_TABLE = " This page shows the smallest table of each level; the others are files."
ALL_CELLS = "all cells together"
SUMS_HAVE_NO_INTERVAL = " Sums of several cells have no interval."
FIRST_CELLS = " A table with more than {most} cells is cut to the first {most}."
MOST_CELLS = 60
"""This many cells of a table are shown area by area; the others are in the tables."""
PLAIN_COLUMNS = ("area", "{measure}", "{confidence}lower", "{confidence}upper")
MOST_PLAIN_ROWS = 60
MOST_TREE_BYTES = 16_000_000
"""The data in a page; with text and pictures, a page stays below 20 MB."""
FEWEST_AREA_BYTES = 8
"""An area takes at least this much for its code and its numbers."""

# -- histograms -----------------------------------------------------------------------------------

COUNTED = "What is counted"
FACTOR = "{name}: {text}"
MICRODATA = "Microdata"
MICRODATA_TEXT = (
    ": one row per record, made from the published counts; no row is the record of a real person."
)
PUBLISHED = "What is published, and how accurate it is"
PUBLISHED_TEXT = (
    "A standard error belongs to the best linear unbiased estimate of a count, made from all "
    "measurements. {counts} The tables are in the folder release, one for each level and query."
)
WHOLE_COUNTS = "The published count is whole and not negative."
REAL_COUNTS = "The published count is this estimate: a real number, which may be negative."
MEDIAN_OF_TOTALS = "Median standard error of a total (records)"
PUBLISHED_COLUMNS = ("level", "query", "areas", "cells", "least", "median", "largest")
RULES = "Rules"
ZERO = "No one is counted in {rule}."
ENFORCED = "Edit rules hold where sums and bounds allow; areas that break one are counted here."
NOT_ENFORCED = "Edit rules are checked and not enforced."
AUDIT_COLUMNS = ("level", "rule", "areas it applies to", "areas that break it")

# -- flows ----------------------------------------------------------------------------------------

FLOWS = "Flows"
NO_FLOWS = "No flow is above zero."
FLOWS_CAPTION = (
    "The largest flows of level {level}. A ribbon has the colour of the area where its trips "
    "begin; the more trips, the wider it is. Trips within an area are loops outside the circle."
)
LARGEST_FLOWS = "The largest flows of level {level}:"
FLOW_COLUMNS = ("origin", "destination", "trips", "standard error (trips)")
RIBBON = "{origin} to {destination}: {count:,}"
FLOW_ERRORS = (
    "The standard error of a flow is that of {estimate}. The true number lies between lower and "
    "upper with {confidence} confidence, for a flow that was named before the table was seen. "
    "Among flows that were picked because they are listed, more are too high than too low. A pair "
    "without any trip can be listed."
)
FLOW_ESTIMATE = {
    False: "its own measurement",
    True: "the best linear unbiased estimate from all measurements above and below it",
}
"""By whether the method looks at the levels below."""
MEDIAN_OF_FLOWS = "Standard error of a flow (trips), median of those listed"
FLOW_ERRORS_ARE_IN = "Standard errors of listed flows that are not exact, in trips; 0 is exact:"
FLOW_ERROR_COLUMNS = ("table", "listed pairs", "least", "median", "largest")

# -- how to cite ----------------------------------------------------------------------------------

CITE = "How to cite"
CITE_TEXT = "Put the publisher's name and the place of publication around this:"
CITATION = (
    "{release} ({date}). Differentially private release, run {run_id}; unit of protection: {unit}; "
    "({epsilon}, {delta})-differential privacy{restricted}. Made with Trellis {version}."
)
CITE_RESTRICTED = ", with the restrictions in privacy.json"
STATE_INTERVALS = "State the interval with every number that you quote."
