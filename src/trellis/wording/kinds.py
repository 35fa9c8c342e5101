"""What the kinds of release count, and what their methods do, in words."""

from __future__ import annotations

KINDS = {
    "counts": {
        "title": "Counts",
        "described": "Counts of records",
        "counted_in": "records",
        "counted_at_most": "areas",
    },
    "histograms": {
        "title": "Counts",
        "described": "Counts of records",
        "counted_in": "records",
        "counted_at_most": "areas",
    },
    "group_sizes": {
        "title": "Groups by size",
        "described": "Groups by size",
        "counted_in": "groups",
        "counted_at_most": "areas",
    },
    "flows": {
        "title": "Flows",
        "described": "Flows between areas",
        "counted_in": "trips",
        "counted_at_most": "possible pairs",
    },
}
"""What is released, at the head of a report and in a record of deployments; what a count, its
noise and its errors are in; what has a count of its own, where only some of them are published."""

METHODS = {
    "gls_topdown": "Best linear unbiased estimates from all measurements, then the nearest whole "
    "non-negative counts.",
    "topdown": "From the root down, the whole non-negative counts nearest to the measurements.",
    "gls": "Best linear unbiased estimates from all measurements, consistent over all levels.",
    "bottomup": "Whole non-negative counts of the smallest areas, added up.",
}
"""What the methods of counts and histograms do."""

FITTED = "Whole non-negative numbers fitted to the measurements by {method}."
"""What the methods of the other kinds do."""

PERCENT = "{share:g} %"
