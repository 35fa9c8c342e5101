"""Turns each validation error into a line: which key, what is wrong, what is allowed."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

from pydantic import BaseModel, ValidationError

from trellis.spec.reading.older import OLDER

_NO_DEFAULT = {
    "unit": "say who is protected, such as person; it has no default",
    "neighbours": "replace or add_remove; it has no default",
    "max_contribution": "the most records one unit can have; it has no default",
    "mechanism": "discrete_gaussian or discrete_laplace; it has no default",
    "budget": "such as {rho: 1}, {epsilon: 2, delta: 1e-10} or {epsilon: 1}; it has no default",
    "sizes": "declare the largest size, such as sizes: {cap: 20, top_code: true}; it must not be "
    "read off the records",
    "group_register": "the groups that exist, and where, from a public source; the records do not "
    "tell which groups are empty",
    "privacy.shares": "how the budget is split over the levels, such as uniform or "
    "{county: 1/3, tract: 2/3}; it has no default for this kind",
    "data.origin": "the column with the area where a trip begins",
    "data.destination": "the column with the area where it ends",
    "schema": "the attributes with their categories, such as {sex: [female, male]}",
}
"""What to write for a key that is missing, by its place or its name."""

_WHOLE_NUMBER = "a whole number is needed"
_NEEDED = {
    "string_type": "text is needed, in quotes where it looks like a number",
    "string_unicode": "readable text is needed",
    "string_too_short": "text of {min_length} characters or more is needed",
    "string_too_long": "text of {max_length} characters at most is needed",
    "int_type": _WHOLE_NUMBER,
    "int_parsing": _WHOLE_NUMBER,
    "int_parsing_size": _WHOLE_NUMBER,
    "int_from_float": _WHOLE_NUMBER,
    "finite_number": _WHOLE_NUMBER,
    "greater_than_equal": "{ge:,} is the least",
    "less_than_equal": "{le:,} is the most",
    "bool_type": "write true or false",
    "bool_parsing": "write true or false",
    "literal_error": "use {expected}",
    "enum": "use {expected}",
    "dict_type": "names with values are needed, such as {{name: value}}",
    "too_short": "{min_length} or more are needed",
    "invalid_key": "keys are text; quote them",
}
"""In place of pydantic's words, which are for programmers."""


def sentences(error: ValidationError, model: type[BaseModel]) -> list[str]:
    """Every problem in a line of its own."""
    problems = error.errors(include_url=False, include_context=True)
    # An unknown key is often the cause of a missing one: report it first.
    problems.sort(key=lambda p: p["type"] != "extra_forbidden")
    return list(dict.fromkeys(_sentence(problem, model) for problem in problems))


def without_unknown(values: dict[str, Any], error: ValidationError) -> dict[str, Any]:
    """The same keys without those that no one knows."""
    unknown = [p["loc"] for p in error.errors(include_url=False) if p["type"] == "extra_forbidden"]
    for place in unknown:
        values = _without(values, [str(part) for part in place if not str(part).startswith("~")])
    return values


def _without(values: Any, place: Sequence[str]) -> Any:
    if not isinstance(values, dict) or place[0] not in values:
        return values
    rest = {key: value for key, value in values.items() if key != place[0]}
    if len(place) == 1:
        return rest
    return {**rest, place[0]: _without(values[place[0]], place[1:])}


def _sentence(problem: Any, model: type[BaseModel]) -> str:
    # A part that begins with ~ tells two forms of one key apart; people do not write it, nor [key].
    parts = [part for part in map(str, problem["loc"]) if part != "[key]"]
    place = [part for part in parts if not part.startswith("~")]
    where = ".".join(place)
    if problem["type"] == "extra_forbidden":
        if kinds := _kinds_with(model, place):
            return (
                f"`{where}` is not a key of `kind: {_kind_of(model)}`, only of {_listed(kinds)}. "
                "Take it out, or change the kind."
            )
        allowed = _keys_at(model, place[:-1])
        near = get_close_matches(place[-1], allowed, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}?" if near else f"allowed here: {', '.join(allowed)}."
        return f"Unknown key {where!r}; {hint}"
    if problem["type"] == "missing":
        hint = _NO_DEFAULT.get(where) or _NO_DEFAULT.get(place[-1])
        return f"Missing key {where!r}" + (f": {hint}." if hint else ".")
    if problem["type"] == "string_pattern_mismatch":
        return f"{where}: use letters, digits, spaces, dots, hyphens and underscores (80 at most)."
    message = _needed(problem, _keys_at(model, place))
    return f"{where}: {message}." if where else f"{message}."


def _kind_of(model: type[BaseModel]) -> str:
    return str(model.model_fields["kind"].default)


def _listed(names: Sequence[str]) -> str:
    return " or ".join([", ".join(names[:-1]), names[-1]] if names[1:] else names)


def _kinds_with(model: type[BaseModel], place: Sequence[str]) -> list[str]:
    """The other kinds of release that have a key which this one does not have."""
    from trellis.spec.kinds import SPECS  # which imports this module

    if "kind" not in model.model_fields:
        return []
    found = {
        kind: _keys_at(other, place[:-1])
        for kind, other in SPECS.items()
        if place[0] not in other.not_supported
    }
    older = OLDER.get(".".join(place), ())
    return [kind for kind, keys in found.items() if place[-1] in keys or kind in older]


def _needed(problem: Any, keys: Sequence[str]) -> str:
    """What should be there; `keys` are those of a section at this place."""
    kind = problem["type"]
    if kind == "model_type":
        return f"keys with values are needed: {', '.join(keys)}"
    if kind in ("tuple_type", "list_type"):
        each = (
            f", each of its parts with the keys {', '.join(keys)}" if keys else ", such as [a, b]"
        )
        return f"a list is needed{each}"
    if kind == "value_error":  # words of our own validators
        return str(problem["ctx"]["error"]).removesuffix(".")
    return _NEEDED.get(kind, "this value cannot be used here").format(**problem.get("ctx", {}))


def _keys_at(model: type[BaseModel], place: Sequence[str]) -> list[str]:
    """The keys that the model under `place` knows."""
    for part in place:
        field = model.model_fields.get(part)
        if field is None:  # a name in a mapping, or a position in a list
            continue
        found = [t for t in _types_in(field.annotation) if issubclass(t, BaseModel)]
        if not found:
            return []
        model = found[0]
    return list(model.model_fields)


def _types_in(annotation: Any) -> list[type]:
    if isinstance(annotation, type):
        return [annotation]
    return [t for part in getattr(annotation, "__args__", ()) for t in _types_in(part)]
