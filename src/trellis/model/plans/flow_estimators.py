"""The estimators of flows that a spec can name, and what they are given.

A rule fits the children of one pair to its count. Alone it looks at one level after another; after
`gls_` it is given estimates that also rest on the levels below.
"""

from __future__ import annotations

FLOW_ESTIMATORS = (
    "chebyshev", "chebyshev_descending", "l2", "sparse", "gls_chebyshev", "gls_l2", "gls_sparse",
)  # fmt: skip
DEFAULT_FLOW_ESTIMATOR = "gls_chebyshev"
DEFAULT_PENALTY = 2
"""Of the sparse ones, in standard deviations."""
MOST_PENALTY = 1000

_BELOW = "gls_"


def looks_below(estimator: str) -> bool:
    """Whether estimates of a level rest on the levels below it too."""
    return estimator.startswith(_BELOW)


def has_penalty(estimator: str) -> bool:
    """Whether it sets a price on flows that are not zero."""
    return rule_of(estimator) == "sparse"


def rule_of(estimator: str) -> str:
    """How the children of one pair are fitted to its count."""
    return estimator.removeprefix(_BELOW)


def descent_rule(estimator: str) -> str:
    """The rule that decides below which pairs the next level is measured.

    What lies below is unknown then, so an estimator that looks there leaves it to `chebyshev`.
    """
    return "chebyshev" if looks_below(estimator) else estimator
