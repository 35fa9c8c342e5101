"""What `release/datapackage.json` says about the tables of a release."""

from __future__ import annotations

PROFILE = "data-package"
DESCRIPTION = (
    "Differentially private tables made with Trellis. README.md says how to read them, "
    "../privacy.json what is protected."
)
TABLE_TITLE = "{release}: {table}"
MEDIA_TYPES = {"csv": "text/csv", "parquet": "application/vnd.apache.parquet"}

CODES = {
    "geocode": "Code of the area; text, with leading zeros.",
    "level": "Level of the area, or category of areas.",
    "origin": "Code of the area of origin; text, with leading zeros.",
    "destination": "Code of the area of destination; text, with leading zeros.",
    "dest": "Code of the area of destination; text, with leading zeros.",
    "statistic": "Name of the statistic.",
}
"""Columns of text, by name."""
OTHER_TEXT = "A category, or the code of an area; text."
NUMBERS = {
    "count": "The published count.",
    "value": "The published statistic.",
    "std_error": "Standard error of the best linear unbiased estimate of the count.",
    "lower": "Lower end of the {confidence} interval for the true value.",
    "upper": "Upper end of the {confidence} interval for the true value.",
}
NO_VARIANCES = "Empty: the method of this release has no variances."
