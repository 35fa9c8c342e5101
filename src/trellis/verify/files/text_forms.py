"""Whether files of text are written as a run writes them. Yields what is wrong.

What a reader of YAML or JSON passes over (comments, blank space, a key that is there twice) could
say anything.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import yaml

from trellis.verify.files.run_files import RunFiles
from trellis.verify.files.safe_files import (
    FORMAT,
    MOST_JSON_BYTES,
    MOST_YAML_BYTES,
    load_json,
    read_text,
)

SPEC = "spec.yaml"


def written(run: RunFiles) -> Iterator[str]:
    """Text is written as a run writes it: no comments, no blank space, no key twice."""
    if run.plan.get("format", 1) < FORMAT:
        run.leave_out("an older format: comments and blank space in text were not looked for")
        return
    as_yaml = yaml.safe_dump(run.spec, sort_keys=False, allow_unicode=True)
    if read_text(run.path, SPEC, MOST_YAML_BYTES) != as_yaml:
        yield f"{SPEC} has comments, or a form, that no run writes"
    for name in sorted(run.sizes):
        if name.endswith(".json") and not _is_plain(run, name, load_json(run.path, name)):
            yield f"{name} has blank space, or a form, that no run writes"


def _is_plain(run: RunFiles, name: str, content: Any) -> bool:
    expected = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    return read_text(run.path, name, MOST_JSON_BYTES) == expected
