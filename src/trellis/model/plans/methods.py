"""Methods of estimation as descriptors: what a method promises, not how it works."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from trellis.wording.kinds import METHODS


@dataclass(frozen=True, slots=True)
class Method:
    """What a reader of a release, and every stage after measuring, may rely on.

    `whole`: counts are whole and not negative. `has_variances`: standard errors are known.
    `adds_up`: children add up to their parents. `looks_below`: estimates of an area also rest on
    the measurements of the areas in it, so that every measurement is used. `on_spine`: works on an
    internal tree other than the published one.
    """

    name: str
    in_words: str
    whole: bool = True
    has_variances: bool = True
    adds_up: bool = True
    looks_below: bool = True
    on_spine: bool = False

    def __str__(self) -> str:
        return self.name


AnyMethod = TypeVar("AnyMethod", bound=Method)


def by_name(methods: Iterable[AnyMethod]) -> Mapping[str, AnyMethod]:
    """Methods under the names that a spec writes."""
    return {method.name: method for method in methods}


GLS_TOPDOWN = Method(
    "gls_topdown",
    METHODS["gls_topdown"],
    on_spine=True,
)
TOPDOWN = Method(
    "topdown",
    METHODS["topdown"],
    has_variances=False,
    looks_below=False,
)
GLS = Method(
    "gls",
    METHODS["gls"],
    whole=False,
    on_spine=True,
)
BOTTOMUP = Method(
    "bottomup",
    METHODS["bottomup"],
    has_variances=False,
)
