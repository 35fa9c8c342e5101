"""`run.json` and `manifest.json`: what they hold has the promised form. Yields what is wrong."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from trellis.verify.documents.formats import has_todays_words
from trellis.verify.files.run_files import RunFiles

_VERSION = re.compile(r"\d+(\.[0-9A-Za-z]+)*([-+][0-9A-Za-z.]+)?")
_STAGES = ("estimate", "release")
PACKAGES = ("numpy", "scipy", "numba", "pyarrow", "duckdb", "cryptography")

Form = Callable[[Any], bool]


def stamps(run: RunFiles) -> Iterator[str]:
    """run.json and manifest.json hold names, versions, times and hashes, and nothing else."""
    if not has_todays_words(run, "run.json and manifest.json"):
        return
    csv = run.spec["output"].get("csv")
    of_run: dict[str, Form] = {
        "format": lambda x: x == run.plan["format"] and type(x) is int,
        "run_id": _is_hex(32),
        "ledger_id": _is_hex(32),
        "tie_seed": lambda x: type(x) is int and 0 <= x < 1 << 63,
        "spec_sha256": _is_hex(64),
        "csv": lambda x: x is csv,
    }
    of_manifest: dict[str, Form] = {
        "release": lambda x: x == run.plan["release"],
        "run_id": lambda x: x == run.identity["run_id"],
        "created": _is_time,
        "trellis": _is_version,
        "python": _is_version,
        "packages": lambda x: set(x) == set(PACKAGES) and all(map(_is_version, x.values())),
        "seconds": lambda x: set(x) <= set(_STAGES) and all(map(_is_duration, x.values())),
        "sha256": lambda x: all(map(_is_hex(64), x.values())),
    }
    yield from _misfits("run.json", run.identity, of_run)
    yield from _misfits("manifest.json", run.manifest, of_manifest)


def _misfits(name: str, content: Mapping[str, Any], forms: Mapping[str, Form]) -> Iterator[str]:
    if set(content) - set(forms):
        yield f"{name} has a key that no run writes"
    for key, fits in forms.items():
        if key not in content or not fits(content[key]):
            yield f"{name} does not have the promised form in {key}"


def _is_hex(digits: int) -> Form:
    form = re.compile(f"[0-9a-f]{{{digits}}}")
    return lambda x: isinstance(x, str) and form.fullmatch(x) is not None


def _is_version(x: Any) -> bool:
    return isinstance(x, str) and len(x) <= 40 and _VERSION.fullmatch(x) is not None


def _is_duration(x: Any) -> bool:
    """In seconds, to the thousandth."""
    return type(x) is float and math.isfinite(x) and x >= 0 and x == round(x, 3)


def _is_time(x: Any) -> bool:
    """To the second, in UTC."""
    return datetime.fromisoformat(x).astimezone(UTC).isoformat(timespec="seconds") == x
