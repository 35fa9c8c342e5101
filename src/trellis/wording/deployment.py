"""What `deployment.yaml` says, in the fields of the OpenDP deployments registry."""

from __future__ import annotations

HEAD = """\
# Privacy record in the fields of the OpenDP deployments registry.
# For the curator to fill in, in a copy: {open_fields}.
# The sector (deployment.basic.data_product_sector) may be added.
"""
TO_FILL_IN = "To be filled in."
"""Stands where the registry wants a text that only the curator knows."""

STATUS = "Draft"
TIER = 3
PRODUCT_TYPE = "Summary statistics"
DESCRIPTION = (
    "{what} for every area of the levels (number of areas): {levels}; {cells:,} cell(s) for each "
    "area{margins}."
)
LEVEL = "{level} ({areas:,})"
MARGINS = ", with {confidence} intervals"

PURE = "Pure DP"
CONCENTRATED = "Zero-concentrated DP"
DOMAIN = (
    "All tables in which a {unit} has at most {most} record(s), over the public list of areas and "
    "categories."
)
NEIGHBOURS = {
    "add_remove": "Two data sets are neighbours if one has the records of one more unit of "
    "protection.",
    "replace": "Two data sets are neighbours if the records of one unit of protection differ.",
}
MODEL = {
    "model_name": "Central",
    "model_name_details": "The curator holds the records, adds noise once, and publishes.",
    "actors": "To be filled in.",
    "release_type": "One release",
    "release_type_details": "This record is about one release. The curator's ledger is charged "
    "before noise is drawn, and adds up what other releases of the same records cost.",
    "data_source_type": "Static",
    "access_type": "Non-interactive",
}
POST_PROCESSING = "{method}{sums} Computed from the noisy measurements and exact totals alone."
SUMS = " Areas add up to the area above them."
COMPOSITION = (
    "Sequential over levels and queries; within one, the areas partition the records. Added up "
    "exactly, in fractions; epsilon at a delta is the exact one of the composed noise. Shares of "
    "the budget: {shares}."
)
SHARE = "{level}, {query}: {share}"
MECHANISMS = (
    "{laws} noise on whole numbers, sampled exactly with integer arithmetic from the operating "
    "system's random bits; no floating-point number decides on noise or budget. Exact parameters "
    "of each level are in privacy.json. Made with Trellis {version}."
)
