"""Reads YAML strictly: no repeated keys, no anchors, decimal numbers kept as written."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from trellis.errors import SpecError

_MOST_BYTES = 1_000_000
_PLAIN = re.compile(r"[-+]?(0|[1-9][0-9]*)")


class _StrictLoader(yaml.SafeLoader):
    """Refuses what YAML accepts and people do not mean."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise SpecError(f"Line {event.start_mark.line + 1}: anchors and aliases are not used.")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str):
                raise SpecError(
                    f"Line {key_node.start_mark.line + 1}: the key {key!r} is not text; quote it."
                )
            if key in seen:
                raise SpecError(f"Line {key_node.start_mark.line + 1}: key {key!r} occurs twice.")
            seen.add(key)
        return super().construct_mapping(node, deep=deep)

    def construct_decimal_text(self, node: Any) -> str:
        return self.construct_scalar(node)

    def construct_whole_number(self, node: Any) -> int:
        """YAML would read 010 as eight, 1:30 as ninety, and lose the zeros of the code 01001."""
        text = self.construct_scalar(node)
        if not _PLAIN.fullmatch(text):
            raise SpecError(
                f"Line {node.start_mark.line + 1}: {text!r} is not a plain whole number; if it is "
                "a code, quote it."
            )
        return int(text)


_StrictLoader.add_constructor("tag:yaml.org,2002:int", _StrictLoader.construct_whole_number)
# A float would round 0.1 before it becomes an exact fraction; a date would lose its spelling.
for _tag in ("float", "timestamp"):
    _StrictLoader.add_constructor(f"tag:yaml.org,2002:{_tag}", _StrictLoader.construct_decimal_text)


def read_yaml(path: Path) -> dict[str, Any]:
    """The mapping in a YAML file."""
    try:
        size = path.stat().st_size
    except OSError:
        raise SpecError(f"There is no spec at {path}.") from None
    if not path.is_file():
        raise SpecError(f"{path} is not a file; name the spec's YAML file.")
    if size > _MOST_BYTES:
        raise SpecError(f"{path} is larger than a spec can be ({_MOST_BYTES} bytes).")
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), _StrictLoader)  # noqa: S506
    except SpecError as error:
        raise SpecError(f"{path}: {error}") from None
    except OSError as error:
        raise SpecError(f"{path} could not be read ({error.strerror}).") from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise SpecError(f"{path} is not readable YAML{_place(error)}.") from None
    if not isinstance(content, dict):
        raise SpecError(f"{path} must hold keys and values, such as 'release: my-release'.")
    return content


def _place(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None)
    return f" (line {mark.line + 1}: {problem})" if mark is not None else ""
